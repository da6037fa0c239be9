//! Protects Secrets, ConfigMaps and WorkloadIdentities that Shoots, Seeds and ControllerDeployments refer to, and these
//! referrers until their objects are released (spec 81 §3.2). One rule over all referrers.
//! ```text
//! referrers ── extraction.rs, referrer.rs ─► Referrer, index: object → referrers ┐
//! objects, metadata ── object.rs ─► ObjectState ─────────────────────────────────┴─► verdict.rs ─► finalizers
//! ```
//! * `object`, `extraction`, `referrer`, `verdict`: pure
//! * `protection`: the caches that all four controllers share, and the live check before a release
//! * `object_controller`: `reference-protection`, an actor per referenced object
//! * `referrer_controller`: an actor per referrer, for each of the three kinds

pub mod extraction;
pub mod object;
mod object_controller;
mod protection;
pub mod referrer;
mod referrer_controller;
#[cfg(test)]
mod tests;
pub mod verdict;

use std::rc::Rc;

use futures::future::join_all;
use process::controller_registration::Running;

use self::{
    extraction::ShootReferences, object_controller::ObjectController, protection::Protection,
    referrer_controller::ReferrerController,
};
use super::context::{GardenContext, Registration, StartControllers};
use crate::api::config::controller_manager::Config;

/// Registers the four controllers.
pub const REGISTRATION: Registration = Registration {
    names: &[object_controller::NAME, "controllerdeployment-reference", "seed-reference", "shoot-reference"],
    setup,
};

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let controllers = &config.controllers;
    let workers = [
        controllers.controller_deployment_reference.concurrent_syncs,
        controllers.seed_reference.concurrent_syncs,
        controllers.shoot_reference.concurrent_syncs,
    ];
    let counted = ShootReferences { audit_policies: controllers.shoot_reference.protect_audit_policy_config_maps };
    let protection = Rc::new(Protection::open(counted, ctx));
    Some(Box::new(move |ctx| {
        let objects = ObjectController::start(&protection, &ctx.env);
        let referrers = workers.into_iter().enumerate();
        let referrers = referrers
            .filter_map(|(kind, workers)| ReferrerController::start(&protection, kind, workers.count(), &ctx.env));
        let running: Vec<Running> = referrers.map(Running::from).chain([objects.into()]).collect();
        Running::new(|patience| async move {
            let stopped = join_all(running.into_iter().map(|running| running.stop(patience))).await;
            stopped.into_iter().all(|stopped| stopped)
        })
    }))
}
