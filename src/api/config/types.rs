//! The effective configuration: decoded, defaulted, validated. Disabled parts are `None` or `false`; a field exists
//! only where it means something.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use k8s_openapi::{api::core::v1::Toleration, apimachinery::pkg::apis::meta::v1::LabelSelector};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// The whole configuration. [`Config::default`] is an empty file's, without leader election, which needs a namespace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    /// The cluster with ManagedResources, Secrets and Machines.
    pub source: Connection,
    /// The cluster with the applied objects; may be the source.
    pub target: Connection,
    /// `None`: controllers start as soon as the caches are filled.
    pub leader_election: Option<LeaderElection>,
    /// Listening addresses.
    pub servers: Servers,
    /// Profiling (spec 70 §9.3).
    pub debugging: Debugging,
    /// Level and format of the log.
    pub logging: Logging,
    /// Cluster identity as configured; see [`super::cluster_id_source`].
    pub cluster_id: String,
    /// Class of the ManagedResources to handle; `*` means all.
    pub resource_class: String,
    /// How long a controller waits for its caches before it counts as failed. Never zero.
    pub cache_sync_timeout: Duration,
    /// The controllers.
    pub controllers: Controllers,
    /// The webhooks.
    pub webhooks: Webhooks,
}

/// Access to a cluster, and the part of it that is watched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Connection {
    /// Path of a kubeconfig after flags and environment; `None`: see [`cluster::kubeconfig`].
    pub kubeconfig: Option<String>,
    /// `Accept` header of requests; `None`: the client's own.
    pub accept_content_types: Option<String>,
    /// Content type of writes; `None`: the client's own.
    pub content_type: Option<String>,
    /// Token bucket per resource type; `None` is unlimited.
    pub rate_limit: Option<RateLimit>,
    /// Watched namespaces, in order, without duplicates; empty means all.
    pub namespaces: Vec<String>,
    /// How often known objects are checked again without a change. At least 10 s.
    pub cache_resync_period: Duration,
    /// Reads go to the API server and managed objects are not watched (spec 70 §8.5). Target only.
    pub cache_disabled: bool,
}

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RateLimit {
    /// Requests per second. Positive.
    pub qps: f64,
    /// Additional requests at once.
    pub burst: u32,
}

/// Leader election (spec 70 §12).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeaderElection {
    /// Other replicas wait this long after the last renewal they saw.
    pub lease_duration: Duration,
    /// The leader gives up after this time without a renewal. Shorter than `lease_duration`.
    pub renew_deadline: Duration,
    /// Time between attempts.
    pub retry_period: Duration,
    /// Lock type as configured; only `leases` works.
    pub resource_lock: String,
    /// Namespace of the lease, in the source cluster.
    pub resource_namespace: String,
    /// Name of the lease.
    pub resource_name: String,
}

/// Listening addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Servers {
    /// HTTPS for webhooks.
    pub webhooks: Endpoint,
    /// Directory of `tls.crt` and `tls.key`; `None`: see [`Servers::cert_dir`].
    pub tls_cert_dir: Option<String>,
    /// Plain HTTP for probes; `None` only with the legacy flag `--health-bind-address=0`.
    pub health_probes: Option<Endpoint>,
    /// Plain HTTP for metrics and profiling; `None` only with the legacy flag `--metrics-bind-address=0`.
    pub metrics: Option<Endpoint>,
}

/// A listening address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// Host name or address; empty means every interface, IPv4 and IPv6.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// Profiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Debugging {
    /// Serve `/debug/pprof`.
    pub profiling: bool,
    /// Has an effect only with `profiling`.
    pub contention_profiling: bool,
}

/// The log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Logging {
    /// Least important level that is written.
    pub level: LogLevel,
    /// Form of a record.
    pub format: LogFormat,
}

/// Log levels of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// Normal operation and errors.
    Info,
    /// Errors only.
    Error,
}

/// Log formats of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One object per line.
    Json,
    /// Tab-separated.
    Text,
}

/// The controllers; `None` is off. `concurrent_syncs` is at least 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Controllers {
    /// Always on.
    pub managed_resource: ManagedResourceController,
    /// Always on. The progressing controller has the same settings.
    pub health: HealthController,
    /// Garbage collector.
    pub garbage_collector: Option<GarbageCollector>,
    /// Approver of CertificateSigningRequests.
    pub csr_approver: Option<CsrApprover>,
    /// Istio cluster configuration.
    pub istio_cluster_configuration: Option<Workers>,
    /// NetworkPolicy controller.
    pub network_policy: Option<NetworkPolicyController>,
    /// Node-critical components.
    pub node_critical_components: Option<NodeCriticalComponents>,
    /// Delay of node-agent reconciliations.
    pub node_agent_reconciliation_delay: Option<NodeAgentReconciliationDelay>,
    /// Token requestor.
    pub token_requestor: Option<TokenRequestor>,
    /// Token invalidator; on exactly when its webhook is.
    pub token_invalidator: Option<Workers>,
}

