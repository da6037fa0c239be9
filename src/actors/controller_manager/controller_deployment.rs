//! `controllerdeployment`: guards ControllerDeployments in use (spec 81 E, §3.1).

use cluster::object::NamespacedName;
use serde_json::Value;

use super::{
    context::{GardenContext, Registration, StartControllers},
    fields::{list, text},
    guards::{self, GuardDefinition, ReferrerScope, ReferringKind, named},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "controllerdeployment"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// The finalizer of ControllerDeployments.
pub const FINALIZER: &str = "core.gardener.cloud/controllerdeployment";

/// How ControllerDeployments are guarded.
pub static GUARD: GuardDefinition = GuardDefinition {
    controller: NAME,
    kind: kinds::CONTROLLER_DEPLOYMENT,
    finalizer: FINALIZER,
    add_error: "failed to add finalizer",
    event: None,
    users: &[ReferringKind {
        kind: kinds::CONTROLLER_REGISTRATION,
        scope: ReferrerScope::Anywhere,
        targets: of_registration,
    }],
    accepted: &[],
    notes: &[&[(
        "cannot remove finalizer of ControllerDeployment \"{name}\" because still found ControllerRegistrations: ",
        0,
    )]],
};

fn of_registration(registration: &Value) -> Vec<NamespacedName> {
    let references = list(registration, "/spec/deployment/deploymentRefs");
    references.flat_map(|reference| named("", text(reference, "/name"))).collect()
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    Some(guards::setup(&GUARD, config.controllers.controller_deployment.concurrent_syncs.count(), ctx))
}
