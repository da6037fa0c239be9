//! Which ServiceAccounts are bound to the ClusterRole of an extension, and what the binding contains (spec 85 E). Pure.

use std::collections::BTreeMap;

use cluster::{
    object,
    object::{GroupVersionKind, NamespacedName},
};
use jiff::Timestamp;
use kit::{hash_of, quote::cut};
use serde_json::{Map, Value, json};

use crate::{
    actors::controller_manager::{
        fields::{list, text, without_empty},
        owner_references::controller_reference,
    },
    api::{
        kinds,
        meta::{record::Record, selector::Selector},
    },
};

/// The label of ClusterRoles that are bound, with its value.
pub const LABEL: (&str, &str) = ("authorization.gardener.cloud/custom-extensions-permissions", "true");
/// The annotation with the selector of ServiceAccounts.
pub const SELECTOR: &str = "authorization.gardener.cloud/extensions-serviceaccount-selector";

/// ServiceAccounts of Projects in one binding: each takes up to 400 bytes, and an object may have 1.5 MB.
pub const MOST_OF_PROJECTS: usize = 500;

const PREFIX: &str = "extension-shoot--";
const GARDEN: &str = "garden";
const PROJECTS: &str = "garden-";
const SEEDS: &str = "seed-";

/// What counts of a ClusterRole with the label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleFacts {
    /// Its uid.
    pub uid: Box<str>,
    /// It is being deleted.
    pub is_deleting: bool,
    /// The ServiceAccounts. `Err`: the text about the annotation.
    pub selector: Result<Selector, Box<str>>,
}

/// What counts of a binding, mostly as hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingFacts {
    /// uid of its controller, by owner reference; empty if there is none.
    pub controller: Box<str>,
    owners: u64,
    role: u64,
    subjects: u64,
}

/// A ServiceAccount that a ClusterRole selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedAccount {
    /// Its name.
    pub name: NamespacedName,
    /// When it was created.
    pub created: Option<Timestamp>,
}

/// The subjects of a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subjects {
    /// Sorted by namespace and name.
    pub accounts: Vec<NamespacedName>,
    /// How many ServiceAccounts of Projects found no place.
    pub left_out: usize,
}

impl RoleFacts {
    /// Reads a ClusterRole; `None` without the label.
    pub fn of(role: &Value) -> Option<Self> {
        (object::label(role, LABEL.0) == Some(LABEL.1)).then(|| Self {
            uid: object::uid(role).into(),
            is_deleting: object::deletion_timestamp(role).is_some(),
            selector: selector(role).map_err(Box::from),
        })
    }
}

/// `null` is no selector (DEV-14).
fn selector(role: &Value) -> Result<Selector, String> {
    let Some(text) = object::annotation(role, SELECTOR) else {
        return Err("no service account selector annotations present".to_owned());
    };
    let record: Record<'_> = serde_json::from_str(text)
        .map_err(|error| format!("failed unmarshalling extensions service account selector {}: {error}", cut(text)))?;
    Selector::of_record(record).map_err(|error| format!("failed parsing label selector {}: {error}", cut(text)))
}

/// Returns true if the name of a ServiceAccount is that of an extension, without the strict mode (E.3).
pub fn is_extension_account(account: &NamespacedName) -> bool {
    let NamespacedName { namespace, name } = account;
    namespace.starts_with(SEEDS)
        || (name.starts_with(PREFIX) && (namespace == GARDEN || namespace.starts_with(PROJECTS)))
}

/// Returns true if the name of a ServiceAccount alone proves that it belongs to an extension (E.4): nobody but operators
/// can create ServiceAccounts in the Namespace of a Seed.
pub fn is_of_seed(account: &NamespacedName) -> bool {
    account.namespace.starts_with(SEEDS)
}

/// Returns the subjects among the ServiceAccounts that a ClusterRole selects. Nobody but operators can create
/// ServiceAccounts in `garden` and in the Namespaces of Seeds: all of these count. Those of Projects have
/// [`MOST_OF_PROJECTS`] places (DEV-21). The places go around: to the oldest ServiceAccount of each Namespace, then to the
/// second oldest, so that no Project takes those of others.
pub fn subjects(selected: Vec<SelectedAccount>) -> Subjects {
    let mut accounts = Vec::new();
    let mut by_namespace: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for SelectedAccount { name, created } in selected {
        if name.namespace.starts_with(PROJECTS) {
            by_namespace.entry(name.namespace.clone()).or_default().push((created.is_none(), created, name));
        } else {
            accounts.push(name);
        }
    }
    let mut queue = Vec::new();
    for mut of_namespace in by_namespace.into_values() {
        of_namespace.sort();
        queue.extend(of_namespace.into_iter().enumerate());
    }
    queue.sort();
    let left_out = queue.len().saturating_sub(MOST_OF_PROJECTS);
    accounts.extend(queue.into_iter().take(MOST_OF_PROJECTS).map(|(_, (_, _, name))| name));
    accounts.sort();
    Subjects { accounts, left_out }
}

