//! Identity of objects (spec 10 §10): keys, display strings, equivalent kinds, and the index of the old references.

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::{self, GroupKind, GroupVersionKind, ObjectKey};
use serde_json::Value;

use crate::api::resources::managed_resource::{ResourceRef, effective_namespace};

/// Groups that the API server itself serves. All other groups come from CRDs or aggregated APIs. Those use `*.k8s.io`
/// groups too, so the suffix proves nothing.
const BUILT_IN_GROUPS: [&str; 24] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Kinds that existed in two groups, with the same objects in both.
const PREDEFINED: [(&str, &str, &str); 6] = [
    ("extensions", "apps", "Deployment"),
    ("extensions", "apps", "DaemonSet"),
    ("extensions", "apps", "ReplicaSet"),
    ("extensions", "apps", "StatefulSet"),
    ("extensions", "networking.k8s.io", "Ingress"),
    ("extensions", "networking.k8s.io", "NetworkPolicy"),
];

/// Sets of groups and kinds that mean the same objects (spec 10 §10.2).
#[derive(Debug, Clone)]
pub struct Equivalences {
    sets: Vec<BTreeSet<GroupKind>>,
    /// The sets of each member, without duplicates; last the set that it joined last, which further lists join. A
    /// member of a second set stays in the first: lookups use all of them. A list never unites two sets.
    sets_of: BTreeMap<GroupKind, Vec<usize>>,
}

/// The references of the status by key, with marks for references that are still wanted (spec 10 §10.3).
#[derive(Debug)]
pub struct OldIndex<'a> {
    entries: BTreeMap<ObjectKey, EquivalenceEntry<'a>>,
}

#[derive(Debug)]
struct EquivalenceEntry<'a> {
    reference: &'a ResourceRef,
    found: bool,
}

/// Returns true if the API server itself serves the group, not a CRD or an aggregated API.
pub fn is_built_in_group(group: &str) -> bool {
    BUILT_IN_GROUPS.contains(&group)
}

/// Returns true for a list type of a built-in API (spec 10 §11.3). Custom kinds ending in `List` may be ordinary.
pub fn is_list(kind: &GroupVersionKind) -> bool {
    is_built_in_group(&kind.group) && kind.kind.ends_with("List")
}

/// The index key (spec 10 §10.1). It has the effective namespace: a cluster-scoped object has `default` too, and a
/// failed discovery does not change the key. References are sorted by its display form.
pub fn index_key(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: effective_namespace(kind, namespace).to_owned(),
        name: name.to_owned(),
    }
}

/// The index key of an object; missing fields count as empty.
pub fn key_of_object(object: &Value) -> ObjectKey {
    let gvk = gvk_of(object);
    index_key(&gvk.group, &gvk.kind, object::namespace(object), object::name(object))
}

/// The display string in messages: `<apiVersion>/<kind>/<effective namespace>/<name>` (spec 10 §10.1).
pub fn display(api_version: &str, kind: &str, namespace: &str, name: &str) -> String {
    format!("{api_version}/{kind}/{}/{name}", effective_namespace(kind, namespace))
}

/// The display string of an object; missing fields count as empty.
pub fn display_of_object(object: &Value) -> String {
    display(text(object, "apiVersion"), text(object, "kind"), object::namespace(object), object::name(object))
}

