use serde_json::Value;

use super::updated;
use crate::actors::resource_manager::health::fields::{Check, generation_observed, number, optional_number};

pub(super) fn check(object: &Value) -> Check {
    generation_observed(object)?;
    updated(number(object, "status.updatedReplicas")?, optional_number(object, "spec.replicas")?.unwrap_or(1))
}
