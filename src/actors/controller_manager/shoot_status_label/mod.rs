//! `shoot-statuslabel`: keeps the label with the status of a Shoot (spec 84 G).
//!
//! `Shoot ─ rules.rs ─► ShootStatus ─► label`
//!
//! [`rules`] is pure. This file has an actor per Shoot whose label is wrong, and its write. The actor stays for a while
//! after the write: if another client undoes it, it is repeated after ever longer pauses.

pub mod rules;

use std::rc::Rc;

use cluster::{Context, Lock, Watch, Wrote, object::NamespacedName};
use kit::{Controller, Failure, Outcome, Reconcile, Reconciler, hash_of};
use tokio::time::Instant;

use super::{
    context::{GardenContext, Registration, StartControllers, start},
    shoot_record::{CachedShoot, on_shoots},
};
use crate::{
    actors::shared::drift_backoff::{DriftBackoff, LONGEST_PAUSE},
    api::config::controller_manager::Config,
};

const NAME: &str = "shoot-statuslabel"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

struct StatusLabels {
    workers: usize,
    shoots: Watch<CachedShoot>,
}

/// What an actor remembers.
#[derive(Default)]
struct Memory {
    /// The label, which another client may write, too.
    repairs: DriftBackoff<()>,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let workers = config.controllers.shoot_status_label.concurrent_syncs.count();
    let controller = StatusLabels { workers, shoots: ctx.shoots.clone() };
    Some(start(controller, |controller, supervised| {
        on_shoots(&controller.shoots, supervised, |_, _, new| !new.label.is_right);
    }))
}

impl Memory {
    /// Returns when to look again: when a repair is due, or when nothing needs to be remembered any more.
    fn next(&self, now: Instant) -> Outcome {
        match self.repairs.next_in(now) {
            Some(due) => Outcome::After(due),
            None if self.repairs.is_empty() => Outcome::Retire,
            None => Outcome::After(LONGEST_PAUSE),
        }
    }
}

impl Controller for StatusLabels {
    type Key = NamespacedName;
    type Memory = Memory;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.workers).about(("core.gardener.cloud", "Shoot"));
        vec![reconciler.requires(self.shoots.sync_requirement())]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let Some(label) = self.shoots.store().with(key, |shoot| shoot.fields.label) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        memory.repairs.take_due(Instant::now()); // if the label is still wrong, that is noted again
        let intent = hash_of(&label.wanted);
        if label.is_right || !memory.repairs.may_repair(&(), intent, Instant::now()) {
            return Ok(memory.next(Instant::now()));
        }
        tracing::debug!(status = label.wanted.as_str(), "Updating shoot status label");
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let patch = |shoot: &CachedShoot| shoot.fields.label.patch();
        match self.shoots.patch_cached(&context, key, Lock::None, patch).await? {
            Wrote::Created(_) | Wrote::Updated(_) => {
                memory.repairs.repaired(&(), intent, Instant::now(), LONGEST_PAUSE);
            }
            Wrote::Unchanged(_) | Wrote::Deleting(_) => {}
            Wrote::Altered(_) => return Ok(Outcome::Again),
            Wrote::Gone => return Ok(Outcome::Retire),
        }
        Ok(memory.next(Instant::now()))
    }
}
