//! Deployments. The number of replicas does not matter. A paused Deployment is unhealthy.

use serde_json::Value;

use crate::actors::resource_manager::health::fields::{Check, generation_observed, may_be, must_be};

pub(super) fn check(object: &Value) -> Check {
    generation_observed(object)?;
    must_be(object, "Available", "True")?;
    may_be(object, "Progressing", "True")?;
    may_be(object, "ReplicaFailure", "False")
}
