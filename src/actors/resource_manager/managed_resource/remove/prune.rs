//! Prunes objects that left the manifests, and all of a deleted or handed-over ManagedResource (spec 10 §13, §15).

use std::collections::BTreeSet;

use cluster::{
    ApiError, ListQuery, Located, Nowhere, ObjectRef, Resource,
    object::{self, ObjectKey},
};
use futures::{StreamExt, stream};
use kit::{Causes, Failure, Outcome, quote::cut_after};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    super::{
        known::{CachedObject, Memory},
        record::{PendingDeletion, WriteKind},
        report::{message, status},
        steps::Run,
    },
    clean::{self, ForcedFinalization, volume_claims},
    deletion::{Pruned, StillThere, delete, left_alone},
    own_namespace::{self, Held},
};
use crate::{
    actors::resource_manager::bundle::order,
    api::{
        kinds,
        resources::{keys::ORIGIN, managed_resource::ResourceRef},
    },
};

/// Objects that are being deleted are checked again after this time, if no watch reports them earlier (spec 10 §17.2).
const CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);

/// Conflicts that are answered by deciding anew. After them, the object is left for the next reconcile.
const CONFLICTS: usize = 3;

const SIDE_BY_SIDE: usize = 16;

/// Characters of a note about finalizers, whose number is not limited.
const LONGEST_NOTE: usize = 200;

/// Deletes the objects of a ManagedResource, then removes its finalizer (spec 10 §15). The actor stays as long as finalizers
/// of others hold the ManagedResource, so that the dashboard shows who.
pub(crate) async fn delete_bundle(run: &mut Run<'_>, memory: &mut Memory) -> Result<Outcome, Failure> {
    let controller = run.controller;
    let keep = run.mr().spec.keep_objects;
    run.write_status(|status, now| status::deleting(status, keep, now)).await?;
    if !keep {
        let references = run.mr().status.resources.clone();
        let keys: BTreeSet<_> = references.iter().map(ResourceRef::key).collect();
        run.record.deletions.borrow_mut().keep(|object| keys.contains(object));
        controller.objects.register(&run.reconcile.key, keys);
        let Held { others, own, unconfirmed } = own_namespace::sort(run, &references).await;
        let Some(mut pending) = prune(run, memory, &others).await else { return Ok(Outcome::Continue) };
        pending.extend(unconfirmed);
        if let Some(own) = own.filter(|_| pending.is_empty()) {
            pending.extend(own_namespace::delete_last(run, &own).await);
        }
        if !pending.is_empty() {
            return report_pending(run, &pending).await;
        }
    }
    remove_finalizer(run).await?;
    controller.objects.register(&run.reconcile.key, BTreeSet::new());
    let Some(holders) = other_holders(run) else { return Ok(Outcome::Retire) };
    // Another run checks all objects again.
    memory.progress = None;
    run.reconcile.note(format!("all objects are gone; held by finalizers of others: {holders}"));
    Ok(Outcome::Done)
}

/// Returns the finalizers that hold a ManagedResource of our class without ours. No further event may report those of
/// other classes.
fn other_holders(run: &Run<'_>) -> Option<String> {
    let mr = run.mr();
    let is_held = mr.is_deleting() && run.controller.settings.class.is_responsible(mr);
    let holders = mr.metadata.finalizers.join(", ");
    (is_held && !holders.is_empty()).then(|| cut_after(LONGEST_NOTE, &holders).into_owned())
}

async fn remove_finalizer(run: &mut Run<'_>) -> Result<(), Failure> {
    match run.set_finalizer(false).await {
        Ok(()) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(Failure::new(format!("failed to remove finalizer: {error}"))),
    }
}

/// Reports the objects that still exist. The reconcile ends with it (spec 10 §9.8, §15).
pub(crate) async fn report_pending(run: &mut Run<'_>, pending: &[String]) -> Result<Outcome, Failure> {
    let text = message::aggregate(status::CLEAN_PREFIX, pending);
    run.write_status(|status, now| status::deletion_pending(status, &text, now)).await?;
    run.reconcile.note(format!("{} objects are being deleted", pending.len()));
    Ok(Outcome::After(CHECK_INTERVAL))
}

pub(crate) fn left_unconfirmed(run: &Run<'_>, references: &[ResourceRef], unconfirmed: &str) -> Vec<String> {
    let mut deletions = run.record.deletions.borrow_mut();
    let pending = PendingDeletion::because(unconfirmed);
    references.iter().for_each(|it| deletions.note(it.key(), pending.clone()));
    references.iter().map(|reference| clean::still_pending(&reference.to_string(), Some(unconfirmed), "")).collect()
}

