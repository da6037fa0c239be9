//! What the actor of a ManagedResource remembers between reconciles. All of it may be lost: unknown means *read live*.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use cluster::object::ObjectKey;
use kit::hash_of;
use tokio::time::Instant;

use super::{
    super::apply::ObjectError, cached_bundle::ManagedResourceSummary, cached_object::Content, updates::Updates,
};
use crate::{
    actors::shared::drift_backoff::DriftBackoff,
    api::{
        meta::conditions,
        resources::{
            condition_names::RESOURCES_APPLIED,
            managed_resource::{ManagedResource, ManagedResourceStatus},
        },
    },
};

pub(crate) type Fingerprints = BTreeMap<Rc<ObjectKey>, Fingerprint>;

#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) applied: Option<Rc<Applied>>,
    pub(crate) failed: Option<Applied>,
    pub(crate) objects: Rc<Fingerprints>,
    /// The set that was announced in the conditions, by generation and checksum. It is not announced again.
    pub(crate) announced: Option<(i64, String)>,
    pub(crate) drift_backoff: DriftBackoff<ObjectKey>,
    pub(crate) updates: Updates,
    pub(crate) failing: BTreeMap<ObjectKey, Failing>,
    pub(crate) period: Option<Instant>,
    pub(crate) last_period: Option<Instant>,
    /// Objects whose autoscaler is gone, and until when it still counts. Then they are checked.
    pub(crate) unscaled: BTreeMap<ObjectKey, Instant>,
    /// Objects that a complete list of the initial sync lacked.
    pub(crate) absent: BTreeSet<Rc<ObjectKey>>,
    pub(crate) progress: Option<Progress>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Failing {
    pub(crate) since: Instant,
    /// The manifest that the object matched before, if no other manifest was attempted since.
    pub(crate) manifest: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) secrets: Vec<(String, u64)>,
    /// Hash of what the status says of the set, except times: another client may have changed it.
    pub(crate) status: u64,
}

/// What is done already, by reconciles that together check all objects, each for a time slice.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    pub(crate) applied: BTreeMap<ObjectKey, u64>,
    /// Objects that pruning has handled, with an item of the message if they still exist.
    pub(crate) pruned: BTreeMap<ObjectKey, Option<String>>,
    /// Manifests that failed, and why. All others have their turn first: each failure may have taken ten seconds.
    pub(crate) failed: BTreeMap<ObjectKey, (u64, ObjectError)>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Fingerprint {
    /// Hash of the manifest with all that a merge adds to it.
    pub(crate) manifest: u64,
    pub(crate) content: Content,
    /// When it was written last, in milliseconds since the controller began; 0 if that was before.
    pub(crate) sent: u64,
}

impl Progress {
    pub(crate) fn has_applied(&mut self, key: &ObjectKey, manifest: u64) {
        self.pruned.remove(key);
        self.failed.remove(key);
        self.applied.insert(key.clone(), manifest);
    }
}

impl Memory {
    pub(crate) fn remember(&mut self, key: Rc<ObjectKey>, seen: Fingerprint) {
        debug_assert_eq!(
            Rc::strong_count(&self.objects),
            1,
            "an idle check ends before a reconcile, else this would copy the map"
        );
        Rc::make_mut(&mut self.objects).insert(key, seen);
    }

    /// Treats these objects as written at `when`, whatever has become of them.
    pub(crate) fn are_sent(&mut self, is_such: impl Fn(&ObjectKey, u64) -> bool, when: u64) {
        if self.objects.iter().any(|(key, seen)| is_such(key, seen.sent)) {
            let such = Rc::make_mut(&mut self.objects).iter_mut().filter(|(key, seen)| is_such(key, seen.sent));
            such.for_each(|(_, seen)| seen.sent = when);
        }
    }

