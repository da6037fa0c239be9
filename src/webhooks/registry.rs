//! All webhooks, and what each of them needs (spec 50 §1, §2.7).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    authorizing::node_agent::{self, NodeAgents},
    cached_kind::Reads,
    endpoint::{Authorizing, Endpoint, Mutating, Validating},
    mutating::{
        Mutator,
        endpoint_slice_hints::{self, EndpointSliceHints},
        high_availability::{self, HighAvailability},
        load_balancing::{self, LoadBalancing},
        scheduler_name::{self, SchedulerName},
        seccomp::{self, Seccomp},
        service_host::{self, ServiceHost},
        system_components::{self, SystemComponents},
        token_invalidator::{self, TokenInvalidator},
        token_mount::{self, TokenMount},
        topology_spread::{self, TopologySpread},
        vpa_in_place::{self, VpaInPlace},
    },
    review::FailurePolicy,
    validating::{
        Validator,
        deletion::{self, DeletionProtection},
        extensions,
    },
};
use crate::api::config::resource_manager::Webhooks;

/// Configuration keys of all webhooks, as in [`crate::api::config::resource_manager::Config::enabled_webhooks`].
pub const KEYS: [&str; 14] = [
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
    "tokenInvalidator",
    "nodeAgentAuthorizer",
    "crdDeletionProtection",
    "extensionValidation",
];

/// A webhook that is served.
#[derive(Clone)]
pub struct WebhookEntry<E = Arc<dyn Endpoint>> {
    /// Configuration key.
    pub key: &'static str,
    /// Path.
    pub path: &'static str,
    /// What it reads.
    pub reads: Vec<Reads>,
    /// Its implementation.
    pub endpoint: E,
}

/// Returns the webhooks that a configuration enables.
pub fn enabled(config: &Webhooks) -> Vec<WebhookEntry> {
    let validating = validating(config).into_iter().map(WebhookEntry::erased);
    mutating(config).into_iter().map(WebhookEntry::erased).chain(node_agents(config)).chain(validating).collect()
}

/// Returns the enabled mutating webhooks, in the order of spec 50 §1; then that of spec 31.
pub fn mutating(config: &Webhooks) -> Vec<WebhookEntry<Mutating>> {
    use FailurePolicy::{Fail, Ignore};
    use Reads::{Autoscalers, NodeCount, NodeTaints, Objects};
    let token_mount = config.projected_token_mount.on().copied().map(TokenMount);
    let availability = config.high_availability_config.on().copied().map(HighAvailability);
    let scheduler = config.pod_scheduler_name.on().cloned().map(SchedulerName);
    let seccomp = config.seccomp_profile.enabled.then_some(Seccomp);
    let service_host = config.kubernetes_service_host.on().map(|settings| ServiceHost::new(&settings.host));
    let balancing = config.pod_kube_apiserver_load_balancing.enabled.then_some(LoadBalancing);
    let components = config.system_components_config.on().map(SystemComponents::new);
    let hints = config.endpoint_slice_hints.enabled.then_some(EndpointSliceHints);
    let spread = config.pod_topology_spread_constraints.enabled.then_some(TopologySpread);
    let vpa = config.vpa_in_place_updates.enabled.then_some(VpaInPlace);
    let invalidator = config.token_invalidator.enabled.then_some(TokenInvalidator);
    let all = [
        entry("projectedTokenMount", token_mount::PATH, Fail, &[Objects(&token_mount::SERVICE_ACCOUNTS)], token_mount),
        entry(
            "highAvailabilityConfig",
            high_availability::PATH,
            Fail,
            &[Objects(&high_availability::NAMESPACES), Autoscalers, NodeCount],
            availability,
        ),
        entry("podSchedulerName", scheduler_name::PATH, Ignore, &[], scheduler),
        entry("seccompProfile", seccomp::PATH, Fail, &[], seccomp),
        entry("kubernetesServiceHost", service_host::PATH, Ignore, &[], service_host),
        entry(
            "podKubeAPIServerLoadBalancing",
            load_balancing::PATH,
            Fail,
            &[Objects(&load_balancing::CONFIG_MAPS), Objects(&load_balancing::SERVICES)],
            balancing,
        ),
        entry("systemComponentsConfig", system_components::PATH, Fail, &[NodeTaints], components),
        entry("endpointSliceHints", endpoint_slice_hints::PATH, Fail, &[], hints),
        entry("podTopologySpreadConstraints", topology_spread::PATH, Fail, &[], spread),
        entry("vpaInPlaceUpdates", vpa_in_place::PATH, Fail, &[], vpa),
        entry("tokenInvalidator", token_invalidator::PATH, Fail, &[], invalidator),
    ];
    all.into_iter().flatten().collect()
}

