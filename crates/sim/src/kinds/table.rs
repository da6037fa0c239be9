use super::{Generation, Scale, ServedKind, Subresource};

/// One kind: group and version; kind, plural and short names; traits; generation. Traits: `ns` namespaced · `all`,
/// `api-extensions` categories · `status`, `scale`, `token`, `finalize`, `approval` subresources · `rv` updates need a
/// version · `put` updates create · `object` DELETE answers with the object · `review` can only be created · `nocoll`
/// no deletion of the collection.
type Row = (&'static str, &'static str, &'static str, Generation);

const NONE: Generation = Generation::None;
const SPEC: Generation = Generation::Spec;
const CONTENT: Generation = Generation::Content;

const CORE: &[Row] = &[
    ("v1", "ConfigMap configmaps cm", "ns", NONE),
    ("v1", "Endpoints endpoints ep", "ns put", NONE),
    ("v1", "Event events ev", "ns put", NONE),
    ("v1", "LimitRange limitranges limits", "ns put", NONE),
    ("v1", "Namespace namespaces ns", "status finalize nocoll", NONE),
    ("v1", "Node nodes no", "status", NONE),
    ("v1", "PersistentVolumeClaim persistentvolumeclaims pvc", "ns status object", NONE),
    ("v1", "PersistentVolume persistentvolumes pv", "status object", NONE),
    ("v1", "Pod pods po", "ns all status object", SPEC),
    ("v1", "PodTemplate podtemplates", "ns", CONTENT),
    ("v1", "ReplicationController replicationcontrollers rc", "ns all status scale", SPEC),
    ("v1", "ResourceQuota resourcequotas quota", "ns status object", NONE),
    ("v1", "Secret secrets", "ns", NONE),
    ("v1", "ServiceAccount serviceaccounts sa", "ns token object", NONE),
    ("v1", "Service services svc", "ns all status put object", NONE),
];

const WORKLOADS: &[Row] = &[
    ("apps/v1", "ControllerRevision controllerrevisions", "ns", NONE),
    ("apps/v1", "DaemonSet daemonsets ds", "ns all status", SPEC),
    ("apps/v1", "Deployment deployments deploy", "ns all status scale", Generation::SpecAndAnnotations),
    ("apps/v1", "ReplicaSet replicasets rs", "ns all status scale", SPEC),
    ("apps/v1", "StatefulSet statefulsets sts", "ns all status scale", SPEC),
    ("autoscaling/v1", "HorizontalPodAutoscaler horizontalpodautoscalers hpa", "ns all status", NONE),
    ("autoscaling/v2", "HorizontalPodAutoscaler horizontalpodautoscalers hpa", "ns all status", NONE),
    ("batch/v1", "CronJob cronjobs cj", "ns all status", SPEC),
    ("batch/v1", "Job jobs", "ns all status", SPEC),
    ("policy/v1", "PodDisruptionBudget poddisruptionbudgets pdb", "ns status rv", SPEC),
    ("scheduling.k8s.io/v1", "PriorityClass priorityclasses pc", "", Generation::Constant),
];

const NETWORK_AND_STORAGE: &[Row] = &[
    ("discovery.k8s.io/v1", "EndpointSlice endpointslices", "ns", Generation::ContentAndLabels),
    ("networking.k8s.io/v1", "IngressClass ingressclasses", "", SPEC),
    ("networking.k8s.io/v1", "Ingress ingresses ing", "ns status", SPEC),
    ("networking.k8s.io/v1", "NetworkPolicy networkpolicies netpol", "ns", SPEC),
    ("storage.k8s.io/v1", "CSIDriver csidrivers", "rv", NONE),
    ("storage.k8s.io/v1", "CSINode csinodes", "rv object", NONE),
    ("storage.k8s.io/v1", "CSIStorageCapacity csistoragecapacities", "ns rv", NONE),
    ("storage.k8s.io/v1", "StorageClass storageclasses sc", "object", NONE),
    ("storage.k8s.io/v1", "VolumeAttachment volumeattachments", "status rv", NONE),
];

const ACCESS: &[Row] = &[
    ("authentication.k8s.io/v1", "SelfSubjectReview selfsubjectreviews", "review", NONE),
    ("authentication.k8s.io/v1", "TokenReview tokenreviews", "review", NONE),
    ("authorization.k8s.io/v1", "LocalSubjectAccessReview localsubjectaccessreviews", "ns review", NONE),
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview selfsubjectaccessreviews", "review", NONE),
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview selfsubjectrulesreviews", "review", NONE),
    ("authorization.k8s.io/v1", "SubjectAccessReview subjectaccessreviews", "review", NONE),
    ("certificates.k8s.io/v1", "CertificateSigningRequest certificatesigningrequests csr", "status approval", NONE),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding clusterrolebindings", "put", NONE),
    ("rbac.authorization.k8s.io/v1", "ClusterRole clusterroles", "put", NONE),
    ("rbac.authorization.k8s.io/v1", "RoleBinding rolebindings", "ns put", NONE),
    ("rbac.authorization.k8s.io/v1", "Role roles", "ns put", NONE),
];

const AROUND: &[Row] = &[
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration mutatingwebhookconfigurations",
        "api-extensions rv",
        CONTENT,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy validatingadmissionpolicies",
        "api-extensions status rv",
        SPEC,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings",
        "api-extensions rv",
        SPEC,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration validatingwebhookconfigurations",
        "api-extensions rv",
        CONTENT,
    ),
    (
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition customresourcedefinitions crd crds",
        "api-extensions status rv",
        SPEC,
    ),
    ("apiregistration.k8s.io/v1", "APIService apiservices", "api-extensions status rv", NONE),
    ("coordination.k8s.io/v1", "Lease leases", "ns rv put", NONE),
    ("events.k8s.io/v1", "Event events ev", "ns put", NONE),
];

