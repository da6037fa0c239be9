//! What the actor of a bundle remembers between passes. All of it can be lost: unknown means *read live*.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    rc::Rc,
    time::Duration,
};

use tokio::time::Instant;

use super::{
    object_record::Content,
    objects::ObjectsRevision,
    snapshot::{Head, hash_of_references},
};
use crate::api::{
    conditions::RESOURCES_APPLIED,
    managed_resource::{ManagedResource, Status},
    object::ObjectKey,
};

/// A ref that drifts is repaired at once, then after 1, 2, 4 s … up to the sync period, until it is quiet.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The fingerprints of objects that were right.
pub type Fingerprints = BTreeMap<Rc<ObjectKey>, Fingerprint>;

/// Memory of the duty `managedresource`.
#[derive(Default)]
pub struct Memory {
    /// What the last full success was about.
    pub applied: Option<Rc<Applied>>,
    /// What the last pass was about in which objects failed.
    pub failed: Option<Applied>,
    /// The objects that were right when last looked at.
    pub objects: Rc<Fingerprints>,
    /// The set that was announced in the conditions, by generation and checksum: it is not announced again.
    pub announced: Option<(i64, String)>,
    /// Refs that drifted lately.
    pub damping: BTreeMap<ObjectKey, Damping>,
    /// Objects that failed, and since when.
    pub failing: BTreeMap<ObjectKey, Instant>,
    /// When the next period is due.
    pub period: Option<Instant>,
    /// Objects that a complete list at start did not hold.
    pub absent: BTreeSet<Rc<ObjectKey>>,
    /// What was done before the time slice ended, for the pass that goes on.
    pub ledger: Option<Ledger>,
}

/// What is done already, by passes that together look at all objects, each for a time slice.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// Objects that are applied, with the hash of their manifest.
    pub applied: BTreeMap<ObjectKey, u64>,
    /// Objects that were to be deleted; with an item of the message if they are still there.
    pub cleaned: BTreeMap<ObjectKey, Option<String>>,
}

/// A full success: for this ManagedResource, generation and Secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// `metadata.uid` of the ManagedResource.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// The Secrets, in order, with the versions they had.
    pub secrets: Vec<(String, u64)>,
    /// Hash of what the status says of the set: refs, checksum, generation, condition. Somebody may have changed it.
    pub status: u64,
}

/// What a look at a bundle went by that found nothing to do. As long as it is the same, another look would find the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundleRevision {
    /// Version of the ManagedResource.
    pub version: u64,
    /// Of its objects.
    pub objects: ObjectsRevision,
}

/// An object that was as described.
#[derive(Debug, Clone, Copy)]
pub struct Fingerprint {
    /// Hash of the manifest with all that a merge adds to it.
    pub manifest: u64,
    /// The object then.
    pub content: Content,
}

/// How often a ref may be repaired.
#[derive(Debug, Clone, Copy)]
pub struct Damping {
    /// Not before.
    pub next: Instant,
    pause: Duration,
    /// It drifted again since the last repair.
    pub due: bool,
}

impl Applied {
    /// The ManagedResource as it is now, with these Secrets.
    pub fn of(mr: &ManagedResource, secrets: &[(String, u64)]) -> Self {
        Self {
            uid: mr.metadata.uid.clone(),
            generation: mr.metadata.generation,
            secrets: secrets.to_vec(),
            status: status_hash(&mr.status, hash_of_references(&mr.status.resources)),
        }
    }

    /// Whether it was about this ManagedResource, as far as the ManagedResource itself tells; the Secrets are the caller's.
    pub fn is_about(&self, mr: &ManagedResource) -> bool {
        self.fits(mr, || hash_of_references(&mr.status.resources))
    }

    /// The same for one of which the references are not there.
    pub fn is_about_head(&self, head: &Head) -> bool {
        self.fits(&head.mr, || head.references)
    }

    fn fits(&self, mr: &ManagedResource, references: impl FnOnce() -> u64) -> bool {
        self.uid == mr.metadata.uid
            && self.generation == mr.metadata.generation
            && self.status == status_hash(&mr.status, references())
    }
}

fn status_hash(status: &Status, references: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (references, &status.secrets_data_checksum, status.observed_generation).hash(&mut hasher);
    let applied = status.conditions.iter().find(|condition| condition.kind == RESOURCES_APPLIED);
    applied.map(|it| (&it.status, &it.reason, &it.message, &it.codes)).hash(&mut hasher);
    hasher.finish()
}

impl Ledger {
    /// Takes note that an object is applied.
    pub fn has_applied(&mut self, key: &ObjectKey, manifest: u64) {
        self.cleaned.remove(key);
        self.applied.insert(key.clone(), manifest);
    }
}