pub(crate) fn gvk_of(object: &Value) -> GroupVersionKind {
    GroupVersionKind::from_api_version(text(object, "apiVersion"), text(object, "kind"))
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns true if the API server stores both keys as one object.
fn is_one_object(a: &ObjectKey, b: &ObjectKey) -> bool {
    a.kind == b.kind
        && PREDEFINED.iter().any(|(old, new, kind)| {
            *kind == a.kind && [*old, *new].contains(&a.group.as_str()) && [*old, *new].contains(&b.group.as_str())
        })
}

/// Returns the key of the same object in the present group, for kinds that existed in two groups (spec 10 §10.2).
pub fn canonical(key: ObjectKey) -> ObjectKey {
    let present = PREDEFINED.iter().find(|(old, _, kind)| *old == key.group && *kind == key.kind);
    match present {
        Some((_, new, _)) => ObjectKey { group: (*new).to_owned(), ..key },
        None => key,
    }
}

impl Equivalences {
    /// Only the predefined sets.
    pub fn predefined() -> Self {
        let mut equivalences = Self { sets: Vec::new(), sets_of: BTreeMap::new() };
        for (old, new, kind) in PREDEFINED {
            equivalences.add(&[GroupKind::new(old, kind), GroupKind::new(new, kind)]);
        }
        equivalences
    }

    /// The predefined sets, and the lists of `spec.equivalences` in order.
    pub fn with(lists: &[Vec<GroupKind>]) -> Self {
        let mut equivalences = Self::predefined();
        for list in lists {
            equivalences.add(list);
        }
        equivalences
    }

    /// All members join the newest set of the first member that has one; otherwise they form a new set.
    fn add(&mut self, members: &[GroupKind]) {
        let existing = members.iter().find_map(|member| self.sets_of.get(member)?.last().copied());
        let set = existing.unwrap_or_else(|| {
            self.sets.push(BTreeSet::new());
            self.sets.len() - 1
        });
        for member in members {
            self.sets[set].insert(member.clone());
            let joined = self.sets_of.entry(member.clone()).or_default();
            joined.retain(|other| *other != set);
            joined.push(set);
        }
    }

    /// The *other* members of the sets that contain `kind`, in byte order. The relation is symmetric, not transitive.
    pub fn of(&self, kind: &GroupKind) -> impl Iterator<Item = &GroupKind> {
        let sets = self.sets_of.get(kind).into_iter().flatten().map(|set| &self.sets[*set]);
        let others: BTreeSet<&GroupKind> = sets.flatten().filter(|member| *member != kind).collect();
        others.into_iter()
    }

    /// The keys of the same object under its other groups and kinds.
    pub fn of_key(&self, key: &ObjectKey) -> impl Iterator<Item = ObjectKey> {
        let others: Vec<GroupKind> = self.of(&key.group_kind()).cloned().collect();
        others.into_iter().map(|other| ObjectKey {
            group: other.group,
            kind: other.kind,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        })
    }
}

impl<'a> OldIndex<'a> {
    /// Indexes the references; the last of equal keys counts.
    pub fn new(references: impl IntoIterator<Item = (ObjectKey, &'a ResourceRef)>) -> Self {
        let entry = |reference| EquivalenceEntry { reference, found: false };
        Self { entries: references.into_iter().map(|(key, reference)| (key, entry(reference))).collect() }
    }

    /// Returns the old reference of a wanted object, by its key, else by an equivalent group and kind. Marks it as
    /// found, and also each reference to the same object under a predefined group: to delete `extensions/Ingress a`
    /// would delete `networking.k8s.io/Ingress a`. Kinds that only `spec.equivalences` declares equivalent are two
    /// objects if the wanted one is listed by its own key.
    pub fn find(&mut self, key: &ObjectKey, equivalences: &Equivalences) -> Option<&'a ResourceRef> {
        self.find_if(key, equivalences, |_| true)
    }

    /// As [`Self::find`], for an object whose scope is unknown now but may have been known when the reference was
    /// recorded. The reference may then have no namespace, whatever the key says. Where the key has none, as kinds
    /// called `Namespace` can, the reference may have `default`.
    pub fn find_despite_namespace(&mut self, key: &ObjectKey, equivalences: &Equivalences) -> Option<&'a ResourceRef> {
        let in_namespace = |namespace| ObjectKey { namespace, ..key.clone() };
        let without = in_namespace(effective_namespace(&key.kind, "").to_owned());
        let hit = self.find_if(&without, equivalences, |reference| reference.namespace.is_empty());
        if !key.namespace.is_empty() {
            return hit;
        }
        hit.or(self.find(&in_namespace("default".to_owned()), equivalences))
    }

    fn find_if(
        &mut self,
        key: &ObjectKey,
        equivalences: &Equivalences,
        is_meant: impl Fn(&ResourceRef) -> bool,
    ) -> Option<&'a ResourceRef> {
        let is_listed = self.entries.get(key).is_some_and(|entry| is_meant(entry.reference));
        let mut hit = None;
        for candidate in std::iter::once(key.clone()).chain(equivalences.of_key(key)) {
            if is_listed && candidate != *key && !is_one_object(key, &candidate) {
                continue;
            }
            if let Some(entry) = self.entries.get_mut(&candidate)
                && is_meant(entry.reference)
            {
                entry.found = true;
                hit = hit.or(Some(entry.reference));
            }
        }
        hit
    }

    /// The references that were not found, in the order of their key strings.
    pub fn not_found(&self) -> Vec<&'a ResourceRef> {
        let mut left: Vec<_> = self.entries.iter().filter(|(_, entry)| !entry.found).collect();
        left.sort_by_cached_key(|(key, _)| key.to_string());
        left.into_iter().map(|(_, entry)| entry.reference).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn index(references: &[ResourceRef]) -> OldIndex<'_> {
        OldIndex::new(references.iter().map(|reference| (reference.key(), reference)))
    }

    /// spec 10 §10.1
    #[test]
    fn key_and_display_string_use_the_effective_namespace() {
        let table = [
            ("v1", "ConfigMap", "ns", "a", "/ConfigMap/ns/a", "v1/ConfigMap/ns/a"),
            ("v1", "ConfigMap", "", "a", "/ConfigMap/default/a", "v1/ConfigMap/default/a"),
            ("apps/v1", "Deployment", "ns", "b", "apps/Deployment/ns/b", "apps/v1/Deployment/ns/b"),
            (
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                "",
                "c",
                "rbac.authorization.k8s.io/ClusterRole/default/c",
                "rbac.authorization.k8s.io/v1/ClusterRole/default/c",
            ),
            ("v1", "Namespace", "", "d", "/Namespace//d", "v1/Namespace//d"),
        ];

        for (api_version, kind, namespace, name, key, shown) in table {
            let object =
                json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": namespace, "name": name}});

            assert_eq!(key_of_object(&object).to_string(), key);
            assert_eq!(display_of_object(&object), shown);
            assert_eq!(ResourceRef::new(api_version, kind, namespace, name).key().to_string(), key);
            assert_eq!(ResourceRef::new(api_version, kind, namespace, name).to_string(), shown);
        }
    }

    /// spec 10 §10.2
    #[test]
    fn predefined_equivalences_link_the_old_groups() {
        let equivalences = Equivalences::predefined();
        let others = |group: &str, kind: &str| -> Vec<String> {
            equivalences.of(&GroupKind::new(group, kind)).map(ToString::to_string).collect()
        };

        assert_eq!(others("apps", "Deployment"), ["Deployment.extensions"]);
        assert_eq!(others("extensions", "Ingress"), ["Ingress.networking.k8s.io"]);
        assert_eq!(others("networking.k8s.io", "NetworkPolicy"), ["NetworkPolicy.extensions"]);
        assert!(others("", "ConfigMap").is_empty());
    }

    /// spec 10 §10.2
    #[test]
    fn a_list_that_touches_two_sets_joins_only_the_first() {
        let kind = |group: &str, kind: &str| GroupKind::new(group, kind);
        let equivalences = Equivalences::with(&[
            vec![kind("a", "X"), kind("b", "X")],
            vec![kind("c", "X"), kind("d", "X")],
            vec![kind("new", "X"), kind("b", "X"), kind("c", "X")],
        ]);

        let others = |of: &GroupKind| -> Vec<String> { equivalences.of(of).map(|other| other.group.clone()).collect() };
        assert_eq!(others(&kind("a", "X")), ["b", "c", "new"]);
        assert_eq!(others(&kind("c", "X")), ["a", "b", "d", "new"], "it stays in its own");
        assert_eq!(others(&kind("d", "X")), ["c"], "what joined the other set is not its equivalent");
    }

    /// spec 10 §10.3
    #[test]
    fn the_exact_key_is_found_before_an_equivalent_one_and_both_are_marked() {
        let mut old = [
            ResourceRef::new("extensions/v1beta1", "Ingress", "ns", "a"),
            ResourceRef::new("networking.k8s.io/v1", "Ingress", "ns", "a"),
        ];
        old[0].labels.insert("from".into(), "extensions".into());
        let mut index = index(&old);

        let hit = index.find(&old[1].key(), &Equivalences::predefined());

        assert_eq!(hit, Some(&old[1]));
        assert!(index.not_found().is_empty(), "the other reference is the same object");
    }

    /// spec 10 §10.3: declared equivalents are two objects if both are listed.
    #[test]
    fn declared_equivalents_are_two_objects_and_only_the_wanted_is_found() {
        for (other, wanted, kind) in [
            ("a", "b", "X"),
            // Groups and kinds of the predefined sets, but not one of these sets.
            ("extensions", "apps", "X"),
            ("extensions", "g.io", "X"),
            ("g.io", "extensions", "X"),
            ("extensions", "g.io", "Ingress"),
            ("g.io", "extensions", "Ingress"),
        ] {
            let old = [other, wanted].map(|group| ResourceRef::new(&format!("{group}/v1"), kind, "ns", "n"));
            let declared = Equivalences::with(&[vec![GroupKind::new(other, kind), GroupKind::new(wanted, kind)]]);
            let mut index = index(&old);

            let hit = index.find(&old[1].key(), &declared);

            assert_eq!(hit, Some(&old[1]));
            assert_eq!(index.not_found(), [&old[0]], "{kind} of {other} and {wanted}");
        }
    }

    /// spec 10 §10.3
    #[test]
    fn references_with_equal_keys_count_as_the_last() {
        let mut old =
            [ResourceRef::new("v1", "ConfigMap", "", "a"), ResourceRef::new("v1", "ConfigMap", "default", "a")];
        old[1].labels.insert("which".into(), "last".into());
        let mut index = index(&old);

        let hit = index.find(&old[0].key(), &Equivalences::predefined());

        assert_eq!(hit, Some(&old[1]));
    }
}
