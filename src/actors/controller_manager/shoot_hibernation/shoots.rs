//! The cache of Shoots, and the writes (spec 84 §B.1, §B.4).

use cluster::{
    ApiError, Cached, Context, EventType, Lock, Predicate, Recorder, Reference, Watch, WatchOptions, Wrote,
    object::{self, NamespacedName},
};
use jiff::{SignedDuration, Timestamp};
use kit::{Failure, GeneralController, Outcome, Supervised, SyncRequirement};
use serde_json::Value;

use super::{
    Memory, NAME,
    decision::{Due, Shoot, trigger_patch},
    schedules::Operation,
};
use crate::{actors::controller_manager::context::GardenContext, api::kinds};

const ACTION: &str = "Reconcile";

/// The Shoots of the garden.
pub(super) struct Shoots {
    watch: Watch<CachedShoot>,
    events: Recorder,
    gardener_version: Box<str>,
}

/// A Shoot in the cache.
#[derive(Debug, Clone)]
pub(super) struct CachedShoot {
    uid: Box<str>,
    version: u64,
    pub(super) shoot: Shoot,
}

/// What is due for a Shoot, as it was judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trigger<'s> {
    pub(super) due: Due<'s>,
    pub(super) deadline: SignedDuration,
    /// When it was judged.
    pub(super) now: Timestamp,
}

/// What this process has set, and has not entered in the status yet.
#[derive(Debug)]
pub(super) struct Executed {
    uid: Box<str>,
    time: Timestamp,
    operation: Operation,
    is_announced: bool,
}

impl CachedShoot {
    fn of(shoot: &Value, gardener_version: &str) -> Option<Self> {
        let version = object::resource_version(shoot).parse().ok()?;
        Some(Self { uid: object::uid(shoot).into(), version, shoot: Shoot::of(shoot, gardener_version) })
    }
}

impl Cached for CachedShoot {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl Executed {
    /// Returns true if this is what is due for a Shoot now.
    pub(super) fn is(&self, cached: &CachedShoot, due: Due<'_>) -> bool {
        self.uid == cached.uid && (self.time, self.operation) == (due.time, due.entry.operation)
    }

    /// Returns true if its time has not come yet, by a clock that was set back.
    pub(super) fn is_ahead_of(&self, now: Timestamp) -> bool {
        now < self.time
    }
}

impl Trigger<'_> {
    fn operation(&self) -> Operation {
        self.due.entry.operation
    }

    /// Returns true if the same is due for the Shoot as it is known now.
    fn is_due(&self, shoot: &Shoot) -> bool {
        shoot
            .due(self.deadline, self.now)
            .is_some_and(|due| (due.time, due.entry.operation) == (self.due.time, self.operation()))
    }

    fn is_set(&self, shoot: &Shoot) -> bool {
        shoot.enabled == Some(self.operation().enabled())
    }
}

impl Shoots {
    pub(super) fn open(ctx: &GardenContext, gardener_version: &str) -> Self {
        let gardener_version: Box<str> = gardener_version.into();
        let version = gardener_version.clone();
        let cached = move |shoot: &Value| CachedShoot::of(shoot, &version);
        Self {
            watch: ctx.garden.watches.open(WatchOptions::new(kinds::SHOOT, cached)),
            events: ctx.garden.events.for_component(format!("{NAME}-controller")),
            gardener_version,
        }
    }

    pub(super) fn requirement(&self) -> SyncRequirement {
        self.watch.sync_requirement()
    }

    pub(super) fn get(&self, key: &NamespacedName) -> Option<CachedShoot> {
        self.watch.store().get(key)
    }

    /// Wakes Shoots with schedules, and those that had some.
    pub(super) fn subscribe<C: GeneralController<Key = NamespacedName>>(&self, supervised: &Supervised<C>) {
        let woken = Predicate::<CachedShoot>::differing(|old, new| old.shoot.is_woken_by(&new.shoot));
        let with_schedules =
            |name: &NamespacedName, cached: &CachedShoot| cached.shoot.has_schedules().then(|| name.clone());
        self.watch.on_change(supervised, woken, with_schedules);
    }

