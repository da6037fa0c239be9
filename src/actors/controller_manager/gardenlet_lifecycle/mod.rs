//! `gardenlet-lifecycle`: marks Seeds and Shoots whose gardenlet is silent, and revives gardenlets whose certificate has
//! expired (spec 81 K).
//!
//! `Lease, Seed or self-hosted Shoot ─ heartbeat.rs ─► GardenletReady; later ─ marks.rs ─► conditions of Shoots`
//!
//! [`heartbeat`] and [`marks`] are pure; `stores` has the caches, `view` what operators see. This file has an actor per
//! Seed and per self-hosted Shoot, with the steps of K.3. Nothing is marked unless the API server confirms that the Lease
//! is old.

pub mod heartbeat;
pub mod marks;
mod stores;
mod view;

use std::{fmt, rc::Rc, time::Duration};

use cluster::{Cached as _, Context, Lock, Predicate, Wrote, object, object::NamespacedName};
use futures::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use kit::{Clock, Controller, Failure, IdleCheck, Outcome, Reconcile, Reconciler};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::{
    heartbeat::{Periods, Reported, alive_for, is_alive},
    stores::{CachedLease, CachedSeed, Stores},
    view::{GardenletState, View},
};
use super::context::{GardenContext, Registration, StartControllers, start};
use crate::{
    actors::shared::texts::together,
    api::{
        config::controller_manager::Config,
        meta::conditions::{Condition, status_patch},
    },
};

const NAME: &str = "gardenlet-lifecycle"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// Writes of one reconcile at the same time (spec 80 §16 S-19).
const WRITES: usize = 16;

/// The annotation of operations is set at most once in this time (spec 81 K.6).
const BETWEEN_TRIGGERS: Duration = Duration::from_secs(60);

/// A timer that ends a moment too early, because clocks differ a little, starts again for this time.
const SHORTEST: Duration = Duration::from_millis(1);

const OPERATION: &str = "gardener.cloud/operation";

/// Whose gardenlet an actor looks after.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GardenletKey {
    /// That of a Seed.
    Seed(NamespacedName),
    /// That of a self-hosted Shoot.
    Shoot(NamespacedName),
}

struct Lifecycle {
    workers: usize,
    periods: Periods,
    clock: Clock,
    stores: Stores,
    view: View,
}

/// What an actor remembers.
#[derive(Debug, Default)]
struct Memory {
    /// It was logged that Shoots are marked in this outage.
    is_told: bool,
    /// When the annotation of operations was set.
    triggered: Option<Instant>,
}

/// What the API server says of a gardenlet that its cached Lease shows as silent.
enum Judged {
    /// It is alive.
    Alive,
    /// It is silent, and `GardenletReady` says so.
    Told,
    /// It is silent, and `GardenletReady` must become this.
    Untold(Box<Condition>),
}

/// What a write of `GardenletReady` led to.
enum Silenced {
    /// The object is as it must be, with this status.
    Done(Box<Reported>),
    /// Its gardenlet is alive.
    Alive,
    /// Somebody else wrote it: start over.
    Changed,
    /// It does not exist any more.
    Gone,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let settings = config.controllers.seed;
    let period = |period: Duration| SignedDuration::try_from(period).unwrap_or(SignedDuration::MAX);
    let controller = Lifecycle {
        workers: settings.concurrent_syncs.count(),
        periods: Periods {
            sync: period(settings.sync_period.get()),
            monitor: period(settings.monitor_period.get()),
            shoot_monitor: period(settings.shoot_monitor_period()),
        },
        clock: ctx.env.clock.clone(),
        stores: Stores::open(ctx),
        view: View::new(&ctx.env.observers),
    };
    Some(start(controller, |controller, supervised| {
        controller.view.show();
        let Stores { seeds, shoots, leases, .. } = &controller.stores;
        // A renewal only moves the end of the timer. A Lease that loses its time, or goes back, ends the grace at once.
        let shortened = Predicate::differing(|old: &CachedLease, new: &CachedLease| new.fields < old.fields);
        leases.on_change(supervised, shortened.ignoring_first_list(), |lease, _| {
            [GardenletKey::Seed(stores::seed_of_lease(lease))]
        });
        let come_or_gone = Predicate::differing(|_, _| false);
        seeds.on_change(supervised, come_or_gone, |name, _| [GardenletKey::Seed(name.clone())]);
        let is_self_hosted = |shoot: &stores::CachedShoot| shoot.fields.own_gardenlet.is_some();
        let changed = Predicate::differing(move |old, new| is_self_hosted(old) != is_self_hosted(new));
        shoots.on_change(supervised, changed.including_own_writes(), move |name, shoot| {
            is_self_hosted(shoot).then(|| GardenletKey::Shoot(name.clone()))
        });
    }))
}

