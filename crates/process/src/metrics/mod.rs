//! Metrics in Prometheus' text format (spec 70 §9). `declared.rs` is the table of the metrics that every program has.
//! `figure.rs` has a program's own metrics, which controllers set by name. `controller.rs` and `store.rs` have the
//! handles for the parts of the process, `process.rs` reads `/proc`, and `reference.rs` renders the tables for a page.
//!
//! There is no global registry: [`Metrics`] is made once, passed in, and cheap to clone. Handles hold their series, so
//! that counting is an atomic addition. Ages (stores, running work) and values from elsewhere (status registry,
//! `/proc`) are computed at the scrape, in [`Metrics::render`].

mod controller;
mod declared;
mod figure;
mod process;
mod reference;
mod store;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

pub use controller::{ControllerMetrics, ReconcileOutcome, RunningWork};
pub use declared::{DECADES, Declaration, MetricKind, MetricName, Registrar};
pub use figure::{Figure, FigureKind};
use jiff::Timestamp;
use kit::{Activity, Clock, Priority, Role, StatusRegistry};
pub use process::ProcessFigures;
use prometheus::{CounterVec, GaugeVec, IntCounterVec, IntGaugeVec, Registry, TextEncoder};
pub use reference::reference;
pub use store::StoreMetrics;
use tokio::time::Instant;

/// The metrics of one program beside those of every program.
#[derive(Debug, Clone, Copy)]
pub struct ProgramMetrics {
    /// Begins the names of metrics that only our programs have, e.g. `gardener_resource_manager`.
    pub prefix: &'static str,
    /// What its controllers set by name.
    pub figures: &'static [Figure],
}

/// All metrics of the process. Clones share the same values.
#[derive(Clone)]
pub struct Metrics {
    shared: Arc<Shared>,
}

struct Shared {
    registrar: Registrar,
    status_registry: StatusRegistry,
    controllers: controller::Families,
    stores: store::Families,
    figures: figure::Families,
    rest_requests: IntCounterVec,
    leader: IntGaugeVec,
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

/// The labels of a metric without labels.
pub const NO_LABELS: [&str; 0] = [];

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
    /// Makes a registry for this version of a program. Each scrape counts the actors in the status registry.
    pub fn new(program: ProgramMetrics, version: &str, status_registry: StatusRegistry) -> Self {
        let registrar = Registrar::new(Registry::new(), program.prefix);
        let shared = Shared {
            controllers: controller::Families::new(&registrar),
            stores: store::Families::new(&registrar),
            figures: figure::Families::new(&registrar, program.figures),
            rest_requests: declared::REST_REQUESTS.counters(&registrar),
            leader: declared::LEADER.gauges(&registrar),
            process: ProcessFamilies::new(&registrar),
            config_hash: declared::CONFIG_HASH.gauges(&registrar),
            actors: declared::ACTORS.gauges(&registrar),
            mailbox_overflows: declared::MAILBOX_OVERFLOWS.counters(&registrar),
            arbiter_stalls: declared::ARBITER_STALLS.counters(&registrar),
            scheduler_in_flight: declared::SCHEDULER_IN_FLIGHT.gauges(&registrar),
            scheduler_waiting: declared::SCHEDULER_WAITING.gauges(&registrar),
            scrape: Mutex::new(()),
            status_registry,
            registrar,
        };

        declared::BUILD_INFO.gauges(&shared.registrar).with_label_values(&[version]).set(1);
        shared.arbiter_stalls.with_label_values(&NO_LABELS).inc_by(0);
        Self { shared: Arc::new(shared) }
    }

    /// Where a program registers more metrics.
    pub fn registrar(&self) -> &Registrar {
        &self.shared.registrar
    }

    /// Returns the handle of a controller or reconciler with `permits` permits. All its series exist afterwards.
    pub fn controller(&self, name: &str, permits: usize) -> ControllerMetrics {
        self.shared.controllers.controller(name, permits)
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

    /// Sets the hash of the effective configuration; the hash before disappears.
    pub fn config_hash(&self, hash: &str) {
        self.shared.config_hash.reset();
        self.shared.config_hash.with_label_values(&[hash]).set(1);
    }

    /// Counts a message that a full mailbox refused. `mailbox` names a kind of mailbox, not an object.
    pub fn mailbox_overflowed(&self, mailbox: &'static str) {
        self.shared.mailbox_overflows.with_label_values(&[mailbox]).inc();
    }

    /// Sets the figure called `name`; see [`Figure`]. Does nothing if the program declares none of this name.
    pub fn figure(&self, name: &str, label: &'static str, value: f64) {
        self.shared.figures.set(name, label, value);
    }

    /// Counts a standstill of the controllers' thread.
    pub fn arbiter_stalled(&self) {
        self.shared.arbiter_stalls.with_label_values(&NO_LABELS).inc();
    }

    /// All metrics in Prometheus' text format, version 0.0.4. Reads `/proc` and the status registry.
    pub fn render(&self) -> String {
        self.render_at(Instant::now(), Clock::system_wall(), ProcessFigures::read())
    }

    fn render_at(&self, now: Instant, wall: Timestamp, figures: ProcessFigures) -> String {
        let shared = &*self.shared;
        let _one_at_a_time = shared.scrape.lock().unwrap_or_else(PoisonError::into_inner);

        shared.controllers.refresh(now);
        shared.stores.refresh(now);
        shared.figures.refresh(wall);
        shared.process.set(figures);
        self.count_actors();

        let mut text = String::new();
        // Encoding fails only for a family without series (never gathered) or a full writer (a String is not).
        if let Err(error) = TextEncoder::new().encode_utf8(&shared.registrar.registry.gather(), &mut text) {
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
    fn new(registrar: &Registrar) -> Self {
        Self {
            cpu: declared::PROCESS_CPU.float_counters(registrar),
            resident: declared::PROCESS_RESIDENT.gauges(registrar),
            virtual_size: declared::PROCESS_VIRTUAL.gauges(registrar),
            open_fds: declared::PROCESS_OPEN_FDS.gauges(registrar),
            max_fds: declared::PROCESS_MAX_FDS.gauges(registrar),
            start: declared::PROCESS_START.float_gauges(registrar),
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
