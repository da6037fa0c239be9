//! Which events start a reconcile (spec 10 §5), and what a reconcile does first (§5.2, §7).

use crate::api::{
    meta::conditions::ConditionStatus,
    resources::{
        class::OwnClass,
        condition_names::RESOURCES_HEALTHY,
        keys::{OPERATION, OPERATION_MIGRATE, OPERATION_RECONCILE, OPERATION_RESTORE, OPERATION_WAIT_FOR_STATE},
        managed_resource::ManagedResource,
    },
};

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

/// Returns true if the step from `old` to `new` starts a reconcile. Both must be the last known state; `None`: absent.
pub(super) fn is_triggered(own: &OwnClass, old: Option<&ManagedResource>, new: Option<&ManagedResource>) -> bool {
    match (old, new) {
        (None, None) => false,
        (None, Some(only)) | (Some(only), None) => passes_class(own, only),
        (Some(old), Some(new)) if old.metadata.uid != new.metadata.uid => {
            passes_class(own, old) || passes_class(own, new)
        }
        (Some(old), Some(new)) => passes_class(own, new) && passes_ignore(old, new) && is_changed(own, old, new),
    }
}

/// Filter A.
fn passes_class(own: &OwnClass, mr: &ManagedResource) -> bool {
    own.holds(mr) || own.is_responsible(mr)
}

/// Filter B, for updates: one line for each of B1 to B6, and the deletion, which does not always raise the generation.
fn is_changed(own: &OwnClass, old: &ManagedResource, new: &ManagedResource) -> bool {
    let health = |mr: &ManagedResource| mr.condition(RESOURCES_HEALTHY).map(|condition| condition.status.clone());
    let was_healthy = matches!(health(old), None | Some(ConditionStatus::True));

    old.metadata.generation != new.metadata.generation
        || matches!(new.annotation(OPERATION), Some(OPERATION_RECONCILE | OPERATION_RESTORE | OPERATION_MIGRATE))
        || was_healthy && health(new) == Some(ConditionStatus::False)
        || old.is_ignored() && !new.is_ignored()
        || !old.is_ignored() && new.is_ignored()
        || own.is_waiting_for_cleanup(old) && !own.is_waiting_for_cleanup(new)
        || !old.is_deleting() && new.is_deleting()
}

/// Filter C, for updates.
fn passes_ignore(old: &ManagedResource, new: &ManagedResource) -> bool {
    let newly_ignored = !old.is_ignored() && new.is_ignored();
    newly_ignored || !new.is_ignored() || new.is_deleting()
}

/// Returns true if an event of a Secret brings a version that ManagedResources may lack, from the cached versions. A
/// Secret that was not known may be new or changed, unless a reconcile has just `read` it. A Secret that is created
/// later helps the ManagedResources that miss it ("Better than upstream" 6).
pub(super) fn is_new_version(old: Option<u64>, new: Option<u64>, read: bool) -> bool {
    match (old, new) {
        (_, None) => false,
        (None, Some(_)) => !read,
        (Some(old), Some(new)) => old != new,
    }
}

/// Returns true if a new version of a Secret concerns a ManagedResource (spec 10 §5.3).
pub(super) fn is_woken_by_secret(own: &OwnClass, secret: &str, mr: &ManagedResource) -> bool {
    passes_class(own, mr)
        && (!mr.is_ignored() || mr.is_deleting())
        && mr.spec.secret_refs.iter().any(|reference| reference.name == secret)
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
