//! The work queue of one controller: its queue entries, permits and timers. Wakes come from event handlers, timers and
//! signals; nudges go to actors. Supervisor, actors and event handlers share the queue, all on one arbiter. Borrow it
//! only between awaits. While it is borrowed, the only foreign code that runs is observers,
//! [`SyncRequirement::ready`](super::SyncRequirement::ready) and [`IdleCheck`](super::IdleCheck), which only read. So
//! reconciles, listeners and destructors may wake keys. This file: construction, waking, permits. `reconciles`: their
//! begin and end. `timers`: timers, deaths, closing. `details`: what the dashboard asks for.

mod details;
mod reconciles;
mod timers;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    rc::{Rc, Weak},
    time::Duration,
};

use futures::task::{Context, Poll};
use jiff::{SignedDuration, Timestamp};
use tokio::{
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    time::Instant,
};
use tokio_util::time::DelayQueue;
use tracing::Span;

use super::{
    Causes, Env, Failure, GeneralController, Listening, ObjectSummary, Outcome, Priority, Reconcile, Reconciler,
    ReconcilerObserver, Role, Signal, Wake,
    actor_link::{ActorLink, Order},
    concurrency_limiter::ConcurrencyLimiter,
    deaths::{DeathNotice, Lifeline},
    queue_entry::{LONGEST, Phase, QueueEntry},
    span::Spans,
    sync_requirements::Waiting,
};

pub(super) use details::describe;

pub(super) type Shared<C> = Rc<RefCell<WorkQueue<C>>>;

/// Starts the actor of a key; the number is the number of reconcilers.
pub(super) type Starter<C> =
    fn(Shared<C>, <C as GeneralController>::Key, usize, Lifeline<<C as GeneralController>::Key>) -> ActorLink<C>;

pub(super) struct WorkQueue<C: GeneralController> {
    pub(super) controller: Rc<C>,
    pub(super) env: Env,
    starter: Starter<C>,
    spans: Spans,
    pub(super) reconcilers: Vec<ReconcilerQueue<C::Key>>,
    entries: BTreeMap<C::Key, QueueEntry<ActorLink<C>, C::Ref>>,
    timers: DelayQueue<(C::Key, usize, Alarm)>,
    generation: u64,
    closing: bool,
    idle: Signal, // raised when the last reconcile of a closing queue has ended
    itself: Weak<RefCell<Self>>,
    /// An actor may die while the queue is borrowed.
    deaths: UnboundedReceiver<DeathNotice<C::Key>>,
    death_notices: UnboundedSender<DeathNotice<C::Key>>,
    _listening: Vec<Listening>,
}

pub(super) struct ReconcilerQueue<K> {
    pub(super) spec: Reconciler,
    limiter: ConcurrencyLimiter<K>,
    pub(super) observer: Rc<dyn ReconcilerObserver>,
}

pub(super) enum Ended {
    Normally(Result<Outcome, Failure>),
    Panicked,
    TimedOut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alarm {
    /// The reconciler's own timer, which is in its queue entry.
    Reconciler,
    Resync,
}

pub(super) struct Job<K, R> {
    pub(super) reconcile: Reconcile<K, R>,
    pub(super) span: Span,
}

impl<C: GeneralController> WorkQueue<C> {
    /// Creates the queue. `make` gets a weak reference to it and returns the controller.
    pub(super) fn new(make: impl FnOnce(&Weak<RefCell<Self>>) -> Rc<C>, starter: Starter<C>, env: Env) -> Shared<C> {
        Rc::new_cyclic(|itself: &Weak<RefCell<Self>>| {
            let controller = make(itself);
            let reconcilers: Vec<_> = controller
                .reconcilers()
                .into_iter()
                .map(|spec| {
                    let observer = env.observers.reconciler(controller.name(), spec.name, spec.permits.max(1));
                    ReconcilerQueue { limiter: ConcurrencyLimiter::new(spec.permits), observer, spec }
                })
                .collect();
            let requires =
                reconcilers.iter().flat_map(|reconciler| reconciler.spec.requires.iter()).map(|requirement| {
                    let queue = itself.clone();
                    requirement.signal.listen(move || {
                        if let Some(queue) = queue.upgrade() {
                            queue.borrow_mut().requirements_changed();
                        }
                    })
                });
            let requires = requires.collect();
            reconcilers.iter().for_each(ReconcilerQueue::show_ready);
            let (death_notices, deaths) = mpsc::unbounded_channel();
            RefCell::new(Self {
                spans: Spans::new(controller.causes()),
                controller,
                env,
                starter,
                reconcilers,
                entries: BTreeMap::new(),
                timers: DelayQueue::new(),
                generation: 0,
                closing: false,
                idle: Signal::default(),
                itself: itself.clone(),
                deaths,
                death_notices,
                _listening: requires,
            })
        })
    }

