//! `secretbinding`, `credentialsbinding`: guard bindings in use, and protect and label the credentials and Quotas that
//! they refer to (spec 81 G).
//! ```text
//! bindings ── binding.rs ─► Binding, indexes ┐                        ┌─ alive: finalizer and labels
//! credentials ── credentials.rs ─► state ────┼─ guard ─► controller ──┤
//! Shoots ─► bindings in use ─────────────────┘                        └─ deleted, nobody uses it ─ release.rs ─► release
//! ```
//! * `binding`, `credentials`, `release`: pure
//! * `caches`: the caches that both controllers share, and the live check before a release
//! * `controller`: an actor per binding, and per object that a binding left without a release; `event_handlers`: what wakes
//!   them; `view`: what operators see of them

pub mod binding;
mod caches;
mod controller;
pub mod credentials;
mod event_handlers;
pub mod release;
#[cfg(test)]
mod tests;
mod view;

use std::rc::Rc;

use futures::future::join;
use process::controller_registration::Running;

use self::{
    binding::BindingKind,
    caches::Caches,
    controller::{BindingController, Settings},
};
use super::{
    context::{GardenContext, Registration, StartControllers},
    credentials_binding,
    guards::Guard,
    secret_binding,
};
use crate::api::config::controller_manager::Config;

/// Registers both controllers.
pub const REGISTRATION: Registration =
    Registration { names: &[credentials_binding::NAME, secret_binding::NAME], setup };

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let (secret, credentials) = (config.controllers.secret_binding, config.controllers.credentials_binding);
    let labels_workload_identities = credentials.label_workload_identities;
    let settings = |name, kind, workers| Settings { name, kind, workers, labels_workload_identities };
    let of_secret = settings(secret_binding::NAME, BindingKind::SecretBinding, secret.concurrent_syncs.count());
    let of_credentials =
        settings(credentials_binding::NAME, BindingKind::CredentialsBinding, credentials.concurrent_syncs.count());
    let guards = (Guard::open(&credentials_binding::GUARD, ctx), Guard::open(&secret_binding::GUARD, ctx));
    let caches = Rc::new(Caches::open(ctx));
    Some(Box::new(move |ctx| {
        let credentials: Running = BindingController::start(of_credentials, guards.0, &caches, &ctx.env).into();
        let secrets: Running = BindingController::start(of_secret, guards.1, &caches, &ctx.env).into();
        Running::new(|patience| async move {
            let (credentials, secrets) = join(credentials.stop(patience), secrets.stop(patience)).await;
            credentials && secrets
        })
    }))
}
