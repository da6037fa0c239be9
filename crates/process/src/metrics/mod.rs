//! Metrics in Prometheus' text format (spec 70 §9). `declared.rs` is the table of the metrics that every program has.
//! `figure.rs` has a program's own metrics, which controllers set by name. `controller.rs` has the series of a controller,
//! `process.rs` reads `/proc`, and `reference.rs` renders the tables for a page.
//!
//! There is no global registry: [`Metrics`] is made once, passed in, and cheap to clone. It is the observer of reconciles
//! and requests. The observer of a controller holds its series, so that counting is an atomic addition. Ages of running
//! reconciles and values from elsewhere (status registry, `/proc`) are computed at the scrape, in [`Metrics::render`].

mod controller;
mod declared;
mod figure;
mod process;
mod reference;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    rc::Rc,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cluster::{ClusterLabel, RequestObserver};
use controller::ControllerMetrics;
pub use declared::{DECADES, Declaration, MetricKind, MetricName, Registrar};
pub use figure::{Figure, FigureKind};
use jiff::Timestamp;
use kit::{Activity, Clock, Observers, ReconcilerObserver, Role, StatusRegistry};
use process::{ProcessFamilies, ProcessFigures};
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry, TextEncoder, core::Collector as _};
pub use reference::reference;
use tokio::time::Instant;

