//! How lists and maps of built-in kinds are merged and owned: as a whole, or item by item.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListType {
    Atomic,
    Set,
    /// Item by item; these fields identify an item. Patches use the first of them.
    Map(&'static [&'static str]),
}

/// The type of the list at `path` (field names without list indexes) of a built-in kind.
pub(super) fn list_type(kind: &str, path: &[&str]) -> ListType {
    if let Some(path) = in_pod_spec(kind, path) {
        return pod_list_type(path);
    }
    let keys: &[&str] = match (kind, path) {
        (_, ["metadata", "finalizers"]) | ("Node", ["spec", "podCIDRs"]) => return ListType::Set,
        (_, ["metadata", "ownerReferences"]) => &["uid"],
        (_, ["status", "conditions"]) | ("Node", ["status", "addresses"]) => &["type"],
        ("Pod", ["status", "podIPs"]) => &["ip"],
        ("Service", ["spec", "ports"]) => &["port", "protocol"],
        ("ServiceAccount", ["secrets"]) => &["name"],
        (
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
            ["webhooks"] | ["webhooks", "matchConditions"],
        ) => &["name"],
        _ => return ListType::Atomic,
    };
    ListType::Map(keys)
}

fn pod_list_type(path: &[&str]) -> ListType {
    ListType::Map(match path {
        ["containers" | "initContainers" | "ephemeralContainers"] => &["name"],
        [_, "ports"] => &["containerPort", "protocol"],
        [_, "env"] | [_, "resources", "claims"] => &["name"],
        [_, "volumeMounts"] => &["mountPath"],
        [_, "volumeDevices"] => &["devicePath"],
        ["volumes" | "imagePullSecrets" | "resourceClaims" | "schedulingGates"] => &["name"],
        ["hostAliases"] => &["ip"],
        ["topologySpreadConstraints"] => &["topologyKey", "whenUnsatisfiable"],
        _ => return ListType::Atomic,
    })
}

/// Returns true if the object at `path` has one owner as a whole: selectors and references.
pub(super) fn is_atomic_map(kind: &str, path: &[&str]) -> bool {
    const SELECTORS: [&str; 5] = ["selector", "podSelector", "namespaceSelector", "objectSelector", "labelSelector"];
    if path.last().is_some_and(|field| SELECTORS.contains(field)) {
        return true;
    }
    match in_pod_spec(kind, path) {
        Some(path) => matches!(path, ["nodeSelector" | "imagePullSecrets"] | [_, "env", "valueFrom", _]),
        None => matches!(
            (kind, path),
            (_, ["metadata", "ownerReferences"])
                | (_, ["roleRef"])
                | ("Event", ["involvedObject" | "related" | "regarding"])
        ),
    }
}

/// Returns true if the object or list at `path` always exists, so that its existence has no owner.
pub(super) fn is_always_there(kind: &str, path: &[&str]) -> bool {
    match in_pod_spec(kind, path) {
        Some(path) => matches!(path, [] | ["containers"] | [_, "resources"]),
        None => matches!(
            path,
            ["metadata" | "spec" | "status"]
                | ["spec", "template" | "jobTemplate" | "strategy" | "updateStrategy" | "scaleTargetRef" | "names"]
                | ["spec", "template" | "jobTemplate", "metadata" | "spec"]
                | ["spec", "jobTemplate", "spec", "template"]
                | ["spec", "jobTemplate", "spec", "template", "metadata"]
                | ["status", "loadBalancer"]
                | ["template" | "source"]
                | ["template", "metadata"]
        ),
    }
}

fn in_pod_spec<'a, 'b>(kind: &str, path: &'a [&'b str]) -> Option<&'a [&'b str]> {
    let prefix: &[&str] = match kind {
        "Pod" => &["spec"],
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "ReplicationController" | "Job" => {
            &["spec", "template", "spec"]
        }
        "CronJob" => &["spec", "jobTemplate", "spec", "template", "spec"],
        "PodTemplate" => &["template", "spec"],
        _ => return None,
    };
    path.strip_prefix(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_merged_by_the_keys_of_their_kind() {
        let table: [(&str, &[&str], ListType); 7] = [
            ("Service", &["spec", "ports"], ListType::Map(&["port", "protocol"])),
            ("Pod", &["spec", "containers", "ports"], ListType::Map(&["containerPort", "protocol"])),
            ("CronJob", &["spec", "jobTemplate", "spec", "template", "spec", "volumes"], ListType::Map(&["name"])),
            ("ConfigMap", &["metadata", "finalizers"], ListType::Set),
            ("NetworkPolicy", &["spec", "ingress"], ListType::Atomic),
            ("Deployment", &["spec", "template", "spec", "tolerations"], ListType::Atomic),
            ("Deployment", &["spec", "containers"], ListType::Atomic),
        ];
        for (kind, path, expected) in table {
            assert_eq!(list_type(kind, path), expected, "{kind} {path:?}");
        }
    }
}
