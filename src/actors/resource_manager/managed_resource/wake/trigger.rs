//! Which events start a reconcile (spec 10 §5), and what a reconcile does first (§5.2, §7).

use crate::api::{
    meta::conditions::ConditionStatus,
    resources::{
        class::OwnClass,
        condition_names::{CANNOT_READ_SECRET, RESOURCES_APPLIED, RESOURCES_HEALTHY},
        keys::{OPERATION, OPERATION_MIGRATE, OPERATION_RECONCILE, OPERATION_RESTORE, OPERATION_WAIT_FOR_STATE},
        managed_resource::ManagedResource,
    },
};

/// Why an event of a ManagedResource starts a reconcile: a set of reasons, empty if it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Triggers(u16);

/// What the operation annotation asks for before a reconcile (spec 10 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// No reconcile and no timer, not even for a ManagedResource that is being deleted.
    Stop,
    /// Remove the annotation ([`remove_operation_patch`]), then go on.
    RemoveAndContinue,
    Continue,
}

/// What a reconcile does with a ManagedResource as it was read (spec 10 §7, rows 3 to 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReconcilePath {
    /// Report that it is ignored. Touch nothing else, no timer.
    Ignored,
    /// It is being deleted, or handed to another class.
    Delete,
    /// Another class has not finished with it. The removal of that class's finalizer wakes us.
    WaitingForCleanup,
    /// Not ours: end with success and write nothing.
    NotResponsible,
    Apply,
}

/// Which ManagedResources an event of a Secret concerns (spec 10 §5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretWake {
    /// None: deletions, and Secrets of a first list.
    None,
    All,
    /// Those that reference the Secret and failed to read a Secret.
    Waiting,
}

impl Triggers {
    /// The ManagedResource is new, to us at least.
    const CREATED: Self = Self(1);
    const DELETED: Self = Self(1 << 1);
    /// B1: the spec changed.
    const GENERATION: Self = Self(1 << 2);
    /// B2: an operation is asked for.
    const OPERATION: Self = Self(1 << 3);
    /// B3: it became unhealthy.
    const UNHEALTHY: Self = Self(1 << 4);
    /// B4: it is no longer ignored.
    const NOT_IGNORED: Self = Self(1 << 5);
    /// B5: it is ignored now.
    const IGNORED: Self = Self(1 << 6);
    /// B6: the class before has finished.
    const CLEANED_UP: Self = Self(1 << 7);
    /// Deletion was asked for. B1 covers it where the API server raises the generation.
    const DELETION: Self = Self(1 << 8);

    const NONE: Self = Self(0);

    pub(super) fn is_empty(self) -> bool {
        self == Self::NONE
    }

    fn when(self, condition: bool) -> Self {
        if condition { self } else { Self::NONE }
    }
}

