use std::{rc::Rc, time::Duration};

use cluster::{ClusterLabel, RequestObserver};
use kit::{Observers, Priority, ReconcileObserver, ReconcileResult, ReconcilerObserver};
use tokio::time::Instant;

use crate::metrics::{ControllerMetrics, Metrics, ReconcileOutcome, RequestSchedulerMetrics, RunningWork};

/// Turns observations into metrics.
#[derive(Debug, Clone)]
pub struct Observing {
    metrics: Metrics,
    request_schedulers: Vec<(ClusterLabel, RequestSchedulerMetrics)>,
}

struct ObservingReconciler {
    metrics: ControllerMetrics,
}

/// The observer of one reconcile, which counts as active and unfinished until this is dropped.
struct ObservingReconcile {
    metrics: ControllerMetrics,
    _running: RunningWork,
}

impl Observing {
    /// Uses these metrics, for these clusters.
    pub fn new(metrics: &Metrics, clusters: &[ClusterLabel]) -> Self {
        let request_scheduler = |label: &ClusterLabel| (*label, metrics.request_scheduler(label.as_str()));
        Self { metrics: metrics.clone(), request_schedulers: clusters.iter().map(request_scheduler).collect() }
    }
}

impl Observers for Observing {
    fn reconciler(&self, name: &'static str, permits: usize) -> Rc<dyn ReconcilerObserver> {
        Rc::new(ObservingReconciler { metrics: self.metrics.controller(name, permits) })
    }

    fn figure(&self, name: &'static str, label: &'static str, value: f64) {
        self.metrics.figure(name, label, value);
    }
}

impl RequestObserver for Observing {
    fn finished(&self, method: &str, host: &str, code: Option<u16>) {
        self.metrics.request(code, method, host);
    }

    fn request_scheduler(&self, cluster: ClusterLabel, high: usize, low: usize, writes_in_flight: usize) {
        let Some((_, metrics)) = self.request_schedulers.iter().find(|(label, _)| *label == cluster) else { return };
        metrics.in_flight(writes_in_flight);
        metrics.waiting(Priority::High, high);
        metrics.waiting(Priority::Low, low);
    }

    fn event_dropped(&self) {
        self.metrics.mailbox_overflowed("events");
    }
}

impl ReconcilerObserver for ObservingReconciler {
    fn depth(&self, priority: Priority, waiting: usize) {
        self.metrics.queue_depth(priority, waiting);
    }

    fn added(&self) {
        self.metrics.queue_added();
    }

    fn retried(&self) {
        self.metrics.retried();
    }

    fn waited(&self, time: Duration) {
        self.metrics.waited(time);
    }

    fn started(&self) -> Box<dyn ReconcileObserver> {
        self.metrics.active(1);
        Box::new(ObservingReconcile { metrics: self.metrics.clone(), _running: self.metrics.running(Instant::now()) })
    }

    fn idle_checked(&self) {
        self.metrics.idle_checked();
    }

    fn panicked(&self) {
        self.metrics.panicked();
    }

    fn timed_out(&self) {
        self.metrics.timed_out();
    }
}

impl ReconcileObserver for ObservingReconcile {
    fn finished(self: Box<Self>, result: ReconcileResult, took: Duration) {
        self.metrics.worked(took);
        let result = match result {
            ReconcileResult::Success => ReconcileOutcome::Success,
            ReconcileResult::Error => ReconcileOutcome::Error,
            ReconcileResult::TerminalError => {
                self.metrics.terminal_error();
                ReconcileOutcome::Error
            }
            ReconcileResult::Requeue => ReconcileOutcome::Requeue,
            ReconcileResult::RequeueAfter => ReconcileOutcome::RequeueAfter,
        };
        self.metrics.reconciled(result, took);
    }
}

impl Drop for ObservingReconcile {
    fn drop(&mut self) {
        self.metrics.active(-1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(metrics: &Metrics, series: &str) -> String {
        let text = metrics.render();
        let line = text.lines().find_map(|line| line.strip_prefix(series)).map(str::trim);
        line.unwrap_or("absent").to_owned()
    }

    /// spec 70 scenario 32
    #[tokio::test(start_paused = true)]
    async fn reconciler_has_all_its_series_before_its_first_reconcile() {
        let metrics = crate::metrics::testing::metrics();

        let _reconciler = Observing::new(&metrics, &[]).reconciler("managedresource", 5);

        for result in ["success", "error", "requeue", "requeue_after"] {
            let labels = format!("{{controller=\"managedresource\",result=\"{result}\"}}");
            assert_eq!(value(&metrics, &format!("controller_runtime_reconcile_total{labels}")), "0");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reconcile_that_ends_is_distinguished_from_running_ones() {
        let metrics = crate::metrics::testing::metrics();
        let reconciler = Observing::new(&metrics, &[]).reconciler("health", 5);
        let longest = "workqueue_longest_running_processor_seconds{controller=\"health\",name=\"health\"}";

        let active = "controller_runtime_active_workers{controller=\"health\"}";
        let first = reconciler.started();
        tokio::time::advance(Duration::from_secs(10)).await;
        let second = reconciler.started();
        let third = reconciler.started();
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!((value(&metrics, longest).as_str(), value(&metrics, active).as_str()), ("12", "3"));

        first.finished(ReconcileResult::Error, Duration::from_secs(2)); // its reported duration does not matter
        assert_eq!((value(&metrics, longest).as_str(), value(&metrics, active).as_str()), ("2", "2"));
        second.finished(ReconcileResult::Success, Duration::from_secs(12));
        drop(third);
        assert_eq!((value(&metrics, longest).as_str(), value(&metrics, active).as_str()), ("0", "0"));
    }
}