impl fmt::Display for GardenletKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seed(name) => write!(f, "Seed {name}"),
            Self::Shoot(name) => write!(f, "Shoot {name}"),
        }
    }
}

impl Lifecycle {
    fn sync_period(&self) -> Duration {
        self.periods.sync.unsigned_abs()
    }

    /// Returns when to look again at a gardenlet that is alive: when it is not any more, unless a fresh cache shows a later
    /// renewal by then.
    fn look_later(&self, key: &GardenletKey, renewed: Option<Timestamp>) -> Outcome {
        let (periods, clock) = (self.periods, self.clock.clone());
        let longest = periods.monitor.unsigned_abs();
        let left = move |renewed| {
            let left = Duration::try_from(alive_for(renewed, periods, clock.wall())?).unwrap_or_default();
            Some(left.min(longest).max(SHORTEST))
        };
        match key {
            GardenletKey::Seed(name) => {
                let (leases, lease) = (self.stores.leases.clone(), stores::lease_of_seed(name));
                let first = left(renewed).unwrap_or(SHORTEST);
                Outcome::Idle(first, IdleCheck::new(move || left(leases.known(&lease).flatten()?.fields)))
            }
            // Its Lease is not watched: it is read when it may be too old.
            GardenletKey::Shoot(_) => {
                let sync_period = self.sync_period();
                Outcome::After(left(renewed).unwrap_or_default().clamp(sync_period, longest.max(sync_period)))
            }
        }
    }

    /// Asks the API server for the Lease of a gardenlet that reported this (step 5, F1). Shows the silence before the write,
    /// which may fail.
    async fn judge(
        &self,
        context: &Context,
        reconcile: &Reconcile<GardenletKey>,
        reported: &Reported,
        lease: &NamespacedName,
    ) -> Result<Judged, Failure> {
        let now = self.clock.wall(); // before the read: the answer may be late
        let renewed = self.stores.read_lease(context, lease).await?;
        if is_alive(renewed, self.periods, now) || !reported.has_conditions {
            return Ok(Judged::Alive);
        }
        self.view.look(reconcile, GardenletState::of_silent(reported, now), reported, renewed);
        let Some(silenced) = reported.silenced(now) else { return Ok(Judged::Told) };
        if let Some(renewed) = renewed {
            let monitor_period = self.periods.monitor;
            tracing::info!(
                renewTime = %renewed, now = %now, monitorPeriod = %monitor_period, "Lease was not renewed in time"
            );
        }
        tracing::info!("Setting GardenletReady condition status to 'Unknown' as gardenlet stopped updating its Lease");
        Ok(Judged::Untold(Box::new(silenced)))
    }

    /// Sets `GardenletReady` of a Seed to `Unknown` if the API server confirms that the Lease is old. The version of the
    /// cached Seed is the lock: the gardenlet may come back in this moment, and a cache that lags is found out.
    async fn silence_seed(
        &self,
        context: &Context,
        reconcile: &Reconcile<GardenletKey>,
        name: &NamespacedName,
    ) -> Result<Silenced, Failure> {
        let seeds = &self.stores.seeds;
        let Some(seed) = seeds.store().get(name) else { return Ok(Silenced::Gone) };
        let silenced = match self.judge(context, reconcile, &seed.fields, &stores::lease_of_seed(name)).await? {
            Judged::Alive => return Ok(Silenced::Alive),
            Judged::Told => return Ok(Silenced::Changed), // nothing confirms the cache
            Judged::Untold(silenced) => silenced,
        };
        let decide = |cached: &CachedSeed| {
            let is_as_judged = cached.version() == seed.version();
            is_as_judged.then(|| cached.fields.patch(&silenced)).flatten()
        };
        Ok(match seeds.patch_status_cached(context, name, Lock::Version, decide).await? {
            Wrote::Created(seed) | Wrote::Updated(seed) | Wrote::Altered(seed) => Silenced::Done(Box::new(seed.fields)),
            Wrote::Unchanged(_) | Wrote::Deleting(_) => Silenced::Changed,
            Wrote::Gone => Silenced::Gone,
        })
    }

