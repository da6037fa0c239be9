//! DaemonSets of critical components: what is kept of one.

use cluster::object;
use serde_json::Value;

use super::{CRITICAL, placement::Placement};

/// What is kept of a DaemonSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonSet {
    /// Pods name it.
    pub uid: Box<str>,
    /// Its template has the label, too: nodes wait for its pods (spec 41 A-T4).
    pub is_awaited: bool,
    /// Where its pods may be.
    pub placement: Placement,
}

impl DaemonSet {
    /// What is kept of a DaemonSet.
    pub fn of(object: &Value) -> Self {
        let template = &object["spec"]["template"];
        Self {
            uid: object::uid(object).into(),
            is_awaited: object::label(template, CRITICAL) == Some("true"),
            placement: Placement::of(&template["spec"]),
        }
    }
}
