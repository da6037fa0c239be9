//! What the blocks mean. Values without a meaning that the specification does not reject become the nearest value with a
//! meaning, so that equivalent files have equal configurations.

use std::{collections::BTreeSet, time::Duration};

use process::{
    config::{PlainServer, fill, fill_rate, hash, rate_limit},
    http::listen::ListenAddress,
    logging::Logging,
    settings::RateLimit,
};

use super::{
    API_VERSION, Config, Connection, DEFAULTS, KIND, ManagedResourceController, MetricsServer, Server, WebhookServer,
};

impl Config {
    /// Replaces zeros that count as absent (spec 70 §2 rule 5).
    pub(super) fn fill(&mut self) {
        (self.api_version, self.kind) = (API_VERSION.to_owned(), KIND.to_owned());
        self.source.fill();
        self.target.fill();
        self.leader_election.fill(&DEFAULTS);
        self.server.health_probes.fill(DEFAULTS.probes_port);
        fill(&mut self.server.metrics.port, 0, MetricsServer::default().port);
        fill(&mut self.server.webhooks.port, 0, WebhookServer::default().port);
        fill(&mut self.log_level, String::new(), "info".to_owned());
        fill(&mut self.log_format, String::new(), "json".to_owned());
    }

    /// Makes valid values effective.
    pub(super) fn settle(&mut self, former_csr_approver: bool) {
        self.source.settle();
        self.source.disable_cached_client = false;
        self.target.settle();
        // The former block `kubeletCSRApprover` used the only source namespace if it named none.
        let machine_namespace = &mut self.controllers.csr_approver.settings.machine_namespace;
        if let ([only], None, true) = (self.source.namespaces.as_slice(), &machine_namespace, former_csr_approver) {
            *machine_namespace = Some(only.clone());
        }
        let managed_resource = &mut self.controllers.managed_resource;
        if let Some(period) = managed_resource.revalidate_period() {
            managed_resource.revalidate_period = period.into();
        }
    }

    /// The log.
    pub fn logging(&self) -> Logging {
        Logging::named(&self.log_level, &self.log_format)
    }

    /// SHA-256 of the effective configuration in hex. Equivalent configurations have the same hash.
    pub fn hash(&self) -> String {
        let any_class = self.controllers.token_requestor.on().is_some_and(|settings| settings.any_class);
        hash(&(self, self.server.health_probes_off, self.server.metrics_off, any_class))
    }

    /// Names of the enabled controllers, in the order in which they start (spec 70 §7).
    pub fn enabled_controllers(&self) -> Vec<&'static str> {
        let controllers = &self.controllers;
        named([
            ("csr-approver", controllers.csr_approver.enabled),
            ("garbage-collector", controllers.garbage_collector.enabled),
            ("health", true),
            ("health-progressing", true),
            ("managedresource", true),
            ("networkpolicy", controllers.network_policy.enabled),
            ("istio-cluster-configuration", controllers.istio_cluster_configuration.enabled),
            ("token-invalidator", controllers.token_invalidator.enabled),
            ("token-requestor", controllers.token_requestor.enabled),
            ("node-critical-components", controllers.node_critical_components.enabled),
            ("node-agent-reconciliation-delay", controllers.node_agent_reconciliation_delay.enabled),
            ("node-high-availability-config", self.webhooks.high_availability_config.enabled),
        ])
    }

    /// Configuration keys of the enabled webhooks, in the order of spec 70 §7.
    pub fn enabled_webhooks(&self) -> Vec<&'static str> {
        let webhooks = &self.webhooks;
        named([
            ("crdDeletionProtection", webhooks.crd_deletion_protection.enabled),
            ("extensionValidation", webhooks.extension_validation.enabled),
            ("highAvailabilityConfig", webhooks.high_availability_config.enabled),
            ("kubernetesServiceHost", webhooks.kubernetes_service_host.enabled),
            ("systemComponentsConfig", webhooks.system_components_config.enabled),
            ("podKubeAPIServerLoadBalancing", webhooks.pod_kube_apiserver_load_balancing.enabled),
            ("podSchedulerName", webhooks.pod_scheduler_name.enabled),
            ("podTopologySpreadConstraints", webhooks.pod_topology_spread_constraints.enabled),
            ("projectedTokenMount", webhooks.projected_token_mount.enabled),
            ("nodeAgentAuthorizer", webhooks.node_agent_authorizer.enabled),
            ("seccompProfile", webhooks.seccomp_profile.enabled),
            ("vpaInPlaceUpdates", webhooks.vpa_in_place_updates.enabled),
            ("tokenInvalidator", webhooks.token_invalidator.enabled),
            ("endpointSliceHints", webhooks.endpoint_slice_hints.enabled),
        ])
    }
}

fn named<const N: usize>(table: [(&'static str, bool); N]) -> Vec<&'static str> {
    table.into_iter().filter_map(|(name, enabled)| enabled.then_some(name)).collect()
}

impl Connection {
    fn fill(&mut self) {
        fill_rate(&mut self.qps, &mut self.burst, DEFAULTS.rate_limit);
        let namespace = std::mem::take(&mut self.namespace);
        if !namespace.is_empty() {
            self.namespaces.push(namespace);
        }
    }

    fn settle(&mut self) {
        // An empty name means all namespaces, as in the API.
        let all = self.namespaces.iter().any(String::is_empty);
        let mut seen = BTreeSet::new();
        self.namespaces.retain(|name| !all && seen.insert(name.clone()));
    }

    /// Path of the kubeconfig, if there is one.
    pub fn kubeconfig_path(&self) -> Option<&str> {
        Some(self.kubeconfig.as_str()).filter(|path| !path.is_empty())
    }

    /// Token bucket per resource type; `None` is unlimited.
    pub fn rate_limit(&self) -> Option<RateLimit> {
        rate_limit(self.qps, self.burst)
    }
}

impl Server {
    /// Address of the server for probes; `None`: there is none.
    pub fn health_probes(&self) -> Option<ListenAddress> {
        (!self.health_probes_off).then(|| self.health_probes.address())
    }

    /// Address of the server for metrics; `None`: there is none.
    pub fn metrics(&self) -> Option<ListenAddress> {
        (!self.metrics_off).then(|| self.metrics.plain().address())
    }
}

impl MetricsServer {
    /// The server without its metrics.
    pub(super) fn plain(&self) -> PlainServer {
        PlainServer { bind_address: self.bind_address.clone(), port: self.port }
    }

    /// Sets the address.
    pub fn listen(&mut self, PlainServer { bind_address, port }: PlainServer) {
        (self.bind_address, self.port) = (bind_address, port);
    }
}

impl WebhookServer {
    /// The address.
    pub fn address(&self) -> ListenAddress {
        ListenAddress { host: self.bind_address.clone(), port: self.port }
    }
}

impl ManagedResourceController {
    /// Each object is written again at least this often; `None`: never.
    pub fn revalidate_period(&self) -> Option<Duration> {
        let period = self.revalidate_period.get();
        (!period.is_zero()).then(|| period.max(self.sync_period.get()))
    }
}
