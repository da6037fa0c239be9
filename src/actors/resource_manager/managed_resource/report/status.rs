//! What a reconcile reports: each row of spec 10 §16 as a function that changes only what its row names.

use std::collections::{BTreeSet, HashSet};

use cluster::object::ObjectKey;
use jiff::Timestamp;

use super::{
    fit,
    message::{aggregate, bounded, bounded_list},
};
use crate::{
    actors::resource_manager::{
        bundle::decode::DecodeError,
        health::report::{self, Finding, Report},
    },
    api::{
        meta::conditions::{self, ConditionStatus},
        resources::{
            condition_names::{
                APPLY_FAILED, APPLY_PROGRESSING, APPLY_SUCCEEDED, CANNOT_READ_SECRET, CHECKS_PENDING, DECODING_FAILED,
                DELETION_FAILED, DELETION_PENDING, MANAGED_RESOURCE_IGNORED, RELEASE_FAILED, RESOURCES_APPLIED,
                RESOURCES_HEALTHY, RESOURCES_PROGRESSING,
            },
            managed_resource::{ManagedResourceStatus, ResourceRef},
        },
    },
};

const APPLIED_MESSAGE: &str = "All resources are applied.";
const RECONCILED_MESSAGE: &str = "The resources are currently being reconciled.";
const HEALTH_PENDING_MESSAGE: &str = "The health checks have not yet been executed for the current set of resources.";
const PROGRESSING_PENDING_MESSAGE: &str = "Checks have not yet been executed for the current set of resources.";
const IGNORED_MESSAGE: &str = "ManagedResource is marked to be ignored.";
const DELETED_MESSAGE: &str = "The resources are currently being deleted.";
/// Prefix of the aggregated error of pruning and deletion (spec 10 §13.6).
pub(crate) const CLEAN_PREFIX: &str = "Could not clean all old resources";
/// Prefix of the aggregated error of release (spec 10 §13.6).
pub(crate) const RELEASE_PREFIX: &str = "Could not release all orphaned resources";

/// What a reconcile applied that reached its final phase (spec 10 §9.10).
#[derive(Debug, Clone, Default)]
pub(crate) struct AppliedSet<'a> {
    pub(crate) refs: Vec<ResourceRef>,
    pub(crate) checksum: String,
    pub(crate) generation: i64,
    /// Manifests that could not be decoded. All others were applied.
    pub(crate) errors: &'a [DecodeError],
    /// Objects that may have to be pruned and still exist: items of the message.
    pub(crate) left: &'a [String],
}

pub(crate) fn secret_unreadable(status: &ManagedResourceStatus, error: &str, now: Timestamp) -> ManagedResourceStatus {
    with_applied(status, ConditionStatus::False, CANNOT_READ_SECRET, error, now)
}

/// Returns true if row "change detected" is due: the checksum or the refs differ, including their order, labels and
/// annotations. Labels and annotations that the status had no room for do not count.
pub(crate) fn is_changed(status: &ManagedResourceStatus, refs: &[ResourceRef], checksum: &str) -> bool {
    let is_same = status.resources.len() == refs.len()
        && status.resources.iter().zip(refs).all(|(stored, reference)| fit::stands_for(stored, reference));
    !is_same || status.secrets_data_checksum.as_deref() != Some(checksum)
}

/// Row "change detected" (spec 10 §9.7), written before anything is touched. `added`: new refs that the old index
/// lacks: appending them makes an object known before it is created, so that it is pruned even if the process crashes
/// and its manifest goes. Old refs stay: the merge compares with their labels and annotations.
pub(crate) fn change_detected(
    status: &ManagedResourceStatus,
    added: &[ResourceRef],
    now: Timestamp,
) -> ManagedResourceStatus {
    let applied = conditions::get_or_init(&status.conditions, RESOURCES_APPLIED, now);
    let (reason, message) = match applied.reason.as_str() {
        APPLY_FAILED | DELETION_FAILED | DELETION_PENDING => (applied.reason.as_str(), applied.message.as_str()),
        _ => (APPLY_PROGRESSING, RECONCILED_MESSAGE),
    };

    let mut next = status.clone();
    for (kind, value, reason, message) in [
        (RESOURCES_HEALTHY, ConditionStatus::Unknown, CHECKS_PENDING, HEALTH_PENDING_MESSAGE),
        (RESOURCES_PROGRESSING, ConditionStatus::Unknown, CHECKS_PENDING, PROGRESSING_PENDING_MESSAGE),
        (RESOURCES_APPLIED, ConditionStatus::Progressing, reason, message),
    ] {
        conditions::set(&mut next.conditions, kind, value, reason, message, now);
    }
    next.resources = union(&status.resources, added);
    next
}

/// Adds refs to a set that was announced before. The conditions stay.
pub(crate) fn remembered(status: &ManagedResourceStatus, added: &[ResourceRef]) -> ManagedResourceStatus {
    ManagedResourceStatus { resources: union(&status.resources, added), ..status.clone() }
}

pub(crate) fn deletion_pending(status: &ManagedResourceStatus, message: &str, now: Timestamp) -> ManagedResourceStatus {
    with_applied(status, ConditionStatus::Progressing, DELETION_PENDING, message, now)
}

pub(crate) fn release_failed(status: &ManagedResourceStatus, message: &str, now: Timestamp) -> ManagedResourceStatus {
    with_applied(status, ConditionStatus::False, RELEASE_FAILED, message, now)
}