impl std::ops::BitOr for Triggers {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Returns why the step from `old` to `new` starts a reconcile. Both must be the last known state; `None`: absent.
pub(super) fn triggers(own: &OwnClass, old: Option<&ManagedResource>, new: Option<&ManagedResource>) -> Triggers {
    match (old, new) {
        (None, None) => Triggers::NONE,
        (None, Some(created)) => Triggers::CREATED.when(passes_class(own, created)),
        (Some(deleted), None) => Triggers::DELETED.when(passes_class(own, deleted)),
        (Some(old), Some(new)) if old.metadata.uid != new.metadata.uid => {
            triggers(own, Some(old), None) | triggers(own, None, Some(new))
        }
        (Some(old), Some(new)) if passes_class(own, new) && passes_ignore(old, new) => changes(own, old, new),
        (Some(_), Some(_)) => Triggers::NONE,
    }
}

/// Filter A.
fn passes_class(own: &OwnClass, mr: &ManagedResource) -> bool {
    own.holds(mr) || own.is_responsible(mr)
}

/// Filter B, for updates.
fn changes(own: &OwnClass, old: &ManagedResource, new: &ManagedResource) -> Triggers {
    let operation =
        matches!(new.annotation(OPERATION), Some(OPERATION_RECONCILE | OPERATION_RESTORE | OPERATION_MIGRATE));
    let health = |mr: &ManagedResource| mr.condition(RESOURCES_HEALTHY).map(|condition| condition.status.clone());
    let was_healthy = matches!(health(old), None | Some(ConditionStatus::True));
    let is_unhealthy = health(new) == Some(ConditionStatus::False);

    Triggers::GENERATION.when(old.metadata.generation != new.metadata.generation)
        | Triggers::OPERATION.when(operation)
        | Triggers::UNHEALTHY.when(was_healthy && is_unhealthy)
        | Triggers::NOT_IGNORED.when(old.is_ignored() && !new.is_ignored())
        | Triggers::IGNORED.when(!old.is_ignored() && new.is_ignored())
        | Triggers::CLEANED_UP.when(own.is_waiting_for_cleanup(old) && !own.is_waiting_for_cleanup(new))
        | Triggers::DELETION.when(!old.is_deleting() && new.is_deleting())
}

/// Filter C, for updates.
fn passes_ignore(old: &ManagedResource, new: &ManagedResource) -> bool {
    let newly_ignored = !old.is_ignored() && new.is_ignored();
    newly_ignored || !new.is_ignored() || new.is_deleting()
}

/// Returns what an event of a Secret means, from its `resourceVersion`s. `initial`: a Secret of a first list. A Secret
/// that is created later helps the ManagedResources that miss it ("Better than upstream" 6).
pub(super) fn secret_wake(old: Option<&str>, new: Option<&str>, initial: bool) -> SecretWake {
    match (old, new) {
        (_, None) => SecretWake::None,
        (None, Some(_)) if initial => SecretWake::None,
        (None, Some(_)) => SecretWake::Waiting,
        (Some(old), Some(new)) if old == new => SecretWake::None,
        (Some(_), Some(_)) => SecretWake::All,
    }
}

pub(super) fn is_woken_by_secret(own: &OwnClass, wake: SecretWake, secret: &str, mr: &ManagedResource) -> bool {
    let concerned = passes_class(own, mr)
        && (!mr.is_ignored() || mr.is_deleting())
        && mr.spec.secret_refs.iter().any(|reference| reference.name == secret);
    let waits = || mr.condition(RESOURCES_APPLIED).is_some_and(|condition| condition.reason == CANNOT_READ_SECRET);
    match wake {
        SecretWake::None => false,
        SecretWake::All => concerned,
        SecretWake::Waiting => concerned && waits(),
    }
}

/// Returns what the operation annotation asks for (spec 10 §5.2).
pub(crate) fn operation(mr: &ManagedResource) -> Operation {
    match mr.annotation(OPERATION) {
        Some(OPERATION_WAIT_FOR_STATE) => Operation::Stop,
        // It is for the run that follows when the ManagedResource is no longer ignored (spec 10 §5.1 C, §5.5).
        Some(OPERATION_RECONCILE) if mr.is_ignored() && !mr.is_deleting() => Operation::Continue,
        Some(OPERATION_RECONCILE) => Operation::RemoveAndContinue,
        _ => Operation::Continue,
    }
}

/// Returns the JSON merge patch that removes the operation annotation. It has no `resourceVersion` on purpose.
pub(crate) fn remove_operation_patch() -> serde_json::Value {
    serde_json::json!({ "metadata": { "annotations": { OPERATION: null } } })
}

/// Returns what to do with a ManagedResource (spec 10 §7). Deletion comes before waiting: every class cleans up a
/// ManagedResource in deletion. Responsibility comes last: a reconcile may have been queued before the hand-over ended.
pub(crate) fn entry(own: &OwnClass, mr: &ManagedResource) -> ReconcilePath {
    if mr.is_ignored() && !mr.is_deleting() {
        ReconcilePath::Ignored
    } else if mr.is_deleting() || own.is_transferring(mr) {
        ReconcilePath::Delete
    } else if own.is_waiting_for_cleanup(mr) {
        ReconcilePath::WaitingForCleanup
    } else if !own.is_responsible(mr) {
        ReconcilePath::NotResponsible
    } else {
        ReconcilePath::Apply
    }
}

#[cfg(test)]
mod tests;
