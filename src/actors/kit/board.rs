//! The board: all slots of one controller, its permits and its timers.
//!
//! Wakes come in from filters, timers and signals; nudges go out to actors. The board is shared by the supervisor, its
//! actors and the filters, all on one arbiter; nobody holds it across an await.

use std::{
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    rc::{Rc, Weak},
    time::Duration,
};

use actix::{Actor, Addr};
use futures::task::{Context, Poll};
use tokio::time::Instant;
use tokio_util::time::DelayQueue;

use super::{
    Causes, Controller, Deadline, Duty, DutyObserver, Env, Failure, Listening, Moment, Outcome, Pass, PassResult, Role,
    Signal, Wake,
    governor::Governor,
    object::{Lifeline, Nudge, ObjectActor},
    slot::{DutySlot, Phase, QUARANTINE, Slot, TimerKind, WALL_CLOCK_CHECK},
};

/// Causes of the kit itself, which concern each duty.
const KIT: Causes = Causes::LISTED
    .with(Causes::OBJECT)
    .with(Causes::TIMER)
    .with(Causes::AGAIN)
    .with(Causes::STORE)
    .with(Causes::RESTARTED);

/// A shared board.
pub(super) type Shared<C> = Rc<RefCell<Board<C>>>;

pub(super) struct Board<C: Controller> {
    pub(super) controller: Rc<C>,
    pub(super) env: Env,
    pub(super) duties: Vec<DutyBoard<C::Key>>,
    slots: BTreeMap<C::Key, Slot<Addr<ObjectActor<C>>>>,
    timers: DelayQueue<(C::Key, usize)>,
    generation: u64,
    closing: bool,
    /// Raised when the last pass of a closing board ended.
    idle: Signal,
    itself: Weak<RefCell<Self>>,
    pub(super) deaths: Rc<Deaths<C::Key>>,
    _needs: Vec<Listening>,
}

pub(super) struct DutyBoard<K> {
    pub(super) spec: Duty,
    governor: Governor<K>,
    pub(super) observer: Rc<dyn DutyObserver>,
}

/// Death notices of actors. Apart from the board, because an actor may die while the board is borrowed.
pub(super) struct Deaths<K> {
    pub(super) notices: RefCell<VecDeque<(K, u64)>>,
    pub(super) bell: tokio::sync::Notify,
}

/// How a pass came to its end.
pub(super) enum Ended {
    Normally(Result<Outcome, Failure>),
    Panicked,
    TimedOut,
}

/// A pass that is about to run.
pub(super) struct Job<K> {
    pub(super) pass: Pass<K>,
    pub(super) limit: Duration,
}

// === building, waking ===

impl<C: Controller> Board<C> {
    pub(super) fn new(controller: Rc<C>, env: Env) -> Shared<C> {
        let duties: Vec<_> = controller
            .duties()
            .into_iter()
            .map(|spec| {
                let observer = env.observers.duty(spec.name, spec.permits);
                DutyBoard { governor: Governor::new(spec.permits), observer, spec }
            })
            .collect();
        Rc::new_cyclic(|itself: &Weak<RefCell<Self>>| {
            let needs = duties.iter().flat_map(|duty| duty.spec.needs.iter()).map(|need| {
                let board = itself.clone();
                need.signal.listen(move || {
                    if let Some(board) = board.upgrade() {
                        board.borrow_mut().needs_changed();
                    }
                })
            });
            let needs = needs.collect();
            RefCell::new(Self {
                controller,
                env,
                duties,
                slots: BTreeMap::new(),
                timers: DelayQueue::new(),
                generation: 0,
                closing: false,
                idle: Signal::default(),
                itself: itself.clone(),
                deaths: Rc::new(Deaths { notices: RefCell::default(), bell: tokio::sync::Notify::new() }),
                _needs: needs,
            })
        })
    }

    /// Adds a wake to a key's slot, for each duty it concerns.
    pub(super) fn wake(&mut self, key: &C::Key, wake: Wake) {
        for duty in 0..self.duties.len() {
            if wake.causes.meets(self.duties[duty].spec.causes.with(KIT)) {
                self.wake_duty(key, duty, wake.clone());
            }
        }
    }

