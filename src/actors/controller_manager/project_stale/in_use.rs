//! Whether a Project is in use (spec 82 D.3, D.5). Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cluster::{Resource, object::NamespacedName};
use serde_json::Value;

use super::staleness::Protection;
use crate::{
    actors::controller_manager::bindings::{
        binding::{Binding, BindingKind, BindingName},
        credentials::CredentialsKind,
    },
    api::kinds,
};

/// A kind of objects to which bindings refer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferencedKind {
    /// Secrets, InternalSecrets and WorkloadIdentities.
    Credentials(CredentialsKind),
    /// `core.gardener.cloud/v1beta1` Quota.
    Quota,
}

/// What keeps a Project from being stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A Shoot in its namespace.
    Shoots,
    /// A BackupEntry in its namespace.
    BackupEntries,
    /// An object of this kind in its namespace, to which a binding in use refers.
    Referenced(ReferencedKind),
}

/// What is found out about a Project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its Namespace does not exist: nothing is done.
    NoNamespace,
    /// It is not stale.
    NotStale(Reason),
    /// It is stale.
    Stale,
}

/// Why a Project is not stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// An annotation of its Namespace says so.
    Skipped,
    /// Age or activity.
    Protected(Protection),
    /// It is in use.
    InUse(Use),
}

/// A fact that a judgement asks for. The text is a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// The Namespace itself.
    Namespace(String),
    /// Whether it has a Shoot.
    Shoots(String),
    /// Whether it has a BackupEntry.
    BackupEntries(String),
    /// The bindings of all namespaces that refer to objects in it.
    Bindings(String),
    /// To which of these bindings Shoots refer.
    Used(BTreeSet<BindingName>),
    /// Whether it has an object of this kind with one of these names.
    Objects(ReferencedKind, String, BTreeSet<String>),
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Whether the Namespace is marked to skip the check; `None` if it does not exist.
    Namespace(Option<bool>),
    /// Whether there is such an object.
    Exists(bool),
    /// The bindings.
    Bindings(Vec<NamedReferences>),
    /// Those of the bindings that are in use.
    Used(BTreeSet<BindingName>),
}

/// The objects to which a binding refers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct References(BTreeSet<(ReferencedKind, NamespacedName)>);

/// A binding with what it refers to.
pub type NamedReferences = (BindingName, Arc<References>);

impl ReferencedKind {
    /// All kinds, in the order in which they are checked.
    pub const ALL: [Self; 4] = [
        Self::Credentials(CredentialsKind::Secret),
        Self::Credentials(CredentialsKind::InternalSecret),
        Self::Credentials(CredentialsKind::WorkloadIdentity),
        Self::Quota,
    ];

    /// Returns the kind as the server addresses it.
    pub fn resource(self) -> &'static Resource {
        static QUOTA: Resource = kinds::QUOTA;
        match self {
            Self::Credentials(kind) => kind.resource(),
            Self::Quota => &QUOTA,
        }
    }
}

impl Use {
    /// Returns its name in log records (spec 82 D.5).
    pub fn name(self) -> &'static str {
        match self {
            Self::Shoots => "Shoots",
            Self::BackupEntries => "BackupEntries",
            Self::Referenced(ReferencedKind::Credentials(CredentialsKind::Secret)) => "Secrets",
            Self::Referenced(ReferencedKind::Credentials(CredentialsKind::InternalSecret)) => "InternalSecrets",
            Self::Referenced(ReferencedKind::Credentials(CredentialsKind::WorkloadIdentity)) => "WorkloadIdentities",
            Self::Referenced(ReferencedKind::Quota) => "Quotas",
        }
    }
}

impl References {
    /// Reads a binding.
    pub fn of(kind: BindingKind, binding: &Value) -> Self {
        let binding = Binding::of(kind, binding);
        let credentials = binding.credentials.ok().filter(|credentials| !credentials.name.name.is_empty());
        let credentials =
            credentials.map(|credentials| (ReferencedKind::Credentials(credentials.kind), credentials.name));
        let quotas = binding.quotas.into_iter().map(|quota| (ReferencedKind::Quota, quota));
        Self(credentials.into_iter().chain(quotas).collect())
    }