pub(super) const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

pub(crate) fn built_in() -> Vec<ServedKind> {
    [CORE, WORKLOADS, NETWORK_AND_STORAGE, ACCESS, AROUND].into_iter().flatten().map(kind).collect()
}

fn kind(&(api_version, names, traits, generation): &Row) -> ServedKind {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut names = names.split(' ');
    let kind = names.next().unwrap_or_default();
    let plural = names.next().unwrap_or_default();
    let has = |wanted: &str| traits.split(' ').any(|word| word == wanted);
    let categories = ["all", "api-extensions"].into_iter().filter(|category| has(category));
    ServedKind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: plural.into(),
        singular: kind.to_lowercase(),
        list_kind: if kind == "Endpoints" { "EndpointsList".into() } else { format!("{kind}List") },
        short_names: names.map(str::to_owned).collect(),
        categories: categories.map(str::to_owned).collect(),
        namespaced: has("ns"),
        has_status: has("status"),
        generation,
        verbs: verbs(has("review"), has("nocoll")),
        subresources: subresources(kind, has),
        scale: has("scale").then(Scale::built_in),
        requires_resource_version: has("rv"),
        creates_on_update: has("put"),
        answers_delete_with_object: has("object"),
        custom: false,
        schema: None,
        warning: (kind == "Endpoints")
            .then(|| "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()),
    }
}

fn verbs(review: bool, no_collection: bool) -> Vec<&'static str> {
    let known = VERBS.into_iter();
    known
        .filter(|verb| if review { *verb == "create" } else { !(no_collection && *verb == "deletecollection") })
        .collect()
}

fn subresources(kind: &str, has: impl Fn(&str) -> bool) -> Vec<Subresource> {
    // name, api version, kind, verbs
    let known: [(&str, &str, &str, &str, &[&'static str]); 5] = [
        ("approval", "", "", kind, &["get", "patch", "update"]),
        ("finalize", "", "", kind, &["update"]),
        ("scale", "autoscaling", "v1", "Scale", &["get", "patch", "update"]),
        ("status", "", "", kind, &["get", "patch", "update"]),
        ("token", "authentication.k8s.io", "v1", "TokenRequest", &["create"]),
    ];
    let present = known.into_iter().filter(|(name, ..)| has(name));
    let build = |(name, group, version, kind, verbs): (&str, &str, &str, &str, &[&'static str])| Subresource {
        name: name.into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs: verbs.to_vec(),
    };
    present.map(build).collect()
}