use crate::figures::{Now, ReconcilerFigures, RequestFigures};

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
    controllers: Mutex<BTreeMap<&'static str, ControllerMetrics>>,
    figures: figure::Families,
    rest_requests: IntCounterVec,
    leader: IntGaugeVec,
    process: ProcessFamilies,
    config_hash: IntGaugeVec,
    actors: IntGaugeVec,
    mailbox_overflows: IntCounterVec,
    arbiter_stalls: IntCounter,
    scheduler_in_flight: IntGaugeVec,
    scheduler_waiting: IntGaugeVec,
    scrape: Mutex<()>, // one scrape at a time: computed values are set in steps
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
    /// Makes a registry for this version of a program with these clusters. Each scrape counts the actors in the status
    /// registry.
    pub fn new(
        program: ProgramMetrics,
        clusters: &[ClusterLabel],
        version: &str,
        status_registry: StatusRegistry,
    ) -> Self {
        let registrar = Registrar::new(Registry::new(), program.prefix);
        declared::BUILD_INFO.gauge(&registrar, &[version]).set(1);
        let shared = Shared {
            controllers: Mutex::default(),
            figures: figure::Families::new(&registrar, program.figures),
            rest_requests: declared::REST_REQUESTS.counters(&registrar),
            leader: declared::LEADER.gauges(&registrar),
            process: ProcessFamilies::new(&registrar),
            config_hash: declared::CONFIG_HASH.gauges(&registrar),
            actors: declared::ACTORS.gauges(&registrar),
            mailbox_overflows: declared::MAILBOX_OVERFLOWS.counters(&registrar),
            arbiter_stalls: declared::ARBITER_STALLS.counter(&registrar, &NO_LABELS),
            scheduler_in_flight: declared::SCHEDULER_IN_FLIGHT.gauges(&registrar),
            scheduler_waiting: declared::SCHEDULER_WAITING.gauges(&registrar),
            scrape: Mutex::new(()),
            status_registry,
            registrar,
        };
        let metrics = Self { shared: Arc::new(shared) };
        clusters.iter().for_each(|cluster| metrics.request_scheduler(*cluster, 0, 0, 0));
        metrics
    }

    /// Where a program registers more metrics.
    pub fn registrar(&self) -> &Registrar {
        &self.shared.registrar
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

    /// Returns the names of the controllers that wait for their caches, sorted.
    pub fn waiting_controllers(&self) -> Vec<&'static str> {
        let controllers = self.controllers();
        let waiting = controllers.iter().filter(|(_, controller)| !controller.is_ready());
        waiting.map(|(name, _)| *name).collect()
    }

    /// Returns the figures of the reconcilers that have started, by name.
    pub(crate) fn reconciler_figures(&self, now: Now) -> Vec<ReconcilerFigures> {
        self.controllers().iter().map(|(name, controller)| controller.figures(name, now)).collect()
    }

    /// Returns the requests to the API server at `host`, by method and status. The rates are 0.
    pub(crate) fn request_figures(&self, host: &str) -> Vec<RequestFigures> {
        let mut requests = Vec::new();
        for family in self.shared.rest_requests.collect() {
            for metric in family.get_metric() {
                let label = |name| metric.get_label().iter().find(|it| it.name() == name).map_or("", |it| it.value());
                if label("host") == host {
                    let (verb, code) = (label("method").to_owned(), label("code").to_owned());
                    let total = metric.get_counter().get_value() as u64; // counters of whole numbers
                    requests.push(RequestFigures { verb, code, per_second: 0.0, total });
                }
            }
        }
        requests.sort_by(|a, b| (&a.verb, &a.code).cmp(&(&b.verb, &b.code)));
        requests
    }

    /// Returns how many requests to a cluster wait for their turn, and how many writes for their answer.
    pub(crate) fn scheduler_figures(&self, cluster: &str) -> (u64, u64) {
        let value = |gauge: IntGauge| u64::try_from(gauge.get()).unwrap_or_default();
        let waiting = ["high", "low"]
            .map(|priority| value(self.shared.scheduler_waiting.with_label_values(&[cluster, priority])));
        (waiting.iter().sum(), value(self.shared.scheduler_in_flight.with_label_values(&[cluster])))
    }

    /// Counts a standstill of the controllers' thread.
    pub fn arbiter_stalled(&self) {
        self.shared.arbiter_stalls.inc();
    }

    /// All metrics in Prometheus' text format, version 0.0.4. Reads `/proc` and the status registry.
    pub fn render(&self) -> String {
        self.render_at(Instant::now(), Clock::system_wall(), ProcessFigures::read())
    }

    fn render_at(&self, now: Instant, wall: Timestamp, figures: ProcessFigures) -> String {
        let shared = &*self.shared;
        let _one_at_a_time = shared.scrape.lock().unwrap_or_else(PoisonError::into_inner);

        self.controllers().values().for_each(|controller| controller.refresh(now));
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

    fn controllers(&self) -> MutexGuard<'_, BTreeMap<&'static str, ControllerMetrics>> {
        self.shared.controllers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_actors(&self) {
        let actors = &self.shared.actors;
        for role in ROLES {
            for activity in ACTIVITIES {
                actors.with_label_values(&[role_text(role), activity_text(activity)]).set(0);
            }
        }
        for ((role, activity), count) in self.shared.status_registry.count() {
            actors.with_label_values(&[role_text(role), activity_text(activity)]).set(gauge_value(count));
        }
    }
}

impl Observers for Metrics {
    /// All series of the reconciler exist afterwards.
    fn reconciler(&self, of: &'static str, name: &'static str, permits: usize) -> Rc<dyn ReconcilerObserver> {
        let mut controllers = self.controllers();
        let controller =
            controllers.entry(name).or_insert_with(|| ControllerMetrics::new(&self.shared.registrar, of, name));
        controller.max_concurrent(permits);
        Rc::new(controller.clone())
    }

    /// Sets a [`Figure`] of the program.
    fn figure(&self, name: &'static str, label: &'static str, value: f64) {
        self.shared.figures.set(name, label, value);
    }

    fn figure_series(&self, name: &'static str, labels: &[&str], value: Option<f64>) {
        self.shared.figures.set_series(name, labels, value);
    }
}

impl RequestObserver for Metrics {
    fn finished(&self, method: &str, host: &str, code: Option<u16>) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        self.shared.rest_requests.with_label_values(&[code.as_str(), method, host]).inc();
    }

    fn request_scheduler(&self, cluster: ClusterLabel, high: usize, low: usize, writes_in_flight: usize) {
        let cluster = cluster.as_str();
        self.shared.scheduler_in_flight.with_label_values(&[cluster]).set(gauge_value(writes_in_flight));
        for (priority, waiting) in [("high", high), ("low", low)] {
            self.shared.scheduler_waiting.with_label_values(&[cluster, priority]).set(gauge_value(waiting));
        }
    }

    fn event_dropped(&self) {
        self.shared.mailbox_overflows.with_label_values(&["events"]).inc();
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

/// Counts are far below this limit; a wrong huge count shows as the largest number, not as a negative number.
fn gauge_value(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