    /// Returns the namespaces of the objects.
    pub fn namespaces(&self) -> BTreeSet<&str> {
        self.0.iter().map(|(_, name)| name.namespace.as_str()).collect()
    }

    fn within<'a>(&'a self, namespace: &str) -> impl Iterator<Item = (ReferencedKind, &'a str)> {
        let within = self.0.iter().filter(move |(_, name)| name.namespace == namespace);
        within.map(|(kind, name)| (*kind, name.name.as_str()))
    }
}

/// Judges a Project with this namespace. `protection` is why it is not stale, whether it is in use or not.
pub fn judge<E>(
    namespace: &str,
    protection: Option<Protection>,
    ask: impl Fn(Question) -> Result<Answer, E>,
) -> Result<Verdict, E> {
    let namespace = namespace.to_owned();
    let reason = match (ask(Question::Namespace(namespace.clone()))?, protection) {
        (Answer::Namespace(None), _) => return Ok(Verdict::NoNamespace),
        (Answer::Namespace(Some(true)), _) => Some(Reason::Skipped),
        (_, Some(protection)) => Some(Reason::Protected(protection)),
        (_, None) => use_of(namespace, ask)?.map(Reason::InUse),
    };
    Ok(reason.map_or(Verdict::Stale, Verdict::NotStale))
}

/// Returns what uses a namespace: the first hit decides.
fn use_of<E>(namespace: String, ask: impl Fn(Question) -> Result<Answer, E>) -> Result<Option<Use>, E> {
    if exists(&ask(Question::Shoots(namespace.clone()))?) {
        return Ok(Some(Use::Shoots));
    }
    if exists(&ask(Question::BackupEntries(namespace.clone()))?) {
        return Ok(Some(Use::BackupEntries));
    }
    let Answer::Bindings(bindings) = ask(Question::Bindings(namespace.clone()))? else { return Ok(None) };
    if bindings.is_empty() {
        return Ok(None);
    }
    let names = bindings.iter().map(|(name, _)| name.clone()).collect();
    let Answer::Used(used) = ask(Question::Used(names))? else { return Ok(None) };
    let mut objects: BTreeMap<ReferencedKind, BTreeSet<String>> = BTreeMap::new();
    for (_, references) in bindings.iter().filter(|(name, _)| used.contains(name)) {
        for (kind, name) in references.within(&namespace) {
            objects.entry(kind).or_default().insert(name.to_owned());
        }
    }
    for kind in ReferencedKind::ALL {
        if let Some(names) = objects.remove(&kind)
            && exists(&ask(Question::Objects(kind, namespace.clone(), names))?)
        {
            return Ok(Some(Use::Referenced(kind)));
        }
    }
    Ok(None)
}

