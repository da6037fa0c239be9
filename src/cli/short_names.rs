//! The short names of kubectl for kinds of Kubernetes itself, and for ManagedResources.

const SHORT_NAMES: [(&str, &str); 24] = [
    ("cj", "cronjobs.batch"),
    ("cm", "configmaps"),
    ("crd", "customresourcedefinitions.apiextensions.k8s.io"),
    ("deploy", "deployments.apps"),
    ("ds", "daemonsets.apps"),
    ("ep", "endpoints"),
    ("hpa", "horizontalpodautoscalers.autoscaling"),
    ("ing", "ingresses.networking.k8s.io"),
    ("limits", "limitranges"),
    ("mr", "managedresources.resources.gardener.cloud"),
    ("netpol", "networkpolicies.networking.k8s.io"),
    ("ns", "namespaces"),
    ("pc", "priorityclasses.scheduling.k8s.io"),
    ("pdb", "poddisruptionbudgets.policy"),
    ("po", "pods"),
    ("pv", "persistentvolumes"),
    ("pvc", "persistentvolumeclaims"),
    ("quota", "resourcequotas"),
    ("rs", "replicasets.apps"),
    ("sa", "serviceaccounts"),
    ("sc", "storageclasses.storage.k8s.io"),
    ("sts", "statefulsets.apps"),
    ("svc", "services"),
    ("vpa", "verticalpodautoscalers.autoscaling.k8s.io"),
];

/// Returns the kind that a short name means.
pub(crate) fn long_name(text: &str) -> &str {
    SHORT_NAMES.iter().find(|(short, _)| text.eq_ignore_ascii_case(short)).map_or(text, |(_, long)| long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_those_of_kubectl() {
        assert_eq!((long_name("cm"), long_name("Deploy")), ("configmaps", "deployments.apps"));
        assert_eq!(long_name("Deployment"), "Deployment");
    }
}
