//! `secretbinding`: guards SecretBindings in use (spec 81 G, §3.1).

use cluster::EventType;

use super::{
    context::{GardenContext, Registration, StartControllers},
    fields::text,
    guards::{self, GuardDefinition, GuardEvent, ReferrerScope, ReferringKind, named},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "secretbinding"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// How SecretBindings are guarded.
pub static GUARD: GuardDefinition = GuardDefinition {
    controller: NAME,
    kind: kinds::SECRET_BINDING,
    finalizer: guards::GARDENER,
    add_error: "could not add finalizer",
    event: Some(GuardEvent { event_type: EventType::Warning, action: "Reconcile" }),
    users: &[ReferringKind {
        kind: kinds::SHOOT,
        scope: ReferrerScope::SameNamespace,
        targets: |shoot| named(text(shoot, "/metadata/namespace"), text(shoot, "/spec/secretBindingName")),
    }],
    accepted: &["No Shoots are referencing the SecretBinding, deletion accepted"],
    notes: &[&[("Cannot delete SecretBinding, because the following Shoots are still referencing it: ", 0)]],
};

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    Some(guards::setup(&GUARD, config.controllers.secret_binding.concurrent_syncs.count(), ctx))
}
