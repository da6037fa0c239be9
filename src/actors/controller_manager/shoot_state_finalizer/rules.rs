//! Which ShootStates have the finalizer (spec 84 I.2). Pure.

use crate::actors::controller_manager::shoot_record::{LastOperation, OperationState, OperationType};

/// What must happen with the finalizer of a ShootState.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The control plane moves: its state is needed (I-4).
    Keep,
    /// The state was restored (I-5).
    Release,
    /// Nothing (I-6).
    Nothing,
}

impl Need {
    /// Returns what the last operation of the Shoot needs.
    pub fn of(operation: LastOperation) -> Self {
        match (operation.kind, operation.state) {
            (OperationType::Migrate, _) => Self::Keep,
            (OperationType::Restore, OperationState::Succeeded) | (OperationType::Reconcile, _) => Self::Release,
            (OperationType::Restore, _) => Self::Keep,
            (OperationType::Create | OperationType::Delete | OperationType::LiveMigrate | OperationType::Other, _) => {
                Self::Nothing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// spec 84 I-4 to I-6, scenarios 108 and 109
    #[test]
    fn shoot_state_is_kept_from_the_migration_to_the_end_of_the_restoration() {
        for state in ["Processing", "Succeeded", "Error", "Failed", "Pending", "Aborted", ""] {
            let need = |kind: &str| {
                let shoot = json!({ "status": { "lastOperation": { "type": kind, "state": state } } });
                Need::of(LastOperation::of(&shoot).unwrap())
            };
            let of_restore = if state == "Succeeded" { Need::Release } else { Need::Keep };

            assert_eq!([need("Migrate"), need("Restore"), need("Reconcile")], [Need::Keep, of_restore, Need::Release]);
            for kind in ["Create", "Delete", "LiveMigrate", "Odd", ""] {
                assert_eq!(need(kind), Need::Nothing, "{kind} {state}");
            }
        }
    }
}
