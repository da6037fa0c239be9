//! Defaults (spec 70 §3). A required field that is zero counts as absent, because deployers render unset fields as
//! zeros; an optional one keeps its zero.

use super::file::ConfigFile;
use crate::api::duration::GoDuration;

const HOUR: i64 = 60 * 60;
const WORKERS: i64 = 5;

/// Fills in what is absent. Settings of controllers and webhooks only where those are enabled.
pub(super) fn apply(file: &mut ConfigFile) {
    connections(file);
    leader_election(file);
    servers(file);
    zero(&mut file.log_level, "info".to_owned());
    zero(&mut file.log_format, "json".to_owned());
    controllers(file);
    webhooks(file);
}

fn connections(file: &mut ConfigFile) {
    for connection in [&mut file.source, &mut file.target] {
        zero(&mut connection.qps, 100.0);
        zero(&mut connection.burst, 130);
        absent(&mut connection.cache_resync_period, GoDuration::from_secs(24 * HOUR));
        if let Some(namespace) = connection.namespace.take().filter(|namespace| !namespace.is_empty()) {
            connection.namespaces.push(namespace);
        }
    }
}

fn leader_election(file: &mut ConfigFile) {
    let election = &mut file.leader_election;
    absent(&mut election.leader_elect, true);
    zero(&mut election.lease_duration, GoDuration::from_secs(15));
    zero(&mut election.renew_deadline, GoDuration::from_secs(10));
    zero(&mut election.retry_period, GoDuration::from_secs(2));
    zero(&mut election.resource_lock, "leases".to_owned());
    zero(&mut election.resource_name, "gardener-resource-manager".to_owned());
}

fn servers(file: &mut ConfigFile) {
    zero(&mut file.server.webhooks.port, 9449);
    zero(&mut file.server.health_probes.port, 8081);
    zero(&mut file.server.metrics.port, 8080);
}

fn controllers(file: &mut ConfigFile) {
    let controllers = &mut file.controllers;
    absent(&mut controllers.cluster_id, String::new());
    absent(&mut controllers.resource_class, "resources".to_owned());
    absent(&mut controllers.cache_sync_timeout, GoDuration::from_secs(120));

    let health = &mut controllers.health;
    absent(&mut health.concurrent_syncs, WORKERS);
    absent(&mut health.sync_period, GoDuration::from_secs(60));

    let managed_resource = &mut controllers.managed_resource;
    absent(&mut managed_resource.concurrent_syncs, WORKERS);
    absent(&mut managed_resource.sync_period, GoDuration::from_secs(60));
    absent(&mut managed_resource.always_update, false);
    absent(&mut managed_resource.managed_by_label_value, "gardener".to_owned());

    if on(controllers.garbage_collector.enabled) {
        absent(&mut controllers.garbage_collector.sync_period, GoDuration::from_secs(HOUR));
    }
    if on(controllers.csr_approver.enabled) {
        absent(&mut controllers.csr_approver.concurrent_syncs, 1);
    }
    if on(controllers.istio_cluster_configuration.enabled) {
        absent(&mut controllers.istio_cluster_configuration.concurrent_syncs, WORKERS);
    }
    if on(controllers.network_policy.enabled) {
        absent(&mut controllers.network_policy.concurrent_syncs, WORKERS);
    }
    if on(controllers.token_requestor.enabled) {
        absent(&mut controllers.token_requestor.concurrent_syncs, WORKERS);
    }
    if on(controllers.token_invalidator.enabled) {
        absent(&mut controllers.token_invalidator.concurrent_syncs, WORKERS);
    }
    if on(controllers.node_critical_components.enabled) {
        absent(&mut controllers.node_critical_components.concurrent_syncs, WORKERS);
        absent(&mut controllers.node_critical_components.backoff, GoDuration::from_secs(10));
    }
    if on(controllers.node_agent_reconciliation_delay.enabled) {
        absent(&mut controllers.node_agent_reconciliation_delay.min_delay, GoDuration::ZERO);
        absent(&mut controllers.node_agent_reconciliation_delay.max_delay, GoDuration::from_secs(5 * 60));
    }
}

fn webhooks(file: &mut ConfigFile) {
    let webhooks = &mut file.webhooks;
    if on(webhooks.pod_scheduler_name.enabled) {
        absent(&mut webhooks.pod_scheduler_name.scheduler_name, "default-scheduler".to_owned());
    }
    if on(webhooks.projected_token_mount.enabled) {
        absent(&mut webhooks.projected_token_mount.expiration_seconds, 12 * HOUR);
    }
}

/// Whether a switch is on; they are off by default.
pub(super) fn on(switch: Option<bool>) -> bool {
    switch.unwrap_or_default()
}

/// An optional field: only absence is filled.
fn absent<T>(field: &mut Option<T>, default: T) {
    field.get_or_insert(default);
}

/// A required field: zero is filled as well.
fn zero<T: Default + PartialEq>(field: &mut Option<T>, default: T) {
    if field.as_ref().is_none_or(|value| *value == T::default()) {
        *field = Some(default);
    }
}