    fn wake_duty(&mut self, key: &C::Key, duty: usize, wake: Wake) {
        if self.closing || wake.is_empty() {
            return;
        }
        let object_changed = wake.causes.meets(Causes::OBJECT);
        let (controller, env, duties) = (&self.controller, &self.env, self.duties.len());
        let slot = self.slots.entry(key.clone()).or_insert_with(|| {
            let cell = env.census.enter(format!("{}/{key}", controller.name()), Role::Object);
            Slot::new(duties, cell)
        });
        let lane = {
            let pending = &mut slot.duties[duty].pending;
            pending.merge(wake);
            pending.lane
        };
        match slot.duties[duty].phase {
            Phase::Idle | Phase::Unready => self.enqueue(key, duty),
            Phase::Quarantined if object_changed => self.enqueue(key, duty),
            Phase::Queued if lane == super::Lane::Live => self.duties[duty].governor.hurry(key),
            Phase::Queued | Phase::Granted | Phase::Running | Phase::Quarantined => {}
        }
        self.show(key);
    }

    /// Queues a duty for a permit, or parks it until what it needs is there.
    fn enqueue(&mut self, key: &C::Key, duty: usize) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        let now = self.env.clock.monotonic();
        let board = &mut self.duties[duty];
        let state = &mut slot.duties[duty];
        state.listening.clear();
        if let Some((timer, _)) = state.timer.take() {
            self.timers.try_remove(&timer);
        }
        if !board.spec.needs.iter().all(|need| (need.ready)()) {
            state.phase = Phase::Unready;
            return;
        }
        state.phase = Phase::Queued;
        state.queued_at = Some(now);
        board.observer.added();
        board.governor.request(key.clone(), state.pending.lane);
        self.dispatch(duty);
    }

    /// Hands out free permits.
    fn dispatch(&mut self, duty: usize) {
        if self.closing {
            return;
        }
        while let Some(key) = self.duties[duty].governor.grant() {
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.duties[duty].phase = Phase::Granted;
                self.nudge(&key);
            } else {
                self.duties[duty].governor.release();
            }
        }
        let board = &self.duties[duty];
        for lane in [super::Lane::Live, super::Lane::Background] {
            board.observer.depth(lane, board.governor.waiting(lane));
        }
    }

    /// Tells the actor that a slot holds work for it; starts the actor where there is none.
    fn nudge(&mut self, key: &C::Key) {
        let Some(board) = self.itself.upgrade() else { return };
        let Some(slot) = self.slots.get_mut(key) else { return };
        if slot.actor.is_none() {
            self.generation += 1;
            slot.generation = self.generation;
            slot.nudged = false;
            let lifeline = Lifeline::new(self.deaths.clone(), key.clone(), self.generation);
            let object = Rc::new(self.controller.object(key));
            let actor = ObjectActor::new(board, key.clone(), object, self.duties.len(), lifeline);
            slot.actor = Some(actor.start());
        }
        // One nudge is enough for any number of wakes, so the mailbox never holds more than one.
        if !slot.nudged {
            slot.nudged = slot.actor.as_ref().is_some_and(|actor| actor.try_send(Nudge).is_ok());
        }
    }

    fn needs_changed(&mut self) {
        let parked: Vec<(C::Key, usize)> = self
            .slots
            .iter()
            .flat_map(|(key, slot)| {
                let unready = slot.duties.iter().enumerate().filter(|(_, duty)| duty.phase == Phase::Unready);
                unready.map(|(duty, _)| (key.clone(), duty))
            })
            .collect();
        for (key, duty) in parked {
            self.enqueue(&key, duty);
            self.show(&key);
        }
    }
}

// === passes ===

impl<C: Controller> Board<C> {
    /// The passes that the actor of `key` has permits for.
    pub(super) fn begin(&mut self, key: &C::Key) -> Vec<Job<C::Key>> {
        let Some(slot) = self.slots.get_mut(key) else { return Vec::new() };
        slot.nudged = false;
        let (now, started) = (self.env.clock.wall(), self.env.clock.monotonic());
        let mut jobs = Vec::new();
        for (number, state) in slot.duties.iter_mut().enumerate() {
            if state.phase != Phase::Granted {
                continue;
            }
            let board = &self.duties[number];
            state.phase = Phase::Running;
            let mut wake = state.retained.take();
            wake.merge(state.pending.take());
            if let Some(since) = state.queued_at.take() {
                board.observer.waited(started.saturating_duration_since(since));
            }
            board.observer.started();
            let limit = board.spec.deadline;
            let deadline = Deadline(started + limit);
            let pass = Pass { key: key.clone(), duty: number, wake, deadline, started, cell: slot.cell.clone(), now };
            jobs.push(Job { pass, limit });
        }
        if let Some(job) = jobs.first() {
            let name = self.duties[job.pass.duty].spec.name;
            slot.cell.update(now, |state| state.current = Some(format!("pass {name}")));
        }
        self.show(key);
        jobs
    }

