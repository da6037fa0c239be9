//! Validation of the defaulted file (spec 70 §4). All rules run; the order of the findings is the order of the rules.

use super::{
    file::{self, ConfigFile},
    finding::{FieldError, json},
    tolerations,
    types::{LogFormat, LogLevel},
};
use crate::api::{duration::GoDuration, quote::quoted, selector::Selector};

const MIN_RESYNC_PERIOD: GoDuration = GoDuration::from_secs(10);
const MIN_SYNC_PERIOD: GoDuration = GoDuration::from_secs(15);
const MIN_TOKEN_EXPIRATION: i64 = 600;

const AT_LEAST_10S: &str = "must be at least 10s";
const AT_LEAST_15S: &str = "must be at least 15s";
const AT_LEAST_SYNC_PERIOD: &str = "must be 0s or at least syncPeriod";
const AT_LEAST_1: &str = "must be at least 1";
const AT_LEAST_600: &str = "must be at least 600";
const NOT_NEGATIVE: &str = "must be non-negative";
const AT_LEAST_0: &str = "must be greater than or equal to 0";
const POSITIVE: &str = "must be greater than zero";
const LEASE_ABOVE_DEADLINE: &str = "must be greater than `RenewDeadline`";
const MACHINE_NAMESPACE: &str = "machine namespace must be nil or not empty";
const RESOURCE_CLASS: &str = "must provide a resource class";
const MANAGED_BY: &str = "must specify value of managed-by label";
const DELAY_ORDER: &str = "minimum delay must not be higher than maximum delay";
const SCHEDULER_NAME: &str = "must specify schedulerName when webhook is enabled";
const TOKEN_INVALIDATOR: &str = "controller and webhook for TokenInvalidator must either be both disabled or enabled";
/// Not a text of the specification: upstream fails later, when it listens.
const PORT: &str = "must be between 0 and 65535";

pub(super) fn validate(file: &ConfigFile) -> Vec<FieldError> {
    let mut errors = Vec::new();
    connection(&mut errors, "sourceClientConnection", &file.source);
    connection(&mut errors, "targetClientConnection", &file.target);
    leader_election(&mut errors, &file.leader_election);
    ports(&mut errors, &file.server);
    logging(&mut errors, file);
    controllers(&mut errors, &file.controllers);
    webhooks(&mut errors, &file.webhooks);
    if file.controllers.token_invalidator.enabled != file.webhooks.token_invalidator.enabled {
        errors.push(FieldError::forbidden("controllers.tokenInvalidator", TOKEN_INVALIDATOR));
    }
    errors
}

/// Rules 1-3.
fn connection(errors: &mut Vec<FieldError>, path: &str, connection: &file::Connection) {
    let period = connection.cache_resync_period;
    if period < MIN_RESYNC_PERIOD {
        errors.push(FieldError::invalid(format!("{path}.cacheResyncPeriod"), period.nanos(), AT_LEAST_10S));
    }
    if connection.burst < 0 {
        errors.push(FieldError::invalid(format!("{path}.burst"), connection.burst, NOT_NEGATIVE));
    }
}

/// Spec 40 §4: selectors that cannot be converted abort the start.
fn selectors(errors: &mut Vec<FieldError>, policy: &file::NetworkPolicy) {
    for (index, selector) in policy.namespace_selectors.iter().enumerate() {
        if let Err(error) = Selector::new(selector) {
            let path = format!("controllers.networkPolicy.namespaceSelectors[{index}]");
            errors.push(FieldError::invalid(
                path,
                json(selector),
                format!("failed parsing namespace selector: {error}"),
            ));
        }
    }
    let pods = policy.ingress_controller_selector.as_ref().map(|selector| &selector.pod_selector);
    if let Some((selector, Err(error))) = pods.map(|selector| (selector, Selector::new(selector))) {
        let path = "controllers.networkPolicy.ingressControllerSelector.podSelector";
        errors.push(FieldError::invalid(path, json(selector), error));
    }
}

