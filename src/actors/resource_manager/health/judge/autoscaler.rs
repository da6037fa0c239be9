//! VerticalPodAutoscalers. Their generation is ignored: they may be created before any controller observes them, and
//! waiting for that would never end (spec 20 §11.2).

use serde_json::Value;

use crate::actors::resource_manager::health::fields::{Check, may_be};

pub(super) fn check(object: &Value) -> Check {
    may_be(object, "ConfigUnsupported", "False")
}