    pub(super) fn wake(&mut self, key: &C::Key, wake: Wake<C::Ref>) {
        for reconciler in 0..self.reconcilers.len() {
            if wake.causes.meets(self.reconcilers[reconciler].spec.causes.with(Causes::KIT)) {
                self.wake_reconciler(key, reconciler, wake.clone());
            }
        }
    }

    fn wake_reconciler(&mut self, key: &C::Key, reconciler: usize, wake: Wake<C::Ref>) {
        if self.closing || wake.is_empty() {
            return;
        }
        let object_changed = wake.causes.meets(Causes::OBJECT);
        let (controller, env, reconcilers, timers) = (&self.controller, &self.env, &self.reconcilers, &mut self.timers);
        let entry = self.entries.entry(key.clone()).or_insert_with(|| {
            let cell = env.status_registry.enter(format!("{}/{key}", controller.name()), Role::Object);
            let mut entry = QueueEntry::new(reconcilers.len(), cell);
            for (number, (state, queue)) in entry.reconcilers.iter_mut().zip(reconcilers).enumerate() {
                state.resync = queue.resync_after(env).map(|delay| timers.insert(alarm(key, number), delay));
            }
            entry
        });
        let state = &mut entry.reconcilers[reconciler];
        let priority = state.priority();
        state.pending.merge(wake);
        match state.phase {
            Phase::Idle | Phase::Unready => self.enqueue(key, reconciler),
            Phase::Quarantined if object_changed => self.enqueue(key, reconciler),
            Phase::Queued if priority != state.priority() => {
                let queue = &mut self.reconcilers[reconciler];
                queue.limiter.hurry(key);
                queue.show_depth();
            }
            Phase::Queued | Phase::Granted | Phase::Running | Phase::Quarantined => {}
        }
        self.show(key);
    }

    /// Queues a reconciler for a permit, or parks it until its required caches are synced.
    fn enqueue(&mut self, key: &C::Key, reconciler: usize) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let now = self.env.clock.monotonic();
        let queue = &mut self.reconcilers[reconciler];
        let state = &mut entry.reconcilers[reconciler];
        state.listening.clear();
        state.idle_check = None;
        if let Some(timer) = state.timer.take() {
            self.timers.try_remove(&timer.id);
        }
        if !queue.is_ready() {
            state.phase = Phase::Unready;
            return;
        }
        state.phase = Phase::Queued;
        state.queued_at = Some(now);
        queue.observer.added();
        queue.limiter.request(key.clone(), state.priority());
        self.dispatch(reconciler);
    }

    fn dispatch(&mut self, reconciler: usize) {
        if self.closing {
            return;
        }
        while let Some(key) = self.reconcilers[reconciler].limiter.grant() {
            let state = self.entries.get_mut(&key).map(|entry| &mut entry.reconcilers[reconciler]);
            match state.filter(|state| state.phase == Phase::Queued) {
                Some(state) if self.reconcilers[reconciler].is_ready() => {
                    state.phase = Phase::Granted;
                    self.nudge(&key);
                }
                Some(state) => {
                    state.phase = Phase::Unready; // a required cache lost sync while the key waited
                    self.reconcilers[reconciler].limiter.release();
                    self.show(&key);
                }
                // Quarantined while it waited.
                None => self.reconcilers[reconciler].limiter.release(),
            }
        }
        self.reconcilers[reconciler].show_depth();
    }

    fn nudge(&mut self, key: &C::Key) {
        let Some(queue) = self.itself.upgrade() else { return };
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.actor.is_none() {
            self.generation += 1;
            entry.generation = self.generation;
            entry.nudged = false;
            let lifeline = Lifeline::new(self.death_notices.clone(), key.clone(), self.generation);
            entry.actor = Some((self.starter)(queue, key.clone(), self.reconcilers.len(), lifeline));
        }
        // One nudge is enough for any number of wakes, so the mailbox never holds more than one.
        if !entry.nudged {
            entry.nudged = entry.actor.as_ref().is_some_and(|actor| actor.orders.try_send(Order::Nudge).is_ok());
        }
    }

