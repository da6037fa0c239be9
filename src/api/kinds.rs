//! The kinds that the programs name in their code, each in the version that they use.

use cluster::{
    Resource,
    ResourceScope::{self, Cluster, Namespaced},
};

const fn kind(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    scope: ResourceScope,
) -> Resource {
    Resource::constant(group, version, kind, plural, scope)
}

// Core kinds.

/// `v1, Kind=Secret`
pub const SECRET: Resource = kind("", "v1", "Secret", "secrets", Namespaced);
/// `v1, Kind=ConfigMap`
pub const CONFIG_MAP: Resource = kind("", "v1", "ConfigMap", "configmaps", Namespaced);
/// `v1, Kind=Namespace`
pub const NAMESPACE: Resource = kind("", "v1", "Namespace", "namespaces", Cluster);
/// `v1, Kind=Node`
pub const NODE: Resource = kind("", "v1", "Node", "nodes", Cluster);
/// `v1, Kind=Pod`
pub const POD: Resource = kind("", "v1", "Pod", "pods", Namespaced);
/// `v1, Kind=Service`
pub const SERVICE: Resource = kind("", "v1", "Service", "services", Namespaced);
/// `v1, Kind=ServiceAccount`
pub const SERVICE_ACCOUNT: Resource = kind("", "v1", "ServiceAccount", "serviceaccounts", Namespaced);
/// `v1, Kind=PersistentVolumeClaim`
pub const PERSISTENT_VOLUME_CLAIM: Resource =
    kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", Namespaced);
/// `v1, Kind=ResourceQuota`
pub const RESOURCE_QUOTA: Resource = kind("", "v1", "ResourceQuota", "resourcequotas", Namespaced);
/// `v1, Kind=Event`
pub const CORE_EVENT: Resource = kind("", "v1", "Event", "events", Namespaced);

// Kinds of other groups of Kubernetes.

/// `admissionregistration.k8s.io/v1, Kind=MutatingWebhookConfiguration`
pub const MUTATING_WEBHOOK_CONFIGURATION: Resource = kind(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    Cluster,
);
/// `apps/v1, Kind=Deployment`
pub const DEPLOYMENT: Resource = kind("apps", "v1", "Deployment", "deployments", Namespaced);
/// `apps/v1, Kind=StatefulSet`
pub const STATEFUL_SET: Resource = kind("apps", "v1", "StatefulSet", "statefulsets", Namespaced);
/// `apps/v1, Kind=DaemonSet`
pub const DAEMON_SET: Resource = kind("apps", "v1", "DaemonSet", "daemonsets", Namespaced);
/// `authentication.k8s.io/v1, Kind=TokenReview`
pub const TOKEN_REVIEW: Resource = kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", Cluster);
/// `authorization.k8s.io/v1, Kind=SubjectAccessReview`
pub const SUBJECT_ACCESS_REVIEW: Resource =
    kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", Cluster);
/// `authorization.k8s.io/v1, Kind=SelfSubjectAccessReview`
pub const SELF_SUBJECT_ACCESS_REVIEW: Resource =
    kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", Cluster);
/// `autoscaling/v2, Kind=HorizontalPodAutoscaler`
pub const HORIZONTAL_POD_AUTOSCALER: Resource =
    kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", Namespaced);
/// `batch/v1, Kind=Job`
pub const JOB: Resource = kind("batch", "v1", "Job", "jobs", Namespaced);
/// `batch/v1, Kind=CronJob`
pub const CRON_JOB: Resource = kind("batch", "v1", "CronJob", "cronjobs", Namespaced);
/// `certificates.k8s.io/v1, Kind=CertificateSigningRequest`
pub const CERTIFICATE_SIGNING_REQUEST: Resource =
    kind("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", Cluster);
/// `coordination.k8s.io/v1, Kind=Lease`
pub const LEASE: Resource = kind("coordination.k8s.io", "v1", "Lease", "leases", Namespaced);
/// `events.k8s.io/v1, Kind=Event`
pub const EVENT: Resource = kind("events.k8s.io", "v1", "Event", "events", Namespaced);
/// `networking.k8s.io/v1, Kind=Ingress`
pub const INGRESS: Resource = kind("networking.k8s.io", "v1", "Ingress", "ingresses", Namespaced);
/// `networking.k8s.io/v1, Kind=NetworkPolicy`
pub const NETWORK_POLICY: Resource = kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", Namespaced);
/// `rbac.authorization.k8s.io/v1, Kind=ClusterRole`
pub const CLUSTER_ROLE: Resource = kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", Cluster);
/// `rbac.authorization.k8s.io/v1, Kind=ClusterRoleBinding`
pub const CLUSTER_ROLE_BINDING: Resource =
    kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", Cluster);
/// `rbac.authorization.k8s.io/v1, Kind=RoleBinding`
pub const ROLE_BINDING: Resource = kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", Namespaced);
/// `storage.k8s.io/v1, Kind=CSINode`
pub const CSI_NODE: Resource = kind("storage.k8s.io", "v1", "CSINode", "csinodes", Cluster);

// Kinds of Istio, the Machine Controller Manager and Prometheus.

/// `networking.istio.io/v1beta1, Kind=VirtualService`
pub const VIRTUAL_SERVICE: Resource =
    kind("networking.istio.io", "v1beta1", "VirtualService", "virtualservices", Namespaced);
/// `networking.istio.io/v1beta1, Kind=Gateway`
pub const GATEWAY: Resource = kind("networking.istio.io", "v1beta1", "Gateway", "gateways", Namespaced);
/// `networking.istio.io/v1beta1, Kind=DestinationRule`
pub const DESTINATION_RULE: Resource =
    kind("networking.istio.io", "v1beta1", "DestinationRule", "destinationrules", Namespaced);
