//! What is kept of a ControllerDeployment. Pure.

use serde_json::Value;

use super::spec_hash::deployment_hash;
use crate::actors::controller_manager::fields::{list, text};

/// An object to which a ControllerDeployment refers: kind and name.
pub type ReferredName = (Box<str>, Box<str>);

/// What counts of a ControllerDeployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentFacts {
    /// The objects of `garden` to which it refers, in their order.
    pub resources: Box<[ReferredName]>,
    /// Its hash.
    pub hash: Box<str>,
}

impl DeploymentFacts {
    /// Reads a ControllerDeployment of any shape.
    pub fn of(deployment: &Value) -> Self {
        let resource =
            |resource: &Value| (text(resource, "/resourceRef/kind").into(), text(resource, "/resourceRef/name").into());
        Self { resources: list(deployment, "/resources").map(resource).collect(), hash: deployment_hash(deployment) }
    }
}
