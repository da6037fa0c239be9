//! From the defaulted file to the [`Config`] the program runs with. Called after validation, so nothing fails here; where
//! the specification does not validate, values without a meaning become the nearest one that has one.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::{api::core::v1 as core, apimachinery::pkg::apis::meta::v1 as meta};

use super::{Draft, defaults::on, file, types::*};
use crate::api::duration::GoDuration;

const CACHE_SYNC_TIMEOUT: Duration = Duration::from_secs(120);
const NODE_BACKOFF: Duration = Duration::from_secs(10);

/// The configuration that a defaulted draft means.
pub(super) fn config(draft: &Draft) -> Config {
    let file = &draft.file;
    let source = connection(&file.source);
    Config {
        controllers: controllers(&file.controllers, machine_namespace(draft, &source)),
        source,
        target: Connection { cache_disabled: on(file.target.disable_cached_client), ..connection(&file.target) },
        leader_election: on(file.leader_election.leader_elect).then(|| leader_election(&file.leader_election)),
        servers: servers(draft),
        debugging: Debugging {
            profiling: on(file.debugging.enable_profiling),
            contention_profiling: on(file.debugging.enable_contention_profiling),
        },
        logging: Logging {
            level: LogLevel::from_name(&text(&file.log_level)).unwrap_or(LogLevel::Info),
            format: LogFormat::from_name(&text(&file.log_format)).unwrap_or(LogFormat::Json),
        },
        cluster_id: text(&file.controllers.cluster_id),
        resource_class: text(&file.controllers.resource_class),
        cache_sync_timeout: positive(file.controllers.cache_sync_timeout, CACHE_SYNC_TIMEOUT),
        webhooks: webhooks(&file.webhooks),
    }
}

fn connection(connection: &file::Connection) -> Connection {
    let not_empty = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
    // An empty name means all namespaces to the API, and so it does in the list.
    let all = connection.namespaces.iter().any(String::is_empty);
    let mut seen = BTreeSet::new();
    let namespaces = connection.namespaces.iter().filter(|name| !all && seen.insert(name.as_str())).cloned().collect();
    let qps = connection.qps.unwrap_or_default();
    let burst = u32::try_from(connection.burst.unwrap_or_default()).unwrap_or(u32::MAX);
    Connection {
        kubeconfig: not_empty(&connection.kubeconfig),
        accept_content_types: not_empty(&connection.accept_content_types),
        content_type: not_empty(&connection.content_type),
        rate_limit: (qps > 0.0).then_some(RateLimit { qps, burst }),
        namespaces,
        cache_resync_period: duration(connection.cache_resync_period),
        cache_disabled: false,
    }
}

fn leader_election(election: &file::LeaderElection) -> LeaderElection {
    LeaderElection {
        lease_duration: duration(election.lease_duration),
        renew_deadline: duration(election.renew_deadline),
        retry_period: duration(election.retry_period),
        resource_lock: text(&election.resource_lock),
        resource_namespace: text(&election.resource_namespace),
        resource_name: text(&election.resource_name),
    }
}

fn servers(draft: &Draft) -> Servers {
    let server = &draft.file.server;
    let endpoint = |host: &Option<String>, port: Option<i64>| Endpoint {
        host: text(host),
        port: u16::try_from(port.unwrap_or_default()).unwrap_or_default(),
    };
    let plain = |server: &file::PlainServer| endpoint(&server.bind_address, server.port);
    Servers {
        webhooks: endpoint(&server.webhooks.bind_address, server.webhooks.port),
        tls_cert_dir: server.webhooks.tls.server_cert_dir.clone().filter(|directory| !directory.is_empty()),
        health_probes: (!draft.health_probes_off).then(|| plain(&server.health_probes)),
        metrics: (!draft.metrics_off).then(|| plain(&server.metrics)),
    }
}

/// The former block `kubeletCSRApprover` took the only source namespace where it named none.
fn machine_namespace(draft: &Draft, source: &Connection) -> Option<String> {
    let named = draft.file.controllers.csr_approver.machine_namespace.clone();
    match source.namespaces.as_slice() {
        [only] if named.is_none() && draft.former_csr_approver => Some(only.clone()),
        _ => named,
    }
}

fn controllers(controllers: &file::Controllers, machine_namespace: Option<String>) -> Controllers {
    let file::Controllers { managed_resource, health, garbage_collector, csr_approver, .. } = controllers;
    let node = &controllers.node_critical_components;
    let delay = &controllers.node_agent_reconciliation_delay;
    let token_requestor = &controllers.token_requestor;
    Controllers {
        managed_resource: ManagedResourceController {
            concurrent_syncs: count(managed_resource.concurrent_syncs),
            sync_period: duration(managed_resource.sync_period),
            always_update: on(managed_resource.always_update),
            managed_by_label_value: text(&managed_resource.managed_by_label_value),
        },
        health: HealthController {
            concurrent_syncs: count(health.concurrent_syncs),
            sync_period: duration(health.sync_period),
        },
        garbage_collector: on(garbage_collector.enabled)
            .then(|| GarbageCollector { sync_period: duration(garbage_collector.sync_period) }),
        csr_approver: on(csr_approver.enabled)
            .then(|| CsrApprover { concurrent_syncs: count(csr_approver.concurrent_syncs), machine_namespace }),
        istio_cluster_configuration: workers(&controllers.istio_cluster_configuration),
        network_policy: on(controllers.network_policy.enabled).then(|| network_policy(&controllers.network_policy)),
        node_critical_components: on(node.enabled).then(|| NodeCriticalComponents {
            concurrent_syncs: count(node.concurrent_syncs),
            backoff: positive(node.backoff, NODE_BACKOFF),
        }),
        node_agent_reconciliation_delay: on(delay.enabled).then(|| NodeAgentReconciliationDelay {
            min_delay: duration(delay.min_delay),
            max_delay: duration(delay.max_delay),
        }),
        token_requestor: on(token_requestor.enabled).then(|| TokenRequestor {
            concurrent_syncs: count(token_requestor.concurrent_syncs),
            delete_service_accounts: on(token_requestor.delete_service_accounts),
        }),
        token_invalidator: workers(&controllers.token_invalidator),
    }
}

