//! Writes that decide before they send: they read where they must, send what differs, and are bound to what was seen.
//!
//! Each is thin over one verb of [`Cluster`]; lane, deadline, gate and fence are those of the context. A write whose outcome
//! is unknown ([`ApiError::outcome_unknown`]) is not repeated here: the next pass reads again.

mod difference;

use serde_json::{Value, json};

use crate::object;

use super::{ApiError, Cluster, Context, DeleteOptions, Deleted, ObjectRef, Propagation};

pub use difference::difference;

/// A race is lost to others this often before the write gives up.
const ATTEMPTS: u8 = 5;

/// How a write that may not have been necessary has ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Wrote {
    /// The object was not there; as the server stored it.
    Created(Value),
    /// The object differed; as the server stored it.
    Updated(Value),
    /// Nothing differed, nothing was sent; the object as it was seen.
    Unchanged(Value),
    /// The object is being deleted and was left alone, as it was seen. It can only be created anew when it is gone.
    Deleting(Value),
}

/// What a patch is bound to: the server refuses it where that does not hold any more ([`ApiError::is_conflict`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// The version that was seen: nobody wrote since. Versions do not come again, so it is the same incarnation, too.
    Version,
    /// The uid that was seen: the same incarnation, whatever others wrote to it since.
    Uid,
    /// Nothing: whatever has the name now.
    None,
}

impl Cluster {
    /// One object, live; `None` if it does not exist.
    ///
    /// # Errors
    /// All but the object's absence: that its *kind* is not served is an error, because then nothing is known of the object.
    pub async fn find(&self, ctx: &Context, at: &ObjectRef) -> Result<Option<Value>, ApiError> {
        match self.get(ctx, at).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Brings an object about: reads it, lets `change` edit a copy, and patches what differs, bound to the version that was
    /// read; a missing object is created from what `change` makes of one that has nothing but kind, name and namespace.
    /// Sends nothing if nothing differs.
    ///
    /// `change` must be pure: it is asked again, with a fresh object, when somebody else was faster (at most 5 times). Fields
    /// of the copy it does not know it must leave alone. Of an object that is being deleted nothing is changed, and it is not
    /// resurrected: [`Wrote::Deleting`] tells.
    ///
    /// # Errors
    /// What the server says; the conflict itself when the race was lost 5 times.
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

    /// Sends the difference between an object as it was seen and as it is to be, as a merge patch. Sends nothing if nothing
    /// differs, whatever the server has by now. [`difference`] says what a merge patch cannot express.
    ///
    /// The answer is [`Wrote::Updated`] or [`Wrote::Unchanged`], never another.
    ///
    /// # Errors
    /// What the server says: [`ApiError::is_conflict`] where the lock does not hold, [`ApiError::is_not_found`] where the
    /// object is gone. [`ApiError::BadRequest`], unsent, if `before` lacks what the lock needs, or `after` has no metadata.
    /// Nothing is tried again.
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

    /// Deletes the incarnation of an object that was seen; with `version`, only as it was seen. Without `propagation`
    /// dependents go as the kind's default has it. That the object is gone already is success.
    ///
    /// # Errors
    /// [`ApiError::is_conflict`] if what has the name now is another incarnation or version: whether that is to be deleted
    /// must be decided anew, so nothing is tried again. [`ApiError::BadRequest`], unsent, for an empty uid or version.
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

    /// Adds (`held`) or removes one finalizer of an object as it was seen, and returns the object as it is then; sends
    /// nothing if it is so already. Other finalizers keep their order.
    ///
    /// A merge patch replaces the whole list, so it is bound to uid and version: no finalizer of somebody else gets lost, and
    /// no other incarnation is touched. Where the last finalizer of an object in deletion goes, the answer is its last state.
    ///
    /// # Errors
    /// [`ApiError::is_conflict`] if somebody wrote since, or the name has another incarnation; [`ApiError::is_not_found`] if
    /// it is gone; [`ApiError::is_invalid`] for a finalizer added while it is being deleted. [`ApiError::BadRequest`], unsent,
    /// if `live` has no uid or version.
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

/// Lost to another writer of an object that was there.
fn is_gone_or_changed(error: &ApiError) -> bool {
    error.is_conflict() || error.is_not_found()
}

/// A value a request is bound to. An empty one would bind it to nothing.
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
    /// An object of that kind, name and namespace, and nothing else.
    fn empty_object(&self) -> Value {
        let mut metadata = json!({"name": self.name});
        if self.resource.namespaced {
            *object::field_mut(&mut metadata, &["namespace"]) = self.namespace.as_str().into();
        }
        json!({"apiVersion": self.resource.api_version(), "kind": &*self.resource.kind, "metadata": metadata})
    }
}

impl Wrote {
    /// The object, as it was stored or seen.
    pub fn object(&self) -> &Value {
        match self {
            Self::Created(object) | Self::Updated(object) | Self::Unchanged(object) | Self::Deleting(object) => object,
        }
    }

    /// The object, as it was stored or seen.
    pub fn into_object(self) -> Value {
        match self {
            Self::Created(object) | Self::Updated(object) | Self::Unchanged(object) | Self::Deleting(object) => object,
        }
    }

    /// Whether a request changed something.
    pub fn is_change(&self) -> bool {
        match self {
            Self::Created(_) | Self::Updated(_) => true,
            Self::Unchanged(_) | Self::Deleting(_) => false,
        }
    }
}

#[cfg(test)]
mod tests;
