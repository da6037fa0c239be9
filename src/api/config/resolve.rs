//! From the defaulted file to the [`Config`]. It runs after validation, so nothing fails; values without a meaning that
//! the specification does not reject become the nearest value with a meaning.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::core::v1 as core;

use super::{Draft, file, types::*};
use crate::api::duration::GoDuration;

const CACHE_SYNC_TIMEOUT: Duration = Duration::from_secs(120);
const NODE_BACKOFF: Duration = Duration::from_secs(10);

pub(super) fn config(draft: &Draft) -> Config {
    let file = &draft.file;
    let source = connection(&file.source);
    Config {
        controllers: controllers(&file.controllers, machine_namespace(draft, &source)),
        source,
        target: Connection { cache_disabled: file.target.disable_cached_client, ..connection(&file.target) },
        leader_election: file.leader_election.leader_elect.then(|| leader_election(&file.leader_election)),
        servers: servers(draft),
        debugging: Debugging {
            profiling: file.debugging.enable_profiling,
            contention_profiling: file.debugging.enable_contention_profiling,
        },
        logging: Logging {
            level: LogLevel::from_name(&file.log_level).unwrap_or(LogLevel::Info),
            format: LogFormat::from_name(&file.log_format).unwrap_or(LogFormat::Json),
        },
        cluster_id: file.controllers.cluster_id.clone(),
        resource_class: file.controllers.resource_class.clone(),
        cache_sync_timeout: positive(file.controllers.cache_sync_timeout, CACHE_SYNC_TIMEOUT),
        webhooks: webhooks(&file.webhooks),
    }
}

fn connection(connection: &file::Connection) -> Connection {
    // An empty name means all namespaces, as in the API.
    let all = connection.namespaces.iter().any(String::is_empty);
    let mut seen = BTreeSet::new();
    let namespaces = connection.namespaces.iter().filter(|name| !all && seen.insert(name.as_str())).cloned().collect();
    let burst = u32::try_from(connection.burst).unwrap_or(u32::MAX);
    Connection {
        kubeconfig: not_empty(&connection.kubeconfig),
        accept_content_types: not_empty(&connection.accept_content_types),
        content_type: not_empty(&connection.content_type),
        rate_limit: (connection.qps > 0.0).then_some(RateLimit { qps: connection.qps, burst }),
        namespaces,
        cache_resync_period: connection.cache_resync_period.to_std_or_zero(),
        cache_disabled: false,
    }
}

fn leader_election(election: &file::LeaderElection) -> LeaderElection {
    LeaderElection {
        lease_duration: election.lease_duration.to_std_or_zero(),
        renew_deadline: election.renew_deadline.to_std_or_zero(),
        retry_period: election.retry_period.to_std_or_zero(),
        resource_lock: election.resource_lock.clone(),
        resource_namespace: election.resource_namespace.clone(),
        resource_name: election.resource_name.clone(),
    }
}

fn servers(draft: &Draft) -> Servers {
    let server = &draft.file.server;
    let endpoint =
        |host: &str, port: i64| Endpoint { host: host.to_owned(), port: u16::try_from(port).unwrap_or_default() };
    let plain = |server: &file::PlainServer| endpoint(&server.bind_address, server.port);
    Servers {
        webhooks: endpoint(&server.webhooks.bind_address, server.webhooks.port),
        tls_cert_dir: not_empty(&server.webhooks.tls.server_cert_dir),
        health_probes: (!draft.health_probes_off).then(|| plain(&server.health_probes)),
        metrics: (!draft.metrics_off).then(|| plain(&server.metrics)),
    }
}

/// The former block `kubeletCSRApprover` used the only source namespace if it named none.
fn machine_namespace(draft: &Draft, source: &Connection) -> Option<String> {
    let named = draft.file.controllers.csr_approver.machine_namespace.clone();
    match source.namespaces.as_slice() {
        [only] if named.is_none() && draft.former_csr_approver => Some(only.clone()),
        _ => named,
    }
}

fn revalidate_period(managed_resource: &file::ManagedResource) -> Option<Duration> {
    let period = managed_resource.revalidate_period.to_std_or_zero();
    (!period.is_zero()).then(|| period.max(managed_resource.sync_period.to_std_or_zero()))
}

