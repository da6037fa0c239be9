//! Deletes one object, unless it is not ours (spec 10 §13).

use cluster::{ApiError, Deleted, ObjectRef};
use kit::Causes;
use tokio::time::Instant;

use super::{
    super::{
        record::{PendingDeletion, WriteKind},
        steps::Run,
    },
    clean, own_refs,
};
use crate::api::resources::{keys::ORIGIN, managed_resource::ResourceRef};

/// What became of an object that left a bundle.
pub(super) enum Pruned {
    Done,
    Pending(StillThere),
}

/// An object that still exists.
#[derive(Default)]
pub(super) struct StillThere {
    /// What speaks against its deletion.
    pub(super) error: Option<String>,
    /// What is known of its deletion, for the dashboard.
    pub(super) deletion: PendingDeletion,
}

impl Pruned {
    pub(super) fn failed(error: String) -> Self {
        let deletion = PendingDeletion::because(&error);
        Self::Pending(StillThere { error: Some(error), deletion })
    }
}

pub(super) async fn delete(
    run: &Run<'_>,
    reference: &ResourceRef,
    at: &ObjectRef,
    uid: &str,
    version: &str,
    asked: Instant,
) -> Result<Pruned, ApiError> {
    let key = reference.key();
    let propagation = clean::propagation(&key.group);
    run.controller.autoscalers.is_deleted_by(&run.reconcile.key, &key);
    let answer = run.controller.target.delete_seen(&run.context, at, uid, Some(version), propagation).await;
    let deleted = answer.map_err(unsent)?;
    run.note_write(&key, WriteKind::Deleted, Causes::NONE);
    Ok(match deleted {
        Deleted::Gone => {
            tracing::info!(object = %reference, "an object was deleted");
            run.controller.objects.gone(&key, version.parse().ok(), &run.context.key);
            Pruned::Done
        }
        Deleted::Pending(object) => {
            tracing::info!(object = %reference, "an object is being deleted");
            run.controller.objects.wrote(&key, &object, &run.context.key, asked);
            // Its grace time begins now. If that is unreadable, it is reported at once.
            let grace = clean::forced_finalization(&object, run.controller.env.clock.wall());
            let error = grace.err().map(|error| error.to_string());
            let deletion = PendingDeletion::of(&object).with_error(error.as_deref());
            Pruned::Pending(StillThere { error, deletion })
        }
    })
}

/// The object was seen, so it exists: here `BadRequest` means that its uid or version is missing. Only for a name that
/// no request can carry does `BadRequest` prove absence.
fn unsent(error: ApiError) -> ApiError {
    match error {
        ApiError::BadRequest(text) => ApiError::Decode(text),
        other => other,
    }
}

/// Returns what becomes of an object that is not ours. Unconfirmed objects are never deleted.
pub(super) async fn left_alone(
    run: &Run<'_>,
    reference: &ResourceRef,
    uid: &str,
    origin: Option<&str>,
) -> Option<Pruned> {
    let spared = match own_refs::is_spared(run, reference, uid).await {
        Ok(false) => belongs_to_another(run, reference, origin).await,
        spared => spared,
    };
    match spared {
        Ok(false) => None,
        Ok(true) => Some(Pruned::Done),
        Err(unconfirmed) => Some(Pruned::failed(unconfirmed)),
    }
}

/// Returns true if the object belongs to another ManagedResource that exists: then it is not ours to delete
/// (decision 10). The error names the ManagedResource that could not be read, and what would help.
async fn belongs_to_another(run: &Run<'_>, reference: &ResourceRef, origin: Option<&str>) -> Result<bool, String> {
    let controller = run.controller;
    let Some(owner) = clean::other_owner(origin, &run.origin()) else { return Ok(false) };
    let exists = controller.exists(&run.context, &owner).await.map_err(|error| {
        let remedy = if error.is_forbidden() {
            format!(
                " (grant get on managedresources in namespace \"{}\", or remove the annotation {ORIGIN} from the object)",
                owner.namespace
            )
        } else {
            String::new()
        };
        format!(
            "it names the ManagedResource {owner} as its owner, and whether that exists cannot be told: {error}{remedy}"
        )
    })?;
    if exists {
        run.kept_for_owner(&reference.to_string(), &owner);
    }
    Ok(exists)
}
