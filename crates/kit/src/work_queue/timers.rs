use std::time::Duration;

use actix::Recipient;
use futures::task::{Context, Poll};
use jiff::Timestamp;

use super::{Alarm, Order, WorkQueue, alarm, reconciles::past};
use crate::{
    Causes, GeneralController, Moment, ReconcileResult, Wake,
    queue_entry::{LONGEST, Phase, QUARANTINE, Timer, TimerKind, WALL_CLOCK_CHECK},
};

impl<C: GeneralController> WorkQueue<C> {
    pub(super) fn arm(&mut self, key: &C::Key, reconciler: usize, delay: Duration, kind: TimerKind) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let state = &mut entry.reconcilers[reconciler];
        if let Some(timer) = state.timer.take() {
            self.timers.try_remove(&timer.id);
        }
        let due = self.env.clock.monotonic() + delay.min(LONGEST);
        let id = self.timers.insert_at((key.clone(), reconciler, Alarm::Reconciler), due);
        state.timer = Some(Timer { id, kind, due });
    }

    pub(crate) fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<(C::Key, usize, Alarm)> {
        match self.timers.poll_expired(cx) {
            Poll::Ready(Some(expired)) => Poll::Ready(expired.into_inner()),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    pub(crate) fn timer_ended(&mut self, key: &C::Key, reconciler: usize, alarm: Alarm) {
        match alarm {
            Alarm::Reconciler => self.own_timer_ended(key, reconciler),
            Alarm::Resync => self.resync(key, reconciler),
        }
    }

    fn resync(&mut self, key: &C::Key, reconciler: usize) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some(delay) = self.reconcilers[reconciler].resync_after(&self.env) else { return };
        entry.reconcilers[reconciler].resync = Some(self.timers.insert(alarm(key, reconciler), delay));
        self.wake_reconciler(key, reconciler, Wake::low(Causes::RESYNC));
    }

    fn own_timer_ended(&mut self, key: &C::Key, reconciler: usize) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let state = &mut entry.reconcilers[reconciler];
        let Some(Timer { kind, .. }) = state.timer.take() else { return };
        let causes = match kind {
            TimerKind::Until(time) => {
                let left = self.until(time);
                if !left.is_zero() {
                    self.arm(key, reconciler, left.min(WALL_CLOCK_CHECK), kind);
                    self.show(key);
                    return;
                }
                Causes::TIMER
            }
            TimerKind::Idle => {
                if let Some(idle_check) = state.idle_check.take()
                    && let Some(delay) = idle_check.run()
                {
                    state.idle_check = Some(idle_check);
                    self.reconcilers[reconciler].observer.idle_checked();
                    self.arm(key, reconciler, delay, kind);
                    self.show(key);
                    return;
                }
                Causes::TIMER
            }
            TimerKind::After => Causes::TIMER,
            TimerKind::BackOff => Causes::AGAIN,
            TimerKind::Quarantine => {
                state.phase = Phase::Idle;
                Causes::AGAIN
            }
        };
        self.wake_reconciler(key, reconciler, Wake::low(causes));
    }

    pub(super) fn until(&self, time: Timestamp) -> Duration {
        Duration::try_from(time.duration_since(self.env.clock.wall())).unwrap_or_default()
    }

    /// Handles an actor that died of a panic outside of a reconcile: the key gets a new actor without memory.
    pub(crate) fn died(&mut self, key: &C::Key, generation: u64) {
        let (now, wall) = (self.env.clock.monotonic(), self.env.clock.wall());
        let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.generation == generation) else { return };
        entry.actor = None;
        entry.nudged = false;
        entry.cell.update(wall, |cell| {
            cell.restarts += 1;
            cell.last_error = Some((wall, "the actor panicked and was restarted".to_owned()));
        });
        for (number, (state, queue)) in entry.reconcilers.iter_mut().zip(&mut self.reconcilers).enumerate() {
            let under_way = state.running.take();
            if under_way.is_some() || state.phase == Phase::Granted {
                queue.limiter.release();
            }
            if let Some(under_way) = under_way {
                let took = now.saturating_duration_since(under_way.started);
                entry.history.add(past(wall, took, ReconcileResult::Error, number, under_way.wake.causes));
                under_way.observer.finished(ReconcileResult::Error, took);
                state.retained.merge(under_way.wake);
            }
            state.retained.merge(Wake::low(Causes::RESTARTED));
            state.phase = match (state.panicked(now), state.phase) {
                (true, _) => Phase::Quarantined,
                (false, Phase::Queued) => Phase::Queued,
                (false, Phase::Idle | Phase::Unready | Phase::Granted | Phase::Running | Phase::Quarantined) => {
                    Phase::Idle
                }
            };
        }
        for reconciler in 0..self.reconcilers.len() {
            self.revive(key, reconciler);
            self.dispatch(reconciler);
        }
        self.show(key);
        self.raise_if_over();
    }

    fn revive(&mut self, key: &C::Key, reconciler: usize) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let state = &mut entry.reconcilers[reconciler];
        if state.phase != Phase::Quarantined {
            self.wake_reconciler(key, reconciler, Wake::low(Causes::RESTARTED));
            return;
        }
        state.listening.clear();
        if state.timer.as_ref().is_none_or(|timer| timer.kind != TimerKind::Quarantine) {
            self.arm(key, reconciler, QUARANTINE, TimerKind::Quarantine);
        }
    }

    /// Starts no more reconciles. If some are running, returns the moment after which [`WorkQueue::raise_if_over`] raises.
    pub(crate) fn close(&mut self) -> Option<Moment> {
        self.closing = true;
        (self.running() > 0).then(|| self.idle.moment())
    }

    pub(super) fn raise_if_over(&self) {
        if self.closing && self.running() == 0 {
            self.idle.raise();
        }
    }

    pub(crate) fn clear(&mut self) -> Vec<Recipient<Order>> {
        self.timers.clear();
        let entries = std::mem::take(&mut self.entries);
        let left = entries.into_values().filter_map(|entry| {
            self.env.status_registry.leave(entry.cell.path());
            entry.actor.map(|actor| actor.orders)
        });
        left.collect()
    }
}
