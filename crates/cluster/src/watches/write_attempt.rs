//! The steps of a write through a watch: read, decide, send, and enter the answer in the store.

use std::borrow::Cow;

use kit::hash_of;
use serde_json::Value;
use tokio::time::Instant;

use super::{How, Watch, reader::Sink as _};
use crate::{
    ApiError, Cached, Cluster, Context, DeleteOptions, Deleted, Lock, ObjectRef, Wrote,
    object::{self, NamespacedName},
    writes::{ATTEMPTS, bound, differs_from, merged},
};

/// The object that a write is about. A name and an object convert into it.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// The name of the object. The write reads the object first.
    Named(&'a NamespacedName),
    /// The object as the caller read it. The write reads it again only after a conflict.
    Read(&'a Value),
}

/// What a write decides on.
pub(super) enum View<R> {
    /// The cached object.
    Cached(R),
    /// The finalizers of the cached object ([`Cached::finalizers`]), and its incarnation.
    Finalizers(Value, u64),
    /// An object as read or answered; only its metadata if the write is about metadata.
    Object(Value),
}

/// What a write does with an object.
pub(super) enum Step {
    /// Nothing differs.
    Leave,
    /// It is in deletion, and the write does not apply to that.
    LeaveDeleting,
    /// Send this merge patch.
    Send(Value),
}

pub(super) struct WriteAttempt<'w, R: Cached> {
    watch: &'w Watch<R>,
    ctx: &'w Context,
    name: NamespacedName,
    pub(super) at: ObjectRef,
    lock: Lock,
    /// Answers with metadata, unless the write needs whole objects.
    cluster: Cluster,
    subresource: Option<&'static str>,
    /// Text and finalizer to log when a patch is sent.
    announcement: Option<(&'static str, &'w str)>,
}

impl Subject<'_> {
    pub(super) fn name(&self) -> NamespacedName {
        match self {
            Self::Named(name) => (*name).clone(),
            Self::Read(object) => NamespacedName::of(object),
        }
    }
}

impl<'a> From<&'a NamespacedName> for Subject<'a> {
    fn from(name: &'a NamespacedName) -> Self {
        Self::Named(name)
    }
}

impl<'a> From<&'a Value> for Subject<'a> {
    fn from(object: &'a Value) -> Self {
        Self::Read(object)
    }
}

impl<R: Cached> View<R> {
    pub(super) fn object(&self) -> Result<&Value, ApiError> {
        match self {
            Self::Object(object) | Self::Finalizers(object, _) => Ok(object),
            Self::Cached(_) => Err(incomplete()),
        }
    }

    pub(super) fn into_object(self) -> Result<Value, ApiError> {
        match self {
            Self::Object(object) | Self::Finalizers(object, _) => Ok(object),
            Self::Cached(_) => Err(incomplete()),
        }
    }

    fn uid(&self) -> &str {
        match self {
            Self::Object(object) | Self::Finalizers(object, _) => object::uid(object),
            Self::Cached(cached) => cached.uid(),
        }
    }

    /// Returns the incarnation, or `None` if the uid is unknown.
    fn incarnation(&self) -> Option<u64> {
        let incarnation = match self {
            Self::Object(object) => hash_of(object::uid(object)),
            Self::Finalizers(_, incarnation) => *incarnation,
            Self::Cached(cached) => cached.incarnation(),
        };
        (incarnation != hash_of("")).then_some(incarnation)
    }

    fn version(&self) -> String {
        match self {
            Self::Object(object) | Self::Finalizers(object, _) => object::resource_version(object).to_owned(),
            Self::Cached(cached) => cached.version().to_string(),
        }
    }

    fn is_deleting(&self) -> bool {
        matches!(self, Self::Object(object) if object::deletion_timestamp(object).is_some())
    }
}

impl<'w, R: Cached> WriteAttempt<'w, R> {
    pub(super) fn new(watch: &'w Watch<R>, ctx: &'w Context, name: NamespacedName, lock: Lock) -> Self {
        let (at, cluster) = (watch.resource().named(&name), watch.answering());
        Self { watch, ctx, name, at, lock, cluster, subresource: None, announcement: None }
    }

