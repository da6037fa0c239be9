//! Every metric of the process itself: name, type, labels, unit and help. A program adds the tables of its own metrics
//! ([`Figure`](super::Figure), [`declarations!`](crate::declarations)), and generates its reference from all of them.
//! Common names, labels and buckets are spec 70 §9.2: existing dashboards query them.

use prometheus::{
    CounterVec, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, core::Collector,
};

use self::MetricName::{Common, Own};

/// One metric. A program's own names begin with its prefix.
#[derive(Debug)]
pub struct Declaration {
    /// Its name.
    pub name: MetricName,
    /// Its type.
    pub kind: MetricKind,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// Unit of its values, for the reference.
    pub unit: &'static str,
    /// What it counts or measures.
    pub help: &'static str,
}

/// The name of a metric.
#[derive(Debug, Clone, Copy)]
pub enum MetricName {
    /// The whole name, as programs with controller-runtime have it.
    Common(&'static str),
    /// The name without the prefix of the program.
    Own(&'static str),
}

/// The type of a metric.
#[derive(Debug, Clone, Copy)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Any value.
    Gauge,
    /// Upper bounds of the buckets.
    Histogram(&'static [f64]),
}

/// Where metrics are registered: a registry, and the prefix of the program's own metrics.
#[derive(Debug, Clone)]
pub struct Registrar {
    pub(super) registry: Registry,
    prefix: &'static str,
}

pub(super) const RECONCILE_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];

/// Buckets for work queues and webhooks, in seconds.
pub const DECADES: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

/// Declares metrics as constants, and `ALL` as the list of them. Needs `MetricKind` and `MetricName::{Common, Own}` in scope.
#[macro_export]
macro_rules! declarations {
    ($($constant:ident = $kind:expr, $name:expr, $labels:expr, $unit:literal, $help:literal;)*) => {
        $(
            pub(super) const $constant: $crate::metrics::Declaration = $crate::metrics::Declaration {
                name: $name, kind: $kind, labels: &$labels, unit: $unit, help: $help,
            };
        )*

        pub(super) const ALL: &[&$crate::metrics::Declaration] = &[$(&$constant),*];
    };
}

#[rustfmt::skip]
declarations! {
    RECONCILES = MetricKind::Counter, Common("controller_runtime_reconcile_total"), ["controller", "result"], "reconciliations",
        "Finished reconciliations by result: success, error, requeue, requeue_after.";
    RECONCILE_ERRORS = MetricKind::Counter, Common("controller_runtime_reconcile_errors_total"), ["controller"], "reconciliations",
        "Reconciliations that ended with an error.";
    RECONCILE_TERMINAL_ERRORS = MetricKind::Counter, Common("controller_runtime_terminal_reconcile_errors_total"), ["controller"], "reconciliations",
        "Reconciliations that ended with an error that a retry cannot fix.";
    RECONCILE_PANICS = MetricKind::Counter, Common("controller_runtime_reconcile_panics_total"), ["controller"], "reconciliations",
        "Reconciliations that panicked.";
    RECONCILE_TIMEOUTS = MetricKind::Counter, Common("controller_runtime_reconcile_timeouts_total"), ["controller"], "reconciliations",
        "Reconciliations that were cut off at their deadline.";
    RECONCILE_SECONDS = MetricKind::Histogram(&RECONCILE_BUCKETS), Common("controller_runtime_reconcile_time_seconds"), ["controller"], "seconds",
        "Duration of a reconciliation.";
    MAX_CONCURRENT = MetricKind::Gauge, Common("controller_runtime_max_concurrent_reconciles"), ["controller"], "permits",
        "How many reconciliations may run at the same time.";
    ACTIVE_WORKERS = MetricKind::Gauge, Common("controller_runtime_active_workers"), ["controller"], "permits",
        "How many reconciliations run now.";

    QUEUE_DEPTH = MetricKind::Gauge, Common("workqueue_depth"), ["name", "controller", "priority"], "keys",
        "Keys that have work and wait for a permit, by priority: high or low.";
    QUEUE_ADDS = MetricKind::Counter, Common("workqueue_adds_total"), ["name", "controller"], "keys",
        "Keys that were enqueued.";
    QUEUE_RETRIES = MetricKind::Counter, Common("workqueue_retries_total"), ["name", "controller"], "keys",
        "Keys that are retried after a back-off.";
    QUEUE_WAIT_SECONDS = MetricKind::Histogram(&DECADES), Common("workqueue_queue_duration_seconds"), ["name", "controller"], "seconds",
        "How long a key waited for its permit.";
    QUEUE_WORK_SECONDS = MetricKind::Histogram(&DECADES), Common("workqueue_work_duration_seconds"), ["name", "controller"], "seconds",
        "How long a key held its permit.";
    QUEUE_UNFINISHED_SECONDS = MetricKind::Gauge, Common("workqueue_unfinished_work_seconds"), ["name", "controller"], "seconds",
        "Sum of the durations so far of the work that runs now. Large values show stuck work.";
    QUEUE_LONGEST_SECONDS = MetricKind::Gauge, Common("workqueue_longest_running_processor_seconds"), ["name", "controller"], "seconds",
        "Duration so far of the work that has been running for the longest time.";

    REST_REQUESTS = MetricKind::Counter, Common("rest_client_requests_total"), ["code", "method", "host"], "requests",
        "Requests to API servers by HTTP status (or <error> when no answer arrived), method and host:port.";
    LEADER = MetricKind::Gauge, Common("leader_election_master_status"), ["name"], "1 or 0",
        "Whether this process holds the lease.";
    PROCESS_CPU = MetricKind::Counter, Common("process_cpu_seconds_total"), [], "seconds",
        "User and system CPU time of the process.";
    PROCESS_RESIDENT = MetricKind::Gauge, Common("process_resident_memory_bytes"), [], "bytes",
        "Resident memory of the process.";
    PROCESS_VIRTUAL = MetricKind::Gauge, Common("process_virtual_memory_bytes"), [], "bytes",
        "Virtual memory of the process.";
    PROCESS_OPEN_FDS = MetricKind::Gauge, Common("process_open_fds"), [], "file descriptors",
        "Open file descriptors of the process.";
    PROCESS_MAX_FDS = MetricKind::Gauge, Common("process_max_fds"), [], "file descriptors",
        "How many file descriptors the process may open.";
    PROCESS_START = MetricKind::Gauge, Common("process_start_time_seconds"), [], "seconds since 1970",
        "When the process started.";

    BUILD_INFO = MetricKind::Gauge, Own("build_info"), ["version"], "always 1",
        "The version that runs.";
    CONFIG_HASH = MetricKind::Gauge, Own("config_hash"), ["hash"], "always 1",
        "Hash of the effective configuration: replicas with different hashes run with different configurations.";
    ACTORS = MetricKind::Gauge, Own("actors"), ["role", "activity"], "actors",
        "Actors by role and activity.";
    MAILBOX_OVERFLOWS = MetricKind::Counter, Own("mailbox_overflows_total"), ["mailbox"], "messages",
        "Messages that were refused because the mailbox was full.";
    IDLE_CHECKS = MetricKind::Counter, Own("idle_checks_total"), ["controller"], "periods",
        "Idle checks: a period ended, and there was nothing to reconcile.";
    CONTROLLER_READY = MetricKind::Gauge, Own("controller_ready"), ["controller"], "1 or 0",
        "Whether a controller has its caches. Without them, e.g. while a kind is not served, it waits. Exists while the process leads.";
    ARBITER_STALLS = MetricKind::Counter, Own("arbiter_stalls_total"), [], "stalls",
        "How often the thread of the controllers stood still for three seconds or longer. Standstills of one to three seconds may be counted too.";
    SCHEDULER_IN_FLIGHT = MetricKind::Gauge, Own("request_scheduler_writes_in_flight"), ["cluster"], "requests",
        "Writes to a cluster that wait for their answer.";
    SCHEDULER_WAITING = MetricKind::Gauge, Own("request_scheduler_waiting"), ["cluster", "priority"], "requests",
        "Requests to a cluster that wait for their turn, by priority: high or low.";
}

impl Registrar {
    /// Registers with `prefix`, e.g. `gardener_resource_manager`.
    pub fn new(registry: Registry, prefix: &'static str) -> Self {
        Self { registry, prefix }
    }
}

impl MetricName {
    /// Returns the whole name.
    pub fn full(self, prefix: &str) -> String {
        match self {
            Self::Common(name) => name.to_owned(),
            Self::Own(name) => format!("{prefix}_{name}"),
        }
    }
}

const VALID: &str = "names and labels are constants, a test registers each, and none is registered twice";

impl Declaration {
    /// Registers counters of whole numbers. Panics if the name is taken or malformed, as do the other functions.
    pub fn counters(&self, registrar: &Registrar) -> IntCounterVec {
        register(registrar, IntCounterVec::new(self.opts(registrar, &[]), self.labels))
    }