impl Memory {
    /// Takes note that a ref drifted. True if it may be repaired now.
    pub fn drifted(&mut self, key: &ObjectKey, now: Instant) -> bool {
        match self.damping.get_mut(key) {
            Some(damping) if now < damping.next => {
                damping.due = true;
                false
            }
            Some(_) | None => true,
        }
    }

    /// Takes note that a ref was repaired. The next repair waits twice as long, at most `cap`.
    pub fn repaired(&mut self, key: &ObjectKey, now: Instant, cap: Duration) {
        let pause = self.damping.get(key).map_or(FIRST_PAUSE, |damping| (damping.pause * 2).min(cap));
        self.damping.insert(key.clone(), Damping { next: now + pause, pause, due: false });
    }

    /// Takes out the refs whose repair was put off and is due; forgets those that have been quiet for a pause. They are
    /// due no longer: if the drift has ended by itself there is nothing to repair, and no repair would say so.
    pub fn take_due(&mut self, now: Instant) -> BTreeSet<ObjectKey> {
        self.damping.retain(|_, damping| damping.due || now < damping.next + damping.pause);
        let due = self.damping.iter_mut().filter(|(_, damping)| damping.due && damping.next <= now);
        due.map(|(key, damping)| {
            damping.due = false;
            key.clone()
        })
        .collect()
    }

