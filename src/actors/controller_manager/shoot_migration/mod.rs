//! `shoot-migration`: keeps the constraint `ReadyForMigration` of a Shoot that moves to another Seed (spec 84 H).
//!
//! `Shoot, both Seeds ─ rules.rs ─► Readiness ─► status.constraints`
//!
//! [`rules`] is pure. This file has the watches, an actor per Shoot that migrates, and its write. Changes of both Seeds wake
//! the actor; its timer is a safety net. The constraint becomes `True` after live reads of both Seeds only, because then
//! gardenlet begins.

pub mod rules;

use std::{fmt, rc::Rc, time::Duration};

use cluster::{
    CachedFields, Context, Index, Lock, Predicate, Watch, WatchOptions, Wrote,
    evidence::{Evidence, EvidenceSource, decide},
    object::NamespacedName,
};
use kit::{Clock, Controller, Failure, Outcome, Reconcile, Reconciler, quote::cut};
use serde_json::Value;

use self::rules::{Migration, Readiness, SeedState, removal_patch};
use super::{
    context::{GardenContext, Registration, StartControllers, start},
    shoot_record::{CachedShoot, on_shoots},
};
use crate::api::{config::controller_manager::Config, kinds, meta::field::formats};

const NAME: &str = "shoot-migration"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// A Shoot that migrates is looked at again after this time (H-4, H-5).
const PERIOD: Duration = Duration::from_secs(5);

struct Migrations {
    workers: usize,
    clock: Clock,
    shoots: Watch<CachedShoot>,
    /// The Shoots that migrate, by both Seeds.
    by_seed: Index<String>,
    seeds: Watch<CachedFields<SeedState>>,
}

/// What a Seed is for a Shoot that migrates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Source,
    Destination,
}

/// A Seed by its name.
type SeedOfShoot = (Role, Box<str>);

/// What an actor remembers.
#[derive(Debug, Default)]
struct Memory {
    /// The Seeds between which live reads allowed the Shoot to move, unless a later verdict did not.
    approved: Option<Way>,
}

/// A source and a destination.
type Way = (Box<str>, Box<str>);

/// What is known of both Seeds.
enum Verdict {
    Judged(Readiness),
    /// This Seed does not exist.
    Missing(SeedOfShoot),
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let shoots = ctx.shoots.clone();
    let by_seed = shoots.index(|_, shoot: &CachedShoot| {
        let migration = &shoot.fields.migration;
        let seeds = [&migration.source, &migration.destination];
        if migration.is_migrating() { seeds.map(ToString::to_string).into() } else { Vec::new() }
    });
    let controller = Migrations {
        workers: config.controllers.shoot_migration.concurrent_syncs.count(),
        clock: ctx.env.clock.clone(),
        shoots,
        by_seed,
        seeds: ctx.garden.watches.open(WatchOptions::fields(kinds::SEED, SeedState::of)),
    };
    Some(start(controller, |controller, supervised| {
        on_shoots(&controller.shoots, supervised, |_, old, new| {
            concerns(old.map(|old| &old.migration), &new.migration)
        });
        let by_seed = controller.by_seed.clone();
        let changed = Predicate::<CachedFields<SeedState>>::fields_changed().ignoring_first_list();
        controller.seeds.on_change(supervised, changed, move |seed, _| by_seed.get(&seed.name));
    }))
}

/// Returns true if a change must be looked at (H.1). The constraint itself does not count: the timer sees to it.
fn concerns(old: Option<&Migration>, new: &Migration) -> bool {
    match old {
        None => new.is_migrating() || new.is_leftover,
        Some(old) => {
            let is_on_new_way = !new.is_on_way_of(old);
            let is_moved = is_on_new_way && (new.is_migrating() || old.destination != new.destination);
            is_moved || (new.is_leftover && (is_on_new_way || !old.is_leftover))
        }
    }
}

/// Returns the error of H-2.
fn unreadable((role, name): &SeedOfShoot, cause: impl fmt::Display) -> Failure {
    let role = match role {
        Role::Source => "source",
        Role::Destination => "destination",
    };
    Failure::new(format!("failed reading {role} seed {}: {cause}", cut(name)))
}

impl EvidenceSource for Migrations {
    type Question = SeedOfShoot;
    type Answer = Option<SeedState>;

    fn cached(&self, seed: &SeedOfShoot) -> Option<Self::Answer> {
        Some(self.seeds.known(&NamespacedName::new("", &*seed.1))?.map(|seed| seed.fields))
    }

    async fn read(&self, context: &Context, seed: &SeedOfShoot) -> Result<Self::Answer, Failure> {
        if !formats::dns_subdomain(&seed.1).is_empty() {
            return Ok(None); // no Seed can have such a name
        }
        let live = self.seeds.read_live(context, &NamespacedName::new("", &*seed.1)).await;
        Ok(live.map_err(|error| unreadable(seed, error))?.map(|seed| seed.fields))
    }
}