    /// Registers counters.
    pub fn float_counters(&self, registrar: &Registrar) -> CounterVec {
        register(registrar, CounterVec::new(self.opts(registrar, &[]), self.labels))
    }

    /// Registers gauges of whole numbers.
    pub fn gauges(&self, registrar: &Registrar) -> IntGaugeVec {
        register(registrar, IntGaugeVec::new(self.opts(registrar, &[]), self.labels))
    }

    /// Registers gauges.
    pub fn float_gauges(&self, registrar: &Registrar) -> GaugeVec {
        register(registrar, GaugeVec::new(self.opts(registrar, &[]), self.labels))
    }

    /// Registers histograms.
    pub fn histograms(&self, registrar: &Registrar) -> HistogramVec {
        register(registrar, HistogramVec::new(self.histogram_opts(registrar, &[]), self.labels))
    }

    /// Registers the counter of whole numbers with these values of all its labels, as do the functions below.
    pub(super) fn counter(&self, registrar: &Registrar, values: &[&str]) -> IntCounter {
        register(registrar, IntCounter::with_opts(self.opts(registrar, values)))
    }

    pub(super) fn gauge(&self, registrar: &Registrar, values: &[&str]) -> IntGauge {
        register(registrar, IntGauge::with_opts(self.opts(registrar, values)))
    }

