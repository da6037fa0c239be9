//! `quota`: guards Quotas in use (spec 81 H, §3.1).

use cluster::{EventType, object::NamespacedName};
use serde_json::Value;

use super::{
    context::{GardenContext, Registration, StartControllers},
    fields::{list, text},
    guards::{self, GuardDefinition, GuardEvent, ReferrerScope, ReferringKind, named},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "quota"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// How Quotas are guarded.
pub static GUARD: GuardDefinition = GuardDefinition {
    controller: NAME,
    kind: kinds::QUOTA,
    finalizer: guards::GARDENER,
    add_error: "failed to add finalizer",
    event: Some(GuardEvent { event_type: EventType::Normal, action: "Reconcile" }),
    users: &[
        ReferringKind { kind: kinds::SECRET_BINDING, scope: ReferrerScope::Anywhere, targets: of_binding },
        ReferringKind { kind: kinds::CREDENTIALS_BINDING, scope: ReferrerScope::Anywhere, targets: of_binding },
    ],
    accepted: &["Neither SecretBindings nor CredentialsBindings are referencing the Quota, deletion accepted"],
    notes: &[&[
        ("Cannot delete Quota, because the following resources are still referencing it: SecretBindings - ", 0),
        (", CredentialsBindings - ", 1),
    ]],
};

fn of_binding(binding: &Value) -> Vec<NamespacedName> {
    let own = text(binding, "/metadata/namespace");
    let quota = |quota| {
        let namespace = Some(text(quota, "/namespace")).filter(|namespace| !namespace.is_empty());
        named(namespace.unwrap_or(own), text(quota, "/name"))
    };
    list(binding, "/quotas").flat_map(quota).collect()
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    Some(guards::setup(&GUARD, config.controllers.quota.concurrent_syncs.count(), ctx))
}
