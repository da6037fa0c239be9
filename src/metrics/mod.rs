//! Metrics in Prometheus' text format (spec 70 §9). `declared.rs` is the table of all metrics; add a new metric there
//! first. `controller.rs`, `webhook.rs` and `store.rs` have the handles for the parts of the process, `process.rs`
//! reads `/proc`, and `reference.rs` writes `docs/reference/metrics.md` from the table.
//!
//! There is no global registry: [`Metrics`] is made once, passed in, and cheap to clone. Handles hold their series, so
//! that counting is an atomic addition. Ages (stores, running work) and values from elsewhere (status registry,
//! `/proc`) are computed at the scrape, in [`Metrics::render`].

mod controller;
mod declared;
mod process;
mod reference;
mod store;
mod token;
mod webhook;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use kit::{Activity, Clock, Priority, Role, StatusRegistry};
use prometheus::{CounterVec, GaugeVec, HistogramVec, IntCounterVec, IntGaugeVec, Registry, TextEncoder};
use tokio::time::Instant;

pub use controller::{ControllerMetrics, ReconcileOutcome, RunningWork};
pub use process::ProcessFigures;
pub use reference::reference;
pub use store::StoreMetrics;
pub use webhook::{DECIDED_RESOURCES, DECISIONS, FAILURE_CAUSES, WebhookMetrics};

/// All metrics of the process. Clones share the same values.
#[derive(Clone)]
pub struct Metrics {
    shared: Arc<Shared>,
}

struct Shared {
    registry: Registry,
    status_registry: StatusRegistry,
    controllers: controller::Families,
    webhooks: webhook::Families,
    stores: store::Families,
    tokens: token::Families,
    garbage: GaugeVec,
    services_failing: GaugeVec,
    nodes_waiting: GaugeVec,
    node_seconds: HistogramVec,
    rest_requests: IntCounterVec,
    leader: IntGaugeVec,
    certificate_reads: IntCounterVec,
    certificate_errors: IntCounterVec,
    process: ProcessFamilies,
    config_hash: IntGaugeVec,
    actors: IntGaugeVec,
    mailbox_overflows: IntCounterVec,
    arbiter_stalls: IntCounterVec,
    scheduler_in_flight: IntGaugeVec,
    scheduler_waiting: IntGaugeVec,
    scrape: Mutex<()>, // one scrape at a time: computed values are set in steps
}

struct ProcessFamilies {
    cpu: CounterVec,
    resident: IntGaugeVec,
    virtual_size: IntGaugeVec,
    open_fds: IntGaugeVec,
    max_fds: IntGaugeVec,
    start: GaugeVec,
}

/// Metrics of the request scheduler of one cluster.
#[derive(Clone)]
pub struct RequestSchedulerMetrics {
    metrics: Metrics,
    cluster: Arc<str>,
}

const NO_LABELS: [&str; 0] = [];

/// Series of these roles and activities exist from the start.
const ROLES: [Role; 5] = [Role::Root, Role::Supervisor, Role::Object, Role::Watch, Role::Service];

const ACTIVITIES: [Activity; 9] = [
    Activity::Starting,
    Activity::Idle,
    Activity::Queued,
    Activity::Waiting,
    Activity::Running,
    Activity::BackingOff,
    Activity::Quarantined,
    Activity::Failing,
    Activity::Stopped,
];

impl Metrics {
    /// Makes a registry for this version. Each scrape counts the actors in the status registry.
    pub fn new(version: &str, status_registry: StatusRegistry) -> Self {
        let registry = Registry::new();
        let shared = Shared {
            controllers: controller::Families::new(&registry),
            webhooks: webhook::Families::new(&registry),
            stores: store::Families::new(&registry),
            tokens: token::Families::new(&registry),
            garbage: declared::GARBAGE.float_gauges(&registry),
            services_failing: declared::SERVICES_FAILING.float_gauges(&registry),
            nodes_waiting: declared::NODES_WAITING.float_gauges(&registry),
            node_seconds: declared::NODE_SECONDS.histograms(&registry),
            rest_requests: declared::REST_REQUESTS.counters(&registry),
            leader: declared::LEADER.gauges(&registry),
            certificate_reads: declared::CERTIFICATE_READS.counters(&registry),
            certificate_errors: declared::CERTIFICATE_ERRORS.counters(&registry),
            process: ProcessFamilies::new(&registry),
            config_hash: declared::CONFIG_HASH.gauges(&registry),
            actors: declared::ACTORS.gauges(&registry),
            mailbox_overflows: declared::MAILBOX_OVERFLOWS.counters(&registry),
            arbiter_stalls: declared::ARBITER_STALLS.counters(&registry),
            scheduler_in_flight: declared::SCHEDULER_IN_FLIGHT.gauges(&registry),
            scheduler_waiting: declared::SCHEDULER_WAITING.gauges(&registry),
            scrape: Mutex::new(()),
            status_registry,
            registry,
        };

        declared::BUILD_INFO.gauges(&shared.registry).with_label_values(&[version]).set(1);
        for counter in [&shared.certificate_reads, &shared.certificate_errors, &shared.arbiter_stalls] {
            counter.with_label_values(&NO_LABELS).inc_by(0);
        }
        Self { shared: Arc::new(shared) }
    }

