//! The series of one controller, which observe its work queue and its reconciles.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kit::{Priority, ReconcileObserver, ReconcileResult, ReconcilerObserver};
use prometheus::{Gauge, Histogram, IntCounter, IntGauge, core::Metric as _};
use tokio::time::Instant;

use super::{Registrar, declared, gauge_value};
use crate::figures::{HistogramFigures, MinuteFigures, Minutes, Now, ReconcilerFigures};

/// The series of one controller. Clones share them.
#[derive(Clone)]
pub(super) struct ControllerMetrics(Arc<Series>);

/// A reconcile, which counts as active and unfinished until this is dropped, also by a panic.
struct RunningReconcile {
    series: Arc<Series>,
    number: u64,
}

struct Series {
    /// Name of the controller that the reconciler belongs to.
    of: &'static str,
    /// By result: success, error, requeue, requeue after.
    minutes: Minutes<4>,
    success: IntCounter,
    error: IntCounter,
    requeue: IntCounter,
    requeue_after: IntCounter,
    errors: IntCounter,
    terminal_errors: IntCounter,
    panics: IntCounter,
    timeouts: IntCounter,
    seconds: Histogram,
    max_concurrent: IntGauge,
    active: IntGauge,
    depth_high: IntGauge,
    depth_low: IntGauge,
    adds: IntCounter,
    retries: IntCounter,
    wait_seconds: Histogram,
    work_seconds: Histogram,
    unfinished: Gauge,
    longest: Gauge,
    idle_checks: IntCounter,
    ready: IntGauge,
    running: Mutex<Running>,
}

/// Start times of the running reconciles. As many as permits: a dozen.
#[derive(Default)]
struct Running {
    next: u64,
    begun: BTreeMap<u64, Instant>,
}

impl ControllerMetrics {
    /// Registers the series with value 0. Panics if this name has them already.
    pub(super) fn new(registrar: &Registrar, of: &'static str, name: &str) -> Self {
        let result = |result| declared::RECONCILES.counter(registrar, &[name, result]);
        let depth = |priority| declared::QUEUE_DEPTH.gauge(registrar, &[name, name, priority]);
        let (controller, queue) = ([name], [name, name]);
        Self(Arc::new(Series {
            of,
            minutes: Minutes::default(),
            success: result("success"),
            error: result("error"),
            requeue: result("requeue"),
            requeue_after: result("requeue_after"),
            errors: declared::RECONCILE_ERRORS.counter(registrar, &controller),
            terminal_errors: declared::RECONCILE_TERMINAL_ERRORS.counter(registrar, &controller),
            panics: declared::RECONCILE_PANICS.counter(registrar, &controller),
            timeouts: declared::RECONCILE_TIMEOUTS.counter(registrar, &controller),
            seconds: declared::RECONCILE_SECONDS.histogram(registrar, &controller),
            max_concurrent: declared::MAX_CONCURRENT.gauge(registrar, &controller),
            active: declared::ACTIVE_WORKERS.gauge(registrar, &controller),
            depth_high: depth("high"),
            depth_low: depth("low"),
            adds: declared::QUEUE_ADDS.counter(registrar, &queue),
            retries: declared::QUEUE_RETRIES.counter(registrar, &queue),
            wait_seconds: declared::QUEUE_WAIT_SECONDS.histogram(registrar, &queue),
            work_seconds: declared::QUEUE_WORK_SECONDS.histogram(registrar, &queue),
            unfinished: declared::QUEUE_UNFINISHED_SECONDS.float_gauge(registrar, &queue),
            longest: declared::QUEUE_LONGEST_SECONDS.float_gauge(registrar, &queue),
            idle_checks: declared::IDLE_CHECKS.counter(registrar, &controller),
            ready: declared::CONTROLLER_READY.gauge(registrar, &controller),
            running: Mutex::default(),
        }))
    }

    pub(super) fn max_concurrent(&self, permits: usize) {
        self.0.max_concurrent.set(gauge_value(permits));
    }

    pub(super) fn is_ready(&self) -> bool {
        self.0.ready.get() != 0
    }