fn workers(workers: &file::Workers) -> Option<Workers> {
    on(workers.enabled).then(|| Workers { concurrent_syncs: count(workers.concurrent_syncs) })
}

fn network_policy(policy: &file::NetworkPolicy) -> NetworkPolicyController {
    let ingress = |ingress: &file::IngressControllerSelector| IngressControllerSelector {
        namespace: text(&ingress.namespace),
        pod_selector: selector(&ingress.pod_selector),
    };
    NetworkPolicyController {
        concurrent_syncs: count(policy.concurrent_syncs),
        namespace_selectors: policy.namespace_selectors.iter().map(selector).collect(),
        ingress_controller_selector: policy.ingress_controller_selector.as_ref().map(ingress),
        only_for_matching_pods: policy.only_for_matching_pods.unwrap_or(false),
        explicit_from_world_peers: policy.explicit_from_world_peers.unwrap_or(true),
    }
}

fn selector(selector: &file::LabelSelector) -> meta::LabelSelector {
    let requirement = |requirement: &file::LabelRequirement| meta::LabelSelectorRequirement {
        key: text(&requirement.key),
        operator: text(&requirement.operator),
        values: (!requirement.values.is_empty()).then(|| requirement.values.clone()),
    };
    let expressions: Vec<_> = selector.match_expressions.iter().map(requirement).collect();
    meta::LabelSelector {
        match_labels: (!selector.match_labels.is_empty()).then(|| selector.match_labels.clone()),
        match_expressions: (!expressions.is_empty()).then_some(expressions),
    }
}

fn webhooks(webhooks: &file::Webhooks) -> Webhooks {
    let switch = |switch: &file::Switch| on(switch.enabled);
    let availability = &webhooks.high_availability_config;
    let components = &webhooks.system_components_config;
    let authorizer = &webhooks.node_agent_authorizer;
    Webhooks {
        crd_deletion_protection: switch(&webhooks.crd_deletion_protection),
        extension_validation: switch(&webhooks.extension_validation),
        high_availability_config: on(availability.enabled).then_some(HighAvailabilityConfig {
            default_not_ready_toleration_seconds: availability.default_not_ready_toleration_seconds,
            default_unreachable_toleration_seconds: availability.default_unreachable_toleration_seconds,
        }),
        kubernetes_service_host: on(webhooks.kubernetes_service_host.enabled)
            .then(|| KubernetesServiceHost { host: text(&webhooks.kubernetes_service_host.host) }),
        system_components_config: on(components.enabled).then(|| SystemComponentsConfig {
            node_selector: components.node_selector.clone(),
            pod_node_selector: components.pod_node_selector.clone(),
            pod_tolerations: components.pod_tolerations.iter().map(toleration).collect(),
        }),
        pod_kube_apiserver_load_balancing: switch(&webhooks.pod_kube_apiserver_load_balancing),
        pod_scheduler_name: on(webhooks.pod_scheduler_name.enabled)
            .then(|| PodSchedulerName { scheduler_name: text(&webhooks.pod_scheduler_name.scheduler_name) }),
        pod_topology_spread_constraints: switch(&webhooks.pod_topology_spread_constraints),
        projected_token_mount: on(webhooks.projected_token_mount.enabled).then(|| ProjectedTokenMount {
            expiration_seconds: webhooks.projected_token_mount.expiration_seconds.unwrap_or_default(),
        }),
        node_agent_authorizer: on(authorizer.enabled).then(|| NodeAgentAuthorizer {
            machine_namespace: authorizer.machine_namespace.clone(),
            authorize_with_selectors: on(authorizer.authorize_with_selectors),
        }),
        seccomp_profile: switch(&webhooks.seccomp_profile),
        vpa_in_place_updates: switch(&webhooks.vpa_in_place_updates),
        token_invalidator: switch(&webhooks.token_invalidator),
        endpoint_slice_hints: switch(&webhooks.endpoint_slice_hints),
    }
}

/// A toleration in the form of the API; empty fields are left out there.
pub(super) fn toleration(toleration: &file::Toleration) -> core::Toleration {
    let not_empty = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
    core::Toleration {
        key: not_empty(&toleration.key),
        operator: not_empty(&toleration.operator),
        value: not_empty(&toleration.value),
        effect: not_empty(&toleration.effect),
        toleration_seconds: toleration.toleration_seconds,
    }
}

fn text(field: &Option<String>) -> String {
    field.clone().unwrap_or_default()
}

fn duration(field: Option<GoDuration>) -> Duration {
    field.unwrap_or_default().to_std_or_zero()
}

/// A duration for which zero and less mean the default.
fn positive(field: Option<GoDuration>, default: Duration) -> Duration {
    Some(duration(field)).filter(|duration| !duration.is_zero()).unwrap_or(default)
}

/// A number of workers; what is below 1 counts as 1.
fn count(field: Option<i64>) -> usize {
    usize::try_from(field.unwrap_or_default()).unwrap_or_default().max(1)
}
