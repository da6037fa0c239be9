//! What a pass reports: each row of spec 10 §16 as a function from one status to the next.
//!
//! A function changes only what its row names. Whether the result must be written is [`needs_write`]'s answer.

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;

use super::fit;
use crate::api::{
    conditions::{
        self, APPLY_FAILED, APPLY_PROGRESSING, APPLY_SUCCEEDED, CANNOT_READ_SECRET, CHECKS_PENDING, ConditionStatus,
        DECODING_FAILED, DELETION_FAILED, DELETION_PENDING, MANAGED_RESOURCE_IGNORED, RELEASE_FAILED,
        RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING,
    },
    managed_resource::{ManagedResourceStatus, ResourceRef},
    object::ObjectKey,
};
use crate::{
    actors::health::report::{self, Finding, Report},
    bundle::decode::DecodeError,
};

/// Message of row "applied".
const APPLIED_MESSAGE: &str = "All resources are applied.";
/// Message of row "change detected" for `ResourcesApplied`.
const RECONCILED_MESSAGE: &str = "The resources are currently being reconciled.";
/// Message of row "change detected" for `ResourcesHealthy`.
const HEALTH_PENDING_MESSAGE: &str = "The health checks have not yet been executed for the current set of resources.";
/// Message of row "change detected" for `ResourcesProgressing`.
const PROGRESSING_PENDING_MESSAGE: &str = "Checks have not yet been executed for the current set of resources.";
/// Message of row "ignored".
const IGNORED_MESSAGE: &str = "ManagedResource is marked to be ignored.";
/// Message of row "deleting".
const DELETED_MESSAGE: &str = "The resources are currently being deleted.";
/// Prefix of the aggregated error of clean-up (spec 10 §13.6).
pub(crate) const CLEAN_PREFIX: &str = "Could not clean all old resources";
/// Prefix of the aggregated error of release (spec 10 §13.6).
pub(crate) const RELEASE_PREFIX: &str = "Could not release all orphaned resources";
/// The longest message that is written, in bytes. The API server refuses objects beyond 1.5 MiB and each write of the
/// status carries its messages.
const MESSAGE_LIMIT: usize = 30 * 1024;

/// What a pass has applied that reached its final phase (spec 10 §9.10).
#[derive(Debug, Clone, Default)]
pub(crate) struct AppliedSet<'a> {
    /// The new refs, sorted.
    pub(crate) refs: Vec<ResourceRef>,
    /// Checksum over the kept manifests.
    pub(crate) checksum: String,
    /// The generation that was applied.
    pub(crate) generation: i64,
    /// Documents that could not be decoded; the others have been applied.
    pub(crate) errors: &'a [DecodeError],
    /// Objects that may have left the bundle and are still there: items of the message.
    pub(crate) left: &'a [String],
}

/// Row "Secret unreadable".
pub(crate) fn secret_unreadable(status: &ManagedResourceStatus, error: &str, now: Timestamp) -> ManagedResourceStatus {
    with_applied(status, ConditionStatus::False, CANNOT_READ_SECRET, error, now)
}

/// Whether row "change detected" is due: the refs (with their order, labels and annotations, but for those that the status had
/// no room for) or the checksum differ.
pub(crate) fn is_changed(status: &ManagedResourceStatus, refs: &[ResourceRef], checksum: &str) -> bool {
    let is_same = status.resources.len() == refs.len()
        && status.resources.iter().zip(refs).all(|(stored, reference)| fit::stands_for(stored, reference));
    !is_same || status.secrets_data_checksum.as_deref() != Some(checksum)
}

/// Row "change detected" (spec 10 §9.7), written before anything is touched.
///
/// `added` are the new refs for which the old index found nothing. They are appended to the refs, so that an object is
/// known before it is created: otherwise one that was created just before a crash, and whose manifest is gone after it,
/// would stay for ever. An old ref stays as it is, because its labels and annotations are what the merge compares with.
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
    let list = &mut next.conditions;
    conditions::set(list, RESOURCES_HEALTHY, ConditionStatus::Unknown, CHECKS_PENDING, HEALTH_PENDING_MESSAGE, now);
    conditions::set(
        list,
        RESOURCES_PROGRESSING,
        ConditionStatus::Unknown,
        CHECKS_PENDING,
        PROGRESSING_PENDING_MESSAGE,
        now,
    );
    conditions::set(list, RESOURCES_APPLIED, ConditionStatus::Progressing, reason, message, now);
    next.resources = union(&status.resources, added);
    next
}

/// New refs join those of a set that was announced before: what it said about the set stays.
pub(crate) fn remembered(status: &ManagedResourceStatus, added: &[ResourceRef]) -> ManagedResourceStatus {
    ManagedResourceStatus { resources: union(&status.resources, added), ..status.clone() }
}

