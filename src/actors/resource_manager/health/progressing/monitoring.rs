use serde_json::Value;

use super::updated;
use crate::actors::resource_manager::health::fields::{Check, number, optional_number, required};

pub(super) fn check(object: &Value) -> Check {
    let reconciled = required(object, "Reconciled")?;
    reconciled.generation_observed(object)?;
    reconciled.is("True")?;
    updated(number(object, "status.updatedReplicas")?, optional_number(object, "spec.replicas")?.unwrap_or(1))
}
