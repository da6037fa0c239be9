use serde_json::Value;

use crate::actors::resource_manager::health::fields::{Check, bad, generation_observed, number, optional_number};

pub(super) fn of_replica_set(object: &Value) -> Check {
    check(object, "ReplicaSet")
}

pub(super) fn of_replication_controller(object: &Value) -> Check {
    check(object, "ReplicationController")
}

fn check(object: &Value, kind: &str) -> Check {
    generation_observed(object)?;
    match optional_number(object, "spec.replicas")? {
        Some(replicas) if number(object, "status.readyReplicas")? < replicas => {
            bad(format!("{kind} does not have minimum availability"))
        }
        Some(_) | None => Ok(()),
    }
}
