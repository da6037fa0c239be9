//! ControllerInstallations: which extensions are installed on which Seeds and self-hosted Shoots (spec 85 A to D).
//! ```text
//! Shoots ─ demand.rs ─┐
//! BackupBuckets ──────┼─ required.rs ─► pairs ─ wanted.rs ─► registrations ─ plan.rs ─► acts ─ content.rs ─► patches
//! Seed, domains ──────┘                            installations ────┘
//! ```
//! Two controllers, with an actor per Seed and one per self-hosted Shoot. What Shoots and backups need is kept up to date
//! event by event, so that a reconcile does not walk over them. Three further controllers keep the finalizer of
//! registrations, Seeds and Shoots. Nothing is deleted unless all that is wanted is known. A live list comes before each
//! creation and each release.
//! * [`pair`], [`spec_hash`]: what extensions are needed for; hashes in labels
//! * [`registration`], [`deployment`], [`seed_facts`], [`shoot_needs`], [`backups`], [`domains`], [`installation`]: what is kept
//!   of each kind
//! * [`demand`], [`required`], [`wanted`], [`assessment`]: from needs to registrations; [`explanation`]: the same for operators
//! * [`plan`], [`content`]: what is done, and what is written
//! * `stores`, `wakes`, `controller`, `writes`, `finalizers`: watches, event handlers, actors, requests
//! * `patience`: nothing is created before what it refers to has its finalizers
//! * `reference_locks`: nothing is released while an installation for it is being created, and the other way round

pub mod assessment;
pub mod backups;
pub mod content;
mod controller;
pub mod demand;
pub mod deployment;
pub mod domains;
pub mod explanation;
mod finalizers;
pub mod installation;
pub mod pair;
mod patience;
pub mod plan;
mod reference_locks;
pub mod registration;
pub mod required;
pub mod seed_facts;
pub mod shoot_needs;
pub mod spec_hash;
mod stores;
mod wakes;
pub mod wanted;
mod writes;

use std::{rc::Rc, sync::Arc};

use cluster::CachedFields;
use futures::future::join_all;
use kit::Supervised;
use process::controller_registration::Running;

use self::{
    controller::{Clusters, InstallationController},
    finalizers::{FinalizerController, HeldKind, HeldState},
    registration::RegistrationFacts,
    seed_facts::SeedFacts,
    stores::Stores,
};
use super::{
    context::{GardenContext, Registration, StartControllers},
    shoot_record::CachedShoot,
};
use crate::api::config::controller_manager::Config;

/// The finalizer of registrations, Seeds and Shoots.
pub const FINALIZER: &str = "core.gardener.cloud/controllerregistration";

/// Registers the five controllers.
pub const REGISTRATION: Registration = Registration {
    names: &[controller::SEEDS, controller::SHOOTS, finalizers::REGISTRATIONS, finalizers::SEEDS, finalizers::SHOOTS],
    setup,
};

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let workers = config.controllers.controller_registration.concurrent_syncs.count();
    let stores = Rc::new(Stores::open(ctx));
    Some(Box::new(move |ctx| {
        let mut running: Vec<Running> = Vec::new();
        for clusters in [Clusters::Seeds, Clusters::Shoots] {
            let controller = InstallationController { clusters, workers, stores: stores.clone() };
            let supervised = Supervised::start(Rc::new(controller), &ctx.env);
            wakes::subscribe(&supervised);
            running.push(supervised.into());
        }
        let registration = |it: &CachedFields<Arc<RegistrationFacts>>| HeldState {
            is_held: it.fields.is_held,
            is_deleting: it.fields.is_deleting,
            can_have_installations: true,
        };
        let seed = |it: &CachedFields<Arc<SeedFacts>>| HeldState {
            is_held: it.fields.is_held,
            is_deleting: it.fields.is_deleting,
            can_have_installations: true,
        };
        let shoot = |it: &CachedShoot| HeldState {
            is_held: it.fields.is_held_for_installations,
            is_deleting: it.fields.is_deleting,
            can_have_installations: it.fields.needs.is_self_hosted(),
        };
        let registrations =
            FinalizerController::new(HeldKind::Registration, &stores, &stores.registrations, registration);
        let seeds = FinalizerController::new(HeldKind::Seed, &stores, &stores.seeds, seed);
        let shoots = FinalizerController::new(HeldKind::Shoot, &stores, &stores.shoots, shoot);
        let supervised = Supervised::start(Rc::new(registrations), &ctx.env);
        supervised.controller().subscribe(&supervised);
        running.push(supervised.into());
        let supervised = Supervised::start(Rc::new(seeds), &ctx.env);
        supervised.controller().subscribe(&supervised);
        running.push(supervised.into());
        let supervised = Supervised::start(Rc::new(shoots), &ctx.env);
        supervised.controller().subscribe(&supervised);
        running.push(supervised.into());
        Running::new(|patience| async move {
            let stopped = join_all(running.into_iter().map(|running| running.stop(patience))).await;
            stopped.into_iter().all(|stopped| stopped)
        })
    }))
}
