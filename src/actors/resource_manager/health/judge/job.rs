use serde_json::Value;

use crate::actors::resource_manager::health::fields::{Check, may_be};

pub(super) fn check(object: &Value) -> Check {
    may_be(object, "Failed", "False")
}