    /// As [`Self::silence_seed`], on the object as it is read now: what follows needs a live look, also if the object tells
    /// of the silence already.
    async fn silence_live(&self, context: &Context, reconcile: &Reconcile<GardenletKey>) -> Result<Silenced, Failure> {
        let Stores { seeds, shoots, .. } = &self.stores;
        let (object, lease) = match &reconcile.key {
            GardenletKey::Seed(name) => (seeds.read_object(context, name).await?, stores::lease_of_seed(name)),
            GardenletKey::Shoot(name) => (shoots.read_object(context, name).await?, stores::lease_of_shoot(name)),
        };
        let Some(object) = object else { return Ok(Silenced::Gone) };
        let reported = Reported::of(&object);
        let silenced = match self.judge(context, reconcile, &reported, &lease).await? {
            Judged::Alive => return Ok(Silenced::Alive),
            Judged::Told => return Ok(Silenced::Done(Box::new(reported))),
            Judged::Untold(silenced) => silenced,
        };
        let decide = |live: &Value| {
            let is_as_read = object::resource_version(live) == object::resource_version(&object);
            is_as_read.then(|| status_patch(live, "conditions", std::slice::from_ref(&silenced))).flatten()
        };
        let wrote = match &reconcile.key {
            GardenletKey::Seed(_) => seeds.patch_status(context, &object, Lock::Version, decide).await?,
            GardenletKey::Shoot(_) => shoots.patch_status(context, &object, Lock::Version, decide).await?,
        };
        Ok(match wrote {
            Wrote::Created(live) | Wrote::Updated(live) | Wrote::Altered(live) => {
                Silenced::Done(Box::new(Reported::of(&live)))
            }
            Wrote::Unchanged(_) | Wrote::Deleting(_) => Silenced::Changed,
            Wrote::Gone => Silenced::Gone,
        })
    }

    /// Returns the ManagedSeed whose gardenlet must get a new certificate (K.6); `None` if there is none, or if an
    /// operation is asked for already.
    fn expired(&self, key: &GardenletKey, reported: &Reported, memory: &Memory) -> Option<NamespacedName> {
        let GardenletKey::Seed(seed) = key else { return None };
        let now = self.clock.monotonic();
        let is_recent = memory.triggered.is_some_and(|last| now.duration_since(last) < BETWEEN_TRIGGERS);
        if is_recent || !reported.has_expired_certificate(self.clock.wall()) {
            return None;
        }
        let name = NamespacedName::new(stores::GARDEN, seed.name.as_str());
        let operation = self.stores.managed_seeds.store().with(&name, |managed_seed| managed_seed.fields);
        (operation == Some(stores::Operation::None)).then_some(name)
    }

    /// Returns true if something must be written: `GardenletReady`, a ManagedSeed, or Shoots.
    fn must_write(&self, key: &GardenletKey, reported: &Reported, memory: &Memory) -> bool {
        let now = self.clock.wall();
        reported.silenced(now).is_some()
            || self.expired(key, reported, memory).is_some()
            || (reported.concerns_shoots(self.periods, now) && !self.stores.unmarked(key).is_empty())
    }

    /// Makes the gardenlet of a ManagedSeed get a new certificate (K.6).
    async fn revive(&self, context: &Context, name: &NamespacedName, memory: &mut Memory) -> Result<(), Failure> {
        tracing::info!(
            managedSeed = %name,
            "Triggering ManagedSeed reconciliation since gardenlet client certificate is expired"
        );
        let patch = |managed_seed: &Value| {
            let is_free = object::annotation(managed_seed, OPERATION).is_none();
            is_free.then(|| json!({ "metadata": { "annotations": { OPERATION: "reconcile" } } }))
        };
        self.stores.managed_seeds.patch(context, name, Lock::None, patch).await?;
        memory.triggered = Some(self.clock.monotonic());
        Ok(())
    }