    fn requirements_changed(&mut self) {
        self.reconcilers.iter().for_each(ReconcilerQueue::show_ready);
        let parked: Vec<(C::Key, usize)> = self
            .entries
            .iter()
            .flat_map(|(key, entry)| {
                let unready =
                    entry.reconcilers.iter().enumerate().filter(|(_, reconciler)| reconciler.phase == Phase::Unready);
                unready.map(|(reconciler, _)| (key.clone(), reconciler))
            })
            .collect();
        for (key, reconciler) in parked {
            self.enqueue(&key, reconciler);
            self.show(&key);
        }
    }

    pub(super) fn sync_waits(&self) -> Vec<Waiting> {
        let specs = self.reconcilers.iter().map(|queue| &queue.spec);
        let waits = specs.flat_map(|spec| spec.requires.iter().map(|it| Waiting::new(spec.name, it.clone())));
        waits.collect()
    }

    pub(super) fn poll_death(&mut self, cx: &mut Context<'_>) -> Poll<Option<(C::Key, u64)>> {
        self.deaths.poll_recv(cx)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn running(&self) -> usize {
        self.entries
            .values()
            .flat_map(|entry| &entry.reconcilers)
            .filter(|reconciler| reconciler.running.is_some())
            .count()
    }

    /// Shows what is wrong with the object of a key that has been woken.
    pub(super) fn set_problem(&self, key: &C::Key, problem: Option<String>) {
        let Some(entry) = self.entries.get(key) else { return };
        if entry.cell.set_problem(self.env.clock.wall(), problem) {
            self.show(key);
        }
    }

    /// Shows the object of a key that has been woken, and what is wrong with it.
    pub(super) fn set_object(&self, key: &C::Key, object: Option<ObjectSummary>, problem: Option<String>) {
        let Some(entry) = self.entries.get(key) else { return };
        if entry.cell.set_object(self.env.clock.wall(), object, problem) {
            self.show(key);
        }
    }

    /// Returns the wall time of a moment to come.
    fn wall_time(&self, moment: Instant) -> Option<Timestamp> {
        let left = moment.saturating_duration_since(self.env.clock.monotonic());
        self.env.clock.wall().checked_add(SignedDuration::try_from(left).ok()?).ok()
    }

    fn show(&self, key: &C::Key) {
        let Some(entry) = self.entries.get(key) else { return };
        let wall = self.env.clock.wall();
        let running = entry.reconcilers.iter().zip(&self.reconcilers).filter(|(state, _)| state.running.is_some());
        let names: Vec<_> = running.map(|(_, reconciler)| reconciler.spec.name).collect();
        let next_timer = entry.next_timer().and_then(|due| self.wall_time(due));
        entry.cell.update(wall, |cell| {
            cell.activity = entry.activity(cell.problem.is_some());
            cell.mailbox = entry.waiting();
            cell.current = (!names.is_empty()).then(|| format!("reconcile {}", names.join(", ")));
            cell.next_timer = next_timer;
        });
    }
}

fn alarm<K: Clone>(key: &K, reconciler: usize) -> (K, usize, Alarm) {
    (key.clone(), reconciler, Alarm::Resync)
}

impl<K: PartialEq> ReconcilerQueue<K> {
    /// Returns the time until the next resync, if there is one: random per key, so that thousands do not come at once.
    fn resync_after(&self, env: &Env) -> Option<Duration> {
        const LEAST: f64 = 0.9;
        const MOST: f64 = 1.1;

        let least = self.spec.resync?.min(LONGEST).mul_f64(LEAST);
        Some(env.random.jitter(least, MOST / LEAST - 1.0))
    }

    fn is_ready(&self) -> bool {
        self.spec.requires.iter().all(|requirement| (requirement.ready)())
    }

    fn show_ready(&self) {
        self.observer.ready(self.is_ready());
    }

    fn show_depth(&self) {
        for priority in [Priority::High, Priority::Low] {
            self.observer.depth(priority, self.limiter.waiting(priority));
        }
    }
}