/// Number of workers, for controllers without other settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Workers {
    /// Concurrent reconciles.
    pub concurrent_syncs: usize,
}

/// Settings of the ManagedResource controller (spec 10 §3.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManagedResourceController {
    /// Concurrent reconciles.
    pub concurrent_syncs: usize,
    /// Time to the next reconcile after a success, and deadline of a reconcile. At least 15 s.
    pub sync_period: Duration,
    /// Each object is written again at least this often; `None`: never. Not shorter than `sync_period`.
    pub revalidate_period: Option<Duration>,
    /// Write objects even if nothing differs.
    pub always_update: bool,
    /// Value of the label `resources.gardener.cloud/managed-by`. Not empty.
    pub managed_by_label_value: String,
}

/// Settings of the health and progressing controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HealthController {
    /// Concurrent reconciles of each of the two.
    pub concurrent_syncs: usize,
    /// Time between checks, and deadline of a check. At least 15 s.
    pub sync_period: Duration,
}

/// Settings of the garbage collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GarbageCollector {
    /// Time between collections. At least 15 s.
    pub sync_period: Duration,
}

/// Settings of the CSR approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CsrApprover {
    /// Concurrent reconciles.
    pub concurrent_syncs: usize,
    /// Namespace of the Machines in the source cluster; `None` is node mode.
    pub machine_namespace: Option<String>,
}

/// Settings of the NetworkPolicy controller (spec 40 §4).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkPolicyController {
    /// Concurrent reconciles.
    pub concurrent_syncs: usize,
    /// Services in namespaces that match one of these are handled; empty means all. Validated.
    pub namespace_selectors: Vec<LabelSelector>,
    /// Enables the policies of Ingresses.
    pub ingress_controller_selector: Option<IngressControllerSelector>,
    /// Policies only for namespaces with pods that need them (decision 2).
    pub only_for_matching_pods: bool,
    /// List the peers of from-world policies (decision 3).
    pub explicit_from_world_peers: bool,
}

/// The pods of the ingress controller.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IngressControllerSelector {
    /// Their namespace.
    pub namespace: String,
    /// Their labels. Validated.
    pub pod_selector: LabelSelector,
}

/// Settings of the controller for node-critical components.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NodeCriticalComponents {
    /// Concurrent reconciles.
    pub concurrent_syncs: usize,
    /// Time until a node that is not ready is checked again. Never zero.
    pub backoff: Duration,
}

/// Settings of the controller that spreads node-agent reconciliations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NodeAgentReconciliationDelay {
    /// Shortest delay.
    pub min_delay: Duration,
    /// Longest delay; not below `min_delay`.
    pub max_delay: Duration,
}

/// Settings of the token requestor (spec 30 §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TokenRequestor {
    /// Concurrent reconciles.
    pub concurrent_syncs: usize,
    /// Delete a ServiceAccount when its Secret is deleted (decision 8).
    pub delete_service_accounts: bool,
    /// Handle Secrets of any class or none: flag mode (spec 30 §2.1).
    pub any_class: bool,
}

/// The webhooks; `None` or `false` is off.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Webhooks {
    /// Deletion protection of custom resources and their definitions.
    pub crd_deletion_protection: bool,
    /// Validation of extension resources.
    pub extension_validation: bool,
    /// High availability; also turns on the controller `node-high-availability-config`.
    pub high_availability_config: Option<HighAvailabilityConfig>,
    /// `KUBERNETES_SERVICE_HOST` of pods.
    pub kubernetes_service_host: Option<KubernetesServiceHost>,
    /// Node selector and tolerations of system components.
    pub system_components_config: Option<SystemComponentsConfig>,
    /// Client-side load balancing of the API server.
    pub pod_kube_apiserver_load_balancing: bool,
    /// Scheduler of pods.
    pub pod_scheduler_name: Option<PodSchedulerName>,
    /// Topology spread constraints of pods.
    pub pod_topology_spread_constraints: bool,
    /// Projected service account tokens.
    pub projected_token_mount: Option<ProjectedTokenMount>,
    /// Authorization of node agents.
    pub node_agent_authorizer: Option<NodeAgentAuthorizer>,
    /// Seccomp profile of pods.
    pub seccomp_profile: bool,
    /// In-place updates of VerticalPodAutoscalers.
    pub vpa_in_place_updates: bool,
    /// Invalidation of static tokens; on exactly when its controller is.
    pub token_invalidator: bool,
    /// Hints of EndpointSlices.
    pub endpoint_slice_hints: bool,
}

/// Settings of the high-availability webhook. Seconds are not negative; 0 evicts at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HighAvailabilityConfig {
    /// Seconds of the toleration of `not-ready`; `None`: no toleration.
    pub default_not_ready_toleration_seconds: Option<i64>,
    /// Seconds of the toleration of `unreachable`; `None`: no toleration.
    pub default_unreachable_toleration_seconds: Option<i64>,
}

