//! The blocks of the file (spec 70 §2.1), with their defaults (§3). The key of a field is its name in camel case. Numbers
//! and durations are signed, so that errors can show what was written. A field is optional only where absence means
//! something.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use process::{
    config::{Debugging, Enabled, HOURS, LeaderElection, MINUTES, Period, PlainServer, Positive, Workers},
    config_blocks,
};

use super::{API_VERSION, DEFAULTS, KIND};

config_blocks! {
    /// The whole configuration. [`Config::default`] is that of an empty file, without leader election, which needs a
    /// namespace.
    pub struct Config {
        /// Group and version of the file.
        #[default(API_VERSION.to_owned())]
        pub api_version: String,
        /// Kind of the file.
        #[default(KIND.to_owned())]
        pub kind: String,
        /// The cluster with ManagedResources, Secrets and Machines.
        #[serde(rename = "sourceClientConnection")]
        pub source: Connection,
        /// The cluster with the applied objects; may be the source.
        #[serde(rename = "targetClientConnection")]
        pub target: Connection,
        /// Leader election.
        #[serde(default = "leader_election")]
        #[default(LeaderElection { leader_elect: false, ..leader_election() })]
        pub leader_election: LeaderElection,
        /// Listening addresses.
        pub server: Server,
        /// Profiling (spec 70 §9.3).
        pub debugging: Debugging,
        /// Name of the least important level that is logged; see [`Config::logging`].
        #[default = "info"]
        pub log_level: String,
        /// Name of the form of a record.
        #[default = "json"]
        pub log_format: String,
        /// The controllers.
        pub controllers: Controllers,
        /// The webhooks.
        pub webhooks: Webhooks,
    }

    /// Access to a cluster, and the part of it that is watched.
    pub struct Connection {
        /// Path of a kubeconfig after flags and environment; empty: see [`cluster::kubeconfig`].
        pub kubeconfig: String,
        /// Accepted, without effect.
        pub accept_content_types: String,
        /// Accepted, without effect.
        pub content_type: String,
        /// Requests per second and resource type; negative is unlimited. See [`Connection::rate_limit`].
        #[default(DEFAULTS.rate_limit.qps)]
        pub qps: f64,
        /// Additional requests at once.
        #[default(i64::from(DEFAULTS.rate_limit.burst))]
        pub burst: i64,
        /// Watched namespaces, in order, without duplicates; empty means all.
        pub namespaces: Vec<String>,
        /// How often known objects are checked again without a change. At least 10 s.
        pub cache_resync_period: Period<{ 24 * HOURS }>,
        /// Former spelling of a list with one entry; becomes part of the list.
        #[serde(skip_serializing)]
        pub namespace: String,
        /// Reads go to the API server and managed objects are not watched (spec 70 §8.5). Target only.
        pub disable_cached_client: bool,
    }

    /// Listening addresses.
    #[derive(Eq)]
    pub struct Server {
        /// HTTPS for webhooks.
        pub webhooks: WebhookServer,
        /// Plain HTTP for probes.
        #[default(PlainServer::at(DEFAULTS.probes_port))]
        pub health_probes: PlainServer,
        /// Plain HTTP for metrics and profiling.
        pub metrics: MetricsServer,
        /// No key: the legacy flag `--health-bind-address=0`. There is no server for probes.
        #[serde(skip)]
        pub health_probes_off: bool,
        /// No key: the legacy flag `--metrics-bind-address=0`. There is no server for metrics.
        #[serde(skip)]
        pub metrics_off: bool,
    }

    /// Plain HTTP for metrics and profiling.
    #[derive(Eq)]
    pub struct MetricsServer {
        /// Host name or address; empty means every interface, IPv4 and IPv6.
        pub bind_address: String,
        /// TCP port.
        #[default(i64::from(DEFAULTS.metrics_port))]
        pub port: i64,
        /// Each ManagedResource has metrics of its own.
        pub per_managed_resource: bool,
    }

    /// HTTPS for webhooks.
    #[derive(Eq)]
    pub struct WebhookServer {
        /// Host name or address; empty means every interface, IPv4 and IPv6.
        pub bind_address: String,
        /// TCP port.
        #[default(9449)]
        pub port: i64,
        /// The certificate.
        pub tls: Tls,
    }

    /// The certificate of the webhook server.
    #[derive(Eq)]
    pub struct Tls {
        /// Directory of `tls.crt` and `tls.key`; empty: see [`Tls::cert_dir`].
        pub server_cert_dir: String,
    }

    /// The controllers, and what they share.
    pub struct Controllers {
        /// Cluster identity as configured; see [`super::cluster_id_source`].
        #[serde(rename = "clusterID")]
        pub cluster_id: String,
        /// Class of the ManagedResources to handle; `*` means all.
        #[default = "resources"]
        pub resource_class: String,
        /// How long a controller waits for its caches before it counts as failed.
        pub cache_sync_timeout: Positive<{ 2 * MINUTES }>,
        /// Garbage collector.
        pub garbage_collector: Enabled<GarbageCollector>,
        /// Always on. The progressing controller has the same settings.
        pub health: HealthController,
        /// Approver of CertificateSigningRequests.
        pub csr_approver: Enabled<CsrApprover>,
        /// Always on.
        pub managed_resource: ManagedResourceController,
        /// Istio cluster configuration.
        pub istio_cluster_configuration: Enabled<WorkersOnly>,
        /// NetworkPolicy controller.
        pub network_policy: Enabled<NetworkPolicyController>,
        /// Node-critical components.
        pub node_critical_components: Enabled<NodeCriticalComponents>,
        /// Delay of node-agent reconciliations.
        pub node_agent_reconciliation_delay: Enabled<NodeAgentReconciliationDelay>,
        /// Token requestor.
        pub token_requestor: Enabled<TokenRequestor>,
        /// Token invalidator; on exactly when its webhook is.
        pub token_invalidator: Enabled<WorkersOnly>,
    }

    /// A controller without other settings.
    #[derive(Copy)]
    pub struct WorkersOnly {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
    }

    /// Settings of the garbage collector.
    #[derive(Copy)]
    pub struct GarbageCollector {
        /// Time between collections. At least 15 s.
        pub sync_period: Period<HOURS>,
    }

    /// Settings of the health and progressing controllers.
    #[derive(Copy)]
    pub struct HealthController {
        /// Concurrent reconciles of each of the two.
        pub concurrent_syncs: Workers,
        /// Time between checks, and deadline of a check. At least 15 s.
        pub sync_period: Period<MINUTES>,
    }

    /// Settings of the CSR approver.
    pub struct CsrApprover {
        /// Concurrent reconciles.
        #[default(Workers::new(1))]
        pub concurrent_syncs: Workers,
        /// Namespace of the Machines in the source cluster; `None` is node mode.
        pub machine_namespace: Option<String>,
    }

    /// Settings of the ManagedResource controller (spec 10 §3.1).
    pub struct ManagedResourceController {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Time to the next reconcile after a success, and deadline of a reconcile. At least 15 s.
        pub sync_period: Period<MINUTES>,
        /// Each object is written again at least this often; zero: never. Not shorter than `sync_period`, which counts
        /// instead of a shorter default, so that users need not raise both.
        pub revalidate_period: Period<{ 24 * HOURS }>,
        /// Write objects even if nothing differs.
        pub always_update: bool,
        /// Value of the label `resources.gardener.cloud/managed-by`. Not empty.
        #[default = "gardener"]
        pub managed_by_label_value: String,
    }

    /// Settings of the NetworkPolicy controller (spec 40 §4).
    pub struct NetworkPolicyController {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Services in namespaces that match one of these are handled; empty means all. Validated.
        pub namespace_selectors: Vec<LabelSelector>,
        /// Enables the policies of Ingresses.
        pub ingress_controller_selector: Option<IngressControllerSelector>,
        /// Policies only for namespaces with pods that need them (decision 2).
        pub only_for_matching_pods: bool,
        /// List the peers of from-world policies (decision 3).
        #[default(true)]
        pub explicit_from_world_peers: bool,
    }

    /// The pods of the ingress controller.
    pub struct IngressControllerSelector {
        /// Their namespace.
        pub namespace: String,
        /// Their labels. Validated.
        pub pod_selector: LabelSelector,
    }

    /// Settings of the controller for node-critical components.
    #[derive(Copy)]
    pub struct NodeCriticalComponents {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Time until a node that is not ready is checked again.
        pub backoff: Positive<10>,
    }

    /// Settings of the controller that spreads node-agent reconciliations.
    #[derive(Copy)]
    pub struct NodeAgentReconciliationDelay {
        /// Shortest delay.
        pub min_delay: Period<0>,
        /// Longest delay; not below `min_delay`.
        pub max_delay: Period<{ 5 * MINUTES }>,
    }

    /// Settings of the token requestor (spec 30 §3).
    #[derive(Copy)]
    pub struct TokenRequestor {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Delete a ServiceAccount when its Secret is deleted (decision 8).
        pub delete_service_accounts: bool,
        /// No key: handle Secrets of any class or none, in flag mode (spec 30 §2.1).
        #[serde(skip)]
        pub any_class: bool,
    }

    /// The webhooks.
    pub struct Webhooks {
        /// Deletion protection of custom resources and their definitions.
        pub crd_deletion_protection: Switch,
        /// Validation of extension resources.
        pub extension_validation: Switch,
        /// High availability; also turns on the controller `node-high-availability-config`.
        pub high_availability_config: Enabled<HighAvailabilityConfig>,
        /// `KUBERNETES_SERVICE_HOST` of pods.
        pub kubernetes_service_host: Enabled<KubernetesServiceHost>,
        /// Node selector and tolerations of system components.
        pub system_components_config: Enabled<SystemComponentsConfig>,
        /// Client-side load balancing of the API server.
        #[serde(rename = "podKubeAPIServerLoadBalancing")]
        pub pod_kube_apiserver_load_balancing: Switch,
        /// Scheduler of pods.
        pub pod_scheduler_name: Enabled<PodSchedulerName>,
        /// Topology spread constraints of pods.
        pub pod_topology_spread_constraints: Switch,
        /// Projected service account tokens.
        pub projected_token_mount: Enabled<ProjectedTokenMount>,
        /// Authorization of node agents.
        pub node_agent_authorizer: Enabled<NodeAgentAuthorizer>,
        /// Seccomp profile of pods.
        pub seccomp_profile: Switch,
        /// In-place updates of VerticalPodAutoscalers.
        pub vpa_in_place_updates: Switch,
        /// Invalidation of static tokens; on exactly when its controller is.
        pub token_invalidator: Switch,
        /// Hints of EndpointSlices.
        pub endpoint_slice_hints: Switch,
    }

    /// A webhook without other settings.
    #[derive(Copy)]
    pub struct Switch {
        /// Off by default.
        pub enabled: bool,
    }

    /// Settings of the high-availability webhook. Seconds are not negative; 0 evicts at once.
    #[derive(Copy, Eq)]
    pub struct HighAvailabilityConfig {
        /// Seconds of the toleration of `not-ready`; `None`: no toleration.
        pub default_not_ready_toleration_seconds: Option<i64>,
        /// Seconds of the toleration of `unreachable`; `None`: no toleration.
        pub default_unreachable_toleration_seconds: Option<i64>,
    }

    /// Settings of the kubernetes-service-host webhook.
    pub struct KubernetesServiceHost {
        /// The host to inject; may be empty.
        pub host: String,
    }

    /// Settings of the system-components webhook.
    pub struct SystemComponentsConfig {
        /// Nodes whose taints are tolerated.
        pub node_selector: BTreeMap<String, String>,
        /// Node selector that pods get.
        pub pod_node_selector: BTreeMap<String, String>,
        /// Tolerations that pods get.
        pub pod_tolerations: Vec<Toleration>,
    }

    /// A toleration as in the file; an empty text is an absent one.
    pub struct Toleration {
        /// Key of the taint.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub key: String,
        /// `Equal` or `Exists`.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub operator: String,
        /// Value of the taint.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub value: String,
        /// Effect of the taint.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub effect: String,
        /// How long the taint is tolerated.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub toleration_seconds: Option<i64>,
    }

    /// Settings of the scheduler-name webhook.
    pub struct PodSchedulerName {
        /// Not empty.
        #[default = "default-scheduler"]
        pub scheduler_name: String,
    }

    /// Settings of the projected-token webhook.
    #[derive(Copy)]
    pub struct ProjectedTokenMount {
        /// Life time of tokens in seconds. At least 600.
        #[default(12 * HOURS)]
        pub expiration_seconds: i64,
    }

    /// Settings of the node-agent authorizer (spec 61 §9).
    pub struct NodeAgentAuthorizer {
        /// Namespace of the Machines in the source cluster; `None` is node mode.
        pub machine_namespace: Option<String>,
        /// The API server sends selectors in its reviews.
        pub authorize_with_selectors: bool,
    }
}

fn leader_election() -> LeaderElection {
    LeaderElection::with(&DEFAULTS)
}

impl Switch {
    /// The webhook is on.
    pub const ON: Self = Self { enabled: true };
}

impl Tls {
    /// Directory of `tls.crt` and `tls.key`: the configured one, or a fixed one below `temporary`.
    pub fn cert_dir(&self, temporary: &Path) -> PathBuf {
        match self.server_cert_dir.as_str() {
            "" => temporary.join("k8s-webhook-server/serving-certs"),
            directory => PathBuf::from(directory),
        }
    }
}
