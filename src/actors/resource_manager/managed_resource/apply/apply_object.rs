//! Applies one object: read if necessary, create, merge, update (spec 10 §11.3, §11.7).

use std::collections::{BTreeMap, BTreeSet};

use cluster::{
    ApiError, Deleted, ObjectRef, Propagation, Resource,
    object::{self, GroupVersionKind, NamespacedName, ObjectKey},
};
use kit::{Causes, hash_of};
use serde_json::Value;
use tokio::{sync::Mutex, time::Instant};

use super::{
    super::{
        known::{self, CachedObject, Fingerprint},
        record::WriteKind,
        remove::clean::{
            self,
            invalid_update::{self, Reaction},
        },
        shared::{DRIFT, REVALIDATE},
        steps::{self, Bundle, Run, Todo},
    },
    left::Left,
    object_error::ObjectError,
};
use crate::{
    actors::resource_manager::bundle::{
        changed_paths::changed_paths,
        identity,
        merge::{self, MergeContext},
        plan::PlannedObject,
        up_to_date,
    },
    api::resources::keys::ORIGIN,
};

/// Field manager of our own writes: the API server derives it from the user agent.
pub(crate) const OWN_MANAGER: &str = "gardener-resource-manager";

const CONFLICTS: usize = 3;

pub(crate) struct Scene<'a> {
    pub(crate) run: &'a Run<'a>,
    pub(crate) bundle: &'a Bundle,
    /// The status says that exactly this set was applied, and no other set was attempted since.
    trusted: bool,
    pub(super) todo: &'a Todo,
    given_away: Mutex<BTreeMap<NamespacedName, BTreeSet<ObjectKey>>>,
}

pub(super) struct Done {
    /// The object now; `None` if it was left to its other owner until the next period.
    pub(crate) cached: Option<CachedObject>,
    /// It was known before, and had to be written again.
    pub(crate) repaired: bool,
    /// It was written, or the server refused to write an object that is as it should be.
    pub(super) sent: bool,
    /// Hash of the paths that an update changed, if the log has it.
    pub(super) changed: Option<u64>,
}

/// What is known of an object and of the attempts to apply it.
pub(super) struct Task {
    pub(crate) manifest: u64,
    pub(super) fingerprint: Option<Fingerprint>,
    /// The manifest that it matched before, if all attempts since were for this manifest. They have failed.
    pub(super) attempted: Option<u64>,
    /// A list of the initial sync lacked it.
    pub(super) absent: bool,
    pub(super) forced: Forced,
    pub(super) again: bool,
    /// What its last update for this manifest changed, if that was not long ago ([`Done::changed`]).
    pub(super) last_changed: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forced {
    No,
    /// Because admission may answer differently than before (decision 40).
    Revalidation,
    AlwaysUpdate,
}

pub(super) async fn apply(scene: &Scene<'_>, planned: &PlannedObject, task: Task) -> Result<Done, ObjectError> {
    let display = identity::display_of_object(&planned.manifest);
    if let Some(error) = &planned.error {
        // The display string may not tell which document it is.
        let place = scene.bundle.place(planned.document);
        return Err(ObjectError::during(&display, &format_args!("{error} ({place})")));
    }
    let at = scene.address(planned).await.map_err(|error| ObjectError::api(&display, &error))?;
    let Task { manifest, fingerprint, attempted, absent, forced, again, last_changed } = task;
    let same_manifest = fingerprint.is_some_and(|seen| seen.manifest == manifest);
    let left = match fingerprint {
        Some(seen) if same_manifest || seen.manifest == scene.intent_if_scaled_otherwise(planned) => {
            Left::By(seen.content)
        }
        Some(_) => Left::ByOther,
        None if attempted == Some(manifest) => Left::ByFailures,
        None => Left::Unknown,
    };
    let asked = scene.run.controller.env.clock.monotonic();
    let step = Step { scene, planned, at, display, same_manifest, again, last_changed, left, forced, asked };
    match scene.run.controller.objects.evidence(&planned.key) {
        // No watch has seen it, and no reconcile has written it: most likely it does not exist.
        None if absent || (planned.old.is_none() && fingerprint.is_none()) => step.create().await,
        None | Some(_) => step.update().await,
    }
}

struct Step<'a> {
    scene: &'a Scene<'a>,
    planned: &'a PlannedObject,
    at: ObjectRef,
    display: String,
    same_manifest: bool,
    again: bool,
    last_changed: Option<u64>,
    left: Left,
    forced: Forced,
    /// No request was sent before this time.
    asked: Instant,
}

impl<'a> Scene<'a> {
    pub(crate) fn new(run: &'a Run<'a>, bundle: &'a Bundle, trusted: bool, todo: &'a Todo) -> Self {
        Self { run, bundle, trusted, todo, given_away: Mutex::default() }
    }