    pub(super) fn whole(self) -> Self {
        Self { cluster: self.watch.informer.cluster.clone(), ..self }
    }

    pub(super) fn on_status(self) -> Self {
        Self { subresource: Some("status"), ..self }
    }

    pub(super) fn announcing(self, text: &'static str, finalizer: &'w str) -> Self {
        Self { announcement: Some((text, finalizer)), ..self }
    }

    /// Returns the object to decide on first, or `None` if there is none.
    pub(super) async fn first(&self, subject: Subject<'_>) -> Result<Option<View<R>>, ApiError> {
        match subject {
            Subject::Named(_) => Ok(self.read().await?.map(View::Object)),
            Subject::Read(object) => Ok(Some(View::Object(object.clone()))),
        }
    }

    /// Returns the finalizers of a fresh cache, or else the live object. The write must be bound to the version. A decision
    /// to write nothing is bound to no version, so a cache that is not fresh does not count.
    pub(super) async fn finalizers_or_live(&self) -> Result<Option<View<R>>, ApiError> {
        let finalizers = |cached: &R| Some(View::Finalizers(cached.finalizers()?, cached.incarnation()));
        let is_fresh = self.watch.is_fresh_for(&self.name);
        match self.watch.store().with(&self.name, finalizers).flatten().filter(|_| is_fresh) {
            Some(finalizers) => Ok(Some(finalizers)),
            None => Ok(self.read().await?.map(View::Object)),
        }
    }

    /// Returns the cached object, or else the live one if the watch selects it.
    pub(super) async fn cached_or_live(&self) -> Result<Option<View<R>>, ApiError> {
        if let Some(cached) = self.watch.store().get(&self.name) {
            return Ok(Some(View::Cached(cached)));
        }
        let live = self.read().await?;
        Ok(live.filter(|live| self.selects(live)).map(View::Object))
    }

    fn selects(&self, object: &Value) -> bool {
        self.watch.informer.key.selects(object) != Some(false)
    }

    /// Reads the object live. A version that the store lacks is somebody else's change.
    pub(super) async fn read(&self) -> Result<Option<Value>, ApiError> {
        let (known, asked) = (self.known_version(), self.watch.now());
        let found = self.cluster.find(self.ctx, &self.at).await?;
        match &found {
            Some(object) => self.watch.enter_selected(object, How::Event, asked),
            None => self.enter_absence(known),
        }
        Ok(found)
    }

    /// Decides and writes until there is no conflict. A recreated object counts as gone. A cached object that the watch
    /// no longer selects counts as gone, too.
    pub(super) async fn until_settled(
        &self,
        first: Option<View<R>>,
        once: impl AsyncFn(View<R>) -> Result<Wrote<View<R>>, ApiError>,
    ) -> Result<Wrote<View<R>>, ApiError> {
        let Some(mut seen) = first else { return Ok(Wrote::Gone) };
        let (is_cached, mut attempts) = (!matches!(seen, View::Object(_)), ATTEMPTS);
        loop {
            attempts -= 1;
            let incarnation = seen.incarnation();
            match once(seen).await {
                Err(error) if error.is_conflict() && attempts > 0 => {
                    tracing::debug!(object = %self.at, %error, "another writer was faster; reading again");
                }
                result => return result,
            }
            let is_same =
                |live: &Value| incarnation.is_none_or(|incarnation| hash_of(object::uid(live)) == incarnation);
            let is_it = |live: &Value| is_same(live) && (!is_cached || self.selects(live));
            match self.read().await?.filter(is_it) {
                Some(live) => seen = View::Object(live),
                None => return Ok(Wrote::Gone),
            }
        }
    }

