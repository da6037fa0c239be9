use std::time::Duration;

use jiff::Timestamp;

use super::{Ended, Job, WorkQueue};
use crate::{
    Causes, Deadline, Failure, GeneralController, Moment, Outcome, Reconcile, ReconcileResult, Reconciler, Wake,
    history::Past,
    queue_entry::{LONGEST, Phase, QUARANTINE, QueueEntry, RunningReconcile, TimerKind, WALL_CLOCK_CHECK},
};

impl<C: GeneralController> WorkQueue<C> {
    pub(crate) fn begin(&mut self, key: &C::Key) -> Vec<Job<C::Key, C::Ref>> {
        let Some(entry) = self.entries.get_mut(key).filter(|_| !self.closing) else { return Vec::new() };
        entry.nudged = false;
        let (now, started) = (self.env.clock.wall(), self.env.clock.monotonic());
        let mut jobs = Vec::new();
        for (number, state) in entry.reconcilers.iter_mut().enumerate() {
            if state.phase != Phase::Granted {
                continue;
            }
            let queue = &self.reconcilers[number];
            state.phase = Phase::Running;
            state.retired = false;
            let mut wake = state.retained.take();
            wake.merge(state.pending.take());
            if let Some(since) = state.queued_at.take() {
                queue.observer.waited(started.saturating_duration_since(since));
            }
            let observer = queue.observer.started();
            let span = self.spans.reconcile(&queue.spec, entry.cell.path(), wake.causes);
            state.running = Some(RunningReconcile { wake: wake.clone(), started, observer, span: span.clone() });
            let deadline = Deadline(started + queue.spec.deadline.min(LONGEST));
            let reconcile = Reconcile {
                key: key.clone(),
                reconciler: number,
                wake,
                deadline,
                started,
                cell: entry.cell.clone(),
                now,
            };
            jobs.push(Job { reconcile, span });
        }
        self.show(key);
        jobs
    }

    /// Records the end of a reconcile. Returns true if the actor ends with it.
    pub(crate) fn ended(&mut self, key: &C::Key, reconciler: usize, ended: Ended) -> bool {
        let under_way = self.entries.get_mut(key).and_then(|entry| entry.reconcilers[reconciler].running.take());
        let Some(RunningReconcile { wake, started, observer: of_reconcile, span }) = under_way else { return false };
        let span = span.entered();
        self.reconcilers[reconciler].limiter.release();
        let (panicked, timed_out) = (matches!(ended, Ended::Panicked), matches!(ended, Ended::TimedOut));
        let causes = wake.causes;
        let result = self.result_of(key, reconciler, wake, ended);
        drop(span);
        let took = started.elapsed();
        if let Some(entry) = self.entries.get_mut(key) {
            entry.history.add(past(self.env.clock.wall(), took, result, reconciler, causes));
        }
        of_reconcile.finished(result, took);
        let observer = &self.reconcilers[reconciler].observer;
        if panicked {
            observer.panicked();
        }
        if timed_out {
            observer.timed_out();
        }
        let retired = self.entries.get(key).is_some_and(QueueEntry::is_retired);
        if retired {
            if let Some(entry) = self.entries.remove(key) {
                let own = entry.reconcilers.iter().filter_map(|reconciler| Some(reconciler.timer.as_ref()?.id));
                let resyncs = entry.reconcilers.iter().filter_map(|reconciler| reconciler.resync);
                for timer in own.chain(resyncs) {
                    self.timers.try_remove(&timer);
                }
                self.env.status_registry.leave(entry.cell.path());
            }
        } else {
            self.show(key);
        }
        self.dispatch(reconciler);
        self.raise_if_over();
        retired
    }

    fn result_of(&mut self, key: &C::Key, reconciler: usize, wake: Wake<C::Ref>, ended: Ended) -> ReconcileResult {
        let now = self.env.clock.monotonic();
        let Some(entry) = self.entries.get_mut(key) else { return ReconcileResult::Success };
        let state = &mut entry.reconcilers[reconciler];
        state.phase = Phase::Idle;
        entry.cell.update(self.env.clock.wall(), |cell| cell.finished += 1);
        match ended {
            Ended::Normally(result) => {
                state.survived();
                match result {
                    Ok(outcome) => self.outcome(key, reconciler, wake, outcome),
                    Err(failure) => self.failed(key, reconciler, wake, &failure),
                }
            }
            Ended::Panicked if state.panicked(now) => {
                state.phase = Phase::Quarantined;
                state.retained.merge(wake);
                self.show_error(key, "panicked too often; retried every 10 min and when its object changes");
                self.arm(key, reconciler, QUARANTINE, TimerKind::Quarantine);
                ReconcileResult::Error
            }
            Ended::Panicked => self.failed(key, reconciler, wake, &Failure::new("the reconcile panicked")),
            Ended::TimedOut => {
                // The effects of a dropped reconcile are unknown, so the next one is a full one.
                state.retained.merge(Wake::low(Causes::RESTARTED));
                let text = "the reconcile missed its deadline and was dropped";
                self.failed(key, reconciler, wake, &Failure::new(text))
            }
        }
    }

