//! `bastion`: deletes Bastions that are expired or too old, and those whose Shoot is gone or moved (spec 81 A).
//!
//! `Bastion, Shoot ─ rules.rs ─► Verdict ─► DELETE, or a timer`
//!
//! [`rules`] is pure. This file has the watches, an actor per Bastion, and the deletion.

pub mod rules;

use std::rc::Rc;

use cluster::{
    Cached, CachedFields, Context, Index, Predicate, Watch, WatchOptions,
    evidence::{Evidence, EvidenceSource, decide},
    object::{self, NamespacedName},
};
use jiff::SignedDuration;
use kit::{Clock, Controller, Failure, Observers, Outcome, Reconcile, Reconciler, quote::cut};
use serde_json::Value;

use self::rules::{Bastion, Reason, ShootState, Verdict, judge};
use super::{
    context::{GardenContext, Registration, StartControllers, start},
    figures::DELETED_BASTIONS,
};
use crate::api::{config::controller_manager::Config, kinds, meta::field::formats};

const NAME: &str = "bastion"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

struct Bastions {
    workers: usize,
    max_lifetime: SignedDuration,
    clock: Clock,
    observers: Rc<dyn Observers>,
    bastions: Watch<CachedBastion>,
    by_shoot: Index<NamespacedName>,
    shoots: Watch<CachedFields<ShootState>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CachedBastion {
    uid: Box<str>,
    version: u64,
    bastion: Bastion,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let settings = config.controllers.bastion;
    let bastions = ctx.garden.watches.open(WatchOptions::new(kinds::BASTION, CachedBastion::of));
    let by_shoot = bastions.index(|name, cached: &CachedBastion| vec![cached.bastion.shoot_in(&name.namespace)]);
    let controller = Bastions {
        workers: settings.concurrent_syncs.count(),
        max_lifetime: SignedDuration::try_from(settings.max_lifetime.get()).unwrap_or(SignedDuration::MAX),
        clock: ctx.env.clock.clone(),
        observers: ctx.env.observers.clone(),
        bastions,
        by_shoot,
        shoots: ctx.garden.watches.open(WatchOptions::fields(kinds::SHOOT, ShootState::of)),
    };
    Some(start(controller, |controller, supervised| {
        for reason in Reason::LABELS {
            controller.observers.figure(DELETED_BASTIONS, reason, 0.0);
        }
        let changed = Predicate::<CachedBastion>::differing(|old, new| old.bastion != new.bastion);
        controller.bastions.on_change(supervised, changed, |name, _| [name.clone()]);
        let (moved, by_shoot) = (
            Predicate::<CachedFields<ShootState>>::differing(|old, new| old.fields.has_moved_to(&new.fields)),
            controller.by_shoot.clone(),
        );
        controller.shoots.on_change(supervised, moved.ignoring_first_list(), move |name, _| by_shoot.get(name));
    }))
}

impl CachedBastion {
    fn of(object: &Value) -> Option<Self> {
        let version = object::resource_version(object).parse().ok()?;
        Some(Self { uid: object::uid(object).into(), version, bastion: Bastion::of(object) })
    }
}

impl Cached for CachedBastion {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl EvidenceSource for Bastions {
    type Question = NamespacedName;
    type Answer = Option<ShootState>;

    fn cached(&self, shoot: &NamespacedName) -> Option<Self::Answer> {
        Some(self.shoots.known(shoot)?.map(|shoot| shoot.fields))
    }

    async fn read(&self, context: &Context, shoot: &NamespacedName) -> Result<Self::Answer, Failure> {
        if !formats::dns_subdomain(&shoot.name).is_empty() {
            return Ok(None); // no Shoot can have such a name
        }
        let live = self.shoots.read_live(context, shoot).await;
        let live = live.map_err(|error| Failure::new(format!("could not get shoot {shoot}: {error}")))?;
        Ok(live.map(|shoot| shoot.fields))
    }
}

impl Controller for Bastions {
    type Key = NamespacedName;
    type Memory = ();

    fn reconcilers(&self) -> Vec<Reconciler> {
        vec![
            Reconciler::new(NAME, self.workers)
                .about(("operations.gardener.cloud", "Bastion"))
                .requires(self.bastions.sync_requirement())
                .requires(self.shoots.sync_requirement()),
        ]
    }

    async fn reconcile(
        self: &Rc<Self>,
        (): &mut (),
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let Some(cached) = self.bastions.store().get(key) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        let (bastion, now) = (cached.bastion, self.clock.wall());
        let shoot = bastion.shoot_in(&key.namespace);
        let ask = |evidence: &Evidence<'_, Self>| judge(&bastion, now, self.max_lifetime, || evidence.ask(&shoot));
        // The deletion is bound to a version. So only what is known of the Shoot needs to be confirmed.
        let verdict = decide(&**self, &context, ask, |verdict| {
            matches!(verdict, Verdict::Delete(Reason::ShootGone | Reason::ShootDeleting | Reason::Moved { .. }))
        });
        match verdict.await? {
            Verdict::Leave => Ok(Outcome::Retire),
            Verdict::Wait(Some(until)) => {
                tracing::debug!(requeueAfter = %until, "Requeuing Bastion");
                reconcile.note(format!("of Shoot {}, is deleted at {until}", cut(&bastion.shoot)));
                Ok(Outcome::At(until))
            }
            Verdict::Wait(None) => {
                reconcile.note(format!("of Shoot {}, has no end", cut(&bastion.shoot)));
                Ok(Outcome::Done)
            }
            Verdict::Delete(reason) => {
                reason.log(&bastion, self.max_lifetime);
                let is_judged = |other: &CachedBastion| other.bastion == bastion;
                let deleted = self.bastions.delete_cached_if(&context, key, None, is_judged).await?;
                // Somebody changed it meanwhile: it is judged again.
                if matches!(deleted, cluster::Wrote::Unchanged(_)) {
                    return Ok(Outcome::Again);
                }
                self.observers.figure(DELETED_BASTIONS, reason.label(), 1.0);
                Ok(Outcome::Retire)
            }
        }
    }
}
