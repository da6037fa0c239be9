//! Begin and end of passes.

use std::time::Duration;

use super::{Board, Ended, Job};
use crate::{
    Causes, Controller, Deadline, Duty, Failure, Moment, Outcome, Pass, PassResult, Wake,
    slot::{LONGEST, Phase, QUARANTINE, Slot, TimerKind, UnderWay, WALL_CLOCK_CHECK},
};

impl<C: Controller> Board<C> {
    /// The passes that the actor of `key` has permits for.
    pub(crate) fn begin(&mut self, key: &C::Key) -> Vec<Job<C::Key, C::Ref>> {
        let Some(slot) = self.slots.get_mut(key).filter(|_| !self.closing) else { return Vec::new() };
        slot.nudged = false;
        let (now, started) = (self.env.clock.wall(), self.env.clock.monotonic());
        let mut jobs = Vec::new();
        for (number, state) in slot.duties.iter_mut().enumerate() {
            if state.phase != Phase::Granted {
                continue;
            }
            let board = &self.duties[number];
            state.phase = Phase::Running;
            state.retired = false;
            let mut wake = state.retained.take();
            wake.merge(state.pending.take());
            if let Some(since) = state.queued_at.take() {
                board.observer.waited(started.saturating_duration_since(since));
            }
            let observer = board.observer.started();
            let span = self.spans.pass(&board.spec, slot.cell.path(), wake.causes);
            state.running = Some(UnderWay { wake: wake.clone(), started, observer, span: span.clone() });
            let limit = board.spec.deadline.min(LONGEST);
            let deadline = Deadline(started + limit);
            let pass = Pass { key: key.clone(), duty: number, wake, deadline, started, cell: slot.cell.clone(), now };
            jobs.push(Job { pass, limit, span });
        }
        self.show(key);
        jobs
    }

    /// Takes note of the end of a pass; true if the actor's life ends with it.
    pub(crate) fn ended(&mut self, key: &C::Key, duty: usize, ended: Ended) -> bool {
        let under_way = self.slots.get_mut(key).and_then(|slot| slot.duties[duty].running.take());
        let Some(UnderWay { wake, started, observer: of_pass, span }) = under_way else { return false };
        let span = span.entered();
        self.duties[duty].governor.release();
        let (panicked, timed_out) = (matches!(ended, Ended::Panicked), matches!(ended, Ended::TimedOut));
        let result = self.result_of(key, duty, wake, ended);
        drop(span);
        of_pass.finished(result, started.elapsed());
        let observer = &self.duties[duty].observer;
        if panicked {
            observer.panicked();
        }
        if timed_out {
            observer.timed_out();
        }
        let retired = self.slots.get(key).is_some_and(Slot::is_retired);
        if retired {
            if let Some(slot) = self.slots.remove(key) {
                let own = slot.duties.iter().filter_map(|duty| Some(duty.timer.as_ref()?.id));
                let resyncs = slot.duties.iter().filter_map(|duty| duty.resync);
                for timer in own.chain(resyncs) {
                    self.timers.try_remove(&timer);
                }
                self.env.census.leave(slot.cell.path());
            }
        } else {
            self.show(key);
        }
        self.dispatch(duty);
        self.raise_if_over();
        retired
    }

    /// Applies the result of a pass to the slot: the next timer, signal or place in the queue.
    fn result_of(&mut self, key: &C::Key, duty: usize, wake: Wake<C::Ref>, ended: Ended) -> PassResult {
        let now = self.env.clock.monotonic();
        let Some(slot) = self.slots.get_mut(key) else { return PassResult::Success };
        let state = &mut slot.duties[duty];
        state.phase = Phase::Idle;
        slot.cell.update(self.env.clock.wall(), |cell| cell.finished += 1);
        match ended {
            Ended::Normally(result) => {
                state.survived();
                match result {
                    Ok(outcome) => self.outcome(key, duty, wake, outcome),
                    Err(failure) => self.failed(key, duty, wake, &failure),
                }
            }
            Ended::Panicked if state.panicked(now) => {
                state.phase = Phase::Quarantined;
                state.retained.merge(wake);
                self.show_error(key, "panicked too often; tried again every 10 min and when its object changes");
                self.arm(key, duty, QUARANTINE, TimerKind::Quarantine);
                PassResult::Error
            }
            Ended::Panicked => self.failed(key, duty, wake, &Failure::new("the pass panicked")),
            Ended::TimedOut => {
                // What a dropped pass had done is unknown, so the next one looks at everything.
                state.retained.merge(Wake::background(Causes::RESTARTED));
                let text = "the pass did not end at its deadline and was dropped";
                self.failed(key, duty, wake, &Failure::new(text))
            }
        }
    }