/// Rules 4-6.
fn leader_election(errors: &mut Vec<FieldError>, election: &file::LeaderElection) {
    if !election.leader_elect {
        return;
    }
    let (lease, deadline) = (election.lease_duration, election.renew_deadline);
    let durations = [
        ("leaderElection.leaseDuration", lease),
        ("leaderElection.renewDeadline", deadline),
        ("leaderElection.retryPeriod", election.retry_period),
    ];
    for (path, duration) in durations {
        if duration <= GoDuration::ZERO {
            errors.push(FieldError::invalid(path, quoted(&duration.to_string()), POSITIVE));
        }
    }
    if lease <= deadline {
        let value = quoted(&deadline.to_string());
        errors.push(FieldError::invalid("leaderElection.leaseDuration", value, LEASE_ABOVE_DEADLINE));
    }
    required(errors, "leaderElection.resourceLock", &election.resource_lock, "");
    required(errors, "leaderElection.resourceNamespace", &election.resource_namespace, "");
    required(errors, "leaderElection.resourceName", &election.resource_name, "");
}

/// Rule 7, and ports that do not exist.
fn ports(errors: &mut Vec<FieldError>, server: &file::Server) {
    let ports = [
        ("server.healthProbes.port", server.health_probes.port, AT_LEAST_0),
        ("server.metrics.port", server.metrics.port, AT_LEAST_0),
        ("server.webhooks.port", server.webhooks.port, PORT),
    ];
    for (path, port, below_zero) in ports {
        if port < 0 {
            errors.push(FieldError::invalid(path, port, below_zero));
        } else if port > i64::from(u16::MAX) {
            errors.push(FieldError::invalid(path, port, PORT));
        }
    }
}

/// Rules 8 and 9.
fn logging(errors: &mut Vec<FieldError>, file: &ConfigFile) {
    let (level, format) = (&file.log_level, &file.log_format);
    if LogLevel::from_name(level).is_none() {
        errors.push(FieldError::unsupported("logLevel", level, &LogLevel::NAMES));
    }
    if LogFormat::from_name(format).is_none() {
        errors.push(FieldError::unsupported("logFormat", format, &LogFormat::NAMES));
    }
}

/// Rules 10-21.
fn controllers(errors: &mut Vec<FieldError>, controllers: &file::Controllers) {
    required(errors, "controllers.resourceClass", &controllers.resource_class, RESOURCE_CLASS);

    let csr_approver = &controllers.csr_approver;
    if csr_approver.enabled {
        workers(errors, "controllers.csrApprover.concurrentSyncs", csr_approver.concurrent_syncs);
        machine_namespace(errors, "controllers.csrApprover.machineNamespace", &csr_approver.machine_namespace);
    }
    if controllers.garbage_collector.enabled {
        let period = controllers.garbage_collector.sync_period;
        sync_period(errors, "controllers.garbageCollector.syncPeriod", period);
    }

    workers(errors, "controllers.health.concurrentSyncs", controllers.health.concurrent_syncs);
    sync_period(errors, "controllers.health.syncPeriod", controllers.health.sync_period);

    let managed_resource = &controllers.managed_resource;
    workers(errors, "controllers.managedResources.concurrentSyncs", managed_resource.concurrent_syncs);
    sync_period(errors, "controllers.managedResources.syncPeriod", managed_resource.sync_period);
    let (period, least) = (managed_resource.revalidate_period, managed_resource.sync_period);
    if period < least && period != GoDuration::from_secs(0) && period != file::REVALIDATE_PERIOD {
        let path = "controllers.managedResources.revalidatePeriod";
        errors.push(FieldError::invalid(path, quoted(&period.to_string()), AT_LEAST_SYNC_PERIOD));
    }
    let label = &managed_resource.managed_by_label_value;
    required(errors, "controllers.managedResources.managedByLabelValue", label, MANAGED_BY);

    if controllers.network_policy.enabled {
        selectors(errors, &controllers.network_policy);
    }
    if controllers.token_requestor.enabled {
        let syncs = controllers.token_requestor.concurrent_syncs;
        workers(errors, "controllers.tokenRequestor.concurrentSyncs", syncs);
    }
    if controllers.node_agent_reconciliation_delay.enabled {
        delays(errors, &controllers.node_agent_reconciliation_delay);
    }
}

