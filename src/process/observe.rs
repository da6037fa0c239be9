//! From what the kit and the clusters let others observe to metrics.

use std::{rc::Rc, time::Duration};

use cluster::{RequestObserver, Side};
use kit::{DutyObserver, Lane, Observers, PassObserver, PassResult};
use tokio::time::Instant;

use crate::metrics::{ControllerMetrics, GateMetrics, Metrics, ReconcileResult, RunningWork};

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
}

/// The observer of one pass. It counts as active and unfinished as long as this lives.
struct ObservingPass {
    metrics: ControllerMetrics,
    _running: RunningWork,
}

impl Observing {
    /// Counts into these metrics.
    pub fn new(metrics: &Metrics) -> Self {
        let gate = |side: Side| metrics.gate(side.as_str());
        Self { metrics: metrics.clone(), source: gate(Side::Source), target: gate(Side::Target) }
    }
}

impl Observers for Observing {
    fn duty(&self, name: &'static str, permits: usize) -> Rc<dyn DutyObserver> {
        Rc::new(ObservingDuty { metrics: self.metrics.controller(name, permits) })
    }

    fn figure(&self, name: &'static str, label: &'static str, value: f64) {
        match name {
            "garbage" => self.metrics.garbage(label, value),
            "tokens" => self.metrics.tokens(label, value),
            "token_expiry" => self.metrics.token_expiry(value),
            "services_failing" => self.metrics.services_failing(value),
            "nodes_waiting" => self.metrics.nodes_waiting(label, value),
            "node_joined" => self.metrics.node_joined(value),
            _ => {}
        }
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

    fn started(&self) -> Box<dyn PassObserver> {
        self.metrics.active(1);
        Box::new(ObservingPass { metrics: self.metrics.clone(), _running: self.metrics.running(Instant::now()) })
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

impl PassObserver for ObservingPass {
    fn finished(self: Box<Self>, result: PassResult, took: Duration) {
        self.metrics.worked(took);
        let result = match result {
            PassResult::Success => ReconcileResult::Success,
            PassResult::Error => ReconcileResult::Error,
            PassResult::TerminalError => {
                self.metrics.terminal_error();
                ReconcileResult::Error
            }
            PassResult::Requeue => ReconcileResult::Requeue,
            PassResult::RequeueAfter => ReconcileResult::RequeueAfter,
        };
        self.metrics.reconciled(result, took);
    }
}

impl Drop for ObservingPass {
    fn drop(&mut self) {
        self.metrics.active(-1);
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

        let active = "controller_runtime_active_workers{controller=\"health\"}";
        let first = duty.started();
        tokio::time::advance(Duration::from_secs(10)).await;
        let second = duty.started();
        let third = duty.started();
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!((value(&metrics, longest).as_str(), value(&metrics, active).as_str()), ("12", "3"));

        // However long it is said to have taken.
        first.finished(PassResult::Error, Duration::from_secs(2));
        assert_eq!((value(&metrics, longest).as_str(), value(&metrics, active).as_str()), ("2", "2"));
        second.finished(PassResult::Success, Duration::from_secs(12));
        drop(third);
        assert_eq!((value(&metrics, longest).as_str(), value(&metrics, active).as_str()), ("0", "0"));
    }
}
