//! `cloudprofile`: guards CloudProfiles in use (spec 81 C, §3.1).

use cluster::{EventType, object::NamespacedName};
use serde_json::Value;

use super::{
    context::{GardenContext, Registration, StartControllers},
    fields::text,
    guards::{self, GuardDefinition, GuardEvent, ReferrerScope, ReferringKind, named},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "cloudprofile"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// How CloudProfiles are guarded.
pub static GUARD: GuardDefinition = GuardDefinition {
    controller: NAME,
    kind: kinds::CLOUD_PROFILE,
    finalizer: guards::GARDENER,
    add_error: "failed to add finalizer",
    event: Some(GuardEvent { event_type: EventType::Normal, action: "Delete" }),
    users: &[
        ReferringKind {
            kind: kinds::NAMESPACED_CLOUD_PROFILE,
            scope: ReferrerScope::Anywhere,
            targets: |profile| named("", text(profile, "/spec/parent/name")),
        },
        ReferringKind { kind: kinds::SHOOT, scope: ReferrerScope::Anywhere, targets: of_shoot },
    ],
    accepted: &[
        "No NamespacedCloudProfiles are referencing the CloudProfile",
        "No Shoots are referencing the CloudProfile, deletion accepted",
    ],
    notes: &[
        &[("Cannot delete CloudProfile, because the following NamespacedCloudProfiles are still referencing it: ", 0)],
        &[("Cannot delete CloudProfile, because the following Shoots are still referencing it: ", 1)],
    ],
};

/// A reference without a kind leads to a CloudProfile.
fn of_shoot(shoot: &Value) -> Vec<NamespacedName> {
    let is_meant = matches!(text(shoot, "/spec/cloudProfile/kind"), "" | "CloudProfile");
    let newer = if is_meant { text(shoot, "/spec/cloudProfile/name") } else { "" };
    [text(shoot, "/spec/cloudProfileName"), newer].into_iter().flat_map(|name| named("", name)).collect()
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    Some(guards::setup(&GUARD, config.controllers.cloud_profile.concurrent_syncs.count(), ctx))
}