    /// Notes that an attempt that began at `begun` has failed. Returns since when the object fails.
    pub(crate) fn has_failed(&mut self, key: &ObjectKey, manifest: u64, begun: Instant) -> Instant {
        let seen = self.objects.get(key).map(|seen| seen.manifest);
        let before = seen.or_else(|| self.failing.get(key)?.manifest);
        self.forget(key);
        let failing = self.failing.entry(key.clone()).or_insert(Failing { since: begun, manifest: None });
        failing.manifest = before.filter(|before| *before == manifest);
        failing.since
    }

    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        if self.objects.contains_key(key) {
            Rc::make_mut(&mut self.objects).remove(key);
        }
    }

    /// Forgets all other objects. Builds a new map, which takes half of the memory of a map that grew.
    pub(crate) fn keep_objects(&mut self, is_kept: impl Fn(&ObjectKey) -> bool) {
        let kept = self.objects.iter().filter(|(key, _)| is_kept(key));
        self.objects = Rc::new(kept.map(|(key, seen)| (key.clone(), *seen)).collect());
    }

    pub(crate) fn forget_objects(&mut self) {
        self.announced = None;
        self.applied = None;
        self.failed = None;
        self.objects = Rc::default();
        self.failing.values_mut().for_each(|failing| failing.manifest = None);
    }
}

impl Applied {
    pub(crate) fn of(mr: &ManagedResource, secrets: &[(String, u64)]) -> Self {
        Self {
            uid: mr.metadata.uid.clone(),
            generation: mr.metadata.generation,
            secrets: secrets.to_vec(),
            status: status_hash(&mr.status, hash_of(&mr.status.resources)),
        }
    }

    /// Returns true if this is about `mr`, as far as the ManagedResource itself shows. The caller compares the Secrets.
    pub(crate) fn is_about(&self, mr: &ManagedResource) -> bool {
        self.fits(mr, || hash_of(&mr.status.resources))
    }

    pub(crate) fn is_about_summary(&self, summary: &ManagedResourceSummary) -> bool {
        self.fits(&summary.mr, || summary.references)
    }

    fn fits(&self, mr: &ManagedResource, references: impl FnOnce() -> u64) -> bool {
        self.uid == mr.metadata.uid
            && self.generation == mr.metadata.generation
            && self.status == status_hash(&mr.status, references())
    }
}

fn status_hash(status: &ManagedResourceStatus, references: u64) -> u64 {
    let applied = conditions::find(&status.conditions, RESOURCES_APPLIED);
    let applied = applied.map(|it| (&it.status, &it.reason, &it.message, &it.codes));
    hash_of(&(references, &status.secrets_data_checksum, status.observed_generation, applied))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::actors::resource_manager::managed_resource::known::cached_object::CachedObject;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { kind: "ConfigMap".into(), name: name.into(), ..ObjectKey::default() }
    }

    #[test]
    fn memory_forgets_the_given_object_only_and_leaves_idle_checks_alone() {
        let content = CachedObject::of_object(&json!({"metadata": {"uid": "u"}}), None).content();
        let mut memory = Memory::default();
        for name in ["a", "b", "c"] {
            memory.remember(Rc::new(key(name)), Fingerprint { manifest: 7, content, sent: 0 });
        }
        let look = memory.objects.clone();

        memory.forget(&key("b"));
        memory.forget(&key("x"));
        let names = |objects: &Fingerprints| objects.keys().map(|key| key.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&memory.objects), ["a", "c"]);
        memory.keep_objects(|key| key.name == "c");

        assert_eq!(names(&memory.objects), ["c"]);
        assert_eq!(names(&look), ["a", "b", "c"]);
    }

    #[test]
    fn fingerprint_takes_56_bytes() {
        assert_eq!(size_of::<Fingerprint>(), 56);
    }

    #[test]
    fn progress_applied_object_is_no_longer_pruned() {
        let mut progress = Progress { pruned: [(key("a"), None), (key("b"), None)].into(), ..Progress::default() };

        progress.has_applied(&key("a"), 7);

        assert_eq!(progress.applied, [(key("a"), 7)].into());
        assert_eq!(progress.pruned, [(key("b"), None)].into());
    }
}
