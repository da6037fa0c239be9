use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kit::Priority;
use prometheus::{Gauge, GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};
use tokio::time::Instant;

use super::{Registrar, declared, gauge_value, priority_text};

/// Result of a reconcile: label `result` of `controller_runtime_reconcile_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconcileOutcome {
    /// Done until the next wake.
    Success,
    /// Ended with an error; retried after the back-off.
    Error,
    /// Retried after the back-off, without an error.
    Requeue,
    /// Runs again at a set time.
    RequeueAfter,
}

/// The series of one controller. Clones share them.
#[derive(Clone)]
pub struct ControllerMetrics {
    series: Arc<Series>,
}

/// Work that counts as unfinished until this value is dropped, also by a panic.
#[must_use = "the work counts as finished when this is dropped"]
pub struct RunningWork {
    series: Arc<Series>,
    number: u64,
}

pub(super) struct Families {
    reconciles: IntCounterVec,
    errors: IntCounterVec,
    terminal_errors: IntCounterVec,
    panics: IntCounterVec,
    timeouts: IntCounterVec,
    seconds: HistogramVec,
    max_concurrent: IntGaugeVec,
    active: IntGaugeVec,
    depth: IntGaugeVec,
    adds: IntCounterVec,
    retries: IntCounterVec,
    wait_seconds: HistogramVec,
    work_seconds: HistogramVec,
    unfinished: GaugeVec,
    longest: GaugeVec,
    idle_checks: IntCounterVec,
    controllers: Mutex<BTreeMap<String, ControllerMetrics>>,
}

struct Series {
    name: String,
    success: IntCounter,
    error: IntCounter,
    requeue: IntCounter,
    requeue_after: IntCounter,
    errors: IntCounter,
    terminal_errors: IntCounter,
    panics: IntCounter,
    timeouts: IntCounter,
    seconds: Histogram,
    active: IntGauge,
    depth_live: IntGauge,
    depth_background: IntGauge,
    adds: IntCounter,
    retries: IntCounter,
    wait_seconds: Histogram,
    work_seconds: Histogram,
    unfinished: Gauge,
    longest: Gauge,
    idle_checks: IntCounter,
    running: Mutex<Running>,
}

/// Start times of the running work. As many as permits: a dozen.
#[derive(Default)]
struct Running {
    next: u64,
    begun: BTreeMap<u64, Instant>,
}

impl Families {
    pub(super) fn new(registrar: &Registrar) -> Self {
        Self {
            reconciles: declared::RECONCILES.counters(registrar),
            errors: declared::RECONCILE_ERRORS.counters(registrar),
            terminal_errors: declared::RECONCILE_TERMINAL_ERRORS.counters(registrar),
            panics: declared::RECONCILE_PANICS.counters(registrar),
            timeouts: declared::RECONCILE_TIMEOUTS.counters(registrar),
            seconds: declared::RECONCILE_SECONDS.histograms(registrar),
            max_concurrent: declared::MAX_CONCURRENT.gauges(registrar),
            active: declared::ACTIVE_WORKERS.gauges(registrar),
            depth: declared::QUEUE_DEPTH.gauges(registrar),
            adds: declared::QUEUE_ADDS.counters(registrar),
            retries: declared::QUEUE_RETRIES.counters(registrar),
            wait_seconds: declared::QUEUE_WAIT_SECONDS.histograms(registrar),
            work_seconds: declared::QUEUE_WORK_SECONDS.histograms(registrar),
            unfinished: declared::QUEUE_UNFINISHED_SECONDS.float_gauges(registrar),
            longest: declared::QUEUE_LONGEST_SECONDS.float_gauges(registrar),
            idle_checks: declared::IDLE_CHECKS.counters(registrar),
            controllers: Mutex::new(BTreeMap::new()),
        }
    }

    pub(super) fn controller(&self, name: &str, permits: usize) -> ControllerMetrics {
        self.max_concurrent.with_label_values(&[name]).set(gauge_value(permits));
        let mut controllers = self.controllers();
        controllers
            .entry(name.to_owned())
            .or_insert_with(|| ControllerMetrics { series: Arc::new(self.series(name)) })
            .clone()
    }

    pub(super) fn refresh(&self, now: Instant) {
        for controller in self.controllers().values() {
            controller.series.refresh(now);
        }
    }

