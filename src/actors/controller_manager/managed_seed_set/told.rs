//! What logs and Events say about a step (spec 86 §9). Pure.

use super::{
    rules::{Act, Step},
    status::PendingReason,
};

/// What is told about a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// The action of the Event.
    pub action: &'static str,
    /// The reason of the Event.
    pub reason: &'static str,
    /// What is done, to what.
    verb: &'static str,
    kind: &'static str,
    /// What follows the name.
    rest: &'static str,
}

const RECONCILE: &str = "Reconcile";
const DELETE: &str = "Delete";

/// Returns what is told about a step.
pub fn told(step: &Step) -> Told {
    let (action, reason, verb, kind, rest) = match (step.act, step.reason) {
        (Act::CreateShoot, _) => (RECONCILE, "CreatingShoot", "Creating", "Shoot", ""),
        (Act::DeleteShoot, _) => (DELETE, "DeletingShoot", "Deleting", "Shoot", ""),
        (Act::CreateManagedSeed, _) => (RECONCILE, "CreatingManagedSeed", "Creating", "ManagedSeed", ""),
        (Act::DeleteManagedSeed, _) => (DELETE, "DeletingManagedSeed", "Deleting", "ManagedSeed", ""),
        (Act::Retry, PendingReason::ShootDeleting) => {
            (DELETE, "RetryingShootDeletion", "Retrying", "Shoot", " deletion")
        }
        (Act::Retry, _) => (RECONCILE, "RetryingShootReconciliation", "Retrying", "Shoot", " reconciliation"),
        (_, reason) => waiting(reason),
    };
    Told { action, reason, verb, kind, rest }
}

/// Returns action, reason, verb, kind and rest for a replica that is waited for.
fn waiting(reason: PendingReason) -> (&'static str, &'static str, &'static str, &'static str, &'static str) {
    match reason {
        PendingReason::ShootReconciling => {
            (RECONCILE, "WaitingForShootReconciled", "Waiting for", "Shoot", " to be reconciled")
        }
        PendingReason::ShootDeleting => (DELETE, "WaitingForShootDeleted", "Waiting for", "Shoot", " to be deleted"),
        PendingReason::ShootReconcileFailed => (
            RECONCILE,
            "NotRetryingShootReconciliation",
            "Not retrying",
            "Shoot",
            " reconciliation since max retries have been reached",
        ),
        PendingReason::ShootDeleteFailed => (
            DELETE,
            "NotRetryingShootDeletion",
            "Not retrying",
            "Shoot",
            " deletion since max retries have been reached",
        ),
        PendingReason::ManagedSeedPreparing => {
            (RECONCILE, "WaitingForManagedSeedRegistered", "Waiting for", "ManagedSeed", " to be registered")
        }
        PendingReason::ManagedSeedDeleting => {
            (DELETE, "WaitingForManagedSeedDeleted", "Waiting for", "ManagedSeed", " to be deleted")
        }
        PendingReason::SeedNotReady => (RECONCILE, "WaitingForSeedReady", "Waiting for", "Seed", " to be ready"),
        PendingReason::ShootNotHealthy => {
            (RECONCILE, "WaitingForShootHealthy", "Waiting for", "Shoot", " to be healthy")
        }
    }
}

impl Told {
    /// Returns the text for the log, without the name of the replica.
    pub fn text(&self) -> String {
        format!("{} {}{}", self.verb, self.kind, self.rest)
    }

    /// Returns the note of the Event about a replica. A Seed has no namespace.
    pub fn note(&self, namespace: &str, replica: &str) -> String {
        let namespace = if self.kind == "Seed" { String::new() } else { format!("{namespace}/") };
        format!("{} {} {namespace}{replica}{}", self.verb, self.kind, self.rest)
    }
}
