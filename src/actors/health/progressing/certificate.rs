use serde_json::Value;

use crate::actors::health::fields::{Check, generation_observed};

pub(super) fn check(object: &Value) -> Check {
    generation_observed(object)
}