/// `networking.istio.io/v1alpha3, Kind=EnvoyFilter`
pub const ENVOY_FILTER: Resource = kind("networking.istio.io", "v1alpha3", "EnvoyFilter", "envoyfilters", Namespaced);
/// `machine.sapcloud.io/v1alpha1, Kind=Machine`
pub const MACHINE: Resource = kind("machine.sapcloud.io", "v1alpha1", "Machine", "machines", Namespaced);
/// `monitoring.coreos.com/v1, Kind=Prometheus`
pub const PROMETHEUS: Resource = kind("monitoring.coreos.com", "v1", "Prometheus", "prometheuses", Namespaced);

// Kinds of Gardener (spec 80 §9).

/// `resources.gardener.cloud/v1alpha1, Kind=ManagedResource`
pub const MANAGED_RESOURCE: Resource =
    kind("resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources", Namespaced);
/// `core.gardener.cloud/v1beta1, Kind=Shoot`
pub const SHOOT: Resource = kind("core.gardener.cloud", "v1beta1", "Shoot", "shoots", Namespaced);
/// `core.gardener.cloud/v1beta1, Kind=Seed`
pub const SEED: Resource = kind("core.gardener.cloud", "v1beta1", "Seed", "seeds", Cluster);
/// `core.gardener.cloud/v1beta1, Kind=Project`
pub const PROJECT: Resource = kind("core.gardener.cloud", "v1beta1", "Project", "projects", Cluster);
/// `core.gardener.cloud/v1beta1, Kind=CloudProfile`
pub const CLOUD_PROFILE: Resource = kind("core.gardener.cloud", "v1beta1", "CloudProfile", "cloudprofiles", Cluster);
/// `core.gardener.cloud/v1beta1, Kind=NamespacedCloudProfile`
pub const NAMESPACED_CLOUD_PROFILE: Resource =
    kind("core.gardener.cloud", "v1beta1", "NamespacedCloudProfile", "namespacedcloudprofiles", Namespaced);
/// `core.gardener.cloud/v1beta1, Kind=SecretBinding`
pub const SECRET_BINDING: Resource =
    kind("core.gardener.cloud", "v1beta1", "SecretBinding", "secretbindings", Namespaced);
/// `core.gardener.cloud/v1beta1, Kind=Quota`
pub const QUOTA: Resource = kind("core.gardener.cloud", "v1beta1", "Quota", "quotas", Namespaced);
/// `core.gardener.cloud/v1beta1, Kind=ExposureClass`
pub const EXPOSURE_CLASS: Resource =
    kind("core.gardener.cloud", "v1beta1", "ExposureClass", "exposureclasses", Cluster);
/// `core.gardener.cloud/v1beta1, Kind=ShootState`
pub const SHOOT_STATE: Resource = kind("core.gardener.cloud", "v1beta1", "ShootState", "shootstates", Namespaced);
/// `core.gardener.cloud/v1beta1, Kind=ControllerRegistration`
pub const CONTROLLER_REGISTRATION: Resource =
    kind("core.gardener.cloud", "v1beta1", "ControllerRegistration", "controllerregistrations", Cluster);
/// `core.gardener.cloud/v1beta1, Kind=ControllerInstallation`
pub const CONTROLLER_INSTALLATION: Resource =
    kind("core.gardener.cloud", "v1beta1", "ControllerInstallation", "controllerinstallations", Cluster);
/// `core.gardener.cloud/v1beta1, Kind=InternalSecret`
pub const INTERNAL_SECRET: Resource =
    kind("core.gardener.cloud", "v1beta1", "InternalSecret", "internalsecrets", Namespaced);
/// `core.gardener.cloud/v1beta1, Kind=BackupBucket`
pub const BACKUP_BUCKET: Resource = kind("core.gardener.cloud", "v1beta1", "BackupBucket", "backupbuckets", Cluster);
/// `core.gardener.cloud/v1beta1, Kind=BackupEntry`
pub const BACKUP_ENTRY: Resource = kind("core.gardener.cloud", "v1beta1", "BackupEntry", "backupentries", Namespaced);
/// `core.gardener.cloud/v1, Kind=ControllerDeployment`
pub const CONTROLLER_DEPLOYMENT: Resource =
    kind("core.gardener.cloud", "v1", "ControllerDeployment", "controllerdeployments", Cluster);
/// `seedmanagement.gardener.cloud/v1alpha1, Kind=ManagedSeed`
pub const MANAGED_SEED: Resource =
    kind("seedmanagement.gardener.cloud", "v1alpha1", "ManagedSeed", "managedseeds", Namespaced);
/// `seedmanagement.gardener.cloud/v1alpha1, Kind=ManagedSeedSet`
pub const MANAGED_SEED_SET: Resource =
    kind("seedmanagement.gardener.cloud", "v1alpha1", "ManagedSeedSet", "managedseedsets", Namespaced);
/// `operations.gardener.cloud/v1alpha1, Kind=Bastion`
pub const BASTION: Resource = kind("operations.gardener.cloud", "v1alpha1", "Bastion", "bastions", Namespaced);
/// `security.gardener.cloud/v1alpha1, Kind=CredentialsBinding`
pub const CREDENTIALS_BINDING: Resource =
    kind("security.gardener.cloud", "v1alpha1", "CredentialsBinding", "credentialsbindings", Namespaced);
/// `security.gardener.cloud/v1alpha1, Kind=WorkloadIdentity`
pub const WORKLOAD_IDENTITY: Resource =
    kind("security.gardener.cloud", "v1alpha1", "WorkloadIdentity", "workloadidentities", Namespaced);