/// Settings of the kubernetes-service-host webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KubernetesServiceHost {
    /// The host to inject; may be empty.
    pub host: String,
}

/// Settings of the system-components webhook.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SystemComponentsConfig {
    /// Nodes whose taints are tolerated.
    pub node_selector: BTreeMap<String, String>,
    /// Node selector that pods get.
    pub pod_node_selector: BTreeMap<String, String>,
    /// Tolerations that pods get.
    pub pod_tolerations: Vec<Toleration>,
}

/// Settings of the scheduler-name webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PodSchedulerName {
    /// Not empty.
    pub scheduler_name: String,
}

/// Settings of the projected-token webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ProjectedTokenMount {
    /// Life time of tokens in seconds. At least 600.
    pub expiration_seconds: i64,
}

/// Settings of the node-agent authorizer (spec 61 §9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeAgentAuthorizer {
    /// Namespace of the Machines in the source cluster; `None` is node mode.
    pub machine_namespace: Option<String>,
    /// The API server sends selectors in its reviews.
    pub authorize_with_selectors: bool,
}

impl Config {
    /// Names of the enabled controllers, in the order in which they start (spec 70 §7).
    pub fn enabled_controllers(&self) -> Vec<&'static str> {
        let controllers = &self.controllers;
        named([
            ("csr-approver", controllers.csr_approver.is_some()),
            ("garbage-collector", controllers.garbage_collector.is_some()),
            ("health", true),
            ("health-progressing", true),
            ("managedresource", true),
            ("networkpolicy", controllers.network_policy.is_some()),
            ("istio-cluster-configuration", controllers.istio_cluster_configuration.is_some()),
            ("token-invalidator", controllers.token_invalidator.is_some()),
            ("token-requestor", controllers.token_requestor.is_some()),
            ("node-critical-components", controllers.node_critical_components.is_some()),
            ("node-agent-reconciliation-delay", controllers.node_agent_reconciliation_delay.is_some()),
            ("node-high-availability-config", self.webhooks.high_availability_config.is_some()),
        ])
    }

    /// Configuration keys of the enabled webhooks, in the order of spec 70 §7.
    pub fn enabled_webhooks(&self) -> Vec<&'static str> {
        let webhooks = &self.webhooks;
        named([
            ("crdDeletionProtection", webhooks.crd_deletion_protection),
            ("extensionValidation", webhooks.extension_validation),
            ("highAvailabilityConfig", webhooks.high_availability_config.is_some()),
            ("kubernetesServiceHost", webhooks.kubernetes_service_host.is_some()),
            ("systemComponentsConfig", webhooks.system_components_config.is_some()),
            ("podKubeAPIServerLoadBalancing", webhooks.pod_kube_apiserver_load_balancing),
            ("podSchedulerName", webhooks.pod_scheduler_name.is_some()),
            ("podTopologySpreadConstraints", webhooks.pod_topology_spread_constraints),
            ("projectedTokenMount", webhooks.projected_token_mount.is_some()),
            ("nodeAgentAuthorizer", webhooks.node_agent_authorizer.is_some()),
            ("seccompProfile", webhooks.seccomp_profile),
            ("vpaInPlaceUpdates", webhooks.vpa_in_place_updates),
            ("tokenInvalidator", webhooks.token_invalidator),
            ("endpointSliceHints", webhooks.endpoint_slice_hints),
        ])
    }

    /// SHA-256 of the effective configuration in hex. Equivalent configurations have the same hash.
    pub fn hash(&self) -> String {
        // Cannot fail: all map keys are strings and all numbers are finite.
        let text = serde_json::to_vec(self).unwrap_or_default();
        Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn named<const N: usize>(table: [(&'static str, bool); N]) -> Vec<&'static str> {
    table.into_iter().filter_map(|(name, enabled)| enabled.then_some(name)).collect()
}

impl Servers {
    /// Directory of `tls.crt` and `tls.key`: the configured one, or a fixed one below `temporary`.
    pub fn cert_dir(&self, temporary: &Path) -> PathBuf {
        match &self.tls_cert_dir {
            Some(directory) => PathBuf::from(directory),
            None => temporary.join("k8s-webhook-server/serving-certs"),
        }
    }
}

impl std::fmt::Display for Endpoint {
    /// `host:port`, with IPv6 addresses in brackets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl LogLevel {
    pub(super) const NAMES: [&'static str; 3] = ["debug", "info", "error"];

    /// Parses the name used in the configuration.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "debug" => Some(Self::Debug),
            "info" => Some(Self::Info),
            "error" => Some(Self::Error),
            _ => None,
        }
    }
}

impl LogFormat {
    pub(super) const NAMES: [&'static str; 2] = ["json", "text"];

    /// Parses the name used in the configuration.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "json" => Some(Self::Json),
            "text" => Some(Self::Text),
            _ => None,
        }
    }
}
