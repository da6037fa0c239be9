//! The board: all slots of one controller, its permits and its timers.
//!
//! Wakes come in from filters, timers and signals; nudges go out to actors. The board is shared by the supervisor, its
//! actors and the filters, all on one arbiter; nobody holds it across an await, and none of the controller's code runs
//! while it is held, but [`Need::ready`](super::Need::ready), a [`Look`](super::Look) and observers, which only look. So a
//! pass, a listener or a destructor may wake keys.
//!
//! Here: building, waking, handing out permits. `passes`: begin and end of passes. `timers`: timers, deaths of actors, end.

mod passes;
mod timers;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    rc::{Rc, Weak},
    time::Duration,
};

use actix::{Message, Recipient};
use jiff::SignedDuration;
use tokio_util::time::DelayQueue;
use tracing::Span;

use super::{
    Causes, Controller, Duty, DutyObserver, Env, Failure, Lane, Listening, Outcome, Pass, Role, Signal, Wake,
    deaths::{Deaths, Lifeline},
    governor::Governor,
    needs::Waiting,
    slot::{LONGEST, Phase, Slot},
    span::Spans,
};

/// Causes of the kit itself, which concern each duty.
const KIT: Causes = Causes::LISTED
    .with(Causes::OBJECT)
    .with(Causes::TIMER)
    .with(Causes::AGAIN)
    .with(Causes::STORE)
    .with(Causes::RESTARTED)
    .with(Causes::RESYNC);

/// A shared board.
pub(super) type Shared<C> = Rc<RefCell<Board<C>>>;

/// Starts the actor of a key, which has so many duties. All that a board knows of actors is how to start them, and what to
/// tell them.
pub(super) type Starter<C> =
    fn(Shared<C>, <C as Controller>::Key, usize, Lifeline<<C as Controller>::Key>) -> Recipient<Order>;

/// What an actor is told.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) enum Order {
    /// The slot holds work for it. What is to be done stands there.
    Nudge,
    /// To end.
    Stop,
}