    pub(super) fn float_gauge(&self, registrar: &Registrar, values: &[&str]) -> Gauge {
        register(registrar, Gauge::with_opts(self.opts(registrar, values)))
    }

    pub(super) fn histogram(&self, registrar: &Registrar, values: &[&str]) -> Histogram {
        register(registrar, Histogram::with_opts(self.histogram_opts(registrar, values)))
    }

    fn opts(&self, registrar: &Registrar, values: &[&str]) -> Opts {
        let labels = self.labels.iter().zip(values).map(|(label, value)| ((*label).to_owned(), (*value).to_owned()));
        Opts::new(self.name.full(registrar.prefix), self.help).const_labels(labels.collect())
    }

    fn histogram_opts(&self, registrar: &Registrar, values: &[&str]) -> HistogramOpts {
        let buckets = match self.kind {
            MetricKind::Histogram(bounds) => bounds.to_vec(),
            MetricKind::Counter | MetricKind::Gauge => DECADES.to_vec(),
        };
        HistogramOpts { common_opts: self.opts(registrar, values), buckets }
    }
}

fn register<C: Collector + Clone + 'static>(registrar: &Registrar, collector: prometheus::Result<C>) -> C {
    let collector = collector.expect(VALID);
    registrar.registry.register(Box::new(collector.clone())).expect(VALID);
    collector
}
