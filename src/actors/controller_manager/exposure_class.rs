//! `exposureclass`: guards ExposureClasses in use (spec 81 I, §3.1).

use cluster::EventType;

use super::{
    context::{GardenContext, Registration, StartControllers},
    fields::text,
    guards::{self, GuardDefinition, GuardEvent, ReferrerScope, ReferringKind, named},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "exposureclass"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// How ExposureClasses are guarded.
pub static GUARD: GuardDefinition = GuardDefinition {
    controller: NAME,
    kind: kinds::EXPOSURE_CLASS,
    finalizer: guards::GARDENER,
    add_error: "could not add finalizer",
    event: Some(GuardEvent { event_type: EventType::Normal, action: "Reconcile" }),
    users: &[ReferringKind {
        kind: kinds::SHOOT,
        scope: ReferrerScope::Anywhere,
        targets: |shoot| named("", text(shoot, "/spec/exposureClassName")),
    }],
    accepted: &["No Shoots are referencing ExposureClass, deletion accepted"],
    notes: &[&[("Cannot delete ExposureClass, because it is still associated by the following Shoots: ", 0)]],
};

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    Some(guards::setup(&GUARD, config.controllers.exposure_class.concurrent_syncs.count(), ctx))
}
