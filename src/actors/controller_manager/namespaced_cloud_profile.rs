//! `namespacedcloudprofile`: guards NamespacedCloudProfiles in use (spec 81 D, §3.1).

use cluster::{EventType, object::NamespacedName};
use serde_json::Value;

use super::{
    context::{GardenContext, Registration, StartControllers},
    fields::text,
    guards::{self, GuardDefinition, GuardEvent, ReferrerScope, ReferringKind, named},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "namespacedcloudprofile"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// How NamespacedCloudProfiles are guarded.
pub static GUARD: GuardDefinition = GuardDefinition {
    controller: NAME,
    kind: kinds::NAMESPACED_CLOUD_PROFILE,
    finalizer: guards::GARDENER,
    add_error: "failed to add finalizer",
    event: Some(GuardEvent { event_type: EventType::Normal, action: "Reconcile" }),
    users: &[ReferringKind { kind: kinds::SHOOT, scope: ReferrerScope::SameNamespace, targets: of_shoot }],
    accepted: &["No Shoots are referencing the NamespacedCloudProfile, deletion accepted"],
    notes: &[&[("Cannot delete NamespacedCloudProfile, because the following Shoots are still referencing it: ", 0)]],
};

fn of_shoot(shoot: &Value) -> Vec<NamespacedName> {
    let is_meant = text(shoot, "/spec/cloudProfile/kind") == "NamespacedCloudProfile";
    let name = if is_meant { text(shoot, "/spec/cloudProfile/name") } else { "" };
    named(text(shoot, "/metadata/namespace"), name)
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    Some(guards::setup(&GUARD, config.controllers.namespaced_cloud_profile.concurrent_syncs.count(), ctx))
}