/// Row "apply failed". `created` are refs of objects that exist although the run failed. They join the refs, so that
/// they are pruned when their manifests go (spec 10 "Better than upstream" 3).
pub(crate) fn apply_failed(
    status: &ManagedResourceStatus,
    error: &str,
    created: &[ResourceRef],
    now: Timestamp,
) -> ManagedResourceStatus {
    let mut next = with_applied(status, ConditionStatus::False, APPLY_FAILED, error, now);
    next.resources = union(&status.resources, created);
    next
}

/// Rows "applied", "decoding failed", and "deletion pending" where unconfirmed objects were left (spec 10 §9.3). Also
/// sets the fields that only the final phase sets (spec 10 §9.10).
pub(crate) fn finished(status: &ManagedResourceStatus, set: AppliedSet<'_>, now: Timestamp) -> ManagedResourceStatus {
    let mut next = if !set.errors.is_empty() {
        let message = decoding_message(set.errors);
        with_applied(status, ConditionStatus::False, DECODING_FAILED, &message, now)
    } else if !set.left.is_empty() {
        deletion_pending(status, &aggregate(CLEAN_PREFIX, set.left), now)
    } else {
        with_applied(status, ConditionStatus::True, APPLY_SUCCEEDED, APPLIED_MESSAGE, now)
    };
    next.resources = set.refs;
    next.secrets_data_checksum = Some(set.checksum);
    next.observed_generation = set.generation;
    next
}

pub(crate) fn is_reported_applied(status: &ManagedResourceStatus) -> bool {
    conditions::find(&status.conditions, RESOURCES_APPLIED).is_some_and(|condition| {
        condition.status == ConditionStatus::True
            && condition.reason == APPLY_SUCCEEDED
            && fit::without_note(&condition.message) == APPLIED_MESSAGE
    })
}

/// Returns true if the last set that was attempted is the set whose checksum is in the status, and all of its decodable
/// manifests were applied. Each is announced first ([`change_detected`]): the condition differs after a crash.
pub(crate) fn is_last_attempt_applied(status: &ManagedResourceStatus) -> bool {
    conditions::find(&status.conditions, RESOURCES_APPLIED).is_some_and(|condition| {
        matches!(
            (&condition.status, condition.reason.as_str()),
            (ConditionStatus::True, APPLY_SUCCEEDED) | (ConditionStatus::False, DECODING_FAILED)
        )
    })
}

/// Reports an object that a failed reconcile found gone: health is not judged after it (spec 20 §4.1, scenario 4).
pub(crate) fn found_gone(
    status: &ManagedResourceStatus,
    gone: &BTreeSet<ObjectKey>,
    now: Timestamp,
) -> ManagedResourceStatus {
    let mut next = status.clone();
    let is_healthy = conditions::find(&status.conditions, RESOURCES_HEALTHY)
        .is_some_and(|condition| condition.status == ConditionStatus::True);
    let first = status.resources.iter().find(|reference| gone.contains(&reference.key()));
    if let Some(reference) = first.filter(|_| is_healthy) {
        let Report { status, reason, message } = report::health(Some((reference, &Finding::Missing(None))));
        conditions::set(&mut next.conditions, RESOURCES_HEALTHY, status, &reason, &message, now);
    }
    next
}

pub(crate) fn ignored(status: &ManagedResourceStatus, now: Timestamp) -> ManagedResourceStatus {
    let mut next = status.clone();
    for (kind, value) in [
        (RESOURCES_HEALTHY, ConditionStatus::True),
        (RESOURCES_PROGRESSING, ConditionStatus::False),
        (RESOURCES_APPLIED, ConditionStatus::True),
    ] {
        conditions::set(&mut next.conditions, kind, value, MANAGED_RESOURCE_IGNORED, IGNORED_MESSAGE, now);
    }
    next
}

/// Row "deleting" (spec 10 §15). With `keep_objects` nothing is deleted, and `ResourcesApplied` stays as it is.
/// Otherwise `ResourcesApplied` keeps a message that is already about deletion.
pub(crate) fn deleting(status: &ManagedResourceStatus, keep_objects: bool, now: Timestamp) -> ManagedResourceStatus {
    let mut next = status.clone();
    for (kind, value) in [(RESOURCES_HEALTHY, ConditionStatus::False), (RESOURCES_PROGRESSING, ConditionStatus::True)] {
        conditions::set(&mut next.conditions, kind, value, DELETION_PENDING, DELETED_MESSAGE, now);
    }
    if keep_objects {
        return next;
    }

    let message = match conditions::find(&status.conditions, RESOURCES_APPLIED) {
        Some(applied) if matches!(applied.reason.as_str(), DELETION_PENDING | DELETION_FAILED) => &applied.message,
        _ => DELETED_MESSAGE,
    };
    deletion_pending(&next, message, now)
}

fn with_applied(
    status: &ManagedResourceStatus,
    value: ConditionStatus,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> ManagedResourceStatus {
    let mut next = status.clone();
    conditions::set(&mut next.conditions, RESOURCES_APPLIED, value, reason, &bounded(message), now);
    next
}

fn union(old: &[ResourceRef], added: &[ResourceRef]) -> Vec<ResourceRef> {
    let mut known: HashSet<_> = old.iter().map(ResourceRef::key).collect();
    let new = added.iter().filter(|reference| known.insert(reference.key()));
    old.iter().chain(new).cloned().collect()
}

fn decoding_message(errors: &[DecodeError]) -> String {
    let items: Vec<_> = errors.iter().map(DecodeError::to_string).collect();
    format!("Could not decode all new resources: [{}]", bounded_list(&items, " "))
}

#[cfg(test)]
mod tests;