/// Returns the Shoot and the installation in the name of a ServiceAccount, as gardenlet gives it (E.4); `None` for other
/// names.
pub fn shoot_and_installation(account: &NamespacedName) -> Option<(NamespacedName, NamespacedName)> {
    let (shoot, installation) = account.name.strip_prefix(PREFIX)?.split_once("--")?;
    let is_whole = !shoot.is_empty() && !installation.is_empty();
    is_whole.then(|| (NamespacedName::new(account.namespace.as_str(), shoot), NamespacedName::new("", installation)))
}

/// Returns the ServiceAccount of an installation for a self-hosted Shoot.
pub fn account_of(shoot: &NamespacedName, installation: &str) -> NamespacedName {
    NamespacedName::new(shoot.namespace.as_str(), format!("{PREFIX}{}--{installation}", shoot.name))
}

/// Returns the binding of a ClusterRole to these ServiceAccounts, which are sorted.
pub fn binding(role: &str, uid: &str, accounts: &[NamespacedName]) -> Value {
    let cluster_role = kinds::CLUSTER_ROLE;
    let resource = kinds::CLUSTER_ROLE_BINDING;
    let mut binding = Map::new();
    binding.insert("apiVersion".to_owned(), resource.api_version().into());
    binding.insert("kind".to_owned(), (&*resource.kind).into());
    let owner = controller_reference(&cluster_role, role, uid, false);
    binding.insert("metadata".to_owned(), json!({ "name": role, "ownerReferences": [owner] }));
    let of_role = json!({ "apiGroup": &*cluster_role.group, "kind": &*cluster_role.kind, "name": role });
    binding.insert("roleRef".to_owned(), of_role);
    if !accounts.is_empty() {
        let subject = |account: &NamespacedName| json!({ "kind": "ServiceAccount", "namespace": account.namespace, "name": account.name });
        binding.insert("subjects".to_owned(), accounts.iter().map(subject).collect());
    }
    binding.into()
}

impl BindingFacts {
    /// Reads a binding of any shape.
    pub fn of(binding: &Value) -> Self {
        let owners = || list(binding, "/metadata/ownerReferences");
        let is_role = |owner: &&Value| {
            let kind = GroupVersionKind::of(owner).map(|kind| kind.group_kind());
            kind == Some(kinds::CLUSTER_ROLE.group_version_kind().group_kind())
                && owner.get("controller") == Some(&Value::Bool(true))
        };
        let subjects = list(binding, "/subjects");
        let subjects: Vec<_> =
            subjects.map(|it| [text(it, "/kind"), text(it, "/namespace"), text(it, "/name")]).collect();
        Self {
            controller: owners().find(is_role).map(|owner| text(owner, "/uid")).unwrap_or_default().into(),
            owners: hash_of(&owners().map(|owner| without_empty(owner).to_string()).collect::<Vec<_>>()),
            role: hash_of(&binding.get("roleRef").map(|role| without_empty(role).to_string())),
            subjects: hash_of(&subjects),
        }
    }

    /// Returns true if this program made the binding for a ClusterRole: it binds this role, which is its controller.
    pub fn is_of(&self, role: &str, uid: &str) -> bool {
        !uid.is_empty() && &*self.controller == uid && self.role == Self::of(&binding(role, uid, &[])).role
    }

