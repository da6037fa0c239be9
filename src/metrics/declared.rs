//! Every metric of the process: name, type, labels, unit and help. `docs/reference/metrics.md` is generated from this
//! table. Names, labels and buckets above the line are spec 70 §9.2: existing dashboards query them. Metrics with the
//! prefix `gardener_resource_manager_` are our own.

use prometheus::{
    CounterVec, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, core::Collector,
};

#[derive(Debug)]
pub(super) struct Declaration {
    pub(super) name: &'static str,
    pub(super) kind: MetricKind,
    pub(super) labels: &'static [&'static str],
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
}

#[derive(Debug)]
pub(super) enum MetricKind {
    Counter,
    Gauge,
    Histogram(&'static [f64]),
}

pub(super) const RECONCILE_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];

/// Buckets for work queues and webhooks.
pub(super) const DECADES: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

/// Buckets for the time in which nodes become ready for pods.
pub(super) const NODE_JOINS: [f64; 10] = [5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];

macro_rules! declarations {
    ($($constant:ident = $kind:expr, $name:literal, $labels:expr, $unit:literal, $help:literal;)*) => {
        $(
            pub(super) const $constant: Declaration =
                Declaration { name: $name, kind: $kind, labels: &$labels, unit: $unit, help: $help };
        )*

        pub(super) const ALL: &[&Declaration] = &[$(&$constant),*];
    };
}

