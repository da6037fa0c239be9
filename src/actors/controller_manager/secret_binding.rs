//! How SecretBindings in use are guarded (spec 81 §3.1). The controller is in [`bindings`](super::bindings).

use cluster::EventType;

use super::{
    fields::text,
    guards::{self, GuardDefinition, GuardEvent, ReferrerScope, ReferringKind, named},
};
use crate::api::kinds;

/// Name of the controller.
pub const NAME: &str = "secretbinding"; // spec 80 §15

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