/// Returns the enabled validating webhooks (spec 60).
pub fn validating(config: &Webhooks) -> Vec<WebhookEntry<Validating>> {
    let entry = |key, path, validator: Arc<dyn Validator>| WebhookEntry {
        key,
        path,
        reads: Vec::new(),
        endpoint: Validating { validator },
    };
    let deletion = config.crd_deletion_protection.enabled;
    let deletion = deletion.then(|| entry("crdDeletionProtection", deletion::PATH, Arc::new(DeletionProtection)));
    let extensions = config.extension_validation.enabled.then(extensions::all).into_iter().flatten();
    let extensions = extensions.map(|extension| entry("extensionValidation", extension.path, Arc::new(extension)));
    deletion.into_iter().chain(extensions).collect()
}

fn node_agents(config: &Webhooks) -> Option<WebhookEntry> {
    let authorizer = NodeAgents(config.node_agent_authorizer.on()?.clone());
    let reads = authorizer.reads();
    let endpoint = Arc::new(Authorizing { authorizer: Arc::new(authorizer) });
    Some(WebhookEntry { key: "nodeAgentAuthorizer", path: node_agent::PATH, reads, endpoint })
}

/// Returns everything that these webhooks read.
pub fn reads<E>(entries: &[WebhookEntry<E>]) -> Vec<Reads> {
    entries.iter().flat_map(|entry| &entry.reads).cloned().collect()
}

/// Returns the labels of the Nodes whose taints count. Empty selects all Nodes.
pub fn node_selector(config: &Webhooks) -> BTreeMap<String, String> {
    config.system_components_config.on().map(|settings| settings.node_selector.clone()).unwrap_or_default()
}

fn entry(
    key: &'static str,
    path: &'static str,
    failure_policy: FailurePolicy,
    reads: &[Reads],
    mutator: Option<impl Mutator + 'static>,
) -> Option<WebhookEntry<Mutating>> {
    let endpoint = Mutating { failure_policy, mutator: Arc::new(mutator?) };
    Some(WebhookEntry { key, path, reads: reads.to_vec(), endpoint })
}

impl<E: Endpoint + 'static> WebhookEntry<E> {
    fn erased(self) -> WebhookEntry {
        let Self { key, path, reads, endpoint } = self;
        WebhookEntry { key, path, reads, endpoint: Arc::new(endpoint) }
    }
}

