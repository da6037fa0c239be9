//! Which webhooks there are, and what each needs (spec 50 §1, §2.7).

use std::{collections::BTreeMap, sync::Arc};

use super::mutating::{
    Mutator,
    high_availability::{self, HighAvailability},
    service_host::{self, ServiceHost},
};
use crate::api::config::Webhooks;

/// Configuration keys of the webhooks that exist; as in [`crate::api::config::Config::enabled_webhooks`].
pub const KEYS: [&str; 2] = ["highAvailabilityConfig", "kubernetesServiceHost"];

/// A webhook that is served.
#[derive(Clone)]
pub struct Entry {
    /// Configuration key.
    pub key: &'static str,
    /// Path.
    pub path: &'static str,
    /// What its registration says.
    pub failure_policy: FailurePolicy,
    /// What it reads.
    pub reads: &'static [Reads],
    /// What it does.
    pub mutator: Arc<dyn Mutator>,
}

/// What an API server does when a webhook does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Goes on without it.
    Ignore,
    /// Refuses the request.
    Fail,
}

/// Objects of the target cluster that a webhook reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reads {
    /// Whether ServiceAccounts mount tokens.
    ServiceAccounts,
    /// Annotations of Namespaces.
    Namespaces,
    /// What HorizontalPodAutoscalers scale, and how far.
    Autoscalers,
    /// How many Nodes there are.
    NodeCount,
    /// The taints of the Nodes that the configuration selects.
    NodeTaints,
    /// ConfigMaps `istio-internal-load-balancing`.
    LoadBalancing,
    /// Services `istio-ingressgateway-internal`.
    Gateways,
}

/// The webhooks that a configuration enables, in the order of spec 50 §1.
pub fn enabled(config: &Webhooks) -> Vec<Entry> {
    use FailurePolicy::{Fail, Ignore};
    use Reads::{Autoscalers, Namespaces, NodeCount};
    let availability = config.high_availability_config.map(HighAvailability::new);
    let service_host = config.kubernetes_service_host.as_ref().map(|settings| ServiceHost::new(&settings.host));
    let availability_reads = &[Namespaces, Autoscalers, NodeCount];
    let all = [
        entry("highAvailabilityConfig", high_availability::PATH, Fail, availability_reads, availability),
        entry("kubernetesServiceHost", service_host::PATH, Ignore, &[], service_host),
    ];
    all.into_iter().flatten().collect()
}

/// Labels of the Nodes whose taints count; no labels select all.
pub fn node_selector(config: &Webhooks) -> BTreeMap<String, String> {
    config.system_components_config.as_ref().map(|settings| settings.node_selector.clone()).unwrap_or_default()
}

fn entry(
    key: &'static str,
    path: &'static str,
    failure_policy: FailurePolicy,
    reads: &'static [Reads],
    mutator: Option<impl Mutator + 'static>,
) -> Option<Entry> {
    mutator.map(|mutator| Entry { key, path, failure_policy, reads, mutator: Arc::new(mutator) })
}

// === impl Entry ===

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("path", &self.path)
            .field("failure_policy", &self.failure_policy)
            .finish_non_exhaustive()
    }
}