    /// Returns the merge patch that makes a binding like `wanted`; `None` if nothing differs. Labels and annotations stay.
    pub fn patch(&self, wanted: &Value) -> Option<Value> {
        let facts = Self::of(wanted);
        let mut patch = Map::new();
        if self.owners != facts.owners {
            let metadata = json!({ "ownerReferences": wanted["metadata"]["ownerReferences"] });
            patch.insert("metadata".to_owned(), metadata);
        }
        if self.role != facts.role {
            patch.insert("roleRef".to_owned(), wanted["roleRef"].clone()); // refused: the API server's text tells why
        }
        if self.subjects != facts.subjects {
            patch.insert("subjects".to_owned(), wanted.get("subjects").cloned().unwrap_or_default());
        }
        (!patch.is_empty()).then(|| patch.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> NamespacedName {
        let (namespace, name) = text.split_once('/').unwrap();
        NamespacedName::new(namespace, name)
    }

    /// spec 85 E.3, scenarios 54 and 55
    #[test]
    fn extension_accounts_are_known_by_their_names() {
        for extension in ["seed-a/x", "seed-/extension", "garden/extension-shoot--a", "garden-p/extension-shoot--a--b"]
        {
            assert!(is_extension_account(&name(extension)), "{extension}");
        }
        for other in
            ["garden-p/foo", "other/extension-shoot--a", "garden/x-extension-shoot--a", "gardens/extension-shoot--a"]
        {
            assert!(!is_extension_account(&name(other)), "{other}");
        }
    }

    /// spec 85 E.4, scenario 61
    #[test]
    fn extension_accounts_of_the_strict_mode_name_shoot_and_installation() {
        let parts = |text: &str| shoot_and_installation(&name(text)).map(|(shoot, it)| format!("{shoot} {it}"));

        assert_eq!(parts("garden-p/extension-shoot--h--ci1").as_deref(), Some("garden-p/h ci1"));
        assert_eq!(parts("garden-p/extension-shoot--h--a--b").as_deref(), Some("garden-p/h a--b"));
        for none in ["garden-p/extension-shoot--h", "garden-p/extension-shoot----a", "garden-p/extension-shoot--h--"] {
            assert_eq!(parts(none), None, "{none}");
        }
        assert_eq!(account_of(&name("garden-p/h"), "ci1"), name("garden-p/extension-shoot--h--ci1"));
    }

    /// spec 85 DEV-21, scenario 64
    #[test]
    fn extension_accounts_of_projects_have_places_that_go_around() {
        fn account(namespace: &str, second: usize) -> SelectedAccount {
            SelectedAccount {
                name: NamespacedName::new(namespace, format!("extension-shoot--{second}")),
                created: Timestamp::from_second(i64::try_from(second).unwrap()).ok(),
            }
        }
        let many: Vec<_> = (0..2 * MOST_OF_PROJECTS).map(|second| account("garden-many", second)).collect();
        let others =
            [account("garden-q", 9_000), account("garden-q", 9_001), account("garden", 1), account("seed-a", 1)];

        let subjects = subjects(many.iter().chain(&others).cloned().collect());

        assert!(others.iter().all(|other| subjects.accounts.contains(&other.name)));
        assert!(subjects.accounts.contains(&many.first().unwrap().name), "the oldest");
        assert!(!subjects.accounts.contains(&many.last().unwrap().name), "the youngest");
        assert_eq!((subjects.accounts.len(), subjects.left_out), (MOST_OF_PROJECTS + 2, MOST_OF_PROJECTS + 2));
        assert!(subjects.accounts.is_sorted());
    }

    /// spec 85 E.3, scenarios 57 and 58, DEV-14
    #[test]
    fn extension_selectors_that_cannot_be_read_are_errors() {
        let of = |annotation: Option<&str>| {
            let annotations = annotation.map(|text| json!({ SELECTOR: text }));
            let role = json!({ "metadata": { "labels": { LABEL.0: "true" }, "annotations": annotations } });
            RoleFacts::of(&role).unwrap().selector.map_err(String::from)
        };

        assert_eq!(of(None).unwrap_err(), "no service account selector annotations present");
        assert!(of(Some("{")).unwrap_err().starts_with("failed unmarshalling extensions service account selector {: "));
        assert!(of(Some("null")).is_err());
        let unknown = of(Some(r#"{"matchLabel":{"a":"b"}}"#)).unwrap_err();
        assert!(unknown.starts_with("failed parsing label selector {"), "{unknown}");
        assert!(of(Some("{}")).unwrap().is_empty());
        assert!(RoleFacts::of(&json!({ "metadata": { "labels": { LABEL.0: "false" } } })).is_none());
    }

    /// spec 85 E.3, scenarios 54 and 58
    #[test]
    fn extension_binding_is_patched_by_its_differences() {
        let wanted = binding("x", "u", &[name("garden/extension-shoot--a"), name("seed-a/b")]);
        let mut live = wanted.clone();
        live["metadata"]["labels"] = json!({ "a": "b" });
        assert_eq!(BindingFacts::of(&live).patch(&wanted), None);

        live["metadata"]["ownerReferences"] = json!([{ "kind": "Other", "name": "o", "uid": "o" }]);
        let patch = BindingFacts::of(&live).patch(&wanted).unwrap();
        assert_eq!(patch, json!({ "metadata": { "ownerReferences": wanted["metadata"]["ownerReferences"] } }));

        let without = binding("x", "u", &[]);
        assert_eq!(BindingFacts::of(&wanted).patch(&without), Some(json!({ "subjects": null })));
        assert!(without.get("subjects").is_none());
        assert_eq!(&*BindingFacts::of(&wanted).controller, "u");
    }

    /// spec 85 DEV-15
    #[test]
    fn extension_binding_is_of_the_role_that_it_binds_and_that_controls_it() {
        let facts = BindingFacts::of(&binding("x", "u", &[name("seed-a/b")]));

        assert!(facts.is_of("x", "u"));
        assert!(!facts.is_of("x", "other") && !facts.is_of("y", "u") && !facts.is_of("x", ""));
    }
}