pub(super) struct Board<C: Controller> {
    pub(super) controller: Rc<C>,
    pub(super) env: Env,
    starter: Starter<C>,
    spans: Spans,
    pub(super) duties: Vec<DutyBoard<C::Key>>,
    slots: BTreeMap<C::Key, Slot<Recipient<Order>, C::Ref>>,
    timers: DelayQueue<(C::Key, usize, Alarm)>,
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

/// How a pass came to its end.
pub(super) enum Ended {
    Normally(Result<Outcome, Failure>),
    Panicked,
    TimedOut,
}

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alarm {
    /// The duty's own timer, which stands in its slot.
    Duty,
    /// The next look without another reason.
    Resync,
}

/// A pass that is about to run.
pub(super) struct Job<K, R> {
    pub(super) pass: Pass<K, R>,
    pub(super) limit: Duration,
    pub(super) span: Span,
}

impl<C: Controller> Board<C> {
    /// The board of the controller that `make` makes, which is given the way to the board.
    pub(super) fn new(make: impl FnOnce(&Weak<RefCell<Self>>) -> Rc<C>, starter: Starter<C>, env: Env) -> Shared<C> {
        Rc::new_cyclic(|itself: &Weak<RefCell<Self>>| {
            let controller = make(itself);
            let duties: Vec<_> = controller
                .duties()
                .into_iter()
                .map(|spec| {
                    let observer = env.observers.duty(spec.name, spec.permits.max(1));
                    DutyBoard { governor: Governor::new(spec.permits), observer, spec }
                })
                .collect();
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
                spans: Spans::new(controller.causes()),
                controller,
                env,
                starter,
                duties,
                slots: BTreeMap::new(),
                timers: DelayQueue::new(),
                generation: 0,
                closing: false,
                idle: Signal::default(),
                itself: itself.clone(),
                deaths: Rc::new(Deaths::new()),
                _needs: needs,
            })
        })
    }

    /// Adds a wake to a key's slot, for each duty it concerns.
    pub(super) fn wake(&mut self, key: &C::Key, wake: Wake<C::Ref>) {
        for duty in 0..self.duties.len() {
            if wake.causes.meets(self.duties[duty].spec.causes.with(KIT)) {
                self.wake_duty(key, duty, wake.clone());
            }
        }
    }

    fn wake_duty(&mut self, key: &C::Key, duty: usize, wake: Wake<C::Ref>) {
        if self.closing || wake.is_empty() {
            return;
        }
        let object_changed = wake.causes.meets(Causes::OBJECT);
        let (controller, env, duties, timers) = (&self.controller, &self.env, &self.duties, &mut self.timers);
        let slot = self.slots.entry(key.clone()).or_insert_with(|| {
            let cell = env.census.enter(format!("{}/{key}", controller.name()), Role::Object);
            let mut slot = Slot::new(duties.len(), cell);
            for (number, (state, board)) in slot.duties.iter_mut().zip(duties).enumerate() {
                state.resync = board.resync_after(env).map(|delay| timers.insert(alarm(key, number), delay));
            }
            slot
        });
        let state = &mut slot.duties[duty];
        let lane = state.lane();
        state.pending.merge(wake);
        match state.phase {
            Phase::Idle | Phase::Unready => self.enqueue(key, duty),
            Phase::Quarantined if object_changed => self.enqueue(key, duty),
            Phase::Queued if lane != state.lane() => self.hurry(key, duty),
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
        state.rest = None;
        if let Some(timer) = state.timer.take() {
            self.timers.try_remove(&timer.id);
        }
        if !board.is_ready() {
            state.phase = Phase::Unready;
            return;
        }
        state.phase = Phase::Queued;
        state.queued_at = Some(now);
        board.observer.added();
        board.governor.request(key.clone(), state.lane());
        self.dispatch(duty);
    }

    fn hurry(&mut self, key: &C::Key, duty: usize) {
        self.duties[duty].governor.hurry(key);
        self.duties[duty].show_depth();
    }

    /// Hands out free permits.
    fn dispatch(&mut self, duty: usize) {
        if self.closing {
            return;
        }
        while let Some(key) = self.duties[duty].governor.grant() {
            let state = self.slots.get_mut(&key).map(|slot| &mut slot.duties[duty]);
            match state.filter(|state| state.phase == Phase::Queued) {
                Some(state) if self.duties[duty].is_ready() => {
                    state.phase = Phase::Granted;
                    self.nudge(&key);
                }
                Some(state) => {
                    // What it needs went away while it waited.
                    state.phase = Phase::Unready;
                    self.duties[duty].governor.release();
                    self.show(&key);
                }
                // Put into quarantine while it waited.
                None => self.duties[duty].governor.release(),
            }
        }
        self.duties[duty].show_depth();
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
            slot.actor = Some((self.starter)(board, key.clone(), self.duties.len(), lifeline));
        }
        // One nudge is enough for any number of wakes, so the mailbox never holds more than one.
        if !slot.nudged {
            slot.nudged = slot.actor.as_ref().is_some_and(|actor| actor.try_send(Order::Nudge).is_ok());
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

    /// What the duties need.
    pub(super) fn needs(&self) -> Vec<Waiting> {
        let of_duty = |duty: &DutyBoard<C::Key>| {
            let name = duty.spec.name;
            duty.spec.needs.iter().cloned().map(move |need| Waiting::new(name, need)).collect::<Vec<_>>()
        };
        self.duties.iter().flat_map(of_duty).collect()
    }

    /// Keys with a slot.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Passes under way.
    pub(super) fn running(&self) -> usize {
        self.slots.values().flat_map(|slot| &slot.duties).filter(|duty| duty.running.is_some()).count()
    }

    /// Brings the census up to date about a key.
    fn show(&self, key: &C::Key) {
        let Some(slot) = self.slots.get(key) else { return };
        let (now, wall) = (self.env.clock.monotonic(), self.env.clock.wall());
        let running = slot.duties.iter().zip(&self.duties).filter(|(state, _)| state.running.is_some());
        let names: Vec<_> = running.map(|(_, duty)| duty.spec.name).collect();
        let next_timer = slot.next_timer().and_then(|due| {
            let left = SignedDuration::try_from(due.saturating_duration_since(now)).ok()?;
            wall.checked_add(left).ok()
        });
        slot.cell.update(wall, |cell| {
            cell.activity = slot.activity();
            cell.mailbox = slot.waiting();
            cell.current = (!names.is_empty()).then(|| format!("pass {}", names.join(", ")));
            cell.next_timer = next_timer;
        });
    }
}

/// A timer for the next resync.
fn alarm<K: Clone>(key: &K, duty: usize) -> (K, usize, Alarm) {
    (key.clone(), duty, Alarm::Resync)
}

impl<K: PartialEq> DutyBoard<K> {
    /// When a key is looked at next without another reason: each at a time of its own, so that thousands do not come at once.
    fn resync_after(&self, env: &Env) -> Option<Duration> {
        const LEAST: f64 = 0.9;
        const MOST: f64 = 1.1;

        let least = self.spec.resync?.min(LONGEST).mul_f64(LEAST);
        Some(env.random.jitter(least, MOST / LEAST - 1.0))
    }

    /// Whether all it needs is there.
    fn is_ready(&self) -> bool {
        self.spec.needs.iter().all(|need| (need.ready)())
    }

    fn show_depth(&self) {
        for lane in [Lane::Live, Lane::Background] {
            self.observer.depth(lane, self.governor.waiting(lane));
        }
    }
}