fn controllers(controllers: &file::Controllers, machine_namespace: Option<String>) -> Controllers {
    let file::Controllers { managed_resource, health, garbage_collector: garbage, csr_approver: csr, .. } = controllers;
    let node = &controllers.node_critical_components;
    let delay = &controllers.node_agent_reconciliation_delay;
    let token_requestor = &controllers.token_requestor;
    Controllers {
        managed_resource: ManagedResourceController {
            concurrent_syncs: count(managed_resource.concurrent_syncs),
            sync_period: managed_resource.sync_period.to_std_or_zero(),
            revalidate_period: revalidate_period(managed_resource),
            always_update: managed_resource.always_update,
            managed_by_label_value: managed_resource.managed_by_label_value.clone(),
        },
        health: HealthController {
            concurrent_syncs: count(health.concurrent_syncs),
            sync_period: health.sync_period.to_std_or_zero(),
        },
        garbage_collector: garbage
            .enabled
            .then(|| GarbageCollector { sync_period: garbage.sync_period.to_std_or_zero() }),
        csr_approver: csr
            .enabled
            .then(|| CsrApprover { concurrent_syncs: count(csr.concurrent_syncs), machine_namespace }),
        istio_cluster_configuration: workers(&controllers.istio_cluster_configuration),
        network_policy: controllers.network_policy.enabled.then(|| network_policy(&controllers.network_policy)),
        node_critical_components: node.enabled.then(|| NodeCriticalComponents {
            concurrent_syncs: count(node.concurrent_syncs),
            backoff: positive(node.backoff, NODE_BACKOFF),
        }),
        node_agent_reconciliation_delay: delay.enabled.then(|| NodeAgentReconciliationDelay {
            min_delay: delay.min_delay.to_std_or_zero(),
            max_delay: delay.max_delay.to_std_or_zero(),
        }),
        token_requestor: token_requestor.enabled.then(|| TokenRequestor {
            concurrent_syncs: count(token_requestor.concurrent_syncs),
            delete_service_accounts: token_requestor.delete_service_accounts,
            any_class: token_requestor.any_class,
        }),
        token_invalidator: workers(&controllers.token_invalidator),
    }
}

fn workers(workers: &file::Workers) -> Option<Workers> {
    workers.enabled.then(|| Workers { concurrent_syncs: count(workers.concurrent_syncs) })
}

fn network_policy(policy: &file::NetworkPolicy) -> NetworkPolicyController {
    let ingress = |ingress: &file::IngressControllerSelector| IngressControllerSelector {
        namespace: ingress.namespace.clone(),
        pod_selector: ingress.pod_selector.clone(),
    };
    NetworkPolicyController {
        concurrent_syncs: count(policy.concurrent_syncs),
        namespace_selectors: policy.namespace_selectors.clone(),
        ingress_controller_selector: policy.ingress_controller_selector.as_ref().map(ingress),
        only_for_matching_pods: policy.only_for_matching_pods,
        explicit_from_world_peers: policy.explicit_from_world_peers,
    }
}

fn webhooks(webhooks: &file::Webhooks) -> Webhooks {
    let switch = |switch: &file::Switch| switch.enabled;
    let file::Webhooks { kubernetes_service_host: service, pod_scheduler_name: scheduler, .. } = webhooks;
    let (availability, components) = (&webhooks.high_availability_config, &webhooks.system_components_config);
    let (tokens, authorizer) = (&webhooks.projected_token_mount, &webhooks.node_agent_authorizer);
    Webhooks {
        crd_deletion_protection: switch(&webhooks.crd_deletion_protection),
        extension_validation: switch(&webhooks.extension_validation),
        high_availability_config: availability.enabled.then_some(HighAvailabilityConfig {
            default_not_ready_toleration_seconds: availability.default_not_ready_toleration_seconds,
            default_unreachable_toleration_seconds: availability.default_unreachable_toleration_seconds,
        }),
        kubernetes_service_host: service.enabled.then(|| KubernetesServiceHost { host: service.host.clone() }),
        system_components_config: components.enabled.then(|| SystemComponentsConfig {
            node_selector: components.node_selector.clone(),
            pod_node_selector: components.pod_node_selector.clone(),
            pod_tolerations: components.pod_tolerations.iter().map(toleration).collect(),
        }),
        pod_kube_apiserver_load_balancing: switch(&webhooks.pod_kube_apiserver_load_balancing),
        pod_scheduler_name: scheduler
            .enabled
            .then(|| PodSchedulerName { scheduler_name: scheduler.scheduler_name.clone() }),
        pod_topology_spread_constraints: switch(&webhooks.pod_topology_spread_constraints),
        projected_token_mount: tokens
            .enabled
            .then_some(ProjectedTokenMount { expiration_seconds: tokens.expiration_seconds }),
        node_agent_authorizer: authorizer.enabled.then(|| NodeAgentAuthorizer {
            machine_namespace: authorizer.machine_namespace.clone(),
            authorize_with_selectors: authorizer.authorize_with_selectors,
        }),
        seccomp_profile: switch(&webhooks.seccomp_profile),
        vpa_in_place_updates: switch(&webhooks.vpa_in_place_updates),
        token_invalidator: switch(&webhooks.token_invalidator),
        endpoint_slice_hints: switch(&webhooks.endpoint_slice_hints),
    }
}

pub(super) fn toleration(toleration: &file::Toleration) -> core::Toleration {
    core::Toleration {
        key: not_empty(&toleration.key),
        operator: not_empty(&toleration.operator),
        value: not_empty(&toleration.value),
        effect: not_empty(&toleration.effect),
        toleration_seconds: toleration.toleration_seconds,
    }
}

fn not_empty(field: &str) -> Option<String> {
    (!field.is_empty()).then(|| field.to_owned())
}

/// Zero and less mean the default.
fn positive(field: GoDuration, default: Duration) -> Duration {
    Some(field.to_std_or_zero()).filter(|duration| !duration.is_zero()).unwrap_or(default)
}

fn count(field: i64) -> usize {
    usize::try_from(field).unwrap_or_default().max(1)
}