impl<E> std::fmt::Debug for WebhookEntry<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookEntry").field("path", &self.path).field("reads", &self.reads).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::config::resource_manager::{
        HighAvailabilityConfig, KubernetesServiceHost, NodeAgentAuthorizer, PodSchedulerName, ProjectedTokenMount,
        Switch, SystemComponentsConfig,
    };

    fn everything() -> Webhooks {
        Webhooks {
            high_availability_config: HighAvailabilityConfig::default().into(),
            kubernetes_service_host: KubernetesServiceHost::default().into(),
            system_components_config: SystemComponentsConfig::default().into(),
            pod_kube_apiserver_load_balancing: Switch::ON,
            pod_scheduler_name: PodSchedulerName { scheduler_name: "s".into() }.into(),
            pod_topology_spread_constraints: Switch::ON,
            projected_token_mount: ProjectedTokenMount { expiration_seconds: 600 }.into(),
            seccomp_profile: Switch::ON,
            vpa_in_place_updates: Switch::ON,
            token_invalidator: Switch::ON,
            endpoint_slice_hints: Switch::ON,
            crd_deletion_protection: Switch::ON,
            extension_validation: Switch::ON,
            ..Webhooks::default()
        }
    }

    /// spec 50 §1: order, keys, paths, failure policies; spec 31 §2, scenario 27
    #[test]
    fn mutating_webhooks_of_the_table_are_served() {
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
            ("tokenInvalidator", "/webhooks/invalidate-service-account-token-secret", FailurePolicy::Fail),
        ];

        let served: Vec<_> = mutating(&everything())
            .iter()
            .map(|entry| (entry.key, entry.path, entry.endpoint.failure_policy))
            .collect();

        assert_eq!(served, table);
        assert_eq!(table.map(|(key, _, _)| key), KEYS[..11]);
        assert!(enabled(&Webhooks::default()).is_empty());
    }
    /// spec 61 §9, §7: in machine mode the Machines of one namespace are read, too
    #[test]
    fn authorizer_is_served_and_its_reads_are_declared() {
        for (machine_namespace, machines) in [(None, 0), (Some("shoot--a--b".to_owned()), 1)] {
            let node_agent_authorizer =
                NodeAgentAuthorizer { machine_namespace, authorize_with_selectors: false }.into();
            let webhooks = Webhooks { node_agent_authorizer, ..everything() };

            let served = enabled(&webhooks);

            let mut keys: Vec<_> = served.iter().map(|entry| entry.key).collect();
            keys.dedup(); // extension validation has a path for each kind
            assert_eq!(keys, KEYS);
            let authorizer = &served[11];
            assert_eq!(authorizer.path, "/webhooks/auth/nodeagent");
            let of_machines =
                |read: &&Reads| matches!(read, Reads::ObjectsOf(_, namespace) if namespace == "shoot--a--b");
            assert_eq!(authorizer.reads.iter().filter(of_machines).count(), machines);
            assert_eq!(authorizer.reads.len(), 4 + machines);
        }
    }

    /// spec 60 scenario 21; spec 60 §3, spec 62 §1
    #[test]
    fn validating_webhooks_are_served_if_they_are_enabled() {
        let (protection, validation) = (Switch::default(), Switch::default());
        let off = Webhooks { crd_deletion_protection: protection, extension_validation: validation, ..everything() };
        assert!(validating(&off).is_empty());
        let protection = Webhooks { crd_deletion_protection: Switch::ON, ..off.clone() };
        assert_eq!(validating(&protection).iter().map(|entry| entry.path).collect::<Vec<_>>(), [deletion::PATH]);
        let extensions = validating(&Webhooks { extension_validation: Switch::ON, ..off });
        assert_eq!(extensions.len(), 14);
        for (entry, extension) in extensions.iter().zip(extensions::all()) {
            let kind = extension.kind;
            let rule = format!("/validate-{}-v1alpha1-{}", kind.group.replace('.', "-"), kind.kind.to_lowercase());
            let of_the_chart = kind.kind == "Etcd" && entry.path == "/validate-extensions-gardener-cloud-v1alpha1-etcd";
            assert!(entry.path == rule || of_the_chart, "{}", entry.path);
        }
    }

    /// Watch names identify stores and metrics.
    #[test]
    fn watch_names_are_unique() {
        let node_agent_authorizer =
            NodeAgentAuthorizer { machine_namespace: Some("ns".into()), authorize_with_selectors: false }.into();
        let all = reads(&enabled(&Webhooks { node_agent_authorizer, ..everything() }));
        let mut names: Vec<_> = all
            .iter()
            .filter_map(|read| match read {
                Reads::Objects(cached_kind) | Reads::ObjectsOf(cached_kind, _) => Some(cached_kind.objects().name()),
                Reads::Autoscalers | Reads::NodeCount | Reads::NodeTaints => None,
            })
            .collect();
        let count = names.len();

        names.sort();
        names.dedup();

        assert_eq!(names.len(), count, "{names:?}");
        assert!(!names.contains(&"nodes".to_owned()), "the index of taints has this name");
    }
}
