//! The order in which objects are applied, and the reverse in which they are deleted (spec 10 §11.1).

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::ObjectKey;

/// Kinds in the order of application, in any group. All other kinds come last.
const KINDS: [&str; 38] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// Position of a kind in the order; unknown kinds share the last position.
pub fn rank(kind: &str) -> usize {
    KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len())
}

/// Groups objects. Objects of a group may be applied concurrently; the groups follow one another. Groups follow the
/// ranks of kinds; each unknown kind is a group, in byte order. Within a group objects are sorted by name, then by
/// namespace. Objects that may be the same (equal kind, namespace and name, in any API group) never share a group: the
/// second goes to an extra group right after, in the given order.
pub fn ranks<T>(items: Vec<T>, key: impl Fn(&T) -> &ObjectKey) -> Vec<Vec<T>> {
    let mut seen: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    let mut groups: BTreeMap<(usize, String, usize), Vec<T>> = BTreeMap::new();
    for item in items {
        let place = {
            let key = key(&item);
            let occurrence = seen.entry((key.kind.clone(), key.namespace.clone(), key.name.clone())).or_insert(0);
            *occurrence += 1;
            (rank(&key.kind), key.kind.clone(), *occurrence)
        };
        groups.entry(place).or_default().push(item);
    }
    let mut groups: Vec<Vec<T>> = groups.into_values().collect();
    for group in &mut groups {
        group.sort_by(|a, b| {
            let (a, b) = (key(a), key(b));
            (&a.name, &a.namespace, &a.group).cmp(&(&b.name, &b.namespace, &b.group))
        });
    }
    groups
}

/// The reverse of [`ranks`], for deletion: custom objects before their CRDs, workloads before what they use ("better
/// than upstream" 4). Equal keys appear once.
pub fn deletion_ranks<T>(items: Vec<T>, key: impl Fn(&T) -> &ObjectKey) -> Vec<Vec<T>> {
    let mut seen = BTreeSet::new();
    let items = items.into_iter().filter(|item| seen.insert(key(item).clone())).collect();
    let mut groups = ranks(items, key);
    groups.reverse();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::resource_manager::bundle::identity::index_key;

    fn keys(list: &[(&str, &str, &str)]) -> Vec<ObjectKey> {
        list.iter().map(|(group, kind, name)| index_key(group, kind, "", name)).collect()
    }

    fn shown(groups: &[Vec<ObjectKey>]) -> Vec<Vec<String>> {
        groups.iter().map(|group| group.iter().map(|key| format!("{}/{}", key.kind, key.name)).collect()).collect()
    }

    /// spec 10 §11.1
    #[test]
    fn objects_are_grouped_by_kind_rank_and_sorted_by_name() {
        let objects = keys(&[
            ("apps", "Deployment", "a"),
            ("g.io", "Zebra", "a"),
            ("", "ConfigMap", "b"),
            ("g.io", "Ape", "b"),
            ("apiextensions.k8s.io", "CustomResourceDefinition", "z"),
            ("", "ConfigMap", "B"),
            ("", "Namespace", "n"),
            ("g.io", "Ape", "a"),
        ]);

        let groups = ranks(objects, |key| key);

        assert_eq!(
            shown(&groups),
            [
                vec!["Namespace/n"],
                vec!["ConfigMap/B", "ConfigMap/b"],
                vec!["CustomResourceDefinition/z"],
                vec!["Deployment/a"],
                vec!["Ape/a", "Ape/b"],
                vec!["Zebra/a"],
            ]
        );
    }

    /// spec 10 §11.1
    #[test]
    fn kind_rank_ignores_the_group() {
        assert_eq!(rank("Service"), 23);
        assert!(rank("Service") < rank("Deployment"));
        assert!(rank("ValidatingWebhookConfiguration") < rank("Whatever"));

        let groups = ranks(keys(&[("", "Service", "b"), ("serving.knative.dev", "Service", "a")]), |key| key);

        assert_eq!(shown(&groups), [["Service/a", "Service/b"]]);
    }

    #[test]
    fn an_object_listed_twice_is_never_applied_side_by_side_with_itself() {
        let objects = keys(&[("", "Secret", "a"), ("", "Secret", "b"), ("", "Secret", "a"), ("", "ConfigMap", "a")]);

        let groups = ranks(objects, |key| key);

        assert_eq!(shown(&groups), [vec!["Secret/a", "Secret/b"], vec!["Secret/a"], vec!["ConfigMap/a"]]);
    }

    /// spec 10, "better than upstream" 4
    #[test]
    fn deletion_order_is_the_reverse() {
        let objects =
            keys(&[("", "Namespace", "n"), ("g.io", "Ape", "a"), ("apps", "Deployment", "d"), ("", "Secret", "s")]);

        let groups = deletion_ranks(objects, |key| key);

        assert_eq!(shown(&groups), [["Ape/a"], ["Deployment/d"], ["Secret/s"], ["Namespace/n"]]);
    }
}