    /// Returns the handle of a controller or reconciler with `permits` permits. All its series exist afterwards.
    pub fn controller(&self, name: &str, permits: usize) -> ControllerMetrics {
        self.shared.controllers.controller(name, permits)
    }

    /// Returns the handle of the webhook at a path, e.g. `/webhooks/x`; creates its series for codes 200 and 500.
    pub fn webhook(&self, path: &str) -> WebhookMetrics {
        self.shared.webhooks.webhook(path)
    }

    /// Returns the handle of a watch's store. Its series exist while a clone of the handle does; stores of the same
    /// cluster and kind (one per namespace) are shown as one.
    pub fn store(&self, cluster: &str, kind: &str, now: Instant) -> StoreMetrics {
        self.shared.stores.store(cluster, kind, now)
    }

    /// Returns the handle of a cluster's request scheduler.
    pub fn request_scheduler(&self, cluster: &str) -> RequestSchedulerMetrics {
        let request_scheduler = RequestSchedulerMetrics { metrics: self.clone(), cluster: cluster.into() };
        request_scheduler.in_flight(0);
        request_scheduler.waiting(Priority::High, 0);
        request_scheduler.waiting(Priority::Low, 0);
        request_scheduler
    }

    /// Counts a request to an API server. `code` is the HTTP status, `None` without an answer; `host` is `host:port`.
    pub fn request(&self, code: Option<u16>, method: &str, host: &str) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        self.shared.rest_requests.with_label_values(&[code.as_str(), method, host]).inc();
    }

    /// Sets whether this process holds the lease called `name`.
    pub fn leader(&self, name: &str, leads: bool) {
        self.shared.leader.with_label_values(&[name]).set(leads.into());
    }

    /// Counts a read of the webhook server's certificate.
    pub fn certificate_read(&self, good: bool) {
        self.shared.certificate_reads.with_label_values(&NO_LABELS).inc();
        if !good {
            self.shared.certificate_errors.with_label_values(&NO_LABELS).inc();
        }
    }

    /// Sets the hash of the effective configuration; the hash before disappears.
    pub fn config_hash(&self, hash: &str) {
        self.shared.config_hash.reset();
        self.shared.config_hash.with_label_values(&[hash]).set(1);
    }

    /// Counts a message that a full mailbox refused. `mailbox` names a kind of mailbox, not an object.
    pub fn mailbox_overflowed(&self, mailbox: &'static str) {
        self.shared.mailbox_overflows.with_label_values(&[mailbox]).inc();
    }

    /// Sets how many objects the last run of the garbage collector found in a state.
    pub fn garbage(&self, state: &'static str, count: f64) {
        self.shared.garbage.with_label_values(&[state]).set(count);
    }

    /// Sets the number of tokens in a state.
    pub fn tokens(&self, state: &'static str, count: f64) {
        self.shared.tokens.count(state, count);
    }

    /// Sets when the first token expires, in seconds since 1970; not a number while none is known.
    pub fn token_expiry(&self, time: f64) {
        self.shared.tokens.expires(time);
    }

    /// Sets the number of Services with parts that cannot be read.
    pub fn services_failing(&self, count: f64) {
        self.shared.services_failing.with_label_values(&NO_LABELS).set(count);
    }

    /// Sets the number of nodes that wait for a kind of component.
    pub fn nodes_waiting(&self, wanted: &'static str, count: f64) {
        self.shared.nodes_waiting.with_label_values(&[wanted]).set(count);
    }

    /// A node took this time, in seconds, from its creation to its critical components.
    pub fn node_joined(&self, seconds: f64) {
        self.shared.node_seconds.with_label_values(&NO_LABELS).observe(seconds);
    }

    /// Counts a standstill of the controllers' thread.
    pub fn arbiter_stalled(&self) {
        self.shared.arbiter_stalls.with_label_values(&NO_LABELS).inc();
    }

    /// All metrics in Prometheus' text format, version 0.0.4. Reads `/proc` and the status registry.
    pub fn render(&self) -> String {
        self.render_at(Instant::now(), ProcessFigures::read())
    }

    fn render_at(&self, now: Instant, figures: ProcessFigures) -> String {
        let shared = &*self.shared;
        let _one_at_a_time = shared.scrape.lock().unwrap_or_else(PoisonError::into_inner);

        shared.controllers.refresh(now);
        shared.stores.refresh(now);
        shared.tokens.refresh(Clock::system_wall());
        shared.process.set(figures);
        self.count_actors();

        let mut text = String::new();
        // Encoding fails only for a family without series (never gathered) or a full writer (a String is not).
        if let Err(error) = TextEncoder::new().encode_utf8(&shared.registry.gather(), &mut text) {
            tracing::error!(%error, "Could not render the metrics");
        }
        text
    }

    fn count_actors(&self) {
        let actors = &self.shared.actors;
        for role in ROLES {
            for activity in ACTIVITIES {
                actors.with_label_values(&[role_text(role), activity_text(activity)]).set(0);
            }
        }
        for state in self.shared.status_registry.snapshot() {
            actors.with_label_values(&[role_text(state.role), activity_text(state.activity)]).inc();
        }
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

fn role_text(role: Role) -> &'static str {
    match role {
        Role::Root => "root",
        Role::Supervisor => "supervisor",
        Role::Object => "object",
        Role::Watch => "watch",
        Role::Service => "service",
    }
}

