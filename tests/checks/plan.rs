//! Properties of the plan (spec 10 §9.3, §9.4, §9.6, §10).

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::{GroupKind, GroupVersionKind, ObjectKey, annotation};
use gardener_resource_manager::{
    actors::resource_manager::bundle::{
        identity::{self, Equivalences},
        normalise::{self, Scope},
        plan::{self, Input, Plan, sort_references},
    },
    api::resources::{keys, managed_resource::ResourceRef},
};
use serde::Deserialize;
use serde_json::Value;

use super::{kind_of, settings_and_objects};

/// Kinds that have an equivalent kind without a declaration.
const PREDEFINED_IN_EXTENSIONS: [&str; 6] =
    ["Deployment", "DaemonSet", "ReplicaSet", "StatefulSet", "Ingress", "NetworkPolicy"];

#[derive(Debug, Clone)]
pub struct Case {
    pub settings: Settings,
    pub documents: Vec<Value>,
}

/// Options of a plan: the first document of a file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    pub old: Vec<ResourceRef>,
    /// `spec.equivalences`. The kinds of a list differ only in their groups.
    pub equivalences: Vec<Vec<GroupKind>>,
    /// Cluster-scoped kinds, whatever their group: equivalent kinds have the same scope.
    pub cluster: Vec<String>,
    /// Namespaced kinds. Kinds in neither list are unknown.
    pub namespaced: Vec<String>,
    pub incomplete: bool,
}

/// Which kinds stand for the same object. Kinds that are declared to be equivalent are two objects if both were listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Equivalence {
    Certain,
    Possible,
}

pub fn check(case: &Case) {
    let plan = case.plan(&case.settings.old, &|kind| case.scope(kind));

    check_equivalences(case);
    check_lists(case, &plan);
    check_removals(case, &plan);
    check_releases(case, &plan);
    check_second_plan(case, &plan);
    check_discovery(case);
}

/// Equivalence is symmetric. The kinds of a list are equivalent, and earlier equivalences stay (spec 10 §10.2).
fn check_equivalences(case: &Case) {
    let declared = &case.settings.equivalences;
    let stages: Vec<_> = (0..=declared.len()).map(|count| Equivalences::with(&declared[..count])).collect();
    let old = PREDEFINED_IN_EXTENSIONS.map(|kind| GroupKind::new("extensions", kind));
    let kinds: BTreeSet<GroupKind> = declared.iter().flatten().cloned().chain(old).collect();
    for (stage, equivalences) in stages.iter().enumerate() {
        let are = |a: &GroupKind, b: &GroupKind| equivalences.of(a).any(|other| other == b);
        for a in &kinds {
            for b in equivalences.of(a) {
                assert!(are(b, a), "{a} is equivalent to {b}, but not the other way round");
            }
            let is_kept = |b: &GroupKind| stages.get(stage + 1).is_none_or(|next| next.of(a).any(|other| other == b));
            assert!(equivalences.of(a).all(is_kept), "{a} has lost an equivalent by a list");
        }
        let list = stage.checked_sub(1).map_or(&[][..], |last| &declared[last]);
        let pairs = list.iter().flat_map(|a| list.iter().map(move |b| (a, b))).filter(|(a, b)| a != b);
        pairs.for_each(|(a, b)| assert!(are(a, b), "{a} and {b} are declared to be equivalent"));
    }
}

/// Every manifest is applied unless it is in Ignore mode. The lists are sorted and contain only what was given.
fn check_lists(case: &Case, plan: &Plan) {
    let applied: Vec<usize> = plan.objects.iter().map(|object| object.document).collect();
    let expected: Vec<usize> =
        (0..case.documents.len()).filter(|index| !is_released(&case.documents[*index])).collect();
    assert_eq!(applied, expected, "manifests are applied in their order");

    for list in [&plan.references, &plan.added, &plan.removed, &plan.released] {
        let mut sorted = list.clone();
        sort_references(&mut sorted);
        assert_eq!(list, &sorted, "references are sorted");
    }
    let old = &case.settings.old;
    assert!(
        plan.removed.iter().chain(&plan.released).all(|reference| old.contains(reference)),
        "only old references are removed"
    );
    assert!(plan.added.iter().all(|reference| plan.references.contains(reference)), "added references are listed");
    let valid = plan.objects.iter().filter(|object| object.error.is_none());
    for object in valid {
        assert!(plan.references.contains(&object.reference), "{} is applied, but not listed", object.reference);
        assert_eq!(object.old.is_none(), plan.added.contains(&object.reference), "{} is new", object.reference);
    }
}

/// The worst that a plan could do is to prune a wanted object; the second worst is to forget an unwanted one.
fn check_removals(case: &Case, plan: &Plan) {
    let wanted = case.wanted();
    let key_of = |reference: &ResourceRef| case.key_of(reference);
    // A manifest that every API server rejects may stand for any object.
    let incomplete = case.settings.incomplete || plan.objects.iter().any(|object| object.error.is_some());

    for reference in &plan.removed {
        assert!(!case.is_wanted(&wanted, reference, Equivalence::Certain), "{reference} is wanted, but removed");
    }
    let gone = |key: &ObjectKey| plan.removed.iter().any(|reference| key_of(reference) == *key);
    let kept = |key: &ObjectKey| plan.references.iter().any(|reference| key_of(reference) == *key);
    for reference in &case.settings.old {
        if case.is_wanted(&wanted, reference, Equivalence::Possible) {
            continue;
        }
        let key = key_of(reference);
        assert_eq!(gone(&key), !incomplete, "{reference} is not wanted, so it is removed");
        assert_eq!(kept(&key), incomplete, "{reference} must not be forgotten");
    }
    if incomplete {
        assert!(plan.removed.is_empty(), "nothing is removed while something is unknown");
    }
}