    /// Executes what is due. Returns `None` when the status says that it was executed, and else how the reconcile ends.
    ///
    /// What was set is announced and entered by the next reconcile, at the end of the queue: many Shoots have the same
    /// minute, and none of them waits for the status and the Event of another (§B.4). A refusal is recorded as an Event
    /// unless one of this time was ("better" 5).
    pub(super) async fn execute(
        &self,
        context: &Context,
        key: &NamespacedName,
        cached: &CachedShoot,
        trigger: Trigger<'_>,
        memory: &mut Memory,
    ) -> Result<Option<Outcome>, Failure> {
        let set = |cached: &CachedShoot| {
            let is_wanted = trigger.is_due(&cached.shoot) && !trigger.is_set(&cached.shoot);
            is_wanted.then(|| trigger.operation().patch())
        };
        match self.watch.patch_cached(context, key, Lock::Version, set).await {
            Ok(Wrote::Updated(written)) => {
                let (time, operation) = (trigger.due.time, trigger.operation());
                memory.executed = Some(Executed { uid: written.uid, time, operation, is_announced: false });
                Ok(Some(Outcome::Continue))
            }
            Ok(Wrote::Unchanged(_)) => self.confirm(context, key, trigger).await,
            Ok(Wrote::Created(_) | Wrote::Altered(_)) => Ok(Some(Outcome::Again)),
            Ok(Wrote::Deleting(_) | Wrote::Gone) => Ok(Some(Outcome::Retire)),
            Err(error) => {
                if let Some(message) = refusal(&error)
                    && memory.refused.replace(trigger.due.time) != Some(trigger.due.time)
                {
                    let note = format!("{}: {message}", trigger.operation().failure());
                    self.record(EventType::Warning, key, cached, ("HibernationFailed", note.as_str()));
                }
                Err(Failure::new(format!("failed to set hibernation.enabled: {error}")))
            }
        }
    }

    /// Records the Event about what this process has set, once, unless another Shoot has its name now.
    pub(super) fn announce(&self, key: &NamespacedName, cached: &CachedShoot, executed: &mut Executed) {
        if !std::mem::replace(&mut executed.is_announced, true) && executed.uid == cached.uid {
            self.record(EventType::Normal, key, cached, executed.operation.event());
        }
    }

    fn record(
        &self,
        event_type: EventType,
        key: &NamespacedName,
        cached: &CachedShoot,
        (reason, note): (&'static str, &str),
    ) {
        self.events.record(event_type, &Reference::new(&kinds::SHOOT, key, &*cached.uid), ACTION, reason, note);
    }

    /// Enters the trigger time after this process has set `enabled`. If somebody has set it otherwise since, that stays.
    pub(super) async fn enter_trigger_time(
        &self,
        context: &Context,
        key: &NamespacedName,
        trigger: Trigger<'_>,
    ) -> Result<Option<Outcome>, Failure> {
        let patch = |cached: &CachedShoot| trigger.is_due(&cached.shoot).then(|| trigger_patch(trigger.now));
        ended(self.watch.patch_status_cached(context, key, Lock::Uid, patch).await)
    }

    /// Enters the trigger time if `enabled` has the wanted value already. The cache may lag behind a user's change, so the
    /// Shoot is read live. What is not due any more, or not set, is judged again.
    async fn confirm(
        &self,
        context: &Context,
        key: &NamespacedName,
        trigger: Trigger<'_>,
    ) -> Result<Option<Outcome>, Failure> {
        let patch = |live: &Value| {
            let live = Shoot::of(live, &self.gardener_version);
            (trigger.is_due(&live) && trigger.is_set(&live)).then(|| trigger_patch(trigger.now))
        };
        ended(self.watch.patch_status(context, key, Lock::Version, patch).await)
    }
}

fn ended<T>(wrote: Result<Wrote<T>, ApiError>) -> Result<Option<Outcome>, Failure> {
    let failed = |error| Failure::new(format!("failed to set lastHibernationTriggerTime: {error}"));
    Ok(match wrote.map_err(failed)? {
        Wrote::Updated(_) => None,
        Wrote::Created(_) | Wrote::Altered(_) | Wrote::Unchanged(_) => Some(Outcome::Again),
        Wrote::Deleting(_) | Wrote::Gone => Some(Outcome::Retire),
    })
}

/// Returns the text of the API server if it refused a change: a retry is of no use until somebody changes something.
fn refusal(error: &ApiError) -> Option<&str> {
    const TOO_MANY_REQUESTS: u16 = 429;
    let status = error.status().filter(|status| (400..500).contains(&status.code))?;
    (status.code != TOO_MANY_REQUESTS && !error.is_conflict()).then_some(&*status.message)
}

impl Operation {
    /// Returns reason and note of the Event that says that it was executed.
    fn event(self) -> (&'static str, &'static str) {
        match self {
            Self::Hibernate => ("Hibernated", "Hibernating cluster due to schedule"),
            Self::WakeUp => ("WokenUp", "Waking up cluster due to schedule"),
        }
    }

    /// Returns the beginning of the note that says that it was refused.
    fn failure(self) -> &'static str {
        match self {
            Self::Hibernate => "Could not hibernate cluster due to schedule",
            Self::WakeUp => "Could not wake up cluster due to schedule",
        }
    }
}
