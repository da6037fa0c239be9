//! stand-in
use serde_json::Value;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    None,
    Spec,
}
#[derive(Debug, Clone)]
pub(super) struct Kind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) list_kind: String,
    pub(super) short_names: Vec<String>,
    pub(super) namespaced: bool,
    pub(super) has_status: bool,
    pub(super) generation: Generation,
    pub(super) verbs: Vec<&'static str>,
    pub(super) requires_resource_version: bool,
    pub(super) creates_on_update: bool,
    pub(super) answers_delete_with_object: bool,
    pub(super) custom: bool,
}
impl Kind {
    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
    pub(super) fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
    pub(super) fn home(&self) -> (&str, &str) {
        if self.plural == "events" { ("", "events") } else { (&self.group, &self.plural) }
    }
    pub(super) fn is_review(&self) -> bool {
        self.kind.ends_with("Review")
    }
}
fn kind(
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    namespaced: bool,
    has_status: bool,
    generation: Generation,
) -> Kind {
    Kind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: plural.into(),
        singular: kind.to_lowercase(),
        list_kind: format!("{kind}List"),
        short_names: vec![],
        namespaced,
        has_status,
        generation,
        verbs: if kind.ends_with("Review") {
            vec!["create"]
        } else {
            vec!["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
        },
        requires_resource_version: matches!(
            kind,
            "Lease"
                | "PodDisruptionBudget"
                | "APIService"
                | "CustomResourceDefinition"
                | "MutatingWebhookConfiguration"
                | "ValidatingWebhookConfiguration"
        ),
        creates_on_update: matches!(
            kind,
            "Service"
                | "LimitRange"
                | "Endpoints"
                | "Event"
                | "Role"
                | "ClusterRole"
                | "RoleBinding"
                | "ClusterRoleBinding"
                | "Lease"
        ),
        answers_delete_with_object: matches!(
            kind,
            "Service"
                | "ServiceAccount"
                | "Pod"
                | "PersistentVolumeClaim"
                | "PersistentVolume"
                | "ReplicationController"
                | "Job"
                | "ResourceQuota"
                | "StorageClass"
                | "CSINode"
        ),
        custom: false,
    }
}
pub(super) fn built_in() -> Vec<Kind> {
    use Generation::{None as N, Spec as S};
    let c = "";
    vec![
        kind(c, "v1", "Namespace", "namespaces", false, true, N),
        kind(c, "v1", "ConfigMap", "configmaps", true, false, N),
        kind(c, "v1", "Secret", "secrets", true, false, N),
        kind(c, "v1", "Service", "services", true, true, N),
        kind(c, "v1", "ServiceAccount", "serviceaccounts", true, false, N),
        kind(c, "v1", "Pod", "pods", true, true, S),
        kind(c, "v1", "Node", "nodes", false, true, N),
        kind(c, "v1", "Event", "events", true, false, N),
        kind(c, "v1", "Endpoints", "endpoints", true, false, N),
        kind(c, "v1", "PersistentVolume", "persistentvolumes", false, true, N),
        kind(c, "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true, true, N),
        kind(c, "v1", "ReplicationController", "replicationcontrollers", true, true, S),
        kind(c, "v1", "ResourceQuota", "resourcequotas", true, true, N),
        kind(c, "v1", "LimitRange", "limitranges", true, false, N),
        kind("apps", "v1", "Deployment", "deployments", true, true, S),
        kind("apps", "v1", "StatefulSet", "statefulsets", true, true, S),
        kind("apps", "v1", "DaemonSet", "daemonsets", true, true, S),
        kind("apps", "v1", "ReplicaSet", "replicasets", true, true, S),
        kind("batch", "v1", "Job", "jobs", true, true, S),
        kind("batch", "v1", "CronJob", "cronjobs", true, true, S),
        kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true, true, N),
        kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", true, false, S),
        kind("networking.k8s.io", "v1", "Ingress", "ingresses", true, true, S),
        kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true, true, S),
        kind("coordination.k8s.io", "v1", "Lease", "leases", true, false, N),
        kind("events.k8s.io", "v1", "Event", "events", true, false, N),
        kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true, false, S),
        kind("rbac.authorization.k8s.io", "v1", "Role", "roles", true, false, N),
        kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", true, false, N),
        kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false, false, N),
        kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", false, false, N),
        kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", false, false, N),
        kind("storage.k8s.io", "v1", "CSINode", "csinodes", false, false, N),
        kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false, false, S),
        kind(
            "admissionregistration.k8s.io",
            "v1",
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            false,
            false,
            S,
        ),
        kind(
            "admissionregistration.k8s.io",
            "v1",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            false,
            false,
            S,
        ),
        kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false, true, S),
        kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", false, true, N),
        kind("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", false, true, N),
        kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", false, false, N),
        kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", false, false, N),
    ]
}
pub(super) fn of_definition(crd: &Value) -> Vec<Kind> {
    let t = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let spec = &crd["spec"];
    spec["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|v| v["served"] == true)
        .map(|v| {
            let mut k = kind(
                &t(&spec["group"]),
                &t(&v["name"]),
                &t(&spec["names"]["kind"]),
                &t(&spec["names"]["plural"]),
                spec["scope"] == "Namespaced",
                v["subresources"].get("status").is_some(),
                Generation::Spec,
            );
            k.custom = true;
            k.requires_resource_version = true;
            k
        })
        .collect()
}
pub(super) fn bumps_generation(kind: &Kind, old: &Value, new: &Value) -> bool {
    if kind.generation == Generation::None {
        return false;
    }
    let strip = |v: &Value| {
        let mut v = v.clone();
        if let Some(m) = v.as_object_mut() {
            m.remove("metadata");
            if kind.has_status {
                m.remove("status");
            }
        }
        v
    };
    strip(old) != strip(new)
        || (kind.plural == "deployments" && old["metadata"]["annotations"] != new["metadata"]["annotations"])
}
