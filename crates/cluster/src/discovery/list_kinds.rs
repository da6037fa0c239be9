//! The list kinds of the built-in API: a manifest of such a kind is not an object (spec 10 §11.3).

use crate::object::GroupVersionKind;

/// Kinds with a list kind (suffix `List`), by built-in group. A custom kind with such a name is an ordinary object.
const LISTABLE: [(&str, &[&str]); 22] = [
    (
        "",
        &[
            "ComponentStatus",
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
            "", // `List` itself
        ],
    ),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("apps", &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
    ("autoscaling", &["HorizontalPodAutoscaler"]),
    ("batch", &["CronJob", "Job"]),
    ("certificates.k8s.io", &["CertificateSigningRequest", "ClusterTrustBundle", "PodCertificateRequest"]),
    ("coordination.k8s.io", &["Lease", "LeaseCandidate"]),
    ("discovery.k8s.io", &["EndpointSlice"]),
    ("events.k8s.io", &["Event"]),
    ("extensions", &["DaemonSet", "Deployment", "Ingress", "NetworkPolicy", "ReplicaSet"]),
    ("flowcontrol.apiserver.k8s.io", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("internal.apiserver.k8s.io", &["StorageVersion"]),
    ("networking.k8s.io", &["IPAddress", "Ingress", "IngressClass", "NetworkPolicy", "ServiceCIDR"]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("policy", &["PodDisruptionBudget", "PodSecurityPolicy"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
    ("resource.k8s.io", &["DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"]),
    ("scheduling.k8s.io", &["PriorityClass", "Workload"]),
    (
        "storage.k8s.io",
        &["CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"],
    ),
    ("storagemigration.k8s.io", &["StorageVersionMigration"]),
];

/// Returns true for the list kind of a built-in kind, and for `List` of the core group.
pub fn is_list_kind(kind: &GroupVersionKind) -> bool {
    let listable = LISTABLE.iter().find(|(group, _)| *group == kind.group);
    let of = kind.kind.strip_suffix("List");
    listable.zip(of).is_some_and(|((_, kinds), of)| kinds.contains(&of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_kinds_are_those_of_the_built_in_api() {
        let cases = [
            ("", "List", true),
            ("", "ConfigMapList", true),
            ("apps", "DeploymentList", true),
            ("apps", "List", false),
            ("", "Deployment", false),
            ("example.org", "AccessList", false),
            ("apps", "WishList", false),
        ];

        for (group, kind, expected) in cases {
            assert_eq!(is_list_kind(&GroupVersionKind::new(group, "v1", kind)), expected, "{group}/{kind}");
        }
    }
}
