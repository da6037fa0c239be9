//! The component configuration as in the file (spec 70 §2.1), with its defaults (§3). Numbers and durations are signed,
//! so that errors can show what was written. A field is optional only where absence means something. An absent field
//! has its default; a field that is `0` stays 0, except for those of `defaults.rs`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::api::duration::GoDuration;

const WORKERS: i64 = 5;

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct ConfigFile {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    #[serde(rename = "sourceClientConnection")]
    pub(crate) source: Connection,
    #[serde(rename = "targetClientConnection")]
    pub(crate) target: Connection,
    pub(crate) leader_election: LeaderElection,
    pub(crate) server: Server,
    pub(crate) debugging: Debugging,
    #[default = "info"]
    pub(crate) log_level: String,
    #[default = "json"]
    pub(crate) log_format: String,
    pub(crate) controllers: Controllers,
    pub(crate) webhooks: Webhooks,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct Connection {
    pub(crate) kubeconfig: String,
    pub(crate) accept_content_types: String,
    pub(crate) content_type: String,
    #[default(100.0)]
    pub(crate) qps: f64,
    #[default(130)]
    pub(crate) burst: i64,
    pub(crate) namespaces: Vec<String>,
    #[default(hours(24))]
    pub(crate) cache_resync_period: GoDuration,
    /// Former spelling of a list with one entry; added to the list.
    #[serde(skip_serializing)]
    pub(crate) namespace: String,
    /// Only the target's value counts.
    pub(crate) disable_cached_client: bool,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct LeaderElection {
    #[default(true)]
    pub(crate) leader_elect: bool,
    #[default(GoDuration::from_secs(15))]
    pub(crate) lease_duration: GoDuration,
    #[default(GoDuration::from_secs(10))]
    pub(crate) renew_deadline: GoDuration,
    #[default(GoDuration::from_secs(2))]
    pub(crate) retry_period: GoDuration,
    #[default = "leases"]
    pub(crate) resource_lock: String,
    #[default = "gardener-resource-manager"]
    pub(crate) resource_name: String,
    pub(crate) resource_namespace: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct Server {
    pub(crate) webhooks: WebhookServer,
    pub(crate) health_probes: PlainServer,
    pub(crate) metrics: PlainServer,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct WebhookServer {
    pub(crate) bind_address: String,
    #[default(9449)]
    pub(crate) port: i64,
    pub(crate) tls: Tls,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct Tls {
    pub(crate) server_cert_dir: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct PlainServer {
    pub(crate) bind_address: String,
    pub(crate) port: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct Debugging {
    pub(crate) enable_profiling: bool,
    pub(crate) enable_contention_profiling: bool,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct Controllers {
    #[serde(rename = "clusterID")]
    pub(crate) cluster_id: String,
    #[default = "resources"]
    pub(crate) resource_class: String,
    #[default(minutes(2))]
    pub(crate) cache_sync_timeout: GoDuration,
    pub(crate) garbage_collector: GarbageCollector,
    pub(crate) health: Health,
    pub(crate) csr_approver: CsrApprover,
    pub(crate) managed_resource: ManagedResource,
    pub(crate) istio_cluster_configuration: Workers,
    pub(crate) network_policy: NetworkPolicy,
    pub(crate) node_critical_components: NodeCriticalComponents,
    pub(crate) node_agent_reconciliation_delay: NodeAgentReconciliationDelay,
    pub(crate) token_requestor: TokenRequestor,
    pub(crate) token_invalidator: Workers,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct GarbageCollector {
    pub(crate) enabled: bool,
    #[default(hours(1))]
    pub(crate) sync_period: GoDuration,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct Health {
    #[default(WORKERS)]
    pub(crate) concurrent_syncs: i64,
    #[default(minutes(1))]
    pub(crate) sync_period: GoDuration,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct CsrApprover {
    pub(crate) enabled: bool,
    #[default(1)]
    pub(crate) concurrent_syncs: i64,
    pub(crate) machine_namespace: Option<String>,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct ManagedResource {
    #[default(WORKERS)]
    pub(crate) concurrent_syncs: i64,
    #[default(minutes(1))]
    pub(crate) sync_period: GoDuration,
    #[default(REVALIDATE_PERIOD)]
    pub(crate) revalidate_period: GoDuration,
    pub(crate) always_update: bool,
    #[default = "gardener"]
    pub(crate) managed_by_label_value: String,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct Workers {
    pub(crate) enabled: bool,
    #[default(WORKERS)]
    pub(crate) concurrent_syncs: i64,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct NetworkPolicy {
    pub(crate) enabled: bool,
    #[default(WORKERS)]
    pub(crate) concurrent_syncs: i64,
    pub(crate) namespace_selectors: Vec<LabelSelector>,
    pub(crate) ingress_controller_selector: Option<IngressControllerSelector>,
    pub(crate) only_for_matching_pods: bool,
    #[default(true)]
    pub(crate) explicit_from_world_peers: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct IngressControllerSelector {
    pub(crate) namespace: String,
    pub(crate) pod_selector: LabelSelector,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct NodeCriticalComponents {
    pub(crate) enabled: bool,
    #[default(WORKERS)]
    pub(crate) concurrent_syncs: i64,
    #[default(GoDuration::from_secs(10))]
    pub(crate) backoff: GoDuration,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct NodeAgentReconciliationDelay {
    pub(crate) enabled: bool,
    pub(crate) min_delay: GoDuration,
    #[default(minutes(5))]
    pub(crate) max_delay: GoDuration,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct TokenRequestor {
    pub(crate) enabled: bool,
    #[default(WORKERS)]
    pub(crate) concurrent_syncs: i64,
    pub(crate) delete_service_accounts: bool,
    /// No key in the file: flag mode sets it.
    #[serde(skip)]
    pub(crate) any_class: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct Webhooks {
    pub(crate) crd_deletion_protection: Switch,
    pub(crate) extension_validation: Switch,
    pub(crate) high_availability_config: HighAvailabilityConfig,
    pub(crate) kubernetes_service_host: KubernetesServiceHost,
    pub(crate) system_components_config: SystemComponentsConfig,
    #[serde(rename = "podKubeAPIServerLoadBalancing")]
    pub(crate) pod_kube_apiserver_load_balancing: Switch,
    pub(crate) pod_scheduler_name: PodSchedulerName,
    pub(crate) pod_topology_spread_constraints: Switch,
    pub(crate) projected_token_mount: ProjectedTokenMount,
    pub(crate) node_agent_authorizer: NodeAgentAuthorizer,
    pub(crate) seccomp_profile: Switch,
    pub(crate) vpa_in_place_updates: Switch,
    pub(crate) token_invalidator: Switch,
    pub(crate) endpoint_slice_hints: Switch,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct Switch {
    pub(crate) enabled: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct HighAvailabilityConfig {
    pub(crate) enabled: bool,
    pub(crate) default_not_ready_toleration_seconds: Option<i64>,
    pub(crate) default_unreachable_toleration_seconds: Option<i64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct KubernetesServiceHost {
    pub(crate) enabled: bool,
    pub(crate) host: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct SystemComponentsConfig {
    pub(crate) enabled: bool,
    pub(crate) node_selector: BTreeMap<String, String>,
    pub(crate) pod_node_selector: BTreeMap<String, String>,
    pub(crate) pod_tolerations: Vec<Toleration>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct Toleration {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) operator: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) value: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) effect: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) toleration_seconds: Option<i64>,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct PodSchedulerName {
    pub(crate) enabled: bool,
    #[default = "default-scheduler"]
    pub(crate) scheduler_name: String,
}

#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct ProjectedTokenMount {
    pub(crate) enabled: bool,
    #[default(12 * 60 * 60)]
    pub(crate) expiration_seconds: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct NodeAgentAuthorizer {
    pub(crate) enabled: bool,
    pub(crate) machine_namespace: Option<String>,
    pub(crate) authorize_with_selectors: bool,
}

/// A longer `syncPeriod` counts instead, so that users need not raise both.
pub(super) const REVALIDATE_PERIOD: GoDuration = hours(24);

const fn minutes(minutes: i64) -> GoDuration {
    GoDuration::from_secs(minutes * 60)
}

const fn hours(hours: i64) -> GoDuration {
    minutes(hours * 60)
}
