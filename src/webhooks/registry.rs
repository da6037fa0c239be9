//! Which webhooks there are, and what each needs (spec 50 §1, §2.7).

use std::{collections::BTreeMap, sync::Arc};

use super::mutating::{
    Mutator,
    endpoint_slice_hints::{self, EndpointSliceHints},
    high_availability::{self, HighAvailability},
    load_balancing::{self, LoadBalancing},
    scheduler_name::{self, SchedulerName},
    seccomp::{self, Seccomp},
    service_host::{self, ServiceHost},
    system_components::{self, SystemComponents},
    token_mount::{self, TokenMount},
    topology_spread::{self, TopologySpread},
    vpa_in_place::{self, VpaInPlace},
};
use crate::api::config::Webhooks;

/// Configuration keys of the webhooks that exist; as in [`crate::api::config::Config::enabled_webhooks`].
pub const KEYS: [&str; 10] = [
    "projectedTokenMount",
    "highAvailabilityConfig",
    "podSchedulerName",
    "seccompProfile",
    "kubernetesServiceHost",
    "podKubeAPIServerLoadBalancing",
    "systemComponentsConfig",
    "endpointSliceHints",
    "podTopologySpreadConstraints",
    "vpaInPlaceUpdates",
];

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
    use Reads::{Autoscalers, Gateways, Namespaces, NodeCount, NodeTaints, ServiceAccounts};
    let token_mount = config.projected_token_mount.map(TokenMount::new);
    let availability = config.high_availability_config.map(HighAvailability::new);
    let scheduler = config.pod_scheduler_name.clone().map(SchedulerName::new);
    let seccomp = config.seccomp_profile.then_some(Seccomp);
    let service_host = config.kubernetes_service_host.as_ref().map(|settings| ServiceHost::new(&settings.host));
    let balancing = config.pod_kube_apiserver_load_balancing.then_some(LoadBalancing);
    let components = config.system_components_config.as_ref().map(SystemComponents::new);
    let hints = config.endpoint_slice_hints.then_some(EndpointSliceHints);
    let spread = config.pod_topology_spread_constraints.then_some(TopologySpread);
    let vpa = config.vpa_in_place_updates.then_some(VpaInPlace);
    let all = [
        entry("projectedTokenMount", token_mount::PATH, Fail, &[ServiceAccounts], token_mount),
        entry(
            "highAvailabilityConfig",
            high_availability::PATH,
            Fail,
            &[Namespaces, Autoscalers, NodeCount],
            availability,
        ),
        entry("podSchedulerName", scheduler_name::PATH, Ignore, &[], scheduler),
        entry("seccompProfile", seccomp::PATH, Fail, &[], seccomp),
        entry("kubernetesServiceHost", service_host::PATH, Ignore, &[], service_host),
        entry(
            "podKubeAPIServerLoadBalancing",
            load_balancing::PATH,
            Fail,
            &[Reads::LoadBalancing, Gateways],
            balancing,
        ),
        entry("systemComponentsConfig", system_components::PATH, Fail, &[NodeTaints], components),
        entry("endpointSliceHints", endpoint_slice_hints::PATH, Fail, &[], hints),
        entry("podTopologySpreadConstraints", topology_spread::PATH, Fail, &[], spread),
        entry("vpaInPlaceUpdates", vpa_in_place::PATH, Fail, &[], vpa),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::config::{
        HighAvailabilityConfig, KubernetesServiceHost, PodSchedulerName, ProjectedTokenMount, SystemComponentsConfig,
    };

    fn everything() -> Webhooks {
        let (not_ready, unreachable) = (None, None);
        Webhooks {
            high_availability_config: Some(HighAvailabilityConfig {
                default_not_ready_toleration_seconds: not_ready,
                default_unreachable_toleration_seconds: unreachable,
            }),
            kubernetes_service_host: Some(KubernetesServiceHost { host: String::new() }),
            system_components_config: Some(SystemComponentsConfig {
                node_selector: BTreeMap::new(),
                pod_node_selector: BTreeMap::new(),
                pod_tolerations: Vec::new(),
            }),
            pod_kube_apiserver_load_balancing: true,
            pod_scheduler_name: Some(PodSchedulerName { scheduler_name: "s".into() }),
            pod_topology_spread_constraints: true,
            projected_token_mount: Some(ProjectedTokenMount { expiration_seconds: 600 }),
            seccomp_profile: true,
            vpa_in_place_updates: true,
            endpoint_slice_hints: true,
            ..crate::api::config::Config::default().webhooks
        }
    }

    /// spec 50 §1: order, keys, paths, failure policies
    #[test]
    fn all_webhooks_of_the_table_are_served() {
        let table = [
            ("projectedTokenMount", "/webhooks/mount-projected-service-account-token", FailurePolicy::Fail),
            ("highAvailabilityConfig", "/webhooks/high-availability-config", FailurePolicy::Fail),
            ("podSchedulerName", "/webhooks/default-pod-scheduler-name", FailurePolicy::Ignore),
            ("seccompProfile", "/webhooks/seccomp-profile", FailurePolicy::Fail),
            ("kubernetesServiceHost", "/webhooks/kubernetes-service-host", FailurePolicy::Ignore),
            ("podKubeAPIServerLoadBalancing", "/webhooks/pod-kube-apiserver-load-balancing", FailurePolicy::Fail),
            ("systemComponentsConfig", "/webhooks/system-components-config", FailurePolicy::Fail),
            ("endpointSliceHints", "/webhooks/endpoint-slice-hints", FailurePolicy::Fail),
            ("podTopologySpreadConstraints", "/webhooks/pod-topology-spread-constraints", FailurePolicy::Fail),
            ("vpaInPlaceUpdates", "/webhooks/vpa-in-place-updates", FailurePolicy::Fail),
        ];

        let served: Vec<_> =
            enabled(&everything()).iter().map(|entry| (entry.key, entry.path, entry.failure_policy)).collect();

        assert_eq!(served, table);
        assert_eq!(table.map(|(key, _, _)| key), KEYS);
        assert!(enabled(&crate::api::config::Config::default().webhooks).is_empty());
    }
}