    /// Takes note of the end of a pass; true if the actor's life ends with it.
    pub(super) fn ended(&mut self, key: &C::Key, duty: usize, wake: Wake, took: Duration, ended: Ended) -> bool {
        self.duties[duty].governor.release();
        let result = self.result_of(key, duty, wake, &ended);
        self.duties[duty].observer.finished(result, took);
        if let Ended::Panicked = ended {
            self.duties[duty].observer.panicked();
        }
        if let Ended::TimedOut = ended {
            self.duties[duty].observer.timed_out();
        }
        let retired = self.slots.get(key).is_some_and(Slot::is_retired);
        if retired {
            if let Some(slot) = self.slots.remove(key) {
                for (timer, _) in slot.duties.iter().filter_map(|duty| duty.timer) {
                    self.timers.try_remove(&timer);
                }
                self.env.census.leave(slot.cell.path());
            }
        } else {
            self.show(key);
        }
        self.dispatch(duty);
        if self.closing && self.running() == 0 {
            self.idle.raise();
        }
        retired
    }

    /// Applies the result of a pass to the slot: the next timer, signal or place in the queue.
    fn result_of(&mut self, key: &C::Key, duty: usize, wake: Wake, ended: &Ended) -> PassResult {
        let now = self.env.clock.monotonic();
        let wall = self.env.clock.wall();
        let cap = self.duties[duty].spec.max_back_off;
        let Some(slot) = self.slots.get_mut(key) else { return PassResult::Success };
        let state = &mut slot.duties[duty];
        state.phase = Phase::Idle;
        slot.cell.update(wall, |cell| {
            cell.finished += 1;
            cell.current = None;
        });
        let failure = match ended {
            Ended::Normally(Ok(outcome)) => {
                state.succeeded_unless_again(outcome);
                state.retired = matches!(outcome, Outcome::Retire);
                return self.outcome(key, duty, wake, outcome);
            }
            Ended::Normally(Err(failure)) => failure.clone(),
            Ended::Panicked => {
                if state.panicked(now) {
                    state.phase = Phase::Quarantined;
                    state.retained.merge(wake);
                    let text = "panicked too often; tried again every 10 min and when its object changes".to_owned();
                    slot.cell.update(wall, |cell| cell.last_error = Some((wall, text)));
                    self.arm(key, duty, QUARANTINE, TimerKind::Quarantine);
                    return PassResult::Error;
                }
                Failure::new("the pass panicked")
            }
            Ended::TimedOut => Failure::new("the pass did not end at its deadline and was dropped"),
        };
        slot.cell.update(wall, |cell| cell.last_error = Some((wall, failure.to_string())));
        let delay = state.back_off(cap);
        state.retained.merge(wake);
        if matches!(ended, Ended::Normally(_)) {
            self.again_after(key, duty, delay, TimerKind::BackOff);
        } else {
            // What a dropped pass had done is unknown, so the next one looks at everything.
            state.retained.merge(Wake::background(Causes::RESTARTED));
            self.again_after(key, duty, delay, TimerKind::BackOff);
        }
        self.duties[duty].observer.retried();
        PassResult::Error
    }