    pub(super) async fn patch(
        &self,
        seen: View<R>,
        decide: impl Fn(&View<R>) -> Result<Step, ApiError>,
    ) -> Result<Wrote<View<R>>, ApiError> {
        let patch = match decide(&seen)? {
            Step::Send(patch) => patch,
            Step::Leave => {
                self.watch.reader.note_settled(&self.name);
                return Ok(Wrote::Unchanged(seen));
            }
            Step::LeaveDeleting => return Ok(Wrote::Deleting(seen)),
        };
        if let Some((text, finalizer)) = self.announcement {
            tracing::info!(object = %self.at, finalizer, "{text}");
        }
        let body = bound(patch.clone(), self.lock, (seen.uid(), &seen.version()), &self.at)?;
        let (known, asked) = (self.known_version(), self.watch.now());
        let answer = match self.cluster.merge_patch(self.ctx, &self.at, self.subresource, &body).await {
            Err(error) if error.is_not_found() => {
                self.enter_absence(known);
                return Ok(Wrote::Gone);
            }
            answer => answer?,
        };
        if self.watch.has_ended(&answer) {
            self.enter_removal(object::resource_version(&answer).parse().ok(), self.own());
            return Ok(Wrote::Gone);
        }
        let is_expected = self.lock == Lock::Version || self.is_expected(&seen, &patch, &answer);
        self.conclude(self.base(&seen), answer, asked, is_expected, decide).map(|concluded| match concluded {
            (view, true) => Wrote::Updated(view),
            (view, false) => Wrote::Altered(view),
        })
    }

    pub(super) async fn create(
        &self,
        object: &Value,
        decide: impl Fn(&View<R>) -> Result<Step, ApiError>,
    ) -> Result<Wrote<View<R>>, ApiError> {
        let asked = self.watch.now();
        let answer = self.cluster.create(self.ctx, &self.at, object).await?;
        self.conclude(None, answer, asked, true, decide).map(|concluded| match concluded {
            (view, true) => Wrote::Created(view),
            (view, false) => Wrote::Altered(view),
        })
    }

    /// Deletes what was decided on. The preconditions in `options` are replaced.
    pub(super) async fn delete(
        &self,
        seen: View<R>,
        options: &DeleteOptions,
        is_due: impl Fn(&View<R>) -> Result<bool, ApiError>,
    ) -> Result<Wrote<View<R>>, ApiError> {
        if seen.is_deleting() {
            return Ok(Wrote::Deleting(seen));
        }
        if !is_due(&seen)? {
            return Ok(Wrote::Unchanged(seen));
        }
        let (uid, version) = (seen.uid().to_owned(), seen.version());
        let options = DeleteOptions {
            resource_version: (self.lock == Lock::Version || uid.is_empty()).then(|| version.clone()),
            uid: Some(uid).filter(|uid| !uid.is_empty()),
            ..options.clone()
        };
        let (known, asked) = (self.known_version(), self.watch.now());
        match self.cluster.delete(self.ctx, &self.at, &options).await {
            Ok(Deleted::Gone) => {
                self.enter_removal(version.parse().ok().max(known), self.own());
                Ok(Wrote::Gone)
            }
            Ok(Deleted::Pending(answer)) => {
                let is_expected = self.lock == Lock::Version || self.is_expected(&seen, &Value::Null, &answer);
                self.enter(self.base(&seen), &answer, asked, is_expected);
                Ok(Wrote::Deleting(View::Object(answer)))
            }
            Err(error) if error.is_not_found() => {
                self.enter_absence(known);
                Ok(Wrote::Gone)
            }
            Err(error) => Err(error),
        }
    }

    /// Decides on the answer and enters it. Returns false if the answer is not what was wanted.
    fn conclude(
        &self,
        base: Option<u64>,
        answer: Value,
        asked: Instant,
        is_expected: bool,
        decide: impl Fn(&View<R>) -> Result<Step, ApiError>,
    ) -> Result<(View<R>, bool), ApiError> {
        let view = View::Object(answer);
        // An answer that cannot be read is in the store as unreadable.
        let is_wanted = !matches!(decide(&view), Ok(Step::Send(_)) | Err(_));
        let is_first = match is_wanted {
            true => self.watch.reader.note_settled(&self.name),
            false => self.watch.reader.note_altered(&self.name),
        };
        let is_own = if is_wanted { is_expected } else { !is_first };
        self.enter(base, view.object()?, asked, is_own);
        Ok((view, is_wanted))
    }