    /// Returns true if the other owner gives the object away, by naming it in Ignore mode.
    async fn is_given_away(&self, owner: &NamespacedName, object: &ObjectKey) -> bool {
        let mut known = self.given_away.lock().await;
        if !known.contains_key(owner) {
            known.insert(owner.clone(), steps::given_away(self.run, owner).await);
        }
        let Some(given) = known.get(owner) else { return false };
        given.contains(object) || self.bundle.equivalences.of_key(object).any(|key| given.contains(&key))
    }

    /// Returns the address of the object. A kind that was unknown when the reconcile began may be served by now.
    async fn address(&self, planned: &PlannedObject) -> Result<ObjectRef, ApiError> {
        let kind = GroupVersionKind::of(&planned.manifest).unwrap_or_default();
        let resource: Resource = match self.bundle.resource(&kind) {
            Some(resource) => resource.clone(),
            None => self.run.controller.target.discovery().mapping(&kind).await?,
        };
        let namespace = object::namespace(&planned.manifest);
        Ok(resource.at(namespace, object::name(&planned.manifest)))
    }

    /// Returns the hash of everything that decides what is sent for an object, except the live object.
    pub(crate) fn intent(&self, planned: &PlannedObject) -> u64 {
        known::hash_of_intent(&planned.manifest, &self.merge_context(planned))
    }

    /// Returns the same hash for the opposite case of scaling: the manifest matches, but an autoscaler came or went.
    fn intent_if_scaled_otherwise(&self, planned: &PlannedObject) -> u64 {
        let context = self.merge_context(planned);
        let otherwise = MergeContext { preserve_replicas: !context.preserve_replicas, ..context };
        known::hash_of_intent(&planned.manifest, &otherwise)
    }

    fn merge_context<'b>(&'b self, planned: &'b PlannedObject) -> MergeContext<'b> {
        let Self { run, bundle, .. } = self;
        let autoscalers = &run.controller.autoscalers;
        let is_scaled = autoscalers.scales(&planned.key, &bundle.equivalences, &run.reconcile.key, run.last_period);
        bundle.merging.context(planned.old.as_ref(), is_scaled)
    }
}