#[rustfmt::skip]
declarations! {
    RECONCILES = MetricKind::Counter, "controller_runtime_reconcile_total", ["controller", "result"], "reconciliations",
        "Finished reconciliations by result: success, error, requeue, requeue_after.";
    RECONCILE_ERRORS = MetricKind::Counter, "controller_runtime_reconcile_errors_total", ["controller"], "reconciliations",
        "Reconciliations that ended with an error.";
    RECONCILE_TERMINAL_ERRORS = MetricKind::Counter, "controller_runtime_terminal_reconcile_errors_total", ["controller"], "reconciliations",
        "Reconciliations that ended with an error that a retry cannot fix.";
    RECONCILE_PANICS = MetricKind::Counter, "controller_runtime_reconcile_panics_total", ["controller"], "reconciliations",
        "Reconciliations that panicked.";
    RECONCILE_TIMEOUTS = MetricKind::Counter, "controller_runtime_reconcile_timeouts_total", ["controller"], "reconciliations",
        "Reconciliations that were cut off at their deadline.";
    RECONCILE_SECONDS = MetricKind::Histogram(&RECONCILE_BUCKETS), "controller_runtime_reconcile_time_seconds", ["controller"], "seconds",
        "Duration of a reconciliation.";
    MAX_CONCURRENT = MetricKind::Gauge, "controller_runtime_max_concurrent_reconciles", ["controller"], "permits",
        "How many reconciliations may run at the same time.";
    ACTIVE_WORKERS = MetricKind::Gauge, "controller_runtime_active_workers", ["controller"], "permits",
        "How many reconciliations run now.";

    QUEUE_DEPTH = MetricKind::Gauge, "workqueue_depth", ["name", "controller", "priority"], "keys",
        "Keys that have work and wait for a permit, by priority: high or low.";
    QUEUE_ADDS = MetricKind::Counter, "workqueue_adds_total", ["name", "controller"], "keys",
        "Keys that were enqueued.";
    QUEUE_RETRIES = MetricKind::Counter, "workqueue_retries_total", ["name", "controller"], "keys",
        "Keys that are retried after a back-off.";
    QUEUE_WAIT_SECONDS = MetricKind::Histogram(&DECADES), "workqueue_queue_duration_seconds", ["name", "controller"], "seconds",
        "How long a key waited for its permit.";
    QUEUE_WORK_SECONDS = MetricKind::Histogram(&DECADES), "workqueue_work_duration_seconds", ["name", "controller"], "seconds",
        "How long a key held its permit.";
    QUEUE_UNFINISHED_SECONDS = MetricKind::Gauge, "workqueue_unfinished_work_seconds", ["name", "controller"], "seconds",
        "Sum of the durations so far of the work that runs now. Large values show stuck work.";
    QUEUE_LONGEST_SECONDS = MetricKind::Gauge, "workqueue_longest_running_processor_seconds", ["name", "controller"], "seconds",
        "Duration so far of the work that has been running for the longest time.";

    WEBHOOK_REQUESTS = MetricKind::Counter, "controller_runtime_webhook_requests_total", ["webhook", "code"], "requests",
        "Answered webhook requests by path and HTTP status.";
    WEBHOOK_IN_FLIGHT = MetricKind::Gauge, "controller_runtime_webhook_requests_in_flight", ["webhook"], "requests",
        "Webhook requests that are being answered now.";
    WEBHOOK_SECONDS = MetricKind::Histogram(&DECADES), "controller_runtime_webhook_latency_seconds", ["webhook"], "seconds",
        "Duration of a webhook request.";
    WEBHOOK_PANICS = MetricKind::Counter, "controller_runtime_webhook_panics_total", [], "requests",
        "Webhook requests whose handler panicked.";

    REST_REQUESTS = MetricKind::Counter, "rest_client_requests_total", ["code", "method", "host"], "requests",
        "Requests to API servers by HTTP status (or <error> when no answer arrived), method and host:port.";
    LEADER = MetricKind::Gauge, "leader_election_master_status", ["name"], "1 or 0",
        "Whether this process holds the lease.";
    CERTIFICATE_READS = MetricKind::Counter, "certwatcher_read_certificate_total", [], "reads",
        "How often the webhook server's certificate was read.";
    CERTIFICATE_ERRORS = MetricKind::Counter, "certwatcher_read_certificate_errors_total", [], "reads",
        "How often reading the webhook server's certificate failed.";

    PROCESS_CPU = MetricKind::Counter, "process_cpu_seconds_total", [], "seconds",
        "User and system CPU time of the process.";
    PROCESS_RESIDENT = MetricKind::Gauge, "process_resident_memory_bytes", [], "bytes",
        "Resident memory of the process.";
    PROCESS_VIRTUAL = MetricKind::Gauge, "process_virtual_memory_bytes", [], "bytes",
        "Virtual memory of the process.";
    PROCESS_OPEN_FDS = MetricKind::Gauge, "process_open_fds", [], "file descriptors",
        "Open file descriptors of the process.";
    PROCESS_MAX_FDS = MetricKind::Gauge, "process_max_fds", [], "file descriptors",
        "How many file descriptors the process may open.";
    PROCESS_START = MetricKind::Gauge, "process_start_time_seconds", [], "seconds since 1970",
        "When the process started.";

    BUILD_INFO = MetricKind::Gauge, "gardener_resource_manager_build_info", ["version"], "always 1",
        "The version that runs.";
    CONFIG_HASH = MetricKind::Gauge, "gardener_resource_manager_config_hash", ["hash"], "always 1",
        "Hash of the effective configuration: replicas with different hashes run with different configurations.";
    ACTORS = MetricKind::Gauge, "gardener_resource_manager_actors", ["role", "activity"], "actors",
        "Actors by role and activity.";
    MAILBOX_OVERFLOWS = MetricKind::Counter, "gardener_resource_manager_mailbox_overflows_total", ["mailbox"], "messages",
        "Messages that were refused because the mailbox was full.";
    WEBHOOK_FAILURES = MetricKind::Counter, "gardener_resource_manager_webhook_failures_total", ["webhook", "cause"], "reviews",
        "Reviews that were not allowed, by cause: denied (by a rule), status (of the target, e.g. an object that does not exist), invalid (an object that breaks rules), namespace, autoscalers, nodes (could not be read for high availability), undecodable (the object), internal, panic.";
    WEBHOOK_DENIALS = MetricKind::Counter, "gardener_resource_manager_webhook_denials_total", ["webhook", "resource"], "reviews",
        "Requests that a validating webhook denied, by resource: deletions without a confirmation, objects that break rules.";
    AUTHORIZER_DECISIONS = MetricKind::Counter, "gardener_resource_manager_authorizer_decisions_total", ["webhook", "resource", "decision"], "reviews",
        "Reviews of an authorizer by resource (a resource that it decides on, or other) and decision: allow, deny, no_opinion, error.";
    GARBAGE = MetricKind::Gauge, "gardener_resource_manager_garbage", ["state"], "objects",
        "Collectable Secrets and ConfigMaps in the last run of the garbage collector: candidates, and among them deleted, in_use, failed (could not be deleted); young (less than 10 minutes old) and terminating are not candidates.";
    TOKENS = MetricKind::Gauge, "gardener_resource_manager_tokens", ["state"], "tokens",
        "Secrets of the token requestor by state: fresh, failing (the last reconcile failed), rejected (the API server does not accept what it issued).";
    TOKEN_EXPIRY = MetricKind::Gauge, "gardener_resource_manager_token_nearest_expiry_seconds", [], "seconds",
        "Time until the first known token of the token requestor expires; negative after that. Absent while no token is known.";
    SERVICES_FAILING = MetricKind::Gauge, "gardener_resource_manager_network_policy_failing_services", [], "Services",
        "Services with an annotation or a Gateway that cannot be read. Their policies stay as they are.";
    NODES_WAITING = MetricKind::Gauge, "gardener_resource_manager_nodes_waiting", ["for"], "nodes",
        "Nodes that keep the taint for critical components, by what they wait for: daemon_sets, pods, csi_drivers, watches (no known component is missing, but a watch has been silent for too long).";
    NODE_SECONDS = MetricKind::Histogram(&NODE_JOINS), "gardener_resource_manager_node_join_seconds", [], "seconds",
        "Time from the creation of a node until its critical components were ready and the taint was removed. Only nodes that this process saw being created.";
    IDLE_CHECKS = MetricKind::Counter, "gardener_resource_manager_idle_checks_total", ["controller"], "periods",
        "Idle checks: a period ended, and there was nothing to reconcile.";
    ARBITER_STALLS = MetricKind::Counter, "gardener_resource_manager_arbiter_stalls_total", [], "stalls",
        "How often the thread of the controllers stood still for three seconds or longer. Standstills of one to three seconds may be counted too.";
    STORE_OBJECTS = MetricKind::Gauge, "gardener_resource_manager_store_objects", ["cluster", "kind"], "objects",
        "Cached objects in a store.";
    STORE_SYNCED = MetricKind::Gauge, "gardener_resource_manager_store_synced", ["cluster", "kind"], "1 or 0",
        "Whether a store has its initial list and a working watch.";
    STORE_AGE = MetricKind::Gauge, "gardener_resource_manager_store_age_seconds", ["cluster", "kind"], "seconds",
        "Time since a store's watch last delivered something; since its start if it never did.";
    SCHEDULER_IN_FLIGHT = MetricKind::Gauge, "gardener_resource_manager_request_scheduler_writes_in_flight", ["cluster"], "requests",
        "Writes to a cluster that wait for their answer.";
    SCHEDULER_WAITING = MetricKind::Gauge, "gardener_resource_manager_request_scheduler_waiting", ["cluster", "priority"], "requests",
        "Requests to a cluster that wait for their turn, by priority: high or low.";
}