/// Prunes objects, workloads before what they need. Returns the items of the message for objects that still exist, or
/// `None` if the time slice ended before all were checked.
pub(crate) async fn prune(run: &Run<'_>, memory: &mut Memory, references: &[ResourceRef]) -> Option<Vec<String>> {
    let begin = run.controller.env.clock.monotonic();
    let asked = run.controller.target.discovery().asked();
    let mut pruned = std::mem::take(&mut memory.progress.get_or_insert_default().pruned);
    let list: Vec<(_, &ResourceRef)> = references.iter().map(|reference| (reference.key(), reference)).collect();
    for rank in order::deletion_ranks(list, |(key, _)| key) {
        let left: Vec<_> = rank.into_iter().filter(|(key, _)| !pruned.contains_key(key)).collect();
        let in_time = left.into_iter().take_while(|_| !run.should_yield(begin));
        let looked: Vec<_> = stream::iter(in_time)
            .map(|(key, reference)| async move { (key, reference, clean_one(run, reference, asked).await) })
            .buffered(SIDE_BY_SIDE)
            .collect()
            .await;
        for (key, reference, result) in looked {
            memory.forget(&key);
            let item = match result {
                Pruned::Done => {
                    run.record.deletions.borrow_mut().is_gone(&key);
                    None
                }
                Pruned::Pending(StillThere { error, deletion }) => {
                    run.record.deletions.borrow_mut().note(key.clone(), deletion);
                    Some(pending_item(run, reference, error).await)
                }
            };
            pruned.insert(key, item);
        }
        if run.should_yield(begin) {
            memory.progress.get_or_insert_default().pruned = pruned;
            return None;
        }
    }
    let mut pending: Vec<_> = pruned.values().flatten().cloned().collect();
    pending.sort();
    if pending.is_empty() {
        memory.progress.get_or_insert_default().pruned = pruned;
    }
    Some(pending)
}

async fn clean_one(run: &Run<'_>, reference: &ResourceRef, discovered: u64) -> Pruned {
    let known = run.controller.objects.version(&reference.key());
    match try_clean(run, reference, discovered, known).await {
        Ok(pruned) => pruned,
        Err(error) if error.is_not_found() => gone(run, reference, known, &Nowhere::NotFound),
        // No object can have a name that no request can carry.
        Err(ApiError::BadRequest(_)) => gone(run, reference, known, &Nowhere::NotFound),
        Err(error) => Pruned::failed(error.to_string()),
    }
}

/// The object is proved to be gone. `known` is its version before the first request.
fn gone(run: &Run<'_>, reference: &ResourceRef, known: Option<u64>, why: &Nowhere) -> Pruned {
    if let Nowhere::Kind(absent) = why {
        tracing::info!(object = %reference, kind = %absent.kind(), "an object is gone: its kind is not served");
    }
    run.controller.objects.gone(&reference.key(), known, &run.context.key);
    Pruned::Done
}

/// `discovered`: an absence of the kind must be proved after this. `before`: the object's version known then.
async fn try_clean(
    run: &Run<'_>,
    reference: &ResourceRef,
    discovered: u64,
    before: Option<u64>,
) -> Result<Pruned, ApiError> {
    let controller = run.controller;
    let asked = controller.env.clock.monotonic();
    let key = reference.key();
    let kind = reference.group_version_kind();
    let known = controller.target.discovery().known(&kind);
    let needs_claims = run.mr().spec.delete_persistent_volume_claims && is_stateful_set(reference);
    if let Some(resource) = known
        && let Some(cached) = watched(run, &resource, &key)
        && !cached.deleting
        && !needs_claims
    {
        let at = resource.at(namespace_of(&resource, reference), &reference.name);
        let excluded = clean::exclusion_of_cached(&kind, &cached, controller.settings.garbage_collector);
        if excluded.is_some() {
            return Ok(Pruned::Done);
        }
        if let Some(left) = left_alone(run, reference, &cached.uid, cached.origin.as_deref()).await {
            return Ok(left);
        }
        match delete(run, reference, &at, &cached.uid, &cached.resource_version, asked).await {
            // The cached object, or its kind, is outdated: read it.
            Err(error) if error.is_conflict() || error.is_not_served() => {}
            result => return result,
        }
    }
    let mut attempt = 0;
    loop {
        attempt += 1;
        let name = (key.namespace.as_str(), reference.name.as_str());
        let (at, live) = match controller.target.locate(&run.context, &kind, name, discovered).await? {
            Located::At(at, live) => (at, live),
            Located::Nowhere(why) => return Ok(gone(run, reference, before, &why)),
        };
        controller.objects.watch(&at.resource);
        match clean_live(run, reference, &at, &live, asked).await {
            // Another client was faster. The object may belong to another ManagedResource by now, or be a new object.
            Err(error) if error.is_conflict() && attempt < CONFLICTS => {}
            result => return result,
        }
    }
}

fn watched(run: &Run<'_>, resource: &Resource, key: &ObjectKey) -> Option<CachedObject> {
    run.controller.objects.watch(resource);
    run.controller.objects.evidence(key)
}

