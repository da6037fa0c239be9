//! Prometheus and Alertmanager of the Prometheus operator. Each of their conditions has its own generation.

use serde_json::Value;

use crate::actors::resource_manager::health::fields::{Check, bad, number, optional_number, required};

pub(super) fn check(object: &Value) -> Check {
    let available = required(object, "Available")?;
    available.generation_observed(object)?;
    available.is("True")?;
    let wanted = optional_number(object, "spec.replicas")?.unwrap_or(1);
    let replicas = number(object, "status.availableReplicas")?;
    if replicas < wanted {
        return bad(format!("not enough available replicas ({replicas}/{wanted})"));
    }
    Ok(())
}
