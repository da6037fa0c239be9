//! Conditional writes: they read if necessary, send only differences, and are bound to the state that was read. Each
//! wraps one verb of [`Cluster`], with priority and deadline of the context. A write of unknown outcome
//! ([`ApiError::outcome_unknown`]) is not repeated here: the next reconcile reads again.

mod difference;

use serde_json::{Value, json};

use crate::object;

use super::{ApiError, Cluster, Context, DeleteOptions, Deleted, ObjectRef, Propagation};

pub use difference::difference;

const ATTEMPTS: u8 = 5; // a write gives up after this many lost races

/// Result of a conditional write.
#[derive(Debug, Clone, PartialEq)]
pub enum Wrote {
    /// The object did not exist; as stored by the server.
    Created(Value),
    /// The object differed; as stored by the server.
    Updated(Value),
    /// Nothing differed and nothing was sent; the object as read.
    Unchanged(Value),
    /// The object is being deleted and was left alone; as read. It can only be created again when it is gone.
    Deleting(Value),
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

    /// Creates or updates an object: reads it, lets `change` edit a copy, and patches the difference, bound to the
    /// version that was read. A missing object is created from kind, name and namespace. Sends nothing if nothing
    /// differs. `change` must be pure: it runs again with a fresh object after a conflict (at most 5 times; then the
    /// conflict is the error). It must keep unknown fields. An object in deletion is neither changed nor recreated
    /// ([`Wrote::Deleting`]).
    pub async fn create_or_update(
        &self,
        ctx: &Context,
        at: &ObjectRef,
        change: impl Fn(&mut Value),
    ) -> Result<Wrote, ApiError> {
        let mut attempts = ATTEMPTS;
        loop {
            attempts -= 1;
            let (result, lost): (_, fn(&ApiError) -> bool) = match self.find(ctx, at).await? {
                None => (self.create_changed(ctx, at, &change).await, ApiError::is_already_exists),
                Some(live) if object::deletion_timestamp(&live).is_some() => return Ok(Wrote::Deleting(live)),
                Some(live) => (self.update_changed(ctx, at, live, &change).await, is_gone_or_changed),
            };
            match result {
                Err(error) if lost(&error) && attempts > 0 => {
                    tracing::debug!(object = %at, %error, "another writer was faster; reading again");
                }
                result => return result,
            }
        }
    }

    async fn create_changed(
        &self,
        ctx: &Context,
        at: &ObjectRef,
        change: &impl Fn(&mut Value),
    ) -> Result<Wrote, ApiError> {
        let mut object = at.empty_object();
        change(&mut object);
        self.create(ctx, at, &object).await.map(Wrote::Created)
    }

    async fn update_changed(
        &self,
        ctx: &Context,
        at: &ObjectRef,
        live: Value,
        change: &impl Fn(&mut Value),
    ) -> Result<Wrote, ApiError> {
        let mut after = live.clone();
        change(&mut after);
        self.patch_to(ctx, at, &live, &after, Lock::Version).await
    }

    /// Sends the difference between two states as a merge patch, once: [`Wrote::Updated`], or [`Wrote::Unchanged`]
    /// without a request if nothing differs. [`difference`] says what a merge patch cannot express. Fails with
    /// [`ApiError::is_conflict`] if the lock does not hold, [`ApiError::is_not_found`] if the object is gone, and
    /// [`ApiError::BadRequest`], unsent, if `before` lacks what the lock needs or `after` has no metadata.
    pub async fn patch_to(
        &self,
        ctx: &Context,
        at: &ObjectRef,
        before: &Value,
        after: &Value,
        lock: Lock,
    ) -> Result<Wrote, ApiError> {
        let Some(mut patch) = difference(before, after) else { return Ok(Wrote::Unchanged(before.clone())) };
        let bond = match lock {
            Lock::Version => Some(("resourceVersion", seen("resourceVersion", object::resource_version(before), at)?)),
            Lock::Uid => Some(("uid", seen("uid", object::uid(before), at)?)),
            Lock::None => None,
        };
        if let Some((field, value)) = bond {
            let metadata = patch.as_object_mut().map(|patch| patch.entry("metadata").or_insert_with(|| json!({})));
            let metadata = metadata.and_then(Value::as_object_mut).ok_or_else(|| bare(at))?;
            metadata.insert(field.into(), value.into());
        }
        self.merge_patch(ctx, at, None, &patch).await.map(Wrote::Updated)
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

fn is_gone_or_changed(error: &ApiError) -> bool {
    error.is_conflict() || error.is_not_found()
}

/// Returns a value to bind a request to. Fails if it is empty, because that would bind it to nothing.
fn seen<'a>(field: &str, value: &'a str, at: &ObjectRef) -> Result<&'a str, ApiError> {
    if value.is_empty() {
        return Err(ApiError::BadRequest(format!("{at} was read without metadata.{field}")));
    }
    Ok(value)
}

fn bare(at: &ObjectRef) -> ApiError {
    ApiError::BadRequest(format!("{at} must not lose its metadata"))
}

impl ObjectRef {
    fn empty_object(&self) -> Value {
        let mut metadata = json!({"name": self.name});
        if self.resource.namespaced {
            *object::field_mut(&mut metadata, &["namespace"]) = self.namespace.as_str().into();
        }
        json!({"apiVersion": self.resource.api_version(), "kind": &*self.resource.kind, "metadata": metadata})
    }
}

impl Wrote {
    /// Returns the object, as stored or read.
    pub fn object(&self) -> &Value {
        match self {
            Self::Created(object) | Self::Updated(object) | Self::Unchanged(object) | Self::Deleting(object) => object,
        }
    }

    /// Returns the object, as stored or read.
    pub fn into_object(self) -> Value {
        match self {
            Self::Created(object) | Self::Updated(object) | Self::Unchanged(object) | Self::Deleting(object) => object,
        }
    }

    /// Returns true if a request changed something.
    pub fn is_change(&self) -> bool {
        match self {
            Self::Created(_) | Self::Updated(_) => true,
            Self::Unchanged(_) | Self::Deleting(_) => false,
        }
    }
}

#[cfg(test)]
mod tests;