/// Deletes an object that was just read (spec 10 §13.1, steps 2 to 5).
async fn clean_live(
    run: &Run<'_>,
    reference: &ResourceRef,
    at: &ObjectRef,
    live: &Value,
    asked: Instant,
) -> Result<Pruned, ApiError> {
    let controller = run.controller;
    let key = reference.key();
    controller.objects.wrote(&key, live, &run.context.key, asked);
    let origin = object::annotation(live, ORIGIN);
    if clean::exclusion_of_object(live, controller.settings.garbage_collector).is_some() {
        return Ok(Pruned::Done);
    }
    if let Some(left) = left_alone(run, reference, object::uid(live), origin).await {
        return Ok(left);
    }
    if run.mr().spec.delete_persistent_volume_claims
        && is_stateful_set(reference)
        && let Err(text) = delete_claims(run, live).await
    {
        return Ok(Pruned::failed(text));
    }
    if object::deletion_timestamp(live).is_none() {
        return delete(run, reference, at, object::uid(live), object::resource_version(live), asked).await;
    }
    finalize(run, reference, at, live).await
}

/// Removes the finalizers of an object whose grace time is over (spec 10 §13.5).
async fn finalize(run: &Run<'_>, reference: &ResourceRef, at: &ObjectRef, live: &Value) -> Result<Pruned, ApiError> {
    let controller = run.controller;
    match clean::forced_finalization(live, controller.env.clock.wall()) {
        Ok(ForcedFinalization::No) => {}
        Ok(ForcedFinalization::RemoveFinalizers) => {
            let patch = clean::remove_finalizers_patch(live);
            controller.target.merge_patch(&run.context, at, None, &patch).await?;
            run.note_write(&reference.key(), WriteKind::finalized("metadata.finalizers"), Causes::NONE);
            tracing::info!(object = %reference, "finalizers of an object were removed: its grace time is over");
        }
        Ok(ForcedFinalization::FinalizeNamespace) => {
            let emptied = clean::finalized_namespace(live);
            controller.target.replace(&run.context, at, Some("finalize"), &emptied).await?;
            run.note_write(&reference.key(), WriteKind::finalized("spec.finalizers"), Causes::NONE);
            tracing::info!(object = %reference, "a Namespace was finalized: its grace time is over");
        }
        Err(error) => {
            let error = error.to_string();
            let deletion = PendingDeletion::of(live).with_error(Some(&error));
            return Ok(Pruned::Pending(StillThere { error: Some(error), deletion }));
        }
    }
    // The next check tells whether the object is gone now.
    Ok(Pruned::Pending(StillThere { error: None, deletion: PendingDeletion::of(live) }))
}

/// Deletes the PersistentVolumeClaims of a StatefulSet, before it is deleted itself (spec 10 §13.3).
async fn delete_claims(run: &Run<'_>, stateful_set: &Value) -> Result<(), String> {
    let selector = match volume_claims::claims_to_delete(stateful_set) {
        Ok(Some(selector)) => selector,
        Ok(None) => return Ok(()),
        Err(error) => return Err(volume_claims::not_cleaned(&error.to_string())),
    };
    let resource = kinds::PERSISTENT_VOLUME_CLAIM;
    let namespace = object::namespace(stateful_set);
    let target = &run.controller.target;
    let query = ListQuery { limit: Some(1), metadata_only: true, ..ListQuery::labelled(&selector) };
    let found = target.list(&run.context, &resource, Some(namespace), &query).await;
    let found = found.map_err(|error| volume_claims::not_listed(&error.to_string()))?;
    if found.items.is_empty() {
        return Ok(());
    }
    let deleted = target.delete_collection(&run.context, &resource, namespace, &selector).await;
    deleted.map_err(|error| volume_claims::not_cleaned(&error.to_string()))?;
    tracing::info!(claimsIn = namespace, selector = %selector, "PersistentVolumeClaims of a StatefulSet were deleted");
    Ok(())
}

/// Returns the item of the message for an object that still exists (spec 10 §13.6).
async fn pending_item(run: &Run<'_>, reference: &ResourceRef, error: Option<String>) -> String {
    let mut events = String::new();
    if reference.api_version == "v1" && reference.kind == "Service" {
        match run.controller.warnings_of(&run.context, &reference.key()).await {
            Ok(warnings) => events = warnings.block(run.controller.env.clock.wall()),
            Err(error) => tracing::info!(object = %reference, error = %error, "Events cannot be read"),
        }
    }
    clean::still_pending(&reference.to_string(), error.as_deref(), &events)
}

fn is_stateful_set(reference: &ResourceRef) -> bool {
    let key = reference.key();
    matches!(key.group.as_str(), "apps" | "extensions") && key.kind == "StatefulSet"
}

fn namespace_of(resource: &Resource, reference: &ResourceRef) -> String {
    if resource.namespaced { reference.key().namespace } else { String::new() }
}
