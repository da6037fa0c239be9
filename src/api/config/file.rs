//! The component configuration as it is written in the file (spec 70 §2.1): every value signed and optional, so that
//! absent and zero differ until the defaults are in, and errors can show what was written.

use std::collections::BTreeMap;

use super::decode::records;
use crate::api::duration::GoDuration;

records! {
    /// `ResourceManagerConfiguration` of `resourcemanager.config.gardener.cloud/v1alpha1`.
    ConfigFile {
        api_version: Option<String> = "apiVersion",
        kind: Option<String> = "kind",
        source: Connection = "sourceClientConnection",
        target: Connection = "targetClientConnection",
        leader_election: LeaderElection = "leaderElection",
        server: Server = "server",
        debugging: Debugging = "debugging",
        log_level: Option<String> = "logLevel",
        log_format: Option<String> = "logFormat",
        controllers: Controllers = "controllers",
        webhooks: Webhooks = "webhooks",
    }

    Connection {
        kubeconfig: Option<String> = "kubeconfig",
        accept_content_types: Option<String> = "acceptContentTypes",
        content_type: Option<String> = "contentType",
        qps: Option<f64> = "qps",
        burst: Option<i64> = "burst",
        namespaces: Vec<String> = "namespaces",
        cache_resync_period: Option<GoDuration> = "cacheResyncPeriod",
        /// Former spelling of a list with one entry; added to the list.
        namespace: Option<String> = "namespace",
        /// Only the target's is looked at.
        disable_cached_client: Option<bool> = "disableCachedClient",
    }

    LeaderElection {
        leader_elect: Option<bool> = "leaderElect",
        lease_duration: Option<GoDuration> = "leaseDuration",
        renew_deadline: Option<GoDuration> = "renewDeadline",
        retry_period: Option<GoDuration> = "retryPeriod",
        resource_lock: Option<String> = "resourceLock",
        resource_name: Option<String> = "resourceName",
        resource_namespace: Option<String> = "resourceNamespace",
    }

    Server {
        webhooks: WebhookServer = "webhooks",
        health_probes: PlainServer = "healthProbes",
        metrics: PlainServer = "metrics",
    }

    WebhookServer {
        bind_address: Option<String> = "bindAddress",
        port: Option<i64> = "port",
        tls: Tls = "tls",
    }

    Tls {
        server_cert_dir: Option<String> = "serverCertDir",
    }

    PlainServer {
        bind_address: Option<String> = "bindAddress",
        port: Option<i64> = "port",
    }

    Debugging {
        enable_profiling: Option<bool> = "enableProfiling",
        enable_contention_profiling: Option<bool> = "enableContentionProfiling",
    }

    Controllers {
        cluster_id: Option<String> = "clusterID",
        resource_class: Option<String> = "resourceClass",
        cache_sync_timeout: Option<GoDuration> = "cacheSyncTimeout",
        garbage_collector: GarbageCollector = "garbageCollector",
        health: Health = "health",
        csr_approver: CsrApprover = "csrApprover",
        managed_resource: ManagedResource = "managedResource",
        istio_cluster_configuration: Workers = "istioClusterConfiguration",
        network_policy: NetworkPolicy = "networkPolicy",
        node_critical_components: NodeCriticalComponents = "nodeCriticalComponents",
        node_agent_reconciliation_delay: NodeAgentReconciliationDelay = "nodeAgentReconciliationDelay",
        token_requestor: TokenRequestor = "tokenRequestor",
        token_invalidator: Workers = "tokenInvalidator",
    }

    GarbageCollector {
        enabled: Option<bool> = "enabled",
        sync_period: Option<GoDuration> = "syncPeriod",
    }

    Health {
        concurrent_syncs: Option<i64> = "concurrentSyncs",
        sync_period: Option<GoDuration> = "syncPeriod",
    }

    CsrApprover {
        enabled: Option<bool> = "enabled",
        concurrent_syncs: Option<i64> = "concurrentSyncs",
        machine_namespace: Option<String> = "machineNamespace",
    }

    ManagedResource {
        concurrent_syncs: Option<i64> = "concurrentSyncs",
        sync_period: Option<GoDuration> = "syncPeriod",
        always_update: Option<bool> = "alwaysUpdate",
        managed_by_label_value: Option<String> = "managedByLabelValue",
    }

    /// A controller with a switch and a number of workers.
    Workers {
        enabled: Option<bool> = "enabled",
        concurrent_syncs: Option<i64> = "concurrentSyncs",
    }

    NetworkPolicy {
        enabled: Option<bool> = "enabled",
        concurrent_syncs: Option<i64> = "concurrentSyncs",
        namespace_selectors: Vec<LabelSelector> = "namespaceSelectors",
        ingress_controller_selector: Option<IngressControllerSelector> = "ingressControllerSelector",
        only_for_matching_pods: Option<bool> = "onlyForMatchingPods",
        explicit_from_world_peers: Option<bool> = "explicitFromWorldPeers",
    }

    IngressControllerSelector {
        namespace: Option<String> = "namespace",
        pod_selector: LabelSelector = "podSelector",
    }

    LabelSelector {
        match_labels: BTreeMap<String, String> = "matchLabels",
        match_expressions: Vec<LabelRequirement> = "matchExpressions",
    }

    LabelRequirement {
        key: Option<String> = "key",
        operator: Option<String> = "operator",
        values: Vec<String> = "values",
    }

    NodeCriticalComponents {
        enabled: Option<bool> = "enabled",
        concurrent_syncs: Option<i64> = "concurrentSyncs",
        backoff: Option<GoDuration> = "backoff",
    }

    NodeAgentReconciliationDelay {
        enabled: Option<bool> = "enabled",
        min_delay: Option<GoDuration> = "minDelay",
        max_delay: Option<GoDuration> = "maxDelay",
    }

    TokenRequestor {
        enabled: Option<bool> = "enabled",
        concurrent_syncs: Option<i64> = "concurrentSyncs",
        delete_service_accounts: Option<bool> = "deleteServiceAccounts",
    }

    Webhooks {
        crd_deletion_protection: Switch = "crdDeletionProtection",
        extension_validation: Switch = "extensionValidation",
        high_availability_config: HighAvailabilityConfig = "highAvailabilityConfig",
        kubernetes_service_host: KubernetesServiceHost = "kubernetesServiceHost",
        system_components_config: SystemComponentsConfig = "systemComponentsConfig",
        pod_kube_apiserver_load_balancing: Switch = "podKubeAPIServerLoadBalancing",
        pod_scheduler_name: PodSchedulerName = "podSchedulerName",
        pod_topology_spread_constraints: Switch = "podTopologySpreadConstraints",
        projected_token_mount: ProjectedTokenMount = "projectedTokenMount",
        node_agent_authorizer: NodeAgentAuthorizer = "nodeAgentAuthorizer",
        seccomp_profile: Switch = "seccompProfile",
        vpa_in_place_updates: Switch = "vpaInPlaceUpdates",
        token_invalidator: Switch = "tokenInvalidator",
        endpoint_slice_hints: Switch = "endpointSliceHints",
    }

    /// A webhook without settings.
    Switch {
        enabled: Option<bool> = "enabled",
    }

    HighAvailabilityConfig {
        enabled: Option<bool> = "enabled",
        default_not_ready_toleration_seconds: Option<i64> = "defaultNotReadyTolerationSeconds",
        default_unreachable_toleration_seconds: Option<i64> = "defaultUnreachableTolerationSeconds",
    }

    KubernetesServiceHost {
        enabled: Option<bool> = "enabled",
        host: Option<String> = "host",
    }

    SystemComponentsConfig {
        enabled: Option<bool> = "enabled",
        node_selector: BTreeMap<String, String> = "nodeSelector",
        pod_node_selector: BTreeMap<String, String> = "podNodeSelector",
        pod_tolerations: Vec<Toleration> = "podTolerations",
    }

    Toleration {
        key: Option<String> = "key",
        operator: Option<String> = "operator",
        value: Option<String> = "value",
        effect: Option<String> = "effect",
        toleration_seconds: Option<i64> = "tolerationSeconds",
    }

    PodSchedulerName {
        enabled: Option<bool> = "enabled",
        scheduler_name: Option<String> = "schedulerName",
    }

    ProjectedTokenMount {
        enabled: Option<bool> = "enabled",
        expiration_seconds: Option<i64> = "expirationSeconds",
    }

    NodeAgentAuthorizer {
        enabled: Option<bool> = "enabled",
        machine_namespace: Option<String> = "machineNamespace",
        authorize_with_selectors: Option<bool> = "authorizeWithSelectors",
    }
}

#[cfg(test)]
impl ConfigFile {
    /// The paths of all keys that are understood.
    pub(super) fn all_keys() -> Vec<String> {
        let mut keys = Vec::new();
        <Self as super::decode::Decode>::keys(String::new(), &mut keys);
        keys
    }
}
