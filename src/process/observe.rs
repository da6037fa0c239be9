//! From what the kit and the clusters let others observe to metrics.

use std::{cell::RefCell, rc::Rc, time::Duration};

use cluster::{RequestObserver, Side};
use kit::{DutyObserver, Lane, Observers, PassResult};
use tokio::time::Instant;

use crate::dashboard::metrics::{ControllerMetrics, GateMetrics, Metrics, ReconcileResult, RunningWork};

/// Shows in the metrics what is observed.
#[derive(Debug, Clone)]
pub struct Observing {
    metrics: Metrics,
    source: GateMetrics,
    target: GateMetrics,
}

/// The observer of one duty.
struct ObservingDuty {
    metrics: ControllerMetrics,
    /// Passes under way, with their beginnings.
    running: RefCell<Vec<(Instant, RunningWork)>>,
}

// === impl Observing ===

impl Observing {
    /// Counts into these metrics.
    pub fn new(metrics: &Metrics) -> Self {
        let gate = |side: Side| metrics.gate(side.as_str());
        Self { metrics: metrics.clone(), source: gate(Side::Source), target: gate(Side::Target) }
    }
}

impl Observers for Observing {
    fn duty(&self, name: &'static str, permits: usize) -> Rc<dyn DutyObserver> {
        Rc::new(ObservingDuty { metrics: self.metrics.controller(name, permits), running: RefCell::default() })
    }
}

impl RequestObserver for Observing {
    fn finished(&self, method: &str, host: &str, code: Option<u16>) {
        self.metrics.request(code, method, host);
    }

    fn gate(&self, side: Side, live: usize, background: usize, writes_in_flight: usize) {
        let gate = match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        };
        gate.in_flight(writes_in_flight);
        gate.waiting(Lane::Live, live);
        gate.waiting(Lane::Background, background);
    }

    fn event_dropped(&self) {
        self.metrics.mailbox_overflowed("events");
    }
}

// === impl ObservingDuty ===

impl ObservingDuty {
    /// Forgets the pass that took so long until now: passes are not named, but their beginnings tell them apart.
    fn forget(&self, took: Duration) {
        let now = Instant::now();
        let mut running = self.running.borrow_mut();
        let distance = |begun: Instant| now.saturating_duration_since(begun).abs_diff(took);
        let nearest = running.iter().enumerate().min_by_key(|(_, (begun, _))| distance(*begun)).map(|(index, _)| index);
        if let Some(index) = nearest {
            drop(running.swap_remove(index));
        }
    }
}

impl DutyObserver for ObservingDuty {
    fn depth(&self, lane: Lane, waiting: usize) {
        self.metrics.queue_depth(lane, waiting);
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

    fn started(&self) {
        self.metrics.active(1);
        let now = Instant::now();
        self.running.borrow_mut().push((now, self.metrics.running(now)));
    }

    fn finished(&self, result: PassResult, took: Duration) {
        self.metrics.active(-1);
        self.forget(took);
        self.metrics.worked(took);
        let result = match result {
            PassResult::Success => ReconcileResult::Success,
            PassResult::Error => ReconcileResult::Error,
            PassResult::Requeue => ReconcileResult::Requeue,
            PassResult::RequeueAfter => ReconcileResult::RequeueAfter,
        };
        self.metrics.reconciled(result, took);
    }

    fn rested(&self) {
        self.metrics.rested();
    }

    fn panicked(&self) {
        self.metrics.panicked();
    }

    fn timed_out(&self) {
        self.metrics.timed_out();
    }
}

#[cfg(test)]
mod tests {
    use kit::Census;

    use super::*;

    fn value(metrics: &Metrics, series: &str) -> String {
        let text = metrics.render();
        let line = text.lines().find_map(|line| line.strip_prefix(series)).map(str::trim);
        line.unwrap_or("absent").to_owned()
    }

    /// spec 70 scenario 32
    #[tokio::test(start_paused = true)]
    async fn a_duty_has_all_its_series_before_its_first_pass() {
        let metrics = Metrics::new("v1", Census::default());

        let _duty = Observing::new(&metrics).duty("managedresource", 5);

        for result in ["success", "error", "requeue", "requeue_after"] {
            let labels = format!("{{controller=\"managedresource\",result=\"{result}\"}}");
            assert_eq!(value(&metrics, &format!("controller_runtime_reconcile_total{labels}")), "0");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_pass_that_ends_is_told_from_the_ones_that_go_on() {
        let metrics = Metrics::new("v1", Census::default());
        let duty = Observing::new(&metrics).duty("health", 5);
        let longest = "workqueue_longest_running_processor_seconds{controller=\"health\",name=\"health\"}";

        duty.started();
        tokio::time::advance(Duration::from_secs(10)).await;
        duty.started();
        tokio::time::advance(Duration::from_secs(2)).await;

        duty.finished(PassResult::Success, Duration::from_secs(2));
        assert_eq!(value(&metrics, longest), "12");
        duty.finished(PassResult::Error, Duration::from_secs(12));
        assert_eq!(value(&metrics, longest), "0");
        assert_eq!(value(&metrics, "controller_runtime_active_workers{controller=\"health\"}"), "0");
    }
}
