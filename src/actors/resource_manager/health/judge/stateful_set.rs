use serde_json::Value;

use crate::actors::resource_manager::health::fields::{Check, bad, generation_observed, number, optional_number};

pub(super) fn check(object: &Value) -> Check {
    generation_observed(object)?;
    let replicas = optional_number(object, "spec.replicas")?.unwrap_or(1);
    let ready = number(object, "status.readyReplicas")?;
    if ready < replicas {
        return bad(format!("not enough ready replicas ({ready}/{replicas})"));
    }
    Ok(())
}