/// Rules 20 and 21.
fn delays(errors: &mut Vec<FieldError>, delay: &file::NodeAgentReconciliationDelay) {
    const MIN: &str = "controllers.nodeAgentReconciliationDelay.minDelay";
    const MAX: &str = "controllers.nodeAgentReconciliationDelay.maxDelay";
    let (min, max) = (delay.min_delay, delay.max_delay);
    for (path, delay) in [(MIN, min), (MAX, max)] {
        if delay < GoDuration::ZERO {
            errors.push(FieldError::invalid(path, quoted(&delay.to_string()), NOT_NEGATIVE));
        }
    }
    if min > max {
        errors.push(FieldError::invalid(MIN, quoted(&min.to_string()), DELAY_ORDER));
    }
}

/// Rules 22-26.
fn webhooks(errors: &mut Vec<FieldError>, webhooks: &file::Webhooks) {
    if webhooks.pod_scheduler_name.enabled {
        let name = &webhooks.pod_scheduler_name.scheduler_name;
        required(errors, "webhooks.podSchedulerName.schedulerName", name, SCHEDULER_NAME);
    }

    let seconds = webhooks.projected_token_mount.expiration_seconds;
    if webhooks.projected_token_mount.enabled && seconds < MIN_TOKEN_EXPIRATION {
        errors.push(FieldError::invalid("webhooks.projectedTokenMount.expirationSeconds", seconds, AT_LEAST_600));
    }

    let availability = &webhooks.high_availability_config;
    let seconds = [
        ("defaultNotReadyTolerationSeconds", availability.default_not_ready_toleration_seconds),
        ("defaultUnreachableTolerationSeconds", availability.default_unreachable_toleration_seconds),
    ];
    for (field, seconds) in seconds {
        if let Some(seconds) = seconds.filter(|seconds| *seconds < 0) {
            errors.push(FieldError::invalid(format!("webhooks.highAvailabilityConfig.{field}"), seconds, AT_LEAST_0));
        }
    }

    for (i, toleration) in webhooks.system_components_config.pod_tolerations.iter().enumerate() {
        let path = format!("webhooks.systemComponentsConfig.podTolerations[{i}]");
        tolerations::validate(errors, &path, toleration);
    }
    if webhooks.node_agent_authorizer.enabled {
        let namespace = &webhooks.node_agent_authorizer.machine_namespace;
        machine_namespace(errors, "webhooks.nodeAgentAuthorizer.machineNamespace", namespace);
    }
}

fn required(errors: &mut Vec<FieldError>, path: &str, field: &str, detail: &str) {
    if field.is_empty() {
        errors.push(FieldError::required(path, detail));
    }
}

fn machine_namespace(errors: &mut Vec<FieldError>, path: &str, field: &Option<String>) {
    if field.as_ref().is_some_and(String::is_empty) {
        errors.push(FieldError::required(path, MACHINE_NAMESPACE));
    }
}

fn workers(errors: &mut Vec<FieldError>, path: &str, count: i64) {
    if count < 1 {
        errors.push(FieldError::invalid(path, count, AT_LEAST_1));
    }
}

fn sync_period(errors: &mut Vec<FieldError>, path: &str, period: GoDuration) {
    if period < MIN_SYNC_PERIOD {
        errors.push(FieldError::invalid(path, quoted(&period.to_string()), AT_LEAST_15S));
    }
}
