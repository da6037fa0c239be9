//! The last operation of a Shoot (spec 84 §2). Pure.

use cluster::object;
use serde_json::Value;

use crate::actors::controller_manager::fields::text;

/// What counts of `status.lastOperation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastOperation {
    /// Its type.
    pub kind: OperationType,
    /// Its state.
    pub state: OperationState,
}

/// The type of an operation (spec 80 §16.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationType {
    /// The first work on a Shoot.
    Create,
    /// All later work on it.
    Reconcile,
    /// Its deletion.
    Delete,
    /// The first half of a move to another Seed.
    Migrate,
    /// The second half of that move.
    Restore,
    /// A move without a break.
    LiveMigrate,
    /// A type that is absent or unknown.
    Other,
}

/// The state of an operation (spec 80 §16.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationState {
    /// It is under way.
    Processing,
    /// It is done.
    Succeeded,
    /// It is repeated.
    Error,
    /// It is not repeated.
    Failed,
    /// It has not begun.
    Pending,
    /// It was broken off.
    Aborted,
    /// A state that is absent or unknown.
    Other,
}

impl LastOperation {
    /// Reads a Shoot; `None` if it has no last operation.
    pub fn of(shoot: &Value) -> Option<Self> {
        let operation = shoot.pointer("/status/lastOperation").filter(|operation| operation.is_object())?;
        let kind = match text(operation, "/type") {
            "Create" => OperationType::Create,
            "Reconcile" => OperationType::Reconcile,
            "Delete" => OperationType::Delete,
            "Migrate" => OperationType::Migrate,
            "Restore" => OperationType::Restore,
            "LiveMigrate" => OperationType::LiveMigrate,
            _ => OperationType::Other,
        };
        let state = match text(operation, "/state") {
            "Processing" => OperationState::Processing,
            "Succeeded" => OperationState::Succeeded,
            "Error" => OperationState::Error,
            "Failed" => OperationState::Failed,
            "Pending" => OperationState::Pending,
            "Aborted" => OperationState::Aborted,
            _ => OperationState::Other,
        };
        Some(Self { kind, state })
    }
}

impl OperationType {
    /// As in the status; `unknown` for all others.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Reconcile => "Reconcile",
            Self::Delete => "Delete",
            Self::Migrate => "Migrate",
            Self::Restore => "Restore",
            Self::LiveMigrate => "LiveMigrate",
            Self::Other => "unknown",
        }
    }
}

impl OperationState {
    /// As in the status; `unknown` for all others.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Processing => "Processing",
            Self::Succeeded => "Succeeded",
            Self::Error => "Error",
            Self::Failed => "Failed",
            Self::Pending => "Pending",
            Self::Aborted => "Aborted",
            Self::Other => "unknown",
        }
    }
}

/// Returns true if a Shoot has failed at its present generation (spec 84 F.1). An absent generation is 0.
pub fn is_failed(shoot: &Value) -> bool {
    let observed = shoot.pointer("/status/observedGeneration").and_then(Value::as_i64).unwrap_or_default();
    let is_in_state = LastOperation::of(shoot).is_some_and(|operation| operation.state == OperationState::Failed);
    is_in_state && object::generation(shoot) == observed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// spec 80 §16.1
    #[test]
    fn last_operation_has_the_types_and_states_of_gardener() {
        for kind in ["Create", "Reconcile", "Delete", "Migrate", "Restore", "LiveMigrate"] {
            for state in ["Processing", "Succeeded", "Error", "Failed", "Pending", "Aborted"] {
                let shoot = json!({ "status": { "lastOperation": { "type": kind, "state": state } } });
                let operation = LastOperation::of(&shoot).unwrap();

                assert_eq!((operation.kind.as_str(), operation.state.as_str()), (kind, state));
            }
        }
        let other = Some(LastOperation { kind: OperationType::Other, state: OperationState::Other });
        for odd in [json!({}), json!({ "type": 5, "state": null }), json!({ "type": "create", "state": "" })] {
            assert_eq!(LastOperation::of(&json!({ "status": { "lastOperation": odd } })), other);
        }
        for none in [json!(null), json!("Create"), json!([])] {
            assert_eq!(LastOperation::of(&json!({ "status": { "lastOperation": none } })), None);
        }
    }

    /// spec 84 F.1
    #[test]
    fn shoot_has_failed_if_that_was_observed_of_its_generation() {
        for (generation, observed, state, expected) in [
            (json!(2), json!(2), "Failed", true),
            (json!(2), json!(1), "Failed", false),
            (json!(2), json!(2), "Error", false),
            (json!(null), json!(null), "Failed", true),
            (json!(1), json!(null), "Failed", false),
            (json!(1), json!("1"), "Failed", false),
        ] {
            let status = json!({ "observedGeneration": observed, "lastOperation": { "state": state } });
            let shoot = json!({ "metadata": { "generation": generation }, "status": status });

            assert_eq!(is_failed(&shoot), expected, "{shoot}");
        }
    }
}
