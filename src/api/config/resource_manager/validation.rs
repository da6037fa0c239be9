//! Validation of the defaulted configuration (spec 70 §4). All rules run; the order of the errors is that of the rules.

use kit::{duration::GoDuration, quote::quoted};
use process::config::{Enabled, FieldError, Period, Workers, check_burst, check_logging, json};

use super::{
    Config, Connection, Controllers, CsrApprover, ManagedResourceController, NetworkPolicyController,
    NodeAgentReconciliationDelay, Webhooks, tolerations,
};
use crate::api::meta::selector::Selector;

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
const MACHINE_NAMESPACE: &str = "machine namespace must be nil or not empty";
const RESOURCE_CLASS: &str = "must provide a resource class";
const MANAGED_BY: &str = "must specify value of managed-by label";
const DELAY_ORDER: &str = "minimum delay must not be higher than maximum delay";
const SCHEDULER_NAME: &str = "must specify schedulerName when webhook is enabled";
const TOKEN_INVALIDATOR: &str = "controller and webhook for TokenInvalidator must either be both disabled or enabled";
/// Not a text of the specification: upstream fails later, when it listens.
const PORT: &str = "must be between 0 and 65535";

pub(super) fn validate(config: &Config) -> Vec<FieldError> {
    let mut errors = Vec::new();
    connection(&mut errors, "sourceClientConnection", &config.source);
    connection(&mut errors, "targetClientConnection", &config.target);
    config.leader_election.validate(&mut errors);
    config.server.health_probes.validate(&mut errors, "server.healthProbes");
    config.server.metrics.plain().validate(&mut errors, "server.metrics");
    let port = config.server.webhooks.port;
    if u16::try_from(port).is_err() {
        errors.push(FieldError::invalid("server.webhooks.port", port, PORT));
    }
    check_logging(&mut errors, &config.log_level, &config.log_format);
    controllers(&mut errors, &config.controllers);
    webhooks(&mut errors, &config.webhooks);
    if config.controllers.token_invalidator.enabled != config.webhooks.token_invalidator.enabled {
        errors.push(FieldError::forbidden("controllers.tokenInvalidator", TOKEN_INVALIDATOR));
    }
    errors
}

/// Rules 1-3.
fn connection(errors: &mut Vec<FieldError>, path: &str, connection: &Connection) {
    let period = connection.cache_resync_period.written();
    if period < MIN_RESYNC_PERIOD {
        errors.push(FieldError::invalid(format!("{path}.cacheResyncPeriod"), period.nanos(), AT_LEAST_10S));
    }
    check_burst(errors, path, connection.burst);
}