    fn failed(&mut self, key: &C::Key, duty: usize, wake: Wake<C::Ref>, failure: &Failure) -> PassResult {
        tracing::error!(error = %failure, "Reconciler error");
        self.show_error(key, &failure.to_string());
        if failure.is_terminal() {
            self.outcome(key, duty, wake, Outcome::Done);
            return PassResult::TerminalError;
        }
        self.back_off(key, duty, wake);
        PassResult::Error
    }

    /// Keeps the wake for a pass after a back-off.
    fn back_off(&mut self, key: &C::Key, duty: usize, wake: Wake<C::Ref>) {
        let Duty { first_back_off, max_back_off, .. } = self.duties[duty].spec;
        let Some(slot) = self.slots.get_mut(key) else { return };
        let state = &mut slot.duties[duty];
        state.retained.merge(wake);
        let delay = state.back_off(first_back_off, max_back_off);
        self.again_after(key, duty, delay, TimerKind::BackOff);
        self.duties[duty].observer.retried();
    }

    fn outcome(&mut self, key: &C::Key, duty: usize, wake: Wake<C::Ref>, outcome: Outcome) -> PassResult {
        let Some(slot) = self.slots.get_mut(key) else { return PassResult::Success };
        let state = &mut slot.duties[duty];
        if !matches!(outcome, Outcome::Again) {
            state.succeeded();
        }
        state.retired = matches!(outcome, Outcome::Retire);
        match outcome {
            Outcome::Done | Outcome::Retire => {
                self.requeue_if_woken(key, duty);
                PassResult::Success
            }
            Outcome::After(delay) => {
                self.again_after(key, duty, delay, TimerKind::After);
                PassResult::RequeueAfter
            }
            Outcome::Rest(delay, look) => {
                state.rest = Some(look);
                self.again_after(key, duty, delay, TimerKind::Rest);
                PassResult::RequeueAfter
            }
            Outcome::At(time) => {
                let delay = self.until(time);
                self.again_after(key, duty, delay.min(WALL_CLOCK_CHECK), TimerKind::Until(time));
                PassResult::RequeueAfter
            }
            Outcome::Wait(moments) => {
                state.retained.merge(wake);
                self.wait(key, duty, &moments);
                PassResult::RequeueAfter
            }
            Outcome::Again => {
                self.back_off(key, duty, wake);
                PassResult::Requeue
            }
            Outcome::Continue => {
                state.retained.merge(wake);
                state.pending.merge(Wake::background(Causes::AGAIN));
                self.enqueue(key, duty);
                PassResult::Requeue
            }
        }
    }

    /// Runs again at once if woken meanwhile, else after `delay`.
    fn again_after(&mut self, key: &C::Key, duty: usize, delay: Duration, kind: TimerKind) {
        if !self.requeue_if_woken(key, duty) {
            self.arm(key, duty, delay, kind);
        }
    }

    fn requeue_if_woken(&mut self, key: &C::Key, duty: usize) -> bool {
        let woken = self.slots.get(key).is_some_and(|slot| !slot.duties[duty].pending.is_empty());
        if woken && !self.closing {
            self.enqueue(key, duty);
        }
        woken
    }

    fn wait(&mut self, key: &C::Key, duty: usize, moments: &[Moment]) {
        if self.requeue_if_woken(key, duty) {
            return;
        }
        if moments.is_empty() || moments.iter().any(Moment::has_passed) {
            self.wake_duty(key, duty, Wake::background(Causes::STORE));
            return;
        }
        let listen = |moment: &Moment| {
            let (board, key) = (self.itself.clone(), key.clone());
            moment.signal().listen(move || {
                if let Some(board) = board.upgrade() {
                    board.borrow_mut().wake_duty(&key, duty, Wake::background(Causes::STORE));
                }
            })
        };
        let listening: Vec<_> = moments.iter().map(listen).collect();
        if let Some(slot) = self.slots.get_mut(key) {
            slot.duties[duty].listening = listening;
        }
    }

    fn show_error(&self, key: &C::Key, text: &str) {
        let wall = self.env.clock.wall();
        if let Some(slot) = self.slots.get(key) {
            slot.cell.update(wall, |cell| cell.last_error = Some((wall, text.to_owned())));
        }
    }
}