    fn outcome(&mut self, key: &C::Key, duty: usize, wake: Wake, outcome: &Outcome) -> PassResult {
        let cap = self.duties[duty].spec.max_back_off;
        let Some(slot) = self.slots.get_mut(key) else { return PassResult::Success };
        let state = &mut slot.duties[duty];
        match outcome {
            Outcome::Done | Outcome::Retire => {
                self.requeue_if_woken(key, duty);
                PassResult::Success
            }
            Outcome::After(delay) => {
                self.again_after(key, duty, *delay, TimerKind::After);
                PassResult::RequeueAfter
            }
            Outcome::At(time) => {
                let delay = until(&self.env, *time);
                self.again_after(key, duty, delay.min(WALL_CLOCK_CHECK), TimerKind::Until(*time));
                PassResult::RequeueAfter
            }
            Outcome::Wait(moments) => {
                state.retained.merge(wake);
                self.wait(key, duty, moments);
                PassResult::RequeueAfter
            }
            Outcome::Again => {
                let delay = state.back_off(cap);
                state.retained.merge(wake);
                self.again_after(key, duty, delay, TimerKind::BackOff);
                self.duties[duty].observer.retried();
                PassResult::Requeue
            }
            Outcome::Continue => {
                state.retained.merge(wake.clone());
                state.pending.merge(Wake { causes: Causes::AGAIN, refs: Default::default(), lane: wake.lane });
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
}

// === timers, deaths, end ===

impl<C: Controller> Board<C> {
    fn arm(&mut self, key: &C::Key, duty: usize, delay: Duration, kind: TimerKind) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        let state = &mut slot.duties[duty];
        if let Some((timer, _)) = state.timer.take() {
            self.timers.try_remove(&timer);
        }
        state.timer = Some((self.timers.insert((key.clone(), duty), delay), kind));
        let due =
            jiff::SignedDuration::try_from(delay).ok().and_then(|delay| self.env.clock.wall().checked_add(delay).ok());
        slot.cell.update(self.env.clock.wall(), |cell| cell.next_timer = due);
    }

    /// The next timer that ends; pending while there is none.
    pub(super) fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<(C::Key, usize)> {
        match self.timers.poll_expired(cx) {
            Poll::Ready(Some(expired)) => Poll::Ready(expired.into_inner()),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// A timer ended.
    pub(super) fn timer_ended(&mut self, key: &C::Key, duty: usize) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        let Some((_, kind)) = slot.duties[duty].timer.take() else { return };
        slot.cell.update(self.env.clock.wall(), |cell| cell.next_timer = None);
        let causes = match kind {
            TimerKind::Until(time) if !until(&self.env, time).is_zero() => {
                let left = until(&self.env, time).min(WALL_CLOCK_CHECK);
                self.arm(key, duty, left, kind);
                return;
            }
            TimerKind::Until(_) | TimerKind::After => Causes::TIMER,
            TimerKind::BackOff => Causes::AGAIN,
            TimerKind::Quarantine => {
                slot.duties[duty].phase = Phase::Idle;
                Causes::AGAIN
            }
        };
        let lane = slot.duties[duty].retained.lane;
        self.wake_duty(key, duty, Wake { causes, refs: Default::default(), lane });
    }

    /// An actor died of a panic outside of a pass: its slot gets a new one, which knows nothing.
    pub(super) fn died(&mut self, key: &C::Key, generation: u64) {
        let (now, wall) = (self.env.clock.monotonic(), self.env.clock.wall());
        let Some(slot) = self.slots.get_mut(key).filter(|slot| slot.generation == generation) else { return };
        slot.actor = None;
        slot.nudged = false;
        slot.cell.update(wall, |cell| {
            cell.restarts += 1;
            cell.current = None;
            cell.last_error = Some((wall, "the actor panicked and was started again".to_owned()));
        });
        let mut freed = Vec::new();
        for (number, state) in slot.duties.iter_mut().enumerate() {
            if matches!(state.phase, Phase::Running | Phase::Granted) {
                freed.push(number);
            }
            let poisoned = state.panicked(now);
            state.retained.merge(Wake::background(Causes::RESTARTED));
            if state.phase != Phase::Queued {
                state.phase = if poisoned { Phase::Quarantined } else { Phase::Idle };
            }
        }
        for number in freed {
            self.duties[number].governor.release();
        }
        for number in 0..self.duties.len() {
            match self.slots.get(key).map(|slot| slot.duties[number].phase) {
                Some(Phase::Quarantined) => self.arm(key, number, QUARANTINE, TimerKind::Quarantine),
                Some(_) => self.wake_duty(key, number, Wake::background(Causes::RESTARTED)),
                None => {}
            }
            self.dispatch(number);
        }
        self.show(key);
    }

    /// No new pass from now on.
    pub(super) fn close(&mut self) -> Option<Moment> {
        self.closing = true;
        (self.running() > 0).then(|| self.idle.moment())
    }

    /// Forgets all keys and gives the addresses of their actors, to stop them.
    pub(super) fn clear(&mut self) -> Vec<Addr<ObjectActor<C>>> {
        self.timers.clear();
        let slots = std::mem::take(&mut self.slots);
        let left = slots.into_values().filter_map(|slot| {
            self.env.census.leave(slot.cell.path());
            slot.actor
        });
        left.collect()
    }

    pub(super) fn running(&self) -> usize {
        let running = |duty: &&DutySlot| matches!(duty.phase, Phase::Running);
        self.slots.values().map(|slot| slot.duties.iter().filter(running).count()).sum()
    }

    /// Keys with a slot.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    fn show(&self, key: &C::Key) {
        if let Some(slot) = self.slots.get(key) {
            slot.cell.update(self.env.clock.wall(), |cell| {
                cell.activity = slot.activity();
                cell.mailbox = slot.waiting();
            });
        }
    }
}

impl DutySlot {
    fn succeeded_unless_again(&mut self, outcome: &Outcome) {
        if !matches!(outcome, Outcome::Again) {
            self.succeeded();
        }
    }
}

fn until(env: &Env, time: jiff::Timestamp) -> Duration {
    Duration::try_from(time.duration_since(env.clock.wall())).unwrap_or_default()
}

/// When a pass began, for its duration.
pub(super) fn since(started: Instant) -> Duration {
    started.elapsed()
}