/// Spec 40 §4: selectors that cannot be converted abort the start.
fn selectors(errors: &mut Vec<FieldError>, policy: &NetworkPolicyController) {
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

/// Rules 10-21.
fn controllers(errors: &mut Vec<FieldError>, controllers: &Controllers) {
    FieldError::unless_given(errors, "controllers.resourceClass", &controllers.resource_class, RESOURCE_CLASS);
    if let Some(CsrApprover { concurrent_syncs, machine_namespace: namespace }) = controllers.csr_approver.on() {
        workers(errors, "controllers.csrApprover.concurrentSyncs", *concurrent_syncs);
        machine_namespace(errors, "controllers.csrApprover.machineNamespace", namespace);
    }
    if let Some(garbage_collector) = controllers.garbage_collector.on() {
        sync_period(errors, "controllers.garbageCollector.syncPeriod", garbage_collector.sync_period);
    }
    workers(errors, "controllers.health.concurrentSyncs", controllers.health.concurrent_syncs);
    sync_period(errors, "controllers.health.syncPeriod", controllers.health.sync_period);
    managed_resource(errors, &controllers.managed_resource);
    if let Some(policy) = controllers.network_policy.on() {
        selectors(errors, policy);
    }
    if let Some(token_requestor) = controllers.token_requestor.on() {
        workers(errors, "controllers.tokenRequestor.concurrentSyncs", token_requestor.concurrent_syncs);
    }
    if let Some(delay) = controllers.node_agent_reconciliation_delay.on() {
        delays(errors, delay);
    }
}

/// Rules 16-18.
fn managed_resource(errors: &mut Vec<FieldError>, settings: &ManagedResourceController) {
    workers(errors, "controllers.managedResources.concurrentSyncs", settings.concurrent_syncs);
    sync_period(errors, "controllers.managedResources.syncPeriod", settings.sync_period);
    let (period, least) = (settings.revalidate_period.written(), settings.sync_period.written());
    if period < least && period != GoDuration::ZERO && settings.revalidate_period != Period::default() {
        let path = "controllers.managedResources.revalidatePeriod";
        errors.push(FieldError::invalid(path, quoted(&period.to_string()), AT_LEAST_SYNC_PERIOD));
    }
    let label = &settings.managed_by_label_value;
    FieldError::unless_given(errors, "controllers.managedResources.managedByLabelValue", label, MANAGED_BY);
}

/// Rules 20 and 21.
fn delays(errors: &mut Vec<FieldError>, delay: &NodeAgentReconciliationDelay) {
    const MIN: &str = "controllers.nodeAgentReconciliationDelay.minDelay";
    const MAX: &str = "controllers.nodeAgentReconciliationDelay.maxDelay";
    let (min, max) = (delay.min_delay.written(), delay.max_delay.written());
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
fn webhooks(errors: &mut Vec<FieldError>, webhooks: &Webhooks) {
    if let Some(scheduler) = webhooks.pod_scheduler_name.on() {
        FieldError::unless_given(
            errors,
            "webhooks.podSchedulerName.schedulerName",
            &scheduler.scheduler_name,
            SCHEDULER_NAME,
        );
    }

    let seconds = webhooks.projected_token_mount.on().map(|tokens| tokens.expiration_seconds);
    if let Some(seconds) = seconds.filter(|seconds| *seconds < MIN_TOKEN_EXPIRATION) {
        errors.push(FieldError::invalid("webhooks.projectedTokenMount.expirationSeconds", seconds, AT_LEAST_600));
    }

    let Enabled { settings: availability, .. } = &webhooks.high_availability_config;
    let seconds = [
        ("defaultNotReadyTolerationSeconds", availability.default_not_ready_toleration_seconds),
        ("defaultUnreachableTolerationSeconds", availability.default_unreachable_toleration_seconds),
    ];
    for (field, seconds) in seconds {
        if let Some(seconds) = seconds.filter(|seconds| *seconds < 0) {
            errors.push(FieldError::invalid(format!("webhooks.highAvailabilityConfig.{field}"), seconds, AT_LEAST_0));
        }
    }

    for (i, toleration) in webhooks.system_components_config.settings.pod_tolerations.iter().enumerate() {
        let path = format!("webhooks.systemComponentsConfig.podTolerations[{i}]");
        tolerations::validate(errors, &path, toleration);
    }
    if let Some(authorizer) = webhooks.node_agent_authorizer.on() {
        machine_namespace(errors, "webhooks.nodeAgentAuthorizer.machineNamespace", &authorizer.machine_namespace);
    }
}

fn machine_namespace(errors: &mut Vec<FieldError>, path: &str, field: &Option<String>) {
    if field.as_ref().is_some_and(String::is_empty) {
        errors.push(FieldError::required(path, MACHINE_NAMESPACE));
    }
}

fn workers(errors: &mut Vec<FieldError>, path: &str, workers: Workers) {
    if workers.written() < 1 {
        errors.push(FieldError::invalid(path, workers.written(), AT_LEAST_1));
    }
}

fn sync_period<const DEFAULT: i64>(errors: &mut Vec<FieldError>, path: &str, period: Period<DEFAULT>) {
    let period = period.written();
    if period < MIN_SYNC_PERIOD {
        errors.push(FieldError::invalid(path, quoted(&period.to_string()), AT_LEAST_15S));
    }
}
