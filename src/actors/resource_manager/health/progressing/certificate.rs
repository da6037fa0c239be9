use serde_json::Value;

use crate::actors::resource_manager::health::fields::{Check, generation_observed};

pub(super) fn check(object: &Value) -> Check {
    generation_observed(object)
}