impl Migrations {
    /// Judges the Seeds of a Shoot that migrates (H-2 to H-5). An approval of this way rests on live reads: the constraint may
    /// be `True` for another way.
    async fn judged(
        &self,
        memory: &mut Memory,
        context: &Context,
        migration: &Migration,
    ) -> Result<Readiness, Failure> {
        let way = (migration.source.clone(), migration.destination.clone());
        let source = (Role::Source, migration.source.clone());
        let destination = (Role::Destination, migration.destination.clone());
        let judge = |evidence: &Evidence<'_, Self>| -> Result<Verdict, SeedOfShoot> {
            let Some(of_source) = evidence.ask(&source)? else { return Ok(Verdict::Missing(source.clone())) };
            let Some(state) = evidence.ask(&destination)? else { return Ok(Verdict::Missing(destination.clone())) };
            Ok(Verdict::Judged(Readiness::of(&state, &of_source)))
        };
        let is_known = migration.says_ready() && memory.approved.as_ref() == Some(&way);
        let is_start_of_work = |verdict: &Verdict| matches!(verdict, Verdict::Judged(Readiness::Ready)) && !is_known;
        memory.approved = None;
        match decide(self, context, judge, is_start_of_work).await? {
            Verdict::Judged(readiness) => {
                memory.approved = (readiness == Readiness::Ready).then_some(way);
                Ok(readiness)
            }
            Verdict::Missing(seed) => {
                let cause = format!("seeds.core.gardener.cloud \"{}\" not found", cut(&seed.1));
                Err(unreadable(&seed, cause))
            }
        }
    }

    /// Removes the constraint of a Shoot that does not migrate (H-1).
    async fn remove(&self, context: &Context, key: &NamespacedName, migration: &Migration) -> Result<Outcome, Failure> {
        if !migration.has_constraint {
            return Ok(Outcome::Retire);
        }
        tracing::info!("Removing constraint since shoot is already migrating");
        let wrote = self.shoots.patch_status(context, key, Lock::Version, removal_patch).await;
        let wrote = wrote.map_err(|error| Failure::new(format!("failed patching shoot constraints: {error}")))?;
        Ok(if let Wrote::Altered(_) = wrote { Outcome::Again } else { Outcome::Retire })
    }
}

impl Controller for Migrations {
    type Key = NamespacedName;
    type Memory = Memory;

    fn reconcilers(&self) -> Vec<Reconciler> {
        vec![
            Reconciler::new(NAME, self.workers)
                .about(("core.gardener.cloud", "Shoot"))
                .requires(self.shoots.sync_requirement())
                .requires(self.seeds.sync_requirement()),
        ]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let Some(migration) = self.shoots.store().with(key, |shoot| shoot.fields.migration.clone()) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        if !migration.is_migrating() {
            return self.remove(&context, key, &migration).await;
        }
        let readiness = self.judged(memory, &context, &migration).await?;
        let now = self.clock.wall();
        if let Some(next_second) = migration.postponed(&readiness, now) {
            return Ok(Outcome::At(next_second));
        }
        if migration.differs_from(&readiness, now) {
            match &readiness {
                Readiness::Unready(reason) => tracing::info!(reason, "{}", readiness.announcement()),
                Readiness::Ready | Readiness::InDeletion => tracing::info!("{}", readiness.announcement()),
            }
            let patch =
                |live: &Value| readiness.patch(live, now).filter(|_| Migration::of(live).is_on_way_of(&migration));
            let wrote = self.shoots.patch_status(&context, key, Lock::Version, patch).await;
            let wrote = wrote.map_err(|error| Failure::new(format!("failed patching shoot constraints: {error}")))?;
            match wrote {
                Wrote::Altered(_) => return Ok(Outcome::Again),
                Wrote::Gone => return Ok(Outcome::Retire),
                Wrote::Created(_) | Wrote::Updated(_) | Wrote::Unchanged(_) | Wrote::Deleting(_) => {}
            }
        }
        let way = format!("from {} to {}", cut(&migration.source), cut(&migration.destination));
        Ok(match readiness {
            Readiness::InDeletion => {
                reconcile.note(format!("{way}, which is being deleted"));
                Outcome::Done
            }
            Readiness::Unready(reason) => {
                reconcile.note(format!("{way}: {}", cut(&reason)));
                Outcome::After(PERIOD)
            }
            Readiness::Ready => {
                reconcile.note(format!("{way}, which is ready"));
                Outcome::After(PERIOD)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shoot(source: &str, destination: &str, kind: &str, has_constraint: bool) -> Migration {
        let constraints = if has_constraint { json!([{ "type": "ReadyForMigration" }]) } else { json!([]) };
        Migration::of(&json!({
            "spec": { "seedName": destination },
            "status": { "seedName": source, "lastOperation": { "type": kind }, "constraints": constraints },
        }))
    }

    /// spec 84 H.1
    #[test]
    fn migration_wakes_when_it_begins_moves_or_leaves_the_constraint() {
        let resting = || shoot("a", "a", "Reconcile", false);
        let table = [
            (None, resting(), false),
            (None, shoot("a", "b", "Reconcile", false), true),
            (None, shoot("a", "a", "Restore", true), true),
            (None, shoot("a", "a", "Migrate", true), false),
            (Some(resting()), shoot("a", "b", "Reconcile", false), true),
            (Some(resting()), resting(), false),
            (Some(shoot("a", "b", "Reconcile", false)), shoot("a", "b", "Reconcile", true), true),
            (Some(shoot("a", "b", "Migrate", false)), shoot("a", "b", "Migrate", true), false),
            (Some(shoot("a", "b", "Migrate", true)), shoot("a", "c", "Migrate", true), true),
            (Some(shoot("a", "b", "Migrate", true)), shoot("a", "a", "Migrate", true), true),
            (Some(shoot("a", "b", "Migrate", true)), shoot("b", "b", "Migrate", true), false),
            (Some(shoot("b", "b", "Migrate", true)), shoot("b", "b", "Restore", true), true),
            (Some(shoot("b", "b", "Restore", true)), shoot("b", "b", "Restore", true), false),
        ];
        for (old, new, expected) in table {
            assert_eq!(concerns(old.as_ref(), &new), expected, "{old:?} {new:?}");
        }
    }
}