    /// Enters an answer: as this process's own change if it is that and the store has the version it was based on. The writer
    /// relies on its answer, so a later change that the store knows already is reported again, as a change of the answer.
    fn enter(&self, base: Option<u64>, answer: &Value, asked: Instant, is_own: bool) {
        let is_own = is_own && self.known_version() == base;
        self.watch.enter_selected(answer, if is_own { self.own() } else { How::Event }, asked);
        self.watch.reader.report_what_followed(&self.name, answer);
    }

    /// Enters that the object is gone, by somebody else's deletion, unless the store has a newer one than `known`.
    fn enter_absence(&self, known: Option<u64>) {
        if known.is_some() {
            self.enter_removal(known, How::Event);
        }
    }

    fn enter_removal(&self, version: Option<u64>, how: How<'_>) {
        self.watch.reader.note_settled(&self.name);
        if let Some(version) = version {
            self.watch.enter_removal(&self.name, version, how);
        }
    }

    /// Returns the version that a store which follows the server has before a write; `None` if it has no such object.
    fn base(&self, seen: &View<R>) -> Option<u64> {
        match seen {
            View::Object(object) if self.selects(object) => object::resource_version(object).parse().ok(),
            View::Object(_) => None,
            View::Finalizers(object, _) => object::resource_version(object).parse().ok(),
            View::Cached(cached) => Some(cached.version()),
        }
    }

    /// Returns true if nothing but this patch has changed the object.
    fn is_expected(&self, seen: &View<R>, patch: &Value, answer: &Value) -> bool {
        let View::Object(seen) = seen else { return false };
        let expected = if patch.is_null() { seen.clone() } else { merged(seen.clone(), patch) };
        match self.cluster.is_metadata_only() {
            true => !differs_from(expected.get("metadata"), answer.get("metadata")),
            false => !differs_from(Some(&expected), Some(answer)),
        }
    }

    fn own(&self) -> How<'_> {
        How::Own { writer: &self.ctx.key }
    }

    fn known_version(&self) -> Option<u64> {
        self.watch.store().with(&self.name, Cached::version)
    }
}

impl<R: Cached> Watch<R> {
    /// Returns the cached form of what was decided on. Fails if an object cannot be read.
    pub(super) fn cached_of<'v>(&self, view: &'v View<R>) -> Result<Cow<'v, R>, ApiError> {
        match view {
            View::Cached(cached) => Ok(Cow::Borrowed(cached)),
            View::Object(object) => self.reader.converted(object).map(Cow::Owned),
            View::Finalizers(..) => Err(incomplete()),
        }
    }

    /// Returns true if the answer is the last state of an object that ended with this write. A Namespace lives on
    /// without finalizers in its metadata.
    pub(super) fn has_ended(&self, answer: &Value) -> bool {
        let grace = answer.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
        object::deletion_timestamp(answer).is_some()
            && object::finalizers(answer).next().is_none()
            && grace == 0
            && &*self.resource().kind != "Namespace"
    }

    pub(super) fn now(&self) -> Instant {
        self.informer.env.clock.monotonic()
    }

    /// Returns the cluster that answers with as much of an object as the watch delivers.
    pub(super) fn answering(&self) -> Cluster {
        let cluster = &self.informer.cluster;
        if self.reports_bodies() { cluster.clone() } else { cluster.metadata_only() }
    }

    /// Enters an object if the watch selects it. If that is unknown, it only replaces an older version.
    pub(super) fn enter_selected(&self, object: &Value, how: How<'_>, asked: Instant) {
        let name = NamespacedName::of(object);
        let is_cached = || self.store().with(&name, |_| ()).is_some();
        match self.informer.key.selects(object) {
            Some(false) => {
                if let Ok(version) = object::resource_version(object).parse() {
                    self.enter_removal(&name, version, how);
                }
            }
            Some(true) => drop(self.enter(object, how, asked)),
            None if is_cached() => drop(self.enter(object, how, asked)),
            None => {}
        }
    }

    pub(super) fn enter_removal(&self, name: &NamespacedName, version: u64, how: How<'_>) {
        if self.informer.is_listed_for(&self.member, name) {
            self.reader.remove(name, Some(version), how);
            self.informer.show_cached_objects();
        }
    }
}

fn incomplete() -> ApiError {
    ApiError::Decode("only a part of the object is known".into())
}
