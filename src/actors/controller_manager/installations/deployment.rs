//! What is kept of a ControllerDeployment. Pure.

use cluster::object;
use serde_json::Value;

use super::spec_hash::deployment_hash;
use crate::actors::controller_manager::{
    controller_deployment,
    fields::{list, text},
    references::{extraction::of_controller_deployment, object::PROTECTION},
};

/// An object to which a ControllerDeployment refers: kind and name.
pub type ReferredName = (Box<str>, Box<str>);

/// What counts of a ControllerDeployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentFacts {
    /// The objects of `garden` to which it refers, in their order.
    pub resources: Box<[ReferredName]>,
    /// Its hash.
    pub hash: Box<str>,
    /// It has all finalizers that this program sets. So no own write changes its version any more (spec 85 DEV-26).
    pub is_settled: bool,
}

impl DeploymentFacts {
    /// Reads a ControllerDeployment of any shape.
    pub fn of(deployment: &Value) -> Self {
        let resource =
            |resource: &Value| (text(resource, "/resourceRef/kind").into(), text(resource, "/resourceRef/name").into());
        let has = |finalizer: &str| object::finalizers(deployment).any(|other| other == finalizer);
        let is_protected = || of_controller_deployment(deployment).is_empty() || has(PROTECTION);
        Self {
            resources: list(deployment, "/resources").map(resource).collect(),
            hash: deployment_hash(deployment),
            is_settled: is_deleting(deployment) || (has(controller_deployment::FINALIZER) && is_protected()),
        }
    }
}

/// Returns true if an object to which a deployment refers has the finalizer that this program sets.
pub fn is_settled(referred: &Value) -> bool {
    is_deleting(referred) || object::finalizers(referred).any(|finalizer| finalizer == PROTECTION)
}

/// An object in deletion gets no finalizer any more.
fn is_deleting(object: &Value) -> bool {
    object::deletion_timestamp(object).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// spec 85 DEV-26
    #[test]
    fn deployment_is_settled_when_it_has_the_finalizers_of_its_guards() {
        let (guard, protection) = (controller_deployment::FINALIZER, PROTECTION);
        let resources = json!([{ "resourceRef": { "apiVersion": "v1", "kind": "Secret", "name": "s" } }]);
        let is_settled = |finalizers: Value, resources: &Value| {
            let deployment = json!({ "metadata": { "finalizers": finalizers }, "resources": resources });
            DeploymentFacts::of(&deployment).is_settled
        };

        assert!(!is_settled(json!([]), &Value::Null));
        assert!(is_settled(json!([guard]), &Value::Null));
        assert!(!is_settled(json!([guard]), &resources));
        assert!(!is_settled(json!([protection]), &resources));
        assert!(is_settled(json!([protection, "example.com/x", guard]), &resources));
    }

    /// spec 85 DEV-26
    #[test]
    fn object_in_deletion_is_settled() {
        let deleting = json!({ "metadata": { "deletionTimestamp": "2026-08-21T12:00:00Z" } });

        assert!(is_settled(&deleting) && DeploymentFacts::of(&deleting).is_settled);
        assert!(is_settled(&json!({ "metadata": { "finalizers": [PROTECTION] } })));
        assert!(!is_settled(&json!({})));
    }
}
