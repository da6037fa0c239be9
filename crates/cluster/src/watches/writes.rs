//! Writes through a watch. A write decides on an object with a pure closure, sends the difference, and enters the
//! answer in the store, so that no event handler wakes for it. After a conflict it reads the object live and decides
//! again (spec 80 §16 S-6): an old patch never meets a newer version. An object that is gone is a result, not an error.
//!
//! An answer is the process's own change only if the store knew the object as it was before the write, and if the
//! closure wants nothing more of it. Otherwise somebody else's change is in it, and the event handlers get it as
//! [`How::Event`]. A server that always changes what is written would wake its writer in a loop. So the second such
//! answer in a row wakes nobody, and [`Wrote::Altered`] asks the caller for a back-off.
//!
//! `write_attempt.rs` has the single steps.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    How, Watch,
    write_attempt::{Step, Subject, View, WriteAttempt},
};
use crate::{
    ApiError, Cached, Context, DeleteOptions, Lock, Propagation, Wrote, difference,
    object::{self, NamespacedName},
    writes::{ATTEMPTS, changes},
};

impl<R: Cached> Watch<R> {
    /// Reads an object live and enters it in the store; only its metadata if the watch is of metadata. Returns `None` if
    /// it does not exist.
    pub async fn read_object(&self, ctx: &Context, name: &NamespacedName) -> Result<Option<Value>, ApiError> {
        self.attempt(ctx, name, Lock::None).read().await
    }

    /// Creates an object and returns it as stored. Fails with [`ApiError::is_already_exists`] if the name is taken.
    pub async fn create(&self, ctx: &Context, object: &Value) -> Result<Value, ApiError> {
        let attempt = self.attempt(ctx, &NamespacedName::of(object), Lock::None);
        let wrote = attempt.create(object, |_| Ok(Step::Leave)).await?.try_map(View::into_object)?;
        wrote.into_object().ok_or_else(|| ApiError::Decode("it is not the created object".into()))
    }

    /// Creates or updates an object: `change` edits a copy of it, or an object with only kind, name and namespace.
    /// `change` must be pure and must keep unknown fields. An object in deletion is left alone ([`Wrote::Deleting`]).
    /// The whole object is read, also by a watch of metadata; a fresh store that lacks the object saves the read.
    pub async fn ensure(
        &self,
        ctx: &Context,
        name: &NamespacedName,
        lock: Lock,
        change: impl Fn(&mut Value),
    ) -> Result<Wrote, ApiError> {
        let attempt = self.attempt(ctx, name, lock).whole();
        let decide = |view: &View<R>| {
            let live = view.object()?;
            if object::deletion_timestamp(live).is_some() {
                return Ok(Step::LeaveDeleting);
            }
            let mut after = live.clone();
            change(&mut after);
            let patch = difference(live, &after).filter(|patch| changes(Some(live), patch));
            Ok(patch.map_or(Step::Leave, Step::Send))
        };
        let is_missing = self.is_fresh_for(name) && self.store().with(name, |_| ()).is_none();
        let mut live = if is_missing { None } else { attempt.read().await? };
        for left in (0..ATTEMPTS).rev() {
            let result = match live {
                None => {
                    let mut object = attempt.at.empty_object();
                    change(&mut object);
                    attempt.create(&object, &decide).await
                }
                Some(object) => attempt.patch(View::Object(object), &decide).await,
            };
            match result {
                Ok(Wrote::Gone) if left > 0 => tracing::debug!(object = %attempt.at, "it is gone; reading again"),
                Err(error) if left > 0 && (error.is_conflict() || error.is_already_exists()) => {
                    tracing::debug!(object = %attempt.at, %error, "another writer was faster; reading again");
                }
                result => return result?.try_map(View::into_object),
            }
            live = attempt.read().await?;
        }
        Ok(Wrote::Gone)
    }