/// Only a previously managed object in Ignore mode is released, unless another manifest wants it.
fn check_releases(case: &Case, plan: &Plan) {
    let applied: BTreeSet<&ObjectKey> = plan.objects.iter().map(|object| &object.key).collect();
    let in_ignore_mode = case.documents.iter().any(is_released);
    for reference in &plan.released {
        assert!(in_ignore_mode, "{reference} is released, but nothing is in Ignore mode");
        assert!(!applied.contains(&case.key_of(reference)), "{reference} is released and applied");
        assert!(!plan.removed.contains(reference), "{reference} is released and removed");
    }
}

fn check_second_plan(case: &Case, plan: &Plan) {
    let again = case.plan(&plan.references, &|kind| case.scope(kind));

    assert_eq!(again.references, plan.references, "the second plan lists the same");
    assert!(again.added.is_empty(), "the second plan adds {:?}", again.added);
    assert!(again.removed.is_empty(), "the second plan removes {:?}", again.removed);
    assert!(again.released.is_empty(), "the second plan releases {:?}", again.released);
}

/// spec 10 §9.3: more or less knowledge about the kinds, as when discovery fails, never makes an object look removed.
fn check_discovery(case: &Case) {
    let known = |kind: &GroupVersionKind| case.scope(kind);
    let unknown = |_: &GroupVersionKind| Scope::Unknown;
    for (before, now, what) in [
        (&known as &dyn Fn(&GroupVersionKind) -> Scope, &unknown as &dyn Fn(&GroupVersionKind) -> Scope, "forgotten"),
        (&unknown, &known, "learned"),
    ] {
        let first = case.plan(&[], before);

        let second = case.plan(&first.references, now);

        assert!(second.removed.is_empty(), "scopes are {what}: {:?} look removed", second.removed);
    }
}

fn is_released(manifest: &Value) -> bool {
    annotation(manifest, keys::MODE) == Some(keys::MODE_IGNORE)
}

impl TryFrom<&[u8]> for Case {
    type Error = String;

    fn try_from(input: &[u8]) -> Result<Self, String> {
        let (settings, documents): (Settings, _) = settings_and_objects(input)?;
        let have_one_name = |list: &Vec<GroupKind>| list.windows(2).all(|pair| pair[0].kind == pair[1].kind);
        if !settings.equivalences.iter().all(have_one_name) {
            return Err("equivalent kinds of different names".to_owned());
        }
        Ok(Self { settings, documents: documents.collect() })
    }
}

impl Case {
    fn plan(&self, old: &[ResourceRef], scope: &dyn Fn(&GroupVersionKind) -> Scope) -> Plan {
        plan::plan(Input {
            documents: self.documents.clone(),
            old,
            equivalences: &self.equivalences(),
            labels: &BTreeMap::new(),
            incomplete: self.settings.incomplete,
            scope,
        })
    }

    fn equivalences(&self) -> Equivalences {
        Equivalences::with(&self.settings.equivalences)
    }

    fn scope(&self, kind: &GroupVersionKind) -> Scope {
        if self.settings.cluster.contains(&kind.kind) {
            Scope::Cluster
        } else if self.settings.namespaced.contains(&kind.kind) {
            Scope::Namespaced
        } else {
            Scope::Unknown
        }
    }

    /// The objects that manifests name, including those in Ignore mode, and what is known of their scopes.
    fn wanted(&self) -> Vec<(ObjectKey, Scope)> {
        let key = |manifest: &Value| {
            let mut manifest = manifest.clone();
            let scope = self.scope(&kind_of(&manifest));
            normalise::normalise_namespace(&mut manifest, scope);
            (identity::key_of_object(&manifest), scope)
        };
        self.documents.iter().map(key).collect()
    }

    /// Whether a manifest names the object under any equivalent kind. A reference without a namespace is
    /// cluster-scoped; while its scope is unknown, a manifest's namespace may be meaningless, or absent for `default`.
    fn is_wanted(&self, wanted: &[(ObjectKey, Scope)], reference: &ResourceRef, equivalence: Equivalence) -> bool {
        let key = self.key_of(reference);
        let (predefined, declared) = (Equivalences::predefined(), self.equivalences());
        let is_listed = |wanted: &ObjectKey| {
            let names = |old: &ResourceRef| (old.key().group_kind(), old.name.clone());
            self.settings.old.iter().any(|old| names(old) == (wanted.group_kind(), wanted.name.clone()))
        };
        wanted.iter().any(|(wanted, scope)| {
            let others: Vec<ObjectKey> = match equivalence {
                Equivalence::Certain if is_listed(wanted) => predefined.of_key(wanted).collect(),
                Equivalence::Certain | Equivalence::Possible => declared.of_key(wanted).collect(),
            };
            std::iter::once(wanted.clone()).chain(others).any(|wanted| {
                let may_be_default = wanted.namespace.is_empty() && key.namespace == "default";
                let is_unclear = *scope == Scope::Unknown && (reference.namespace.is_empty() || may_be_default);
                let is_same_but_for_it = ObjectKey { namespace: key.namespace.clone(), ..wanted.clone() } == key;
                wanted == key || is_unclear && is_same_but_for_it
            })
        })
    }

    fn key_of(&self, reference: &ResourceRef) -> ObjectKey {
        normalise::scope_normalised_key(reference.key(), self.scope(&reference.group_version_kind()))
    }
}