    /// Returns the figures of the reconciler `name`.
    pub(super) fn figures(&self, name: &'static str, now: Now) -> ReconcilerFigures {
        let series = &*self.0;
        let minutes = series.minutes.last(now).into_iter();
        ReconcilerFigures {
            controller: series.of,
            reconciler: name,
            permits: count(&series.max_concurrent),
            running: count(&series.active),
            waiting: count(&series.depth_high) + count(&series.depth_low),
            durations: histogram(&series.seconds),
            waits: histogram(&series.wait_seconds),
            minutes: minutes
                .map(|(at, [success, error, requeue, requeue_after])| MinuteFigures {
                    at,
                    success,
                    error,
                    requeue,
                    requeue_after,
                })
                .collect(),
        }
    }

    /// Sets the ages of the running reconciles.
    pub(super) fn refresh(&self, now: Instant) {
        let mut unfinished = 0.0;
        let mut longest: f64 = 0.0;
        for begun in self.0.running().begun.values() {
            let seconds = now.saturating_duration_since(*begun).as_secs_f64();
            unfinished += seconds;
            longest = longest.max(seconds);
        }
        self.0.unfinished.set(unfinished);
        self.0.longest.set(longest);
    }
}

fn count(gauge: &IntGauge) -> u64 {
    u64::try_from(gauge.get()).unwrap_or_default()
}

/// The buckets of the library are cumulative, and the last one is left out.
fn histogram(histogram: &Histogram) -> HistogramFigures {
    let metric = histogram.metric();
    let known = metric.get_histogram();
    let mut figures = HistogramFigures::default();
    let mut below = 0;
    for bucket in known.get_bucket().iter().filter(|bucket| bucket.upper_bound().is_finite()) {
        figures.bounds.push(bucket.upper_bound());
        figures.counts.push(bucket.cumulative_count().saturating_sub(below));
        below = bucket.cumulative_count();
    }
    figures.counts.push(known.get_sample_count().saturating_sub(below));
    figures
}

impl Series {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReconcilerObserver for ControllerMetrics {
    fn ready(&self, is_ready: bool) {
        self.0.ready.set(is_ready.into());
    }

    fn depth(&self, priority: Priority, waiting: usize) {
        let depth = match priority {
            Priority::High => &self.0.depth_high,
            Priority::Low => &self.0.depth_low,
        };
        depth.set(gauge_value(waiting));
    }

    fn added(&self) {
        self.0.adds.inc();
    }

    fn retried(&self) {
        self.0.retries.inc();
    }

    fn waited(&self, time: Duration) {
        self.0.wait_seconds.observe(time.as_secs_f64());
    }

    fn started(&self) -> Box<dyn ReconcileObserver> {
        self.0.active.inc();
        let mut running = self.0.running();
        let number = running.next;
        running.next += 1;
        running.begun.insert(number, Instant::now());
        Box::new(RunningReconcile { series: self.0.clone(), number })
    }

    fn idle_checked(&self) {
        self.0.idle_checks.inc();
    }

    fn panicked(&self) {
        self.0.panics.inc();
    }

    fn timed_out(&self) {
        self.0.timeouts.inc();
    }
}

impl ReconcileObserver for RunningReconcile {
    fn finished(self: Box<Self>, result: ReconcileResult, took: Duration) {
        let series = &*self.series;
        series.work_seconds.observe(took.as_secs_f64());
        series.seconds.observe(took.as_secs_f64());
        let index = match result {
            ReconcileResult::Success => 0,
            ReconcileResult::Error | ReconcileResult::TerminalError => 1,
            ReconcileResult::Requeue => 2,
            ReconcileResult::RequeueAfter => 3,
        };
        series.minutes.count(Now::of_system(), index);
        match result {
            ReconcileResult::Success => series.success.inc(),
            ReconcileResult::Error | ReconcileResult::TerminalError => {
                series.error.inc();
                series.errors.inc();
            }
            ReconcileResult::Requeue => series.requeue.inc(),
            ReconcileResult::RequeueAfter => series.requeue_after.inc(),
        }
        if result == ReconcileResult::TerminalError {
            series.terminal_errors.inc();
        }
    }
}

impl Drop for RunningReconcile {
    fn drop(&mut self) {
        self.series.active.dec();
        self.series.running().begun.remove(&self.number);
    }
}
