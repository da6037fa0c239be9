//! `shoot-quota`: tells when a Shoot expires, and deletes it then (spec 84 D).
//!
//! ```text
//! Shoot, its binding, the Quotas ─ rules.rs ─► Verdict ─► annotation, DELETE, or a timer
//! ```
//! One actor per Shoot that has a lifetime. A deletion is the most dangerous act of this program: it rests on live reads of
//! the Shoot, its binding and all Quotas, and it is bound to the version of the Shoot that was judged (spec 80 §16 S-13).
//! So an extension in the last moment stops it. The annotation rests on live reads, too: a deletion follows it, and nobody
//! corrects it (rule L-5).
//!
//! * [`rules`] is pure.
//! * `lifetimes` has bindings and Quotas, as caches know them and as the API server says.

mod lifetimes;
pub mod rules;

use std::{rc::Rc, time::Duration};

use cluster::{
    Context, EventType, Index, Lock, Recorder, Reference, Watch, Wrote,
    evidence::{Evidence, decide},
    object::{self, NamespacedName},
};
use jiff::{SignedDuration, Timestamp};
use kit::{Clock, Controller, Failure, Outcome, Reconcile, Reconciler, Supervised};
use serde_json::Value;

use self::{
    lifetimes::{Lifetime, Lifetimes},
    rules::{LifetimeDays, Term, Verdict, annotation_patch, next_look},
};
use super::{
    bindings::binding::BindingName,
    context::{GardenContext, Registration, StartControllers, start},
    deletion_confirmation::{OpenConfirmation, confirmation},
    shoot_record::{CachedShoot, ShootRecord, on_shoots},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "shoot-quota"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// Longest back-off after errors (spec 80 §16 S-2).
const LONGEST_BACK_OFF: Duration = Duration::from_secs(1000);

/// Time limit of a reconcile if the period is longer: a request that hangs must not hold a worker for hours.
const LONGEST_RECONCILE: Duration = Duration::from_secs(600);

struct ExpiringShoots {
    workers: usize,
    period: Duration,
    is_bounded: bool,
    clock: Clock,
    events: Recorder,
    shoots: Watch<CachedShoot>,
    by_binding: Index<BindingName>,
    lifetimes: Lifetimes,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let settings = config.controllers.shoot_quota;
    let shoots = ctx.shoots.clone();
    let by_binding =
        shoots.index(|name, shoot: &CachedShoot| binding_of(name, &shoot.fields.term).into_iter().collect());
    let controller = ExpiringShoots {
        workers: settings.concurrent_syncs.count(),
        period: settings.sync_period.get(),
        is_bounded: settings.enforce_maximum_expiration,
        clock: ctx.env.clock.clone(),
        events: ctx.garden.events.for_component(format!("{NAME}-controller")),
        shoots,
        by_binding,
        lifetimes: Lifetimes::open(ctx),
    };
    Some(start(controller, |controller, supervised| controller.subscribe(supervised)))
}

/// Returns the binding of a Shoot.
fn binding_of(shoot: &NamespacedName, term: &Term) -> Option<BindingName> {
    let (kind, name) = term.binding.as_ref()?;
    Some((*kind, NamespacedName::new(shoot.namespace.as_str(), &**name)))
}

impl ExpiringShoots {
    fn subscribe(&self, supervised: &Supervised<Self>) {
        on_shoots(&self.shoots, supervised, |_, old, new| {
            new.term.may_end() && !new.is_deleting && old.is_none_or(|old| old.term != new.term)
        });
        let by_binding = self.by_binding.clone();
        self.lifetimes.subscribe(supervised, move |binding| by_binding.get(binding));
    }

    fn verdict(&self, shoot: &ShootRecord, life: LifetimeDays, now: Timestamp) -> Verdict {
        Verdict::of(shoot, life, self.is_bounded, now)
    }

    /// Returns the lifetime that the Quotas of a Shoot allow. Live reads confirm a lifetime that leads to a deletion, or
    /// that sets or removes the annotation.
    async fn lifetime(
        &self,
        context: &Context,
        key: &NamespacedName,
        shoot: &ShootRecord,
        now: Timestamp,
    ) -> Result<LifetimeDays, Failure> {
        let binding = binding_of(key, &shoot.term);
        let ask = |evidence: &Evidence<'_, Lifetimes>| binding.as_ref().map_or(Ok(Ok(None)), |it| evidence.ask(it));
        let is_irreversible = |lifetime: &Lifetime| {
            let verdict = lifetime.as_ref().ok().map(|life| self.verdict(shoot, *life, now));
            matches!(verdict, Some(Verdict::Delete(_) | Verdict::Annotate(_) | Verdict::Remove))
        };
        decide(&self.lifetimes, context, ask, is_irreversible).await?.map_err(Failure::new)
    }

    /// Sets the annotation, or removes it, if the live Shoot is still judged the same.
    async fn annotate(
        &self,
        context: &Context,
        key: &NamespacedName,
        judged: (&ShootRecord, LifetimeDays),
        end: Option<Timestamp>,
    ) -> Result<Wrote, Failure> {
        let (shoot, life) = judged;
        let now = self.clock.wall();
        let verdict = self.verdict(shoot, life, now);
        let patch = |live: &Value| {
            let live = ShootRecord::of(live);
            let is_judged = live.term.binding == shoot.term.binding && self.verdict(&live, life, now) == verdict;
            is_judged.then(|| annotation_patch(end))
        };
        Ok(self.shoots.patch(context, key, Lock::Version, patch).await?)
    }

    /// Deletes an expired Shoot whose lifetime was read live, unless it has changed meanwhile (rule L-9).
    async fn delete(
        &self,
        memory: &mut OpenConfirmation,
        context: &Context,
        key: &NamespacedName,
        judged: (&ShootRecord, LifetimeDays),
        end: Timestamp,
    ) -> Result<Outcome, Failure> {
        let (shoot, life) = judged;
        tracing::info!(expirationTime = %end, "Shoot cluster lifetime expired, deleting Shoot");
        let now = self.clock.wall();
        let confirm = |live: &Value| {
            let live = ShootRecord::of(live);
            let is_judged = live.created == shoot.created && live.term == shoot.term;
            (is_judged && self.verdict(&live, life, now) == Verdict::Delete(end)).then(|| confirmation(now))
        };
        memory.written(now); // its answer may be lost
        let confirmed = match self.shoots.patch(context, key, Lock::Version, confirm).await? {
            Wrote::Updated(confirmed) => confirmed,
            Wrote::Created(_) | Wrote::Altered(_) | Wrote::Unchanged(_) => return Ok(Outcome::Again),
            Wrote::Deleting(_) | Wrote::Gone => return Ok(Outcome::Retire),
        };
        let regarding = Reference::new(&kinds::SHOOT, key, object::uid(&confirmed));
        let note = format!("Shoot cluster lifetime expired at {end}, deleting Shoot");
        self.events.record(EventType::Normal, &regarding, "Reconcile", "ShootExpired", &note);
        let is_confirmed = |live: &Value| object::resource_version(live) == object::resource_version(&confirmed);
        Ok(match self.shoots.delete_if(context, &confirmed, None, is_confirmed).await? {
            Wrote::Gone | Wrote::Deleting(_) => Outcome::Retire,
            Wrote::Created(_) | Wrote::Updated(_) | Wrote::Altered(_) | Wrote::Unchanged(_) => Outcome::Again,
        })
    }

    /// Returns when to look again at a Shoot whose lifetime ends then.
    fn look_later(&self, reconcile: &Reconcile<NamespacedName>, end: Timestamp) -> Outcome {
        reconcile.note(format!("expires at {end}"));
        let period = SignedDuration::try_from(self.period).unwrap_or(SignedDuration::MAX);
        Outcome::At(next_look(end, period, self.clock.wall()))
    }
}

impl Controller for ExpiringShoots {
    type Key = NamespacedName;
    type Memory = OpenConfirmation;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.workers)
            .about(("core.gardener.cloud", "Shoot"))
            .deadline(self.period.min(LONGEST_RECONCILE))
            .max_back_off(self.period.min(LONGEST_BACK_OFF))
            .requires(self.shoots.sync_requirement());
        vec![self.lifetimes.requirements().fold(reconciler, Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut OpenConfirmation,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let Some(shoot) = self.shoots.store().with(key, |shoot| shoot.fields.clone()) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        if shoot.is_deleting {
            return Ok(Outcome::Retire);
        }
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let now = self.clock.wall();
        let life = self.lifetime(&context, key, &shoot, now).await?;
        let verdict = self.verdict(&shoot, life, now);
        if !matches!(verdict, Verdict::Delete(_)) {
            memory.withdraw(&self.shoots, &context, key).await?;
        }
        match verdict {
            Verdict::Leave => Ok(Outcome::Retire), // a change of its binding or of a Quota wakes it
            Verdict::Remove => {
                tracing::info!("Removing expiration timestamp annotation");
                let wrote = self.annotate(&context, key, (&shoot, life), None).await?;
                Ok(if matches!(wrote, Wrote::Updated(_) | Wrote::Gone) { Outcome::Retire } else { Outcome::Again })
            }
            Verdict::Annotate(end) => {
                tracing::info!(expirationTime = %end, "Setting expiration timestamp annotation");
                let wrote = self.annotate(&context, key, (&shoot, life), Some(end)).await?;
                Ok(match wrote {
                    Wrote::Updated(_) => self.look_later(reconcile, end),
                    Wrote::Gone => Outcome::Retire,
                    Wrote::Created(_) | Wrote::Altered(_) | Wrote::Unchanged(_) | Wrote::Deleting(_) => Outcome::Again,
                })
            }
            Verdict::Unreadable => {
                tracing::error!("Expiration timestamp annotation or creation timestamp is no RFC 3339 time");
                reconcile.note("has an unreadable expiration");
                Ok(Outcome::After(self.period))
            }
            Verdict::Live(end) => Ok(self.look_later(reconcile, end)),
            Verdict::Delete(end) => self.delete(memory, &context, key, (&shoot, life), end).await,
        }
    }
}