    /// Marks the Shoots of a silent gardenlet (steps 8 and 9) in time slices, so that many Shoots of one Seed do not delay
    /// other Seeds.
    async fn mark_shoots(
        &self,
        context: &Context,
        reconcile: &Reconcile<GardenletKey>,
        since: Option<Timestamp>,
        memory: &mut Memory,
    ) -> Result<Outcome, Failure> {
        let unmarked = self.stores.unmarked(&reconcile.key);
        if unmarked.is_empty() {
            return Ok(Outcome::After(self.sync_period()));
        }
        let now = self.clock.wall();
        if !std::mem::replace(&mut memory.is_told, true) {
            tracing::info!(
                gardenletOfflineSince = since.map(tracing::field::display),
                now = %now,
                shootMonitorPeriod = %self.periods.shoot_monitor,
                "Gardenlet has not sent heartbeats for at least the configured shoot monitor period, setting shoot \
                 conditions and constraints to 'Unknown' for all affected Shoots"
            );
        }
        let all = unmarked.len();
        let in_time = stream::iter(unmarked).take_while(|_| std::future::ready(!reconcile.should_yield()));
        let marked = in_time.map(|shoot| self.stores.mark(context, &reconcile.key, shoot, now));
        let marked: Vec<Result<(), String>> = marked.buffer_unordered(WRITES).collect().await;
        let is_unfinished = marked.len() < all;
        let errors: Vec<String> = marked.into_iter().filter_map(Result::err).collect();
        if !errors.is_empty() {
            return Err(Failure::new(together(&errors, "; ")));
        }
        Ok(if is_unfinished { Outcome::Continue } else { Outcome::After(self.sync_period()) })
    }
}

impl Controller for Lifecycle {
    type Key = GardenletKey;
    type Memory = Memory;

    fn reconcilers(&self) -> Vec<Reconciler> {
        // An error must not stop the looks at the Lease (spec 81 K.3).
        let reconciler = Reconciler::new(NAME, self.workers).max_back_off(self.sync_period());
        vec![self.stores.requirements().into_iter().fold(reconciler, Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<GardenletKey>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let Some(reported) = self.stores.reported(key) else {
            tracing::debug!("Object is gone, stop reconciling");
            self.view.forget(key);
            return Ok(Outcome::Retire);
        };
        let look = |state, reported: &Reported, renewed| self.view.look(reconcile, state, reported, renewed);
        if !reported.has_conditions {
            look(GardenletState::Unreported, &reported, None);
            return Ok(Outcome::After(self.sync_period()));
        }
        let now = self.clock.wall(); // before the read: the answer may be late
        let renewed = self.stores.renewed(&context, key).await?;
        if is_alive(renewed, self.periods, now) {
            memory.is_told = false;
            look(GardenletState::Alive, &reported, renewed);
            return Ok(self.look_later(key, renewed));
        }
        let silent = GardenletState::of_silent(&reported, now);
        if !self.must_write(key, &reported, memory) {
            look(silent, &reported, renewed);
            return Ok(Outcome::After(self.sync_period()));
        }
        // Caches may lag: each write needs a live look first, or the version of the cache as its lock.
        let silenced = match key {
            GardenletKey::Seed(name) if reported.silenced(now).is_some() => {
                self.silence_seed(&context, reconcile, name).await?
            }
            GardenletKey::Seed(_) | GardenletKey::Shoot(_) => self.silence_live(&context, reconcile).await?,
        };
        let reported = match silenced {
            Silenced::Done(reported) => reported,
            Silenced::Alive => return Ok(Outcome::After(self.sync_period())),
            Silenced::Changed => return Ok(Outcome::Again),
            Silenced::Gone => {
                self.view.forget(key);
                return Ok(Outcome::Retire);
            }
        };
        look(silent, &reported, renewed); // again: the write may have set the time
        if reported.silenced(self.clock.wall()).is_some() {
            return Ok(Outcome::After(self.sync_period())); // the API server did not keep what was written
        }
        if let Some(managed_seed) = self.expired(key, &reported, memory) {
            self.revive(&context, &managed_seed, memory).await?;
        }
        if !reported.concerns_shoots(self.periods, self.clock.wall()) {
            return Ok(Outcome::After(self.sync_period()));
        }
        let since = reported.ready.and_then(|ready| ready.last_transition_time);
        self.mark_shoots(&context, reconcile, since, memory).await
    }
}
