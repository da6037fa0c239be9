//! The cached fields of critical DaemonSets.

use cluster::object;
use serde_json::Value;

use super::{CRITICAL, placement::Placement};

/// The cached fields of a DaemonSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonSet {
    /// The uid to which pods refer.
    pub uid: Box<str>,
    /// Its template has the label too, so nodes wait for its pods (spec 41 A-T4).
    pub is_awaited: bool,
    /// The nodes that its pods may run on.
    pub placement: Placement,
}

impl DaemonSet {
    /// Reads a DaemonSet.
    pub fn of(object: &Value) -> Self {
        let template = &object["spec"]["template"];
        Self {
            uid: object::uid(object).into(),
            is_awaited: object::label(template, CRITICAL) == Some("true"),
            placement: Placement::of(&template["spec"]),
        }
    }
}
