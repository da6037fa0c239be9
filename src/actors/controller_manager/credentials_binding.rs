//! `credentialsbinding`: guards CredentialsBindings in use (spec 81 G, §3.1).

use cluster::EventType;

use super::{
    context::{GardenContext, Registration, StartControllers},
    fields::text,
    guards::{self, GuardDefinition, GuardEvent, ReferrerScope, ReferringKind, named},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "credentialsbinding"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// How CredentialsBindings are guarded.
pub static GUARD: GuardDefinition = GuardDefinition {
    controller: NAME,
    kind: kinds::CREDENTIALS_BINDING,
    finalizer: guards::GARDENER,
    add_error: "could not add finalizer",
    event: Some(GuardEvent { event_type: EventType::Warning, action: "Delete" }),
    users: &[ReferringKind {
        kind: kinds::SHOOT,
        scope: ReferrerScope::SameNamespace,
        targets: |shoot| named(text(shoot, "/metadata/namespace"), text(shoot, "/spec/credentialsBindingName")),
    }],
    accepted: &["No Shoots are referencing the CredentialsBinding, deletion accepted"],
    notes: &[&[("Cannot delete CredentialsBinding, because the following Shoots are still referencing it: ", 0)]],
};

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    Some(guards::setup(&GUARD, config.controllers.credentials_binding.concurrent_syncs.count(), ctx))
}