const VALID: &str = "names and labels are constants of this file, and a test registers each of them";

impl Declaration {
    pub(super) fn counters(&self, registry: &Registry) -> IntCounterVec {
        register(registry, IntCounterVec::new(self.opts(), self.labels).expect(VALID))
    }

    pub(super) fn float_counters(&self, registry: &Registry) -> CounterVec {
        register(registry, CounterVec::new(self.opts(), self.labels).expect(VALID))
    }

    pub(super) fn gauges(&self, registry: &Registry) -> IntGaugeVec {
        register(registry, IntGaugeVec::new(self.opts(), self.labels).expect(VALID))
    }

    pub(super) fn float_gauges(&self, registry: &Registry) -> GaugeVec {
        register(registry, GaugeVec::new(self.opts(), self.labels).expect(VALID))
    }

    pub(super) fn histograms(&self, registry: &Registry) -> HistogramVec {
        let bounds = match self.kind {
            MetricKind::Histogram(bounds) => bounds,
            MetricKind::Counter | MetricKind::Gauge => &DECADES,
        };
        let options = HistogramOpts::new(self.name, self.help).buckets(bounds.to_vec());
        register(registry, HistogramVec::new(options, self.labels).expect(VALID))
    }

    fn opts(&self) -> Opts {
        Opts::new(self.name, self.help)
    }
}

fn register<C: Collector + Clone + 'static>(registry: &Registry, collector: C) -> C {
    registry.register(Box::new(collector.clone())).expect(VALID);
    collector
}