/// Row "deletion pending".
pub(crate) fn deletion_pending(status: &ManagedResourceStatus, message: &str, now: Timestamp) -> ManagedResourceStatus {
    with_applied(status, ConditionStatus::Progressing, DELETION_PENDING, message, now)
}

/// Row "release failed".
pub(crate) fn release_failed(status: &ManagedResourceStatus, message: &str, now: Timestamp) -> ManagedResourceStatus {
    with_applied(status, ConditionStatus::False, RELEASE_FAILED, message, now)
}

/// Row "apply failed". `created` are refs of objects that exist although the run failed; they join the refs, so that
/// they are not forgotten when their manifests go (spec 10 "Better than upstream" 3).
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

/// Rows "applied", "decoding failed", and "deletion pending" where objects were left on doubt (spec 10 §9.3), with the fields that only the final phase sets (spec 10 §9.10).
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

/// Whether the condition says just what row "applied" says.
pub(crate) fn is_reported_applied(status: &ManagedResourceStatus) -> bool {
    conditions::find(&status.conditions, RESOURCES_APPLIED).is_some_and(|condition| {
        condition.status == ConditionStatus::True
            && condition.reason == APPLY_SUCCEEDED
            && fit::without_note(&condition.message) == APPLIED_MESSAGE
    })
}

/// Whether the last set that was attempted is the one whose checksum stands in the status, and was applied as far as its
/// documents decode. Each attempt at another set is announced ([`change_detected`]) before anything of it is sent, so
/// that after a failure or a crash the condition says otherwise.
pub(crate) fn is_last_attempt_applied(status: &ManagedResourceStatus) -> bool {
    conditions::find(&status.conditions, RESOURCES_APPLIED).is_some_and(|condition| {
        matches!(
            (&condition.status, condition.reason.as_str()),
            (ConditionStatus::True, APPLY_SUCCEEDED) | (ConditionStatus::False, DECODING_FAILED)
        )
    })
}

/// An object was found gone in a pass that failed: that is said as well, because after it health is not judged any more
/// (spec 20 §4.1, scenario 4).
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

/// Row "ignored".
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

/// Row "deleting" (spec 10 §15). With `keep_objects` nothing is deleted and `ResourcesApplied` stays as it is;
/// otherwise it keeps a message that already tells about deletion.
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

/// Whether a status must be sent: one that equals what is stored must not, so that nobody is woken for nothing (spec 10
/// "Better than upstream" 8).
pub(super) fn needs_write(stored: &ManagedResourceStatus, next: &ManagedResourceStatus) -> bool {
    stored != next
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

/// The old refs, and behind them those of the added whose object is not yet among them.
fn union(old: &[ResourceRef], added: &[ResourceRef]) -> Vec<ResourceRef> {
    let mut known: HashSet<_> = old.iter().map(ResourceRef::key).collect();
    let new = added.iter().filter(|reference| known.insert(reference.key()));
    old.iter().chain(new).cloned().collect()
}

/// One error out of many, in an order that is the same each time (spec 10 §13.6). Bounded: the first items in full, the
/// rest is counted.
pub(crate) fn aggregate(prefix: &str, items: &[String]) -> String {
    let text = match items {
        [item] => format!("{prefix}: 1 error occurred: {item}"),
        items => format!("{prefix}: {} errors occurred: [{}]", items.len(), bounded_list(items, ", ")),
    };
    bounded(&text)
}

fn decoding_message(errors: &[DecodeError]) -> String {
    let items: Vec<_> = errors.iter().map(DecodeError::to_string).collect();
    format!("Could not decode all new resources: [{}]", bounded_list(&items, " "))
}

/// Items until the message is full, then how many are left out.
fn bounded_list(items: &[String], separator: &str) -> String {
    const ROOM_FOR_FRAME: usize = 256;

    let mut text = String::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 && text.len() + separator.len() + item.len() > MESSAGE_LIMIT - ROOM_FOR_FRAME {
            text.push_str(&format!("{separator}… and {} more", items.len() - index));
            break;
        }
        if index > 0 {
            text.push_str(separator);
        }
        text.push_str(&cut(item, MESSAGE_LIMIT - ROOM_FOR_FRAME));
    }
    text
}

/// The message, or as much of it as may be written.
pub(crate) fn bounded(message: &str) -> String {
    cut(message, MESSAGE_LIMIT)
}

/// The text, or its beginning with an ellipsis, in at most `limit` bytes.
fn cut(text: &str, limit: usize) -> String {
    const ELLIPSIS: &str = "…";

    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit - ELLIPSIS.len());
    format!("{}{ELLIPSIS}", &text[..end])
}

#[cfg(test)]
mod tests;
