//! Services. A Service of type LoadBalancer must have an address.

use serde_json::Value;

use crate::actors::resource_manager::health::fields::{Check, bad, list, text};

pub(super) fn check(object: &Value) -> Check {
    if text(object, "spec.type")? == "LoadBalancer" && list(object, "status.loadBalancer.ingress")?.is_empty() {
        return bad("service is missing ingress status");
    }
    Ok(())
}