    /// Patches an object with the merge patch that `decide` returns; `None` if there is nothing to do. `decide` must be
    /// pure: it runs again after a conflict and on the answer. A patch without an effect is not sent. Returns
    /// [`Wrote::Gone`] if the object does not exist or the name has another incarnation now. Fails with
    /// [`ApiError::is_conflict`] after five conflicts. A watch of metadata reads and patches only metadata.
    pub async fn patch<'s>(
        &self,
        ctx: &Context,
        subject: impl Into<Subject<'s>>,
        lock: Lock,
        decide: impl Fn(&Value) -> Option<Value>,
    ) -> Result<Wrote, ApiError> {
        let subject = subject.into();
        let attempt = self.attempt(ctx, &subject.name(), lock);
        let first = attempt.first(subject).await?;
        self.patch_until_settled(&attempt, first, |object| decide(object).map_or(Step::Leave, Step::Send)).await
    }

    /// As [`Self::patch`], for the subresource `status`. It reads and patches whole objects.
    pub async fn patch_status<'s>(
        &self,
        ctx: &Context,
        subject: impl Into<Subject<'s>>,
        lock: Lock,
        decide: impl Fn(&Value) -> Option<Value>,
    ) -> Result<Wrote, ApiError> {
        let subject = subject.into();
        let attempt = self.attempt(ctx, &subject.name(), lock).whole().on_status();
        let first = attempt.first(subject).await?;
        self.patch_until_settled(&attempt, first, |object| decide(object).map_or(Step::Leave, Step::Send)).await
    }

    /// As [`Self::patch`], but decides on the cached object, without a read. An object that is not cached is read live.
    /// [`Lock::None`] is for a patch that is right for every version.
    pub async fn patch_cached(
        &self,
        ctx: &Context,
        name: &NamespacedName,
        lock: Lock,
        decide: impl Fn(&R) -> Option<Value>,
    ) -> Result<Wrote<R>, ApiError> {
        self.patch_cached_until_settled(&self.attempt(ctx, name, lock), decide).await
    }

    /// As [`Self::patch_cached`], for the subresource `status`. [`Lock::Version`] is for a patch that replaces a list: the
    /// server takes it only if the cache had the list as it is.
    pub async fn patch_status_cached(
        &self,
        ctx: &Context,
        name: &NamespacedName,
        lock: Lock,
        decide: impl Fn(&R) -> Option<Value>,
    ) -> Result<Wrote<R>, ApiError> {
        let attempt = self.attempt(ctx, name, lock).whole().on_status();
        self.patch_cached_until_settled(&attempt, decide).await
    }

    /// Adds (`held`) or removes one finalizer; other finalizers keep their order (spec 80 §16 S-4, S-5, S-7). Sends
    /// nothing if that is so already. Does not add a finalizer to an object in deletion ([`Wrote::Deleting`]). Returns
    /// [`Wrote::Gone`] if the object is gone, or ended with its last finalizer. Conflicts: as [`Self::patch`]. Decides on
    /// cached finalizers, if the watch keeps them: then an unchanged object is returned without its other fields.
    pub async fn set_finalizer<'s>(
        &self,
        ctx: &Context,
        subject: impl Into<Subject<'s>>,
        finalizer: &str,
        held: bool,
    ) -> Result<Wrote, ApiError> {
        let subject = subject.into();
        let text = if held { "Adding finalizer" } else { "Removing finalizer" };
        let attempt = self.attempt(ctx, &subject.name(), Lock::Version).announcing(text, finalizer);
        let decide = |object: &Value| match object::finalizer_patch(object, finalizer, held) {
            None => Step::Leave,
            Some(_) if held && object::deletion_timestamp(object).is_some() => Step::LeaveDeleting,
            Some(patch) => Step::Send(patch),
        };
        let first = match subject {
            Subject::Named(_) => attempt.finalizers_or_live().await?,
            Subject::Read(_) => attempt.first(subject).await?,
        };
        self.patch_until_settled(&attempt, first, decide).await
    }

    /// As [`Self::patch`], for finalizers alone: `decide` sees version, finalizers, and, of an object in deletion, uid and
    /// time. The patch is bound to the version. Reads nothing if the watch keeps finalizers: then an unchanged object is
    /// returned without its other fields.
    pub async fn patch_finalizers(
        &self,
        ctx: &Context,
        name: &NamespacedName,
        decide: impl Fn(&Value) -> Option<Value>,
    ) -> Result<Wrote, ApiError> {
        let attempt = self.attempt(ctx, name, Lock::Version);
        let first = attempt.finalizers_or_live().await?;
        self.patch_until_settled(&attempt, first, |object| decide(object).map_or(Step::Leave, Step::Send)).await
    }

    /// Deletes the incarnation of an object that was read or is cached, whatever was written since. Without
    /// `propagation` the kind's default applies to dependents. Returns [`Wrote::Gone`], or [`Wrote::Deleting`] if the
    /// object waits for finalizers or a grace period. Sends nothing if it was in deletion already.
    pub async fn delete<'s>(
        &self,
        ctx: &Context,
        subject: impl Into<Subject<'s>>,
        propagation: Option<Propagation>,
    ) -> Result<Wrote, ApiError> {
        let subject = subject.into();
        let attempt = self.attempt(ctx, &subject.name(), Lock::Uid);
        let cached = matches!(subject, Subject::Named(_)).then(|| self.store().get(&subject.name())).flatten();
        let seen = match cached.filter(|cached| !cached.uid().is_empty()) {
            Some(cached) => Some(View::Cached(cached)),
            None => attempt.first(subject).await?,
        };
        let options = propagation.into();
        let delete = async |seen| attempt.delete(seen, &options, |_| Ok(true)).await;
        attempt.until_settled(seen, delete).await?.try_map(View::into_object)
    }

    /// As [`Self::delete`], if `is_due` returns true for the object. The deletion is bound to the version on which
    /// `is_due` decided. After a conflict the object is read live and `is_due` decides again.
    pub async fn delete_if<'s>(
        &self,
        ctx: &Context,
        subject: impl Into<Subject<'s>>,
        propagation: Option<Propagation>,
        is_due: impl Fn(&Value) -> bool,
    ) -> Result<Wrote, ApiError> {
        let subject = subject.into();
        let attempt = self.attempt(ctx, &subject.name(), Lock::Version);
        let is_due = |view: &View<R>| Ok(is_due(view.object()?));
        let options = propagation.into();
        let delete = async |seen| attempt.delete(seen, &options, &is_due).await;
        attempt.until_settled(attempt.first(subject).await?, delete).await?.try_map(View::into_object)
    }

    /// As [`Self::delete_if`], but decides on the cached object, without a read.
    pub async fn delete_cached_if(
        &self,
        ctx: &Context,
        name: &NamespacedName,
        propagation: Option<Propagation>,
        is_due: impl Fn(&R) -> bool,
    ) -> Result<Wrote<R>, ApiError> {
        self.delete_cached_if_with(ctx, name, &propagation.into(), is_due).await
    }

    /// As [`Self::delete_cached_if`], with other options of the deletion. Preconditions in `options` are replaced.
    pub async fn delete_cached_if_with(
        &self,
        ctx: &Context,
        name: &NamespacedName,
        options: &DeleteOptions,
        is_due: impl Fn(&R) -> bool,
    ) -> Result<Wrote<R>, ApiError> {
        let attempt = self.attempt(ctx, name, Lock::Version);
        let is_due = |view: &View<R>| Ok(is_due(&*self.cached_of(view)?));
        let delete = async |seen| attempt.delete(seen, options, &is_due).await;
        let wrote = attempt.until_settled(attempt.cached_or_live().await?, delete).await?;
        wrote.try_map(|view| self.cached_of(&view).map(Cow::into_owned))
    }

    /// Awaits another write of one object and enters its answer as this process's own change: for writes that no method
    /// above has, e.g. to a subresource. The request must not be sent before the call.
    pub async fn enter_answer_of(
        &self,
        ctx: &Context,
        request: impl Future<Output = Result<Value, ApiError>>,
    ) -> Result<Value, ApiError> {
        let asked = self.now();
        let answer = request.await?;
        let (how, version) = (How::Own { writer: &ctx.key }, object::resource_version(&answer).parse());
        match version {
            Ok(version) if self.has_ended(&answer) => self.enter_removal(&NamespacedName::of(&answer), version, how),
            Ok(_) | Err(_) => {
                self.enter_selected(&answer, how, asked);
                self.reader.report_what_followed(&NamespacedName::of(&answer), &answer);
            }
        }
        Ok(answer)
    }

    async fn patch_cached_until_settled(
        &self,
        attempt: &WriteAttempt<'_, R>,
        decide: impl Fn(&R) -> Option<Value>,
    ) -> Result<Wrote<R>, ApiError> {
        let decide = |view: &View<R>| {
            let cached = self.cached_of(view)?;
            Ok(decide(&cached).map_or(Step::Leave, Step::Send))
        };
        let patch = async |seen| attempt.patch(seen, &decide).await;
        let wrote = attempt.until_settled(attempt.cached_or_live().await?, patch).await?;
        wrote.try_map(|view| self.cached_of(&view).map(Cow::into_owned))
    }

    async fn patch_until_settled(
        &self,
        attempt: &WriteAttempt<'_, R>,
        first: Option<View<R>>,
        decide: impl Fn(&Value) -> Step,
    ) -> Result<Wrote, ApiError> {
        let decide = |view: &View<R>| {
            let object = view.object()?;
            Ok(match decide(object) {
                Step::Send(patch) if !changes(Some(object), &patch) => Step::Leave,
                step => step,
            })
        };
        let patch = async |seen| attempt.patch(seen, &decide).await;
        attempt.until_settled(first, patch).await?.try_map(View::into_object)
    }

    fn attempt<'w>(&'w self, ctx: &'w Context, name: &NamespacedName, lock: Lock) -> WriteAttempt<'w, R> {
        WriteAttempt::new(self, ctx, name.clone(), lock)
    }
}