    fn controllers(&self) -> MutexGuard<'_, BTreeMap<String, ControllerMetrics>> {
        self.controllers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn series(&self, name: &str) -> Series {
        let result = |result| self.reconciles.with_label_values(&[name, result]);
        let depth = |priority| self.depth.with_label_values(&[name, name, priority_text(priority)]);
        let queue = [name, name];
        Series {
            name: name.to_owned(),
            success: result("success"),
            error: result("error"),
            requeue: result("requeue"),
            requeue_after: result("requeue_after"),
            errors: self.errors.with_label_values(&[name]),
            terminal_errors: self.terminal_errors.with_label_values(&[name]),
            panics: self.panics.with_label_values(&[name]),
            timeouts: self.timeouts.with_label_values(&[name]),
            seconds: self.seconds.with_label_values(&[name]),
            active: self.active.with_label_values(&[name]),
            depth_live: depth(Priority::High),
            depth_background: depth(Priority::Low),
            adds: self.adds.with_label_values(&queue),
            retries: self.retries.with_label_values(&queue),
            wait_seconds: self.wait_seconds.with_label_values(&queue),
            work_seconds: self.work_seconds.with_label_values(&queue),
            unfinished: self.unfinished.with_label_values(&queue),
            longest: self.longest.with_label_values(&queue),
            idle_checks: self.idle_checks.with_label_values(&[name]),
            running: Mutex::new(Running::default()),
        }
    }
}

impl ControllerMetrics {
    /// An idle period ended, and there was nothing to reconcile.
    pub fn idle_checked(&self) {
        self.series.idle_checks.inc();
    }

    /// A reconcile ended with `result` and took `duration`.
    pub fn reconciled(&self, result: ReconcileOutcome, duration: Duration) {
        let series = &*self.series;
        series.seconds.observe(duration.as_secs_f64());
        match result {
            ReconcileOutcome::Success => series.success.inc(),
            ReconcileOutcome::Error => {
                series.error.inc();
                series.errors.inc();
            }
            ReconcileOutcome::Requeue => series.requeue.inc(),
            ReconcileOutcome::RequeueAfter => series.requeue_after.inc(),
        }
    }

    /// A reconcile panicked. Also count its result.
    pub fn panicked(&self) {
        self.series.panics.inc();
    }

    /// A reconcile was cut off at its deadline. Also count its result.
    pub fn timed_out(&self) {
        self.series.timeouts.inc();
    }

    /// A reconcile ended with an error that a retry cannot fix. Also count its result.
    pub fn terminal_error(&self) {
        self.series.terminal_errors.inc();
    }

    /// A permit was taken (`1`) or returned (`-1`).
    pub fn active(&self, change: i64) {
        self.series.active.add(change);
    }

    /// Sets the number of keys of a priority that wait for a permit.
    pub fn queue_depth(&self, priority: Priority, keys: usize) {
        match priority {
            Priority::High => self.series.depth_live.set(gauge_value(keys)),
            Priority::Low => self.series.depth_background.set(gauge_value(keys)),
        }
    }

    /// A key was enqueued.
    pub fn queue_added(&self) {
        self.series.adds.inc();
    }

    /// A key is retried after a back-off.
    pub fn retried(&self) {
        self.series.retries.inc();
    }

    /// A key waited for its permit.
    pub fn waited(&self, duration: Duration) {
        self.series.wait_seconds.observe(duration.as_secs_f64());
    }

    /// A key held its permit.
    pub fn worked(&self, duration: Duration) {
        self.series.work_seconds.observe(duration.as_secs_f64());
    }

    /// Work that is unfinished while the returned value lives, for `workqueue_unfinished_work_seconds` and
    /// `workqueue_longest_running_processor_seconds`.
    pub fn running(&self, now: Instant) -> RunningWork {
        let mut running = self.series.running();
        let number = running.next;
        running.next += 1;
        running.begun.insert(number, now);
        drop(running);
        RunningWork { series: self.series.clone(), number }
    }
}

impl std::fmt::Debug for ControllerMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ControllerMetrics").field(&self.series.name).finish()
    }
}

impl Drop for RunningWork {
    fn drop(&mut self) {
        self.series.running().begun.remove(&self.number);
    }
}

impl std::fmt::Debug for RunningWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RunningWork").field(&self.series.name).field(&self.number).finish()
    }
}

impl Series {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refresh(&self, now: Instant) {
        let mut unfinished = 0.0;
        let mut longest: f64 = 0.0;
        for begun in self.running().begun.values() {
            let seconds = now.saturating_duration_since(*begun).as_secs_f64();
            unfinished += seconds;
            longest = longest.max(seconds);
        }
        self.unfinished.set(unfinished);
        self.longest.set(longest);
    }
}