/// An answer to another question counts as a hit: nothing is deleted on doubt.
fn exists(answer: &Answer) -> bool {
    match answer {
        Answer::Exists(exists) => *exists,
        Answer::Namespace(_) | Answer::Bindings(_) | Answer::Used(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECRET: ReferencedKind = ReferencedKind::Credentials(CredentialsKind::Secret);

    /// What exists.
    #[derive(Default)]
    struct Facts {
        namespace: Option<bool>,
        shoots: BTreeSet<&'static str>,
        entries: BTreeSet<&'static str>,
        bindings: Vec<(BindingName, Arc<References>)>,
        used: BTreeSet<BindingName>,
        objects: BTreeSet<(ReferencedKind, NamespacedName)>,
    }

    impl Facts {
        fn new() -> Self {
            Self { namespace: Some(false), ..Self::default() }
        }

        /// A binding `garden-x/b` with these fields.
        fn binding(mut self, kind: BindingKind, fields: Value) -> Self {
            let mut binding = fields;
            binding["metadata"] = json!({ "namespace": "garden-x", "name": "b" });
            self.bindings
                .push(((kind, NamespacedName::new("garden-x", "b")), Arc::new(References::of(kind, &binding))));
            self
        }

        fn used(mut self, kind: BindingKind) -> Self {
            self.used.insert((kind, NamespacedName::new("garden-x", "b")));
            self
        }

        fn object(mut self, kind: ReferencedKind, namespace: &str, name: &str) -> Self {
            self.objects.insert((kind, NamespacedName::new(namespace, name)));
            self
        }

        fn answer(&self, question: Question) -> Result<Answer, ()> {
            Ok(match question {
                Question::Namespace(_) => Answer::Namespace(self.namespace),
                Question::Shoots(namespace) => Answer::Exists(self.shoots.contains(&*namespace)),
                Question::BackupEntries(namespace) => Answer::Exists(self.entries.contains(&*namespace)),
                Question::Bindings(namespace) => {
                    let refers = |(_, references): &&NamedReferences| references.namespaces().contains(&*namespace);
                    Answer::Bindings(self.bindings.iter().filter(refers).cloned().collect())
                }
                Question::Used(names) => Answer::Used(names.intersection(&self.used).cloned().collect()),
                Question::Objects(kind, namespace, names) => {
                    let is_there = |name: &String| {
                        self.objects.contains(&(kind, NamespacedName::new(namespace.as_str(), name.as_str())))
                    };
                    Answer::Exists(names.iter().any(is_there))
                }
            })
        }

        fn verdict(&self, protection: Option<Protection>) -> Verdict {
            judge("garden-dev", protection, |question| self.answer(question)).unwrap()
        }

        fn in_use(&self) -> Option<&'static str> {
            match self.verdict(None) {
                Verdict::NotStale(Reason::InUse(by)) => Some(by.name()),
                verdict => {
                    assert_eq!(verdict, Verdict::Stale);
                    None
                }
            }
        }
    }

    /// spec 82 D.3 steps 2 to 5, scenarios 48 and 50
    #[test]
    fn project_without_a_namespace_or_with_a_reason_is_not_stale() {
        let with = |namespace| Facts { namespace, ..Facts::new() };
        let age = Some(Protection::Age);

        assert_eq!(with(None).verdict(None), Verdict::NoNamespace);
        assert_eq!(with(None).verdict(age), Verdict::NoNamespace);
        assert_eq!(with(Some(true)).verdict(age), Verdict::NotStale(Reason::Skipped));
        assert_eq!(with(Some(false)).verdict(age), Verdict::NotStale(Reason::Protected(Protection::Age)));
        assert_eq!(with(Some(false)).verdict(None), Verdict::Stale);
    }

    /// spec 82 D.3: a Project that is not stale anyway costs no look at its use.
    #[test]
    fn protected_project_is_judged_by_its_namespace_alone() {
        let ask = |question: Question| match question {
            Question::Namespace(_) => Ok(Answer::Namespace(Some(false))),
            other => Err(other),
        };

        let verdict = judge("garden-dev", Some(Protection::Activity), ask);

        assert_eq!(verdict, Ok(Verdict::NotStale(Reason::Protected(Protection::Activity))));
        assert_eq!(judge("garden-dev", None, ask), Err(Question::Shoots("garden-dev".to_owned())));
    }

    /// spec 82 D.5, scenario 48
    #[test]
    fn project_with_a_shoot_or_a_backup_entry_is_in_use() {
        let own = || BTreeSet::from(["garden-dev"]);
        let others = || BTreeSet::from(["garden-x"]);

        assert_eq!(Facts { shoots: own(), entries: own(), ..Facts::new() }.in_use(), Some("Shoots"));
        assert_eq!(Facts { entries: own(), ..Facts::new() }.in_use(), Some("BackupEntries"));
        assert_eq!(Facts { shoots: others(), entries: others(), ..Facts::new() }.in_use(), None);
    }

    fn reference(namespace: Option<&str>) -> Value {
        json!({ "secretRef": { "name": "s", "namespace": namespace } })
    }

    /// spec 82 D.5, scenario 46
    #[test]
    fn secret_of_a_binding_in_use_keeps_its_project_in_use() {
        let kind = BindingKind::SecretBinding;
        let facts = || Facts::new().binding(kind, reference(Some("garden-dev"))).object(SECRET, "garden-dev", "s");

        assert_eq!(facts().used(kind).in_use(), Some("Secrets"));
        assert_eq!(facts().in_use(), None, "no Shoot uses the binding");
        assert_eq!(facts().used(BindingKind::CredentialsBinding).in_use(), None, "a binding of the other kind");
        let missing = Facts::new().binding(kind, reference(Some("garden-dev"))).used(kind);
        assert_eq!(missing.in_use(), None);
        assert_eq!(missing.object(SECRET, "garden-dev", "other").in_use(), None);
        let elsewhere = Facts::new().binding(kind, reference(None)).used(kind);
        assert_eq!(elsewhere.object(SECRET, "garden-dev", "s").object(SECRET, "garden-x", "s").in_use(), None);
    }

    /// spec 82 D.5, scenario 47
    #[test]
    fn all_that_bindings_in_use_refer_to_keeps_its_project_in_use() {
        let credentials = |version: &str, kind: &str| {
            let reference = json!({ "apiVersion": version, "kind": kind, "name": "s", "namespace": "garden-dev" });
            json!({ "credentialsRef": reference })
        };
        let quotas = json!({ "quotas": [{ "name": "other" }, { "name": "s", "namespace": "garden-dev" }] });
        let (of_secret, of_credentials) = (BindingKind::SecretBinding, BindingKind::CredentialsBinding);
        let [secret, internal_secret, workload_identity, quota] = ReferencedKind::ALL;
        for (binding, fields, object, expected) in [
            (of_credentials, credentials("v1", "Secret"), secret, "Secrets"),
            (
                of_credentials,
                credentials("core.gardener.cloud/v1beta1", "InternalSecret"),
                internal_secret,
                "InternalSecrets",
            ),
            (
                of_credentials,
                credentials("security.gardener.cloud/v1alpha1", "WorkloadIdentity"),
                workload_identity,
                "WorkloadIdentities",
            ),
            (of_secret, quotas.clone(), quota, "Quotas"),
            (of_credentials, quotas, quota, "Quotas"),
        ] {
            let facts = || Facts::new().binding(binding, fields.clone());

            assert_eq!(facts().used(binding).object(object, "garden-dev", "s").in_use(), Some(expected));
            assert_eq!(facts().object(object, "garden-dev", "s").in_use(), None, "{expected}");
            assert_eq!(facts().used(binding).in_use(), None, "{expected}");
            for other in ReferencedKind::ALL.into_iter().filter(|other| *other != object) {
                assert_eq!(
                    facts().used(binding).object(other, "garden-dev", "s").in_use(),
                    None,
                    "{expected} {other:?}"
                );
            }
        }
        let unsupported = Facts::new().binding(of_credentials, credentials("v1", "ConfigMap")).used(of_credentials);
        assert_eq!(unsupported.object(secret, "garden-dev", "s").in_use(), None);
    }

    /// spec 82 D.5: the order of the checks
    #[test]
    fn first_use_decides() {
        let kind = BindingKind::SecretBinding;
        let mut both = reference(Some("garden-dev"));
        both["quotas"] = json!([{ "name": "q", "namespace": "garden-dev" }]);
        let facts =
            || Facts::new().binding(kind, both.clone()).used(kind).object(ReferencedKind::Quota, "garden-dev", "q");

        assert_eq!(facts().in_use(), Some("Quotas"));
        assert_eq!(facts().object(SECRET, "garden-dev", "s").in_use(), Some("Secrets"));
    }

    /// spec 82 D.5: also no binding with an empty name
    #[test]
    fn binding_without_a_name_of_an_object_refers_to_none() {
        for fields in [json!({}), json!({ "secretRef": { "namespace": "garden-dev" }, "quotas": [{}, null] })] {
            assert_eq!(References::of(BindingKind::SecretBinding, &fields), References::default(), "{fields}");
        }
    }
}