    /// When the next repair that was put off is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.damping.values().filter(|damping| damping.due).map(|damping| damping.next).min()
    }

    /// How long until the next pass is due: by the period, or by a repair that was put off.
    pub fn next(&self, now: Instant, sync_period: Duration) -> Duration {
        let period = self.period.unwrap_or(now + sync_period);
        self.next_due().map_or(period, |due| due.min(period)).saturating_duration_since(now)
    }

    /// Whether there is nothing to go on with, now or later.
    pub fn is_at_rest(&self) -> bool {
        self.applied.is_some() && self.damping.is_empty() && self.ledger.is_none()
    }

    /// Takes note that an object is right.
    pub fn remember(&mut self, key: Rc<ObjectKey>, seen: Fingerprint) {
        debug_assert_eq!(Rc::strong_count(&self.objects), 1, "a rest ends before a pass, else this would copy the map");
        Rc::make_mut(&mut self.objects).insert(key, seen);
    }

    /// Takes note that it is not known whether an object is right.
    pub fn forget(&mut self, key: &ObjectKey) {
        if self.objects.contains_key(key) {
            Rc::make_mut(&mut self.objects).remove(key);
        }
    }

    /// Forgets all other objects. The map is built anew, which takes half of the memory of one that grew.
    pub fn keep_objects(&mut self, is_kept: impl Fn(&ObjectKey) -> bool) {
        let kept = self.objects.iter().filter(|(key, _)| is_kept(key));
        self.objects = Rc::new(kept.map(|(key, seen)| (key.clone(), *seen)).collect());
    }

    /// Forgets what is known of objects and what was told of them.
    pub fn forget_objects(&mut self) {
        self.announced = None;
        self.applied = None;
        self.failed = None;
        self.objects = Rc::default();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::actors::managed_resource::known::object_record::ObjectRecord;

    const CAP: Duration = Duration::from_secs(60);

    fn key(name: &str) -> ObjectKey {
        ObjectKey { kind: "ConfigMap".into(), name: name.into(), ..ObjectKey::default() }
    }

    /// Repairs as often as allowed while somebody changes the object again at once; gives the seconds of the repairs.
    fn repairs(until: u64) -> Vec<u64> {
        let zero = Instant::now();
        let mut memory = Memory::default();
        let mut repairs = Vec::new();
        for second in 0..until {
            let now = zero + Duration::from_secs(second);
            let allowed = memory.drifted(&key("a"), now) || memory.take_due(now).contains(&key("a"));
            if allowed {
                memory.repaired(&key("a"), now, CAP);
                repairs.push(second);
            }
        }
        repairs
    }

    #[tokio::test(start_paused = true)]
    async fn somebody_who_changes_an_object_after_each_repair_is_answered_ever_more_rarely() {
        assert_eq!(repairs(200), [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_repair_that_was_put_off_is_due_at_its_time() {
        let now = Instant::now();
        let mut memory = Memory::default();
        memory.repaired(&key("a"), now, CAP);
        assert!(!memory.drifted(&key("a"), now + Duration::from_millis(500)));

        assert_eq!(memory.next_due(), Some(now + Duration::from_secs(1)));
        assert!(memory.take_due(now + Duration::from_millis(900)).is_empty());
        assert_eq!(memory.take_due(now + Duration::from_secs(1)).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_was_quiet_is_repaired_at_once_again() {
        let now = Instant::now();
        let mut memory = Memory::default();
        for second in [0, 1, 3, 7] {
            memory.repaired(&key("a"), now + Duration::from_secs(second), CAP);
        }
        let later = now + Duration::from_secs(7 + 8 + 8);

        assert!(memory.take_due(later).is_empty());
        assert!(memory.drifted(&key("a"), later));
        memory.repaired(&key("a"), later, CAP);
        assert!(memory.drifted(&key("a"), later + Duration::from_secs(1)), "the pauses begin anew");
    }

    #[test]
    fn a_success_is_about_what_the_status_says_of_the_set_and_nothing_else() {
        let bundle = |at: &str, value: Value| {
            let mut object = json!({
                "metadata": {"namespace": "shoot", "name": "a", "uid": "u", "generation": 3},
                "status": {"observedGeneration": 3, "secretsDataChecksum": "c", "conditions": [
                    {"type": "ResourcesApplied", "status": "True"}, {"type": "ResourcesHealthy", "status": "True"},
                ]},
            });
            *object.pointer_mut(at).unwrap() = value;
            ManagedResource::from_slice(&serde_json::to_vec(&object).unwrap()).unwrap()
        };
        let applied = Applied::of(&bundle("/metadata/name", json!("a")), &[]);
        for (at, value, is_same) in [
            ("/metadata/name", json!("a"), true),
            ("/status/conditions/1/status", json!("False"), true),
            ("/metadata/uid", json!("v"), false),
            ("/metadata/generation", json!(4), false),
            ("/status/observedGeneration", json!(2), false),
            ("/status/secretsDataChecksum", json!("d"), false),
            ("/status/conditions/0/status", json!("False"), false),
        ] {
            assert_eq!(applied.is_about(&bundle(at, value)), is_same, "{at}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_pass_is_due_by_the_period_or_by_a_repair_that_was_put_off() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut memory = Memory::default();
        assert_eq!(memory.next(now, CAP), CAP);
        memory.period = Some(now + 30 * second);
        assert_eq!(memory.next(now + 10 * second, CAP), 20 * second);
        memory.repaired(&key("a"), now, CAP);
        assert_eq!(memory.next(now, CAP), 30 * second, "nothing was put off");
        memory.drifted(&key("a"), now);

        assert_eq!(memory.next(now, CAP), second);
        assert_eq!(memory.next(now + 2 * second, CAP), Duration::ZERO);
        memory.period = Some(now);
        assert_eq!(memory.next(now, CAP), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_ref_may_be_repaired_again_exactly_when_its_pause_is_over() {
        let (now, pause) = (Instant::now(), FIRST_PAUSE);
        let mut memory = Memory::default();
        memory.repaired(&key("a"), now, CAP);

        assert!(memory.drifted(&key("a"), now + pause));
        assert_eq!(memory.next_due(), None, "it was not put off");
        memory.take_due(now + 2 * pause - Duration::from_nanos(1));
        assert!(memory.damping.contains_key(&key("a")));
        memory.take_due(now + 2 * pause);
        assert!(memory.damping.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_bundle_rests_when_it_is_applied_and_nothing_goes_on() {
        let mr = ManagedResource::from_slice(br#"{"metadata": {"namespace": "shoot", "name": "a"}}"#).unwrap();
        let applied = || Memory { applied: Some(Rc::new(Applied::of(&mr, &[]))), ..Memory::default() };
        assert!(applied().is_at_rest() && !Memory::default().is_at_rest());

        let mut damped = applied();
        damped.repaired(&key("a"), Instant::now(), CAP);
        let mut forgetful = applied();
        forgetful.forget_objects();

        assert!(!damped.is_at_rest() && !forgetful.is_at_rest());
        assert!(!Memory { ledger: Some(Ledger::default()), ..applied() }.is_at_rest());
    }

    #[test]
    fn what_is_forgotten_of_an_object_is_forgotten_of_no_other_and_not_by_a_look() {
        let content = ObjectRecord::of_object(&json!({"metadata": {"uid": "u"}})).content();
        let mut memory = Memory::default();
        for name in ["a", "b", "c"] {
            memory.remember(Rc::new(key(name)), Fingerprint { manifest: 7, content });
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
    fn what_is_applied_is_no_longer_cleaned_up() {
        let mut ledger = Ledger { cleaned: [(key("a"), None), (key("b"), None)].into(), ..Ledger::default() };

        ledger.has_applied(&key("a"), 7);

        assert_eq!(ledger.applied, [(key("a"), 7)].into());
        assert_eq!(ledger.cleaned, [(key("b"), None)].into());
    }
}
