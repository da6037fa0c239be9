use serde_json::Value;

use crate::actors::resource_manager::health::fields::{Check, may_be, must_be};

pub(super) fn check(object: &Value) -> Check {
    must_be(object, "NamesAccepted", "True")?;
    must_be(object, "Established", "True")?;
    may_be(object, "Terminating", "False")
}
