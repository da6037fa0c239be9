//! `event`: deletes Events that do not concern Shoots some time after they were last seen (spec 81 J). It runs only if
//! it is configured.
//!
//! `Event ─ age.rs ─► last seen ─► queue.rs: one timer for all ─► an actor for each Event that is due ─► DELETE`
//!
//! [`age`] and [`queue`] are pure. Of an Event only its identity and a time are kept. Events that were due before the
//! start are deleted in portions, with low priority.

pub mod age;
pub mod queue;

use std::{cell::RefCell, fmt, rc::Rc, time::Duration};

use cluster::{
    Cached, Change, Context, Watch, WatchOptions, Wrote,
    object::{self, NamespacedName},
};
use jiff::{SignedDuration, Timestamp};
use kit::{
    Causes, Clock, Controller, Failure, Observers, Outcome, Reconcile, Reconciler, Supervised, Wake, WeakSupervised,
};
use serde_json::Value;

use self::queue::DueQueue;
use super::{
    context::{GardenContext, Registration, StartControllers},
    figures::DELETED_EVENTS,
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "event"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// At most this many Events that were due before the start are deleted per [`PAUSE`].
const PORTION: usize = 20;

/// Time between two portions.
const PAUSE: Duration = Duration::from_secs(1);

/// What one actor looks after.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum EventKey {
    /// The timer of all Events.
    Timer,
    /// An Event that is due.
    Due(NamespacedName),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CachedEvent {
    uid: Box<str>,
    version: u64,
    /// When it is due; `None` if it is never deleted.
    due: Option<Timestamp>,
}

struct Events {
    workers: usize,
    clock: Clock,
    observers: Rc<dyn Observers>,
    /// What was due before this time is not urgent.
    started: Timestamp,
    events: Watch<CachedEvent>,
    queue: RefCell<DueQueue>,
    waker: WeakSupervised<Self>,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let settings = config.controllers.event?;
    let lifetime = SignedDuration::try_from(settings.ttl_non_shoot_events.get()).unwrap_or(SignedDuration::MAX);
    let cached = move |event: &Value| CachedEvent::of(event, lifetime);
    let events = ctx.garden.watches.open(WatchOptions::new(kinds::EVENT, cached));
    let workers = settings.concurrent_syncs.count();
    Some(Box::new(move |ctx| {
        let (clock, observers) = (ctx.env.clock.clone(), ctx.env.observers.clone());
        observers.figure(DELETED_EVENTS, "", 0.0);
        let make = |waker: &WeakSupervised<Events>| {
            let (started, queue, waker) = (clock.wall(), RefCell::default(), waker.clone());
            Rc::new(Events { workers, clock, observers, started, events, queue, waker })
        };
        let supervised = Supervised::start_cyclic(make, &ctx.env);
        let controller = supervised.controller();
        let handler = Rc::downgrade(&controller);
        controller.events.subscribe(move |change| {
            if let Some(controller) = handler.upgrade() {
                controller.note(change);
            }
        });
        supervised.into()
    }))
}

impl CachedEvent {
    fn of(event: &Value, lifetime: SignedDuration) -> Option<Self> {
        let version = object::resource_version(event).parse().ok()?;
        let last = if age::concerns_shoot(event) { None } else { age::last_seen(event) };
        let due = last.and_then(|last| last.checked_add(lifetime).ok());
        let uid = if due.is_some() { object::uid(event) } else { "" };
        Some(Self { uid: uid.into(), version, due })
    }

    fn is_due(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|due| now >= due)
    }
}

impl Cached for CachedEvent {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl fmt::Display for EventKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timer => f.write_str("timer"),
            Self::Due(name) => name.fmt(f),
        }
    }
}

impl Events {
    /// Enters a change into the queue, and sets the timer if the Event is due before all others.
    fn note(&self, change: &Change<'_, CachedEvent>) {
        let (old, new) = (change.old.and_then(|event| event.due), change.new.and_then(|event| event.due));
        if let Some(old) = old {
            self.queue.borrow_mut().remove(old, change.name);
        }
        if let Some(new) = new {
            self.enter(new, change.name);
        }
    }

    fn enter(&self, due: Timestamp, name: &NamespacedName) {
        let mut queue = self.queue.borrow_mut();
        let is_first = queue.next().is_none_or(|next| due < next);
        queue.insert(due, name.clone());
        if is_first {
            self.waker.wake(&EventKey::Timer, Wake::high(Causes::OBJECT));
        }
    }

    /// Wakes the actors of Events that are due. Returns when to look again.
    fn wake_due(&self, reconcile: &Reconcile<EventKey>) -> Outcome {
        let mut queue = self.queue.borrow_mut();
        let now = self.clock.wall();
        for name in queue.take_between(self.started, now) {
            self.waker.wake(&EventKey::Due(name), Wake::high(Causes::TIMER));
        }
        let old = queue.take_before(self.started.min(now), PORTION);
        let is_portion = old.len() == PORTION;
        for name in old {
            self.waker.wake(&EventKey::Due(name), Wake::low(Causes::TIMER));
        }
        let next = queue.next().map(|next| format!(", the next until {next}")).unwrap_or_default();
        reconcile.note(format!("{} Events wait for their end{next}", queue.count()));
        match queue.next() {
            None => Outcome::Done,
            Some(_) if is_portion => Outcome::After(PAUSE),
            Some(next) => Outcome::At(next),
        }
    }
}

impl Controller for Events {
    type Key = EventKey;
    type Memory = ();

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.workers).about(("events.k8s.io", "Event"));
        vec![reconciler.requires(self.events.sync_requirement())]
    }

    async fn reconcile(self: &Rc<Self>, (): &mut (), reconcile: &Reconcile<EventKey>) -> Result<Outcome, Failure> {
        let EventKey::Due(name) = &reconcile.key else { return Ok(self.wake_due(reconcile)) };
        let context = Context::new(reconcile.priority(), reconcile.deadline, name.to_string());
        let now = self.clock.wall();
        match self.events.store().with(name, |event| event.due).flatten() {
            None => {}
            // The clock stepped back, or the Event went on, since it was taken from the queue.
            Some(due) if due > now => self.enter(due, name),
            Some(_) => {
                // Bound to the version: a series that goes on meanwhile is judged again, and comes back into the queue.
                let deleted = self.events.delete_cached_if(&context, name, None, |event| event.is_due(now)).await?;
                if matches!(deleted, Wrote::Gone | Wrote::Deleting(_)) {
                    self.observers.figure(DELETED_EVENTS, "", 1.0);
                }
            }
        }
        Ok(Outcome::Retire)
    }
}
