//! `managedseedset`: keeps a stable number of identical ManagedSeeds on as many identical Shoots (spec 86).
//! ```text
//! ManagedSeedSet ── set.rs ──────┐
//! Shoots, ManagedSeeds, Seeds ───┼─ rules.rs ─► one step: a create, a delete, a retry or a wait ─► status
//!          └─ replica.rs ────────┘
//! ```
//! One actor per ManagedSeedSet. A reconcile does one step at most, for one replica. It decides on caches. Before it creates
//! or deletes, live reads confirm what the decision rests on. A Shoot that is read for a write decides once more.
//! * [`set`], [`status`], [`replica`], [`rules`], [`templates`]: pure
//! * `caches`: watches, indexes, event handlers; `live`: what the API server says before a create or a delete
//! * `run`: one reconcile; `act`: its step; [`told`]: what Events say of it

mod act;
mod caches;
mod live;
pub mod replica;
pub mod rules;
mod run;
pub mod set;
pub mod status;
pub mod templates;
#[cfg(test)]
mod tests;
pub mod told;

use std::{rc::Rc, time::Duration};

use cluster::{Cluster, Recorder, object::NamespacedName};
use kit::{Clock, Controller, Failure, Outcome, Reconcile, Reconciler};

use self::{caches::Caches, run::Memory};
use super::context::{GardenContext, Registration, StartControllers, start};
use crate::api::config::controller_manager::Config;

const NAME: &str = "managedseedset"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

struct ManagedSeedSets {
    workers: usize,
    period: Duration,
    max_retries: i64,
    clock: Clock,
    events: Recorder,
    cluster: Cluster,
    caches: Caches,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let settings = config.controllers.managed_seed_set;
    let controller = ManagedSeedSets {
        workers: settings.concurrent_syncs.count(),
        period: settings.sync_period.get(),
        max_retries: settings.max_shoot_retries,
        clock: ctx.env.clock.clone(),
        events: ctx.garden.events.for_component(format!("{NAME}-controller")),
        cluster: ctx.garden.cluster.clone(),
        caches: Caches::open(ctx),
    };
    Some(start(controller, |controller, supervised| controller.caches.subscribe(supervised)))
}

impl Controller for ManagedSeedSets {
    type Key = NamespacedName;
    type Memory = Memory;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.workers).about(("seedmanagement.gardener.cloud", "ManagedSeedSet"));
        vec![self.caches.requirements().into_iter().fold(reconciler, Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        run::reconcile(self, memory, reconcile).await
    }
}
