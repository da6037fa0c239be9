//! Conditional writes, bound to the state that was read; and what writes through a watch
//! ([`Watch::patch`](super::Watch::patch)) share with them. A write of unknown outcome ([`ApiError::outcome_unknown`])
//! is not repeated here: the next reconcile reads again.

mod difference;

pub use difference::difference;
pub(super) use difference::{changes, differs_from, merged};
use serde_json::{Value, json};

use super::{ApiError, Cluster, Context, DeleteOptions, Deleted, ObjectRef, Propagation};
use crate::object;

pub(super) const ATTEMPTS: u8 = 5; // a write gives up after this many lost races

/// Result of a conditional write.
#[derive(Debug, Clone, PartialEq)]
pub enum Wrote<T = Value> {
    /// The object did not exist; as stored by the server.
    Created(T),
    /// The object differed; as stored by the server.
    Updated(T),
    /// The object was written, but its state is not what was wanted; as stored by the server. Somebody else changed it
    /// meanwhile, or the server changes what is written. Look at it again after a back-off (`Outcome::Again`).
    Altered(T),
    /// Nothing differed and nothing was sent; the object as read.
    Unchanged(T),
    /// The object is being deleted; as read, or as stored if this write asked for its deletion. Other writes leave it
    /// alone. It can only be created again when it is gone.
    Deleting(T),
    /// The object is gone, or the name has another incarnation now.
    Gone,
}

/// What a patch is bound to; if that has changed, the server rejects the patch ([`ApiError::is_conflict`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// The version that was read: no write since. Versions are never reused, so it is the same incarnation, too.
    Version,
    /// The uid that was read: the same incarnation, whatever was written since.
    Uid,
    /// Nothing: whatever object has the name now.
    None,
}

impl Cluster {
    /// Reads one object, live; `None` if it does not exist. An unserved *kind* is an error, not an absent object.
    pub async fn find(&self, ctx: &Context, at: &ObjectRef) -> Result<Option<Value>, ApiError> {
        match self.get(ctx, at).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes the incarnation of an object that was read; with `version`, only that version. Without `propagation` the
    /// kind's default applies to dependents. Succeeds if the object is gone already. Fails with
    /// [`ApiError::is_conflict`] if the name has another incarnation or version now: the caller must decide again.
    /// [`ApiError::BadRequest`], unsent, for an empty uid or version.
    pub async fn delete_seen(
        &self,
        ctx: &Context,
        at: &ObjectRef,
        uid: &str,
        version: Option<&str>,
        propagation: Option<Propagation>,
    ) -> Result<Deleted, ApiError> {
        let uid = Some(seen("uid", uid, at)?.to_owned());
        let resource_version =
            version.map(|version| seen("resourceVersion", version, at).map(str::to_owned)).transpose()?;
        let options = DeleteOptions { uid, resource_version, propagation, ..DeleteOptions::default() };
        match self.delete(ctx, at, &options).await {
            Err(error) if error.is_not_found() => Ok(Deleted::Gone),
            result => result,
        }
    }

    /// Adds (`held`) or removes one finalizer of an object as it was read, and returns the new object; sends nothing if
    /// that is so already. Other finalizers keep their order. A merge patch replaces the whole list, so it is bound to
    /// uid and version: no other finalizer gets lost, and no other incarnation is changed. If an object in deletion
    /// loses its last finalizer, the answer is its last state. Fails with [`ApiError::is_conflict`] if the object was
    /// written since or the name has another incarnation, [`ApiError::is_not_found`] if it is gone,
    /// [`ApiError::is_invalid`] for adding a finalizer during its deletion, and [`ApiError::BadRequest`], unsent, if
    /// `live` has no uid or version.
    pub async fn set_finalizer(
        &self,
        ctx: &Context,
        at: &ObjectRef,
        live: &Value,
        name: &str,
        held: bool,
    ) -> Result<Value, ApiError> {
        if object::finalizers(live).any(|finalizer| finalizer == name) == held {
            return Ok(live.clone());
        }
        let others = object::finalizers(live).filter(|finalizer| *finalizer != name);
        let finalizers: Vec<&str> = others.chain(held.then_some(name)).collect();
        let uid = seen("uid", object::uid(live), at)?;
        let version = seen("resourceVersion", object::resource_version(live), at)?;
        let patch = json!({"metadata": {"uid": uid, "resourceVersion": version, "finalizers": finalizers}});
        self.merge_patch(ctx, at, None, &patch).await
    }
}

/// Binds a merge patch to uid or version. Fails if it is empty or if the patch removes the metadata.
pub(super) fn bound(
    mut patch: Value,
    lock: Lock,
    (uid, version): (&str, &str),
    at: &ObjectRef,
) -> Result<Value, ApiError> {
    let bond = match lock {
        Lock::Version => Some(("resourceVersion", seen("resourceVersion", version, at)?)),
        Lock::Uid => Some(("uid", seen("uid", uid, at)?)),
        Lock::None => None,
    };
    if let Some((field, value)) = bond {
        let metadata = patch.as_object_mut().map(|patch| patch.entry("metadata").or_insert_with(|| json!({})));
        let metadata = metadata.and_then(Value::as_object_mut);
        let bare = || ApiError::BadRequest(format!("{at} must not lose its metadata"));
        metadata.ok_or_else(bare)?.insert(field.into(), value.into());
    }
    Ok(patch)
}

/// Returns a value to bind a request to. Fails if it is empty, because that would bind it to nothing.
fn seen<'a>(field: &str, value: &'a str, at: &ObjectRef) -> Result<&'a str, ApiError> {
    if value.is_empty() {
        return Err(ApiError::BadRequest(format!("{at} was read without metadata.{field}")));
    }
    Ok(value)
}

impl ObjectRef {
    pub(super) fn empty_object(&self) -> Value {
        let mut metadata = json!({"name": self.name});
        if self.resource.namespaced {
            *object::field_mut(&mut metadata, &["namespace"]) = self.namespace.as_str().into();
        }
        json!({"apiVersion": self.resource.api_version(), "kind": &*self.resource.kind, "metadata": metadata})
    }
}

impl<T> Wrote<T> {
    /// Returns the object, as stored or read; `None` if it is gone.
    pub fn into_object(self) -> Option<T> {
        match self {
            Self::Created(object)
            | Self::Updated(object)
            | Self::Altered(object)
            | Self::Unchanged(object)
            | Self::Deleting(object) => Some(object),
            Self::Gone => None,
        }
    }

    /// Returns true if the state of the object is not what was wanted.
    pub fn is_altered(&self) -> bool {
        matches!(self, Self::Altered(_))
    }

    pub(super) fn try_map<U>(self, map: impl FnOnce(T) -> Result<U, ApiError>) -> Result<Wrote<U>, ApiError> {
        Ok(match self {
            Self::Created(object) => Wrote::Created(map(object)?),
            Self::Updated(object) => Wrote::Updated(map(object)?),
            Self::Altered(object) => Wrote::Altered(map(object)?),
            Self::Unchanged(object) => Wrote::Unchanged(map(object)?),
            Self::Deleting(object) => Wrote::Deleting(map(object)?),
            Self::Gone => Wrote::Gone,
        })
    }
}

#[cfg(test)]
mod tests;
