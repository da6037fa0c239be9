//! Decides about pruning: what happens to an object that is no longer wanted, or that cannot be updated (spec 10 §11.7,
//! §13, §14). Decisions and texts only; `prune` reads, deletes and patches. In the order of §13.1:
//! * [`exclusion_of_object`], [`exclusion_of_cached`]: objects that stay
//! * [`other_owner`]: objects that belong to another ManagedResource now (decision 10)
//! * [`volume_claims`]: which PersistentVolumeClaims go with a StatefulSet
//! * [`propagation`]: how the object is deleted
//! * [`forced_finalization`]: when finalizers are removed
//! * [`still_pending`]: what is reported meanwhile
//!
//! [`release_patch`] is for objects in Ignore mode, [`invalid_update`] for updates that the API server refuses.

use cluster::{
    Propagation,
    object::{self, GroupVersionKind, NamespacedName, truthy},
};
use jiff::{SignedDuration, Timestamp};
use kit::duration::{DurationError, GoDuration};
use serde_json::{Value, json};
use thiserror::Error;

use super::super::known::CachedObject;
use crate::{
    actors::resource_manager::bundle::identity,
    api::resources::{keys, origin::Origin},
};

pub(crate) mod invalid_update;
pub(crate) mod itself;
pub(crate) mod volume_claims;

#[cfg(test)]
mod tests;

/// Why an object is not pruned (spec 10 §13.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exclusion {
    KeepObject,
    GarbageCollectable,
}

/// What to do about the finalizers of an object after its DELETE (spec 10 §13.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForcedFinalization {
    /// Leave them: there is no grace time or no finalizer, the grace time is not over, or the object was not being
    /// deleted when it was read.
    No,
    RemoveFinalizers,
    /// `PUT` [`finalized_namespace`] to the `finalize` subresource.
    FinalizeNamespace,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("failed parsing duration of resources.gardener.cloud/finalize-deletion-after annotation: {0}")]
pub(super) struct GraceTimeError(#[from] DurationError);

/// Returns why the live object stays, as its annotations and labels say, or `None` if it does not (spec 10 §13.2).
pub(crate) fn exclusion_of_object(live: &Value, garbage_collector_enabled: bool) -> Option<Exclusion> {
    let keep = truthy(object::annotation(live, keys::KEEP_OBJECT));
    let collectable = truthy(object::label(live, keys::GARBAGE_COLLECTABLE));
    exclusion(&identity::gvk_of(live), keep, collectable && garbage_collector_enabled)
}

pub(super) fn exclusion_of_cached(
    gvk: &GroupVersionKind,
    cached: &CachedObject,
    garbage_collector_enabled: bool,
) -> Option<Exclusion> {
    exclusion(gvk, cached.keep_object, cached.garbage_collectable && garbage_collector_enabled)
}

/// The collector handles ConfigMaps and Secrets only; other kinds with its label are deleted (spec 10 §18, trap 2).
fn exclusion(gvk: &GroupVersionKind, keep: bool, collectable: bool) -> Option<Exclusion> {
    if keep {
        Some(Exclusion::KeepObject)
    } else if collectable && is_config_map_or_secret(gvk) {
        Some(Exclusion::GarbageCollectable)
    } else {
        None
    }
}

fn is_config_map_or_secret(gvk: &GroupVersionKind) -> bool {
    gvk.group.is_empty() && gvk.version == "v1" && matches!(gvk.kind.as_str(), "ConfigMap" | "Secret")
}

/// Returns the *other* ManagedResource of the same source cluster that an object's origin annotation names
/// (decisions 10 and 11). The caller must ask whether it exists. If it does, the object is not ours to delete. An
/// origin that is unreadable, or of another cluster, names none.
pub(crate) fn other_owner(origin: Option<&str>, own: &Origin) -> Option<NamespacedName> {
    let origin: Origin = origin?.parse().ok()?;
    (origin.cluster_id == own.cluster_id && origin.key != own.key).then_some(origin.key)
}

/// Returns the propagation policy for an API group (spec 10 §13.4). Foreground blocks for RBAC objects and Services.
pub(super) fn propagation(group: &str) -> Option<Propagation> {
    matches!(group, "apps" | "extensions" | "batch").then_some(Propagation::Foreground)
}

/// Returns what to do about the finalizers of an object, as it was read *before* its DELETE (spec 10 §13.5).
pub(super) fn forced_finalization(live: &Value, now: Timestamp) -> Result<ForcedFinalization, GraceTimeError> {
    let Some(grace) = object::annotation(live, keys::FINALIZE_DELETION_AFTER) else {
        return Ok(ForcedFinalization::No);
    };
    let grace: GoDuration = grace.parse()?;
    let deleted = object::deletion_timestamp(live).and_then(|text| text.parse::<Timestamp>().ok());
    let Some(deleted) = deleted.filter(|_| grace != GoDuration::ZERO) else { return Ok(ForcedFinalization::No) };

    let due = deleted.checked_add(SignedDuration::from_nanos(grace.nanos())).unwrap_or(Timestamp::MAX);
    let gvk = identity::gvk_of(live);
    let is_namespace = gvk.group.is_empty() && gvk.kind == "Namespace";
    let has_finalizers = object::finalizers(live).next().is_some()
        || is_namespace
            && live.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    Ok(match (has_finalizers && due <= now, is_namespace) {
        (false, _) => ForcedFinalization::No,
        (true, true) => ForcedFinalization::FinalizeNamespace,
        (true, false) => ForcedFinalization::RemoveFinalizers,
    })
}

/// Returns the JSON merge patch that removes all finalizers, without a lock (spec 10 §13.5.3). It contains the uid, so
/// that an object that was made anew under the same name keeps its own.
pub(super) fn remove_finalizers_patch(live: &Value) -> Value {
    json!({"metadata": {"uid": object::uid(live), "finalizers": null}})
}

/// Returns a Namespace without any finalizer, for its `finalize` subresource (spec 10 §13.5.4).
pub(super) fn finalized_namespace(live: &Value) -> Value {
    let mut namespace = live.clone();
    for part in ["metadata", "spec"] {
        if let Some(part) = namespace.get_mut(part).and_then(Value::as_object_mut) {
            part.remove("finalizers");
        }
    }
    namespace
}

/// Returns the item of the aggregated error for an object that is not gone yet (spec 10 §13.6). `events` is the block
/// of the [`Warnings`](crate::actors::resource_manager::health::warnings::Warnings) about a Service; empty if there are none.
pub(super) fn still_pending(display: &str, error: Option<&str>, events: &str) -> String {
    let error = error.map(|error| format!(": {error}")).unwrap_or_default();
    format!("deletion of old resource \"{display}\" is still pending{error}{events}")
}

/// Returns the JSON merge patch that releases an object in Ignore mode (spec 10 §14), or `None` if its origin is not
/// ours (any more): then there is nothing to do. The managed-by label stays.
pub(crate) fn release_patch(live: &Value, own_origin: &str) -> Option<Value> {
    let is_ours = object::annotation(live, keys::ORIGIN) == Some(own_origin);
    is_ours.then(|| json!({"metadata": {"annotations": {keys::ORIGIN: null, keys::DESCRIPTION: null}}}))
}

/// Text for an orphan that cannot be read (spec 10 §14).
pub(super) fn orphan_not_read(display: &str, error: &str) -> String {
    format!("error getting object \"{display}\": {error}")
}

/// Text for an orphan that cannot be patched (spec 10 §14).
pub(super) fn orphan_not_patched(display: &str, error: &str) -> String {
    format!("error patching object \"{display}\": {error}")
}