impl Step<'_> {
    /// Creates without reading first. A refusal may mean that the object exists: for a Service that occupies its own
    /// node port, the answer is not *already exists*.
    async fn create(&self) -> Result<Done, ObjectError> {
        let error = match self.post(&self.new_object()?).await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let refused = error.code().is_some_and(|code| (400..500).contains(&code) && code != 401 && code != 429);
        if !refused && !error.outcome_unknown() {
            return Err(ObjectError::api(&self.display, &error));
        }
        match self.read().await {
            Ok(live) => self.bring_up_to_date(Some(live)).await,
            // It existed for a moment only.
            Err(read) if read.is_not_found() && error.is_already_exists() => self.bring_up_to_date(None).await,
            Err(_) => Err(ObjectError::api(&self.display, &error)),
        }
    }

    async fn update(&self) -> Result<Done, ObjectError> {
        let known = self.scene.run.controller.objects.body(&self.planned.key);
        // Objects that drifted or may be up to date are read live: comparing needs the managers of the fields.
        let may_differ = !self.same_manifest && !self.scene.trusted && !self.left.is_unconfirmed(&self.planned.key);
        let live = match known.filter(|_| may_differ) {
            Some(body) => Some(body),
            None => self.read_live().await?,
        };
        self.bring_up_to_date(live).await
    }

    async fn read_live(&self) -> Result<Option<Value>, ObjectError> {
        let objects = &self.scene.run.controller.objects;
        let known = objects.version(&self.planned.key);
        match self.read().await {
            Ok(live) => Ok(Some(live)),
            Err(error) if error.is_not_found() => {
                objects.gone(&self.planned.key, known, &self.scene.run.context.key);
                Ok(None)
            }
            Err(error) => Err(ObjectError::api(&self.display, &error)),
        }
    }

    /// Makes the object what the manifest says; reads it again if another client was faster. `live`: `None` if absent.
    async fn bring_up_to_date(&self, mut live: Option<Value>) -> Result<Done, ObjectError> {
        for attempt in 0.. {
            let result = match live {
                Some(live) => self.merge_into(&live).await,
                None => self.recreate().await,
            };
            let error = match result {
                Ok(done) => return Ok(done),
                Err(NotUpToDate::Overtaken(error)) if attempt < CONFLICTS => error,
                Err(NotUpToDate::Overtaken(error)) => return Err(ObjectError::api(&self.display, &error)),
                Err(NotUpToDate::Failed(error)) => return Err(error),
            };
            live = if error.is_not_found() { None } else { self.read_live().await? };
        }
        unreachable!("the last attempt returns, whatever it ends with")
    }

    async fn merge_into(&self, live: &Value) -> Result<Done, NotUpToDate> {
        if let Some(left) = self.left_to_its_owner(live).await {
            return Ok(left);
        }
        let merged = merge::merge(&self.planned.manifest, live, &self.scene.merge_context(self.planned))
            .map_err(|error| ObjectError::during(&self.display, &error))?;
        let knows_defaults = || self.left.knows_defaults_of(live, self.scene.trusted);
        let differs = up_to_date::must_be_sent(&merged, live, OWN_MANAGER, knows_defaults);
        if !differs && self.forced == Forced::No {
            self.seen(live);
            return Ok(Done { cached: Some(self.cached(live).await), repaired: false, sent: false, changed: None });
        }
        match self.put(&merged).await {
            Ok(answer) => {
                let changed = self.note_update(live, &answer);
                self.written(&answer);
                let cached = self.cached(&answer).await;
                let repaired = differs && (self.same_manifest || self.again);
                Ok(Done { cached: Some(cached), repaired, sent: true, changed })
            }
            // A field that no update may remove (spec 10 §12.9) neither fails nor deletes an object that is right.
            Err(error) if error.is_invalid() && self.is_right(differs, &merged, live) => {
                tracing::debug!(object = %self.display, error = %error, "an object that is up to date cannot be sent again");
                self.seen(live);
                Ok(Done { cached: Some(self.cached(live).await), repaired: false, sent: true, changed: None })
            }
            Err(error) if error.is_conflict() || error.is_not_found() => Err(NotUpToDate::Overtaken(error)),
            Err(error) => Ok(self.not_updated(&merged, error).await?),
        }
    }

    /// Logs and notes an update. If it repeats, or changes nothing, its record has the level debug. Returns the hash of the
    /// changed paths, `None` if nothing changed.
    fn note_update(&self, live: &Value, answer: &Value) -> Option<u64> {
        let (object, changed) = (&self.display, changed_paths(live, answer));
        let hash = hash_of(&changed);
        if self.again || changed.is_empty() || self.last_changed == Some(hash) {
            tracing::debug!(object = %object, changed = %changed, "an object was sent again");
        } else {
            tracing::info!(object = %object, changed = %changed, "an object was updated");
        }
        // A forced update that changes nothing ends no repetition.
        if changed.is_empty() {
            return None;
        }
        self.note(WriteKind::updated(&changed));
        Some(hash)
    }

    fn note(&self, kind: WriteKind) {
        let because = match self.forced {
            Forced::Revalidation => REVALIDATE,
            // It was as this manifest describes it.
            Forced::No if self.same_manifest => DRIFT,
            Forced::No | Forced::AlwaysUpdate => Causes::NONE,
        };
        self.scene.run.note_write(&self.planned.key, kind, because);
    }

    async fn recreate(&self) -> Result<Done, NotUpToDate> {
        match self.post(&self.new_object()?).await {
            Ok(done) => Ok(Done { repaired: self.same_manifest, ..done }),
            Err(error) if error.is_already_exists() => Err(NotUpToDate::Overtaken(error)),
            Err(error) => Err(ObjectError::api(&self.display, &error).into()),
        }
    }

    fn is_right(&self, differs: bool, merged: &Value, live: &Value) -> bool {
        let may_be_defaults = || self.left.may_be_defaults(&self.planned.key);
        self.forced != Forced::AlwaysUpdate
            && (!differs || may_be_defaults() && up_to_date::up_to_date(merged, live, OWN_MANAGER))
    }

    /// Handles an update that the server refused (spec 10 §11.7): replaces the object where that is allowed.
    async fn not_updated(&self, merged: &Value, error: ApiError) -> Result<Done, ObjectError> {
        let status = error.status();
        let reason = status.map(|status| status.reason.as_str()).unwrap_or_default();
        let causes = status.map(|status| status.causes.as_slice()).unwrap_or_default();
        let causes = causes.iter().map(|cause| (cause.reason.as_str(), cause.message.as_str()));
        Err(match invalid_update::react(error.code().unwrap_or_default(), reason, causes, merged) {
            Reaction::Conflict => ObjectError::text(error.to_string()),
            Reaction::Report => ObjectError::api(&self.display, &error),
            Reaction::InvalidPropagation(text) => ObjectError::text(text),
            Reaction::Delete { propagation } => self.replace(merged, &error, propagation).await,
        })
    }

    /// Deletes the object. The next reconcile, a few milliseconds later, creates it anew. Returns what to report.
    async fn replace(&self, merged: &Value, error: &ApiError, propagation: Option<Propagation>) -> ObjectError {
        let run = self.scene.run;
        let uid = object::uid(merged);
        match run.controller.target.delete_seen(&run.context, &self.at, uid, None, propagation).await {
            Ok(Deleted::Pending(live)) => self.seen(&live),
            Ok(Deleted::Gone) => {
                let version = object::resource_version(merged).parse().ok();
                run.controller.objects.gone(&self.planned.key, version, &run.context.key);
            }
            Err(failed) => {
                return ObjectError::text(invalid_update::not_deleted(&self.display, &failed.to_string()));
            }
        }
        tracing::info!(object = %self.display, "an object that could not be updated was deleted, to be created anew");
        let text = invalid_update::deleted(&self.display, &error.to_string());
        if self.same_manifest || self.again { ObjectError::of_replaced(text) } else { ObjectError::text(text) }
    }

    /// Reports a conflict about a live object that another existing ManagedResource owns and wants too (decision 11).
    /// Returns `Some` if that owner keeps it, only while repairing drift: else both would repair each other for ever.
    async fn left_to_its_owner(&self, live: &Value) -> Option<Done> {
        let run = self.scene.run;
        let owner = clean::other_owner(object::annotation(live, ORIGIN), &run.origin())?;
        run.controller.bundles.store().with(&owner, |_| ())?;
        // If this is unconfirmed, the owner counts as existing: the object waits for the next period at most.
        if !run.controller.exists(&run.context, &owner).await.unwrap_or(true) {
            return None;
        }
        if self.scene.is_given_away(&owner, &self.planned.key).await {
            return None;
        }
        run.conflicting_owner(&self.display, &owner);
        let drift = matches!(self.scene.todo, Todo::Some(_)) && self.same_manifest && !run.is_period();
        drift.then(|| {
            self.seen(live);
            Done { cached: None, repaired: false, sent: false, changed: None }
        })
    }

    async fn read(&self) -> Result<Value, ApiError> {
        let run = self.scene.run;
        run.controller.target.get(&run.context, &self.at).await
    }

    fn new_object(&self) -> Result<Value, ObjectError> {
        merge::for_create(&self.planned.manifest, &self.scene.merge_context(self.planned))
            .map_err(|error| ObjectError::during(&self.display, &error))
    }

    async fn post(&self, object: &Value) -> Result<Done, ApiError> {
        let run = self.scene.run;
        let answer = run.controller.target.create(&run.context, &self.at, object).await?;
        if self.again {
            tracing::debug!(object = %self.display, "an object was created again");
        } else {
            tracing::info!(object = %self.display, "an object was created");
        }
        self.note(WriteKind::Created);
        self.written(&answer);
        Ok(Done { cached: Some(self.cached(&answer).await), repaired: false, sent: true, changed: None })
    }

    async fn put(&self, merged: &Value) -> Result<Value, ApiError> {
        let run = self.scene.run;
        run.controller.target.replace(&run.context, &self.at, None, merged).await
    }

    /// Returns what is remembered of the object. If the watch delivers bodies in another version than the manifest's,
    /// reads that version: otherwise the two could never be compared, and each period would read the object.
    async fn cached(&self, answer: &Value) -> CachedObject {
        let run = self.scene.run;
        let objects = &run.controller.objects;
        let cached = objects.cached_of(&self.planned.key, answer);
        let Some(watched) = objects.watched_in(&self.at.resource).filter(|_| !self.planned.ignored) else {
            return cached;
        };
        let reported = run.controller.target.get(&run.context, &watched.at(&self.at.namespace, &self.at.name)).await;
        match reported {
            Ok(reported) if object::resource_version(&reported) == &*cached.resource_version => {
                objects.wrote(&self.planned.key, &reported, &run.context.key, self.asked);
                objects.cached_of(&self.planned.key, &reported)
            }
            // It changed since: the next period checks it.
            Ok(_) | Err(_) => cached,
        }
    }

    fn written(&self, object: &Value) {
        if self.planned.ignored {
            return;
        }
        self.seen(object);
        self.scene.run.controller.objects.keep_body(&self.planned.key, object);
    }

    /// Enters the answer into the cache. An object that is only ever created lacks the watched label, so that no change
    /// of it is received: it is read in each period.
    fn seen(&self, object: &Value) {
        if self.planned.ignored {
            return;
        }
        let run = self.scene.run;
        run.controller.objects.wrote(&self.planned.key, object, &run.context.key, self.asked);
    }
}

enum NotUpToDate {
    /// Another client changed, deleted or created it after it was read.
    Overtaken(ApiError),
    Failed(ObjectError),
}

impl From<ObjectError> for NotUpToDate {
    fn from(error: ObjectError) -> Self {
        Self::Failed(error)
    }
}