fn activity_text(activity: Activity) -> &'static str {
    match activity {
        Activity::Starting => "starting",
        Activity::Idle => "idle",
        Activity::Queued => "queued",
        Activity::Waiting => "waiting",
        Activity::Running => "running",
        Activity::BackingOff => "backing_off",
        Activity::Quarantined => "quarantined",
        Activity::Failing => "failing",
        Activity::Stopped => "stopped",
    }
}

fn priority_text(priority: Priority) -> &'static str {
    match priority {
        Priority::High => "high",
        Priority::Low => "low",
    }
}

/// Counts are far below this limit; a wrong huge count shows as the largest number, not as a negative number.
fn gauge_value(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl RequestSchedulerMetrics {
    /// Sets the number of writes that wait for their answer.
    pub fn in_flight(&self, writes: usize) {
        self.metrics.shared.scheduler_in_flight.with_label_values(&[&*self.cluster]).set(gauge_value(writes));
    }

    /// Sets the number of requests of a priority that wait for their turn.
    pub fn waiting(&self, priority: Priority, requests: usize) {
        let labels = [&*self.cluster, priority_text(priority)];
        self.metrics.shared.scheduler_waiting.with_label_values(&labels).set(gauge_value(requests));
    }
}

impl std::fmt::Debug for RequestSchedulerMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RequestSchedulerMetrics").field(&self.cluster).finish()
    }
}

impl ProcessFamilies {
    fn new(registry: &Registry) -> Self {
        Self {
            cpu: declared::PROCESS_CPU.float_counters(registry),
            resident: declared::PROCESS_RESIDENT.gauges(registry),
            virtual_size: declared::PROCESS_VIRTUAL.gauges(registry),
            open_fds: declared::PROCESS_OPEN_FDS.gauges(registry),
            max_fds: declared::PROCESS_MAX_FDS.gauges(registry),
            start: declared::PROCESS_START.float_gauges(registry),
        }
    }

    /// A figure that could not be read has no series instead of a wrong zero.
    fn set(&self, figures: ProcessFigures) {
        self.cpu.reset();
        if let Some(seconds) = figures.cpu_seconds {
            self.cpu.with_label_values(&NO_LABELS).inc_by(seconds);
        }
        self.start.reset();
        if let Some(seconds) = figures.start_seconds {
            self.start.with_label_values(&NO_LABELS).set(seconds);
        }
        for (family, figure) in [
            (&self.resident, figures.resident_bytes),
            (&self.virtual_size, figures.virtual_bytes),
            (&self.open_fds, figures.open_fds),
            (&self.max_fds, figures.max_fds),
        ] {
            family.reset();
            if let Some(figure) = figure {
                family.with_label_values(&NO_LABELS).set(i64::try_from(figure).unwrap_or(i64::MAX));
            }
        }
    }
}