    fn failed(&mut self, key: &C::Key, reconciler: usize, wake: Wake<C::Ref>, failure: &Failure) -> ReconcileResult {
        tracing::error!(error = %failure, "Reconciler error");
        self.show_error(key, &failure.to_string());
        if failure.is_terminal() {
            self.outcome(key, reconciler, wake, Outcome::Done);
            return ReconcileResult::TerminalError;
        }
        self.back_off(key, reconciler, wake);
        ReconcileResult::Error
    }

    fn back_off(&mut self, key: &C::Key, reconciler: usize, wake: Wake<C::Ref>) {
        let Reconciler { first_back_off, max_back_off, .. } = self.reconcilers[reconciler].spec;
        let Some(entry) = self.entries.get_mut(key) else { return };
        let state = &mut entry.reconcilers[reconciler];
        state.retained.merge(wake);
        let delay = state.back_off(first_back_off, max_back_off);
        self.again_after(key, reconciler, delay, TimerKind::BackOff);
        self.reconcilers[reconciler].observer.retried();
    }

    fn outcome(&mut self, key: &C::Key, reconciler: usize, wake: Wake<C::Ref>, outcome: Outcome) -> ReconcileResult {
        let Some(entry) = self.entries.get_mut(key) else { return ReconcileResult::Success };
        let state = &mut entry.reconcilers[reconciler];
        if !matches!(outcome, Outcome::Again) {
            state.succeeded();
        }
        state.retired = matches!(outcome, Outcome::Retire);
        match outcome {
            Outcome::Done | Outcome::Retire => {
                self.requeue_if_woken(key, reconciler);
                ReconcileResult::Success
            }
            Outcome::After(delay) => {
                self.again_after(key, reconciler, delay, TimerKind::After);
                ReconcileResult::RequeueAfter
            }
            Outcome::Idle(delay, idle_check) => {
                state.idle_check = Some(idle_check);
                self.again_after(key, reconciler, delay, TimerKind::Idle);
                ReconcileResult::RequeueAfter
            }
            Outcome::At(time) => {
                let delay = self.until(time);
                self.again_after(key, reconciler, delay.min(WALL_CLOCK_CHECK), TimerKind::Until(time));
                ReconcileResult::RequeueAfter
            }
            Outcome::Wait(moments) => {
                state.retained.merge(wake);
                self.wait(key, reconciler, &moments);
                ReconcileResult::RequeueAfter
            }
            Outcome::Again => {
                self.back_off(key, reconciler, wake);
                ReconcileResult::Requeue
            }
            Outcome::Continue => {
                state.retained.merge(wake);
                state.pending.merge(Wake::low(Causes::AGAIN));
                self.enqueue(key, reconciler);
                ReconcileResult::Requeue
            }
        }
    }

    /// Runs again at once if woken meanwhile, else after `delay`.
    fn again_after(&mut self, key: &C::Key, reconciler: usize, delay: Duration, kind: TimerKind) {
        if !self.requeue_if_woken(key, reconciler) {
            self.arm(key, reconciler, delay, kind);
        }
    }

    fn requeue_if_woken(&mut self, key: &C::Key, reconciler: usize) -> bool {
        let woken = self.entries.get(key).is_some_and(|entry| !entry.reconcilers[reconciler].pending.is_empty());
        if woken && !self.closing {
            self.enqueue(key, reconciler);
        }
        woken
    }

    fn wait(&mut self, key: &C::Key, reconciler: usize, moments: &[Moment]) {
        if self.requeue_if_woken(key, reconciler) {
            return;
        }
        if moments.is_empty() || moments.iter().any(Moment::has_passed) {
            self.wake_reconciler(key, reconciler, Wake::low(Causes::STORE));
            return;
        }
        let listen = |moment: &Moment| {
            let (queue, key) = (self.itself.clone(), key.clone());
            moment.signal().listen(move || {
                if let Some(queue) = queue.upgrade() {
                    queue.borrow_mut().wake_reconciler(&key, reconciler, Wake::low(Causes::STORE));
                }
            })
        };
        let listening: Vec<_> = moments.iter().map(listen).collect();
        if let Some(entry) = self.entries.get_mut(key) {
            entry.reconcilers[reconciler].listening = listening;
        }
    }

    fn show_error(&self, key: &C::Key, text: &str) {
        let wall = self.env.clock.wall();
        if let Some(entry) = self.entries.get(key) {
            entry.cell.update(wall, |cell| cell.last_error = Some((wall, text.to_owned())));
        }
    }
}

pub(super) fn past(
    ended: Timestamp,
    took: Duration,
    result: ReconcileResult,
    reconciler: usize,
    causes: Causes,
) -> Past {
    Past { ended, ms: u32::try_from(took.as_millis()).unwrap_or(u32::MAX), result, reconciler, causes }
}
