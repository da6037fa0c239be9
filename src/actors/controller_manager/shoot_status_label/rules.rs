//! Which status a Shoot has (spec 84 G.2). Pure.

use cluster::object;
use serde_json::{Value, json};

use crate::actors::controller_manager::{
    fields::{list, text},
    shoot_record::{LastOperation, OperationState, OperationType},
};

/// The label.
pub const LABEL: &str = "shoot.gardener.cloud/status";

/// The status of a Shoot, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShootStatus {
    /// All is well, or nothing is known.
    Healthy,
    /// A condition is about to turn bad.
    Progressing,
    /// A condition is unknown.
    Unknown,
    /// A condition is bad, or the last operation failed.
    Unhealthy,
}

/// What is kept of the status label of a Shoot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusLabel {
    /// The status that it must show.
    pub wanted: ShootStatus,
    /// It does.
    pub is_right: bool,
}

impl ShootStatus {
    /// Computes the status of a Shoot.
    pub fn of(shoot: &Value) -> Self {
        let Some(operation) = LastOperation::of(shoot) else { return Self::Healthy };
        let of_errors = Self::bad_if(list(shoot, "/status/lastErrors").next().is_some());
        let has_succeeded = operation.state == OperationState::Succeeded;
        match operation.kind {
            OperationType::Create if !has_succeeded => of_errors,
            OperationType::Delete => of_errors,
            _ if operation.state == OperationState::Processing => of_errors.max(Self::of_conditions(shoot)),
            _ => Self::bad_if(!has_succeeded).max(Self::of_conditions(shoot)),
        }
    }

    /// Constraints do not count.
    fn of_conditions(shoot: &Value) -> Self {
        let status = |condition: &Value| match text(condition, "/status") {
            "True" => Self::Healthy,
            "Progressing" => Self::Progressing,
            "Unknown" => Self::Unknown,
            _ => Self::Unhealthy,
        };
        list(shoot, "/status/conditions").map(status).max().unwrap_or(Self::Healthy)
    }

    fn bad_if(is_bad: bool) -> Self {
        if is_bad { Self::Unhealthy } else { Self::Healthy }
    }

    /// Returns the value of the label (spec 80 §16.1).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Progressing => "progressing",
            Self::Unknown => "unknown",
            Self::Unhealthy => "unhealthy",
        }
    }
}

impl StatusLabel {
    /// Reads a Shoot.
    pub fn of(shoot: &Value) -> Self {
        let wanted = ShootStatus::of(shoot);
        Self { wanted, is_right: object::label(shoot, LABEL) == Some(wanted.as_str()) }
    }

    /// Returns the merge patch for this label (rule G-R1); `None` if it is right.
    pub fn patch(self) -> Option<Value> {
        (!self.is_right).then(|| json!({ "metadata": { "labels": { LABEL: self.wanted.as_str() } } }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shoot(operation: Value, errors: usize, conditions: &str) -> Value {
        let condition = |status: &str| json!({ "type": "EveryNodeReady", "status": status });
        let conditions: Vec<_> = conditions.split_whitespace().map(condition).collect();
        let errors = vec![json!({ "description": "d" }); errors];
        json!({ "status": { "lastOperation": operation, "lastErrors": errors, "conditions": conditions } })
    }

    fn status(kind: &str, state: &str, errors: usize, conditions: &str) -> &'static str {
        ShootStatus::of(&shoot(json!({ "type": kind, "state": state }), errors, conditions)).as_str()
    }

    /// spec 84 G.2, scenario 98
    #[test]
    fn status_of_a_shoot_that_comes_or_goes_depends_on_errors_only() {
        for conditions in ["", "True False", "Unknown", "Progressing"] {
            assert_eq!(ShootStatus::of(&shoot(Value::Null, 1, conditions)), ShootStatus::Healthy);
            for state in ["Processing", "Error", "Failed", "Pending", "Aborted", "Odd", ""] {
                assert_eq!(status("Create", state, 0, conditions), "healthy", "{state}");
                assert_eq!(status("Create", state, 1, conditions), "unhealthy", "{state}");
            }
            for state in ["Processing", "Succeeded", "Error", "Failed", "Odd"] {
                assert_eq!(status("Delete", state, 0, conditions), "healthy", "{state}");
                assert_eq!(status("Delete", state, 2, conditions), "unhealthy", "{state}");
            }
        }
    }

    /// spec 84 G.2, scenarios 99 and 100
    #[test]
    fn status_of_a_shoot_is_the_worst_of_operation_and_conditions() {
        let by_conditions = [
            ("", "healthy"),
            ("True True", "healthy"),
            ("True Progressing", "progressing"),
            ("True Unknown", "unknown"),
            ("Progressing Unknown", "unknown"),
            ("Unknown False", "unhealthy"),
            ("True Odd", "unhealthy"),
        ];
        for kind in ["Reconcile", "Migrate", "Restore", "LiveMigrate", "Odd", ""] {
            for (conditions, expected) in by_conditions {
                assert_eq!(status(kind, "Succeeded", 0, conditions), expected, "{conditions}");
                assert_eq!(status(kind, "Succeeded", 1, conditions), expected, "errors of the past: {conditions}");
                assert_eq!(status(kind, "Processing", 0, conditions), expected, "{conditions}");
                assert_eq!(status(kind, "Processing", 1, conditions), "unhealthy", "{conditions}");
                for state in ["Error", "Failed", "Pending", "Aborted", "Odd", ""] {
                    assert_eq!(status(kind, state, 0, conditions), "unhealthy", "{state} {conditions}");
                }
            }
        }
        for (conditions, expected) in by_conditions {
            assert_eq!(status("Create", "Succeeded", 0, conditions), expected, "{conditions}");
        }
    }

    #[test]
    fn status_of_a_condition_of_another_shape_is_bad() {
        for odd in [json!(5), json!({}), json!({ "status": true }), Value::Null] {
            let status = json!({ "conditions": [odd], "lastOperation": { "type": "Reconcile", "state": "Succeeded" } });

            assert_eq!(ShootStatus::of(&json!({ "status": status })), ShootStatus::Unhealthy);
        }
        let none =
            json!({ "status": { "conditions": "x", "lastErrors": {}, "lastOperation": { "state": "Succeeded" } } });
        assert_eq!(ShootStatus::of(&none), ShootStatus::Healthy);
    }

    /// spec 84 G-R1
    #[test]
    fn status_label_is_written_if_it_differs() {
        for (label, is_right) in
            [(json!("healthy"), true), (json!("unknown"), false), (json!(5), false), (Value::Null, false)]
        {
            let label = StatusLabel::of(&json!({ "metadata": { "labels": { LABEL: label } } }));

            let patch = json!({ "metadata": { "labels": { LABEL: "healthy" } } });
            assert_eq!((label.is_right, label.patch()), (is_right, (!is_right).then_some(patch)));
        }
    }
}
