//! What counts as activity in a Project, and when it is written (spec 82 C.2, C.3). Pure.

use cluster::object;
use jiff::{SignedDuration, Timestamp};
use kit::hash_of;
use serde_json::{Value, json};

use crate::actors::controller_manager::{
    bindings::binding::BindingKind,
    fields::{time, whole_seconds},
};

/// Of an object that appears, its creation counts up to this age. So the objects of the first list are no activity.
const YOUNG: SignedDuration = SignedDuration::from_hours(1);

/// The time of the last activity is not moved by less than this: a burst of changes is one activity.
const BURST: SignedDuration = SignedDuration::from_secs(10);

/// Which changes of a kind count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityKind {
    /// Changes of the generation: Shoots and BackupEntries.
    Generation,
    /// Any change of an object with a reference label: Quotas and credentials.
    Referenced,
}

/// What is kept of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    created: Option<Timestamp>,
    generation: i64,
    is_deleting: bool,
    /// A binding refers to it, or did: it has a reference label, with any value.
    is_referenced: bool,
    /// Hash of the finalizers.
    finalizers: u64,
    /// Hash of labels and annotations.
    marks: u64,
}

impl Trace {
    /// Reads the metadata of an object.
    pub fn of(object: &Value) -> Self {
        let has_label = |kind: BindingKind| object::label(object, kind.label()).is_some();
        Self {
            created: time(object, "/metadata/creationTimestamp"),
            generation: object::generation(object),
            is_deleting: object::deletion_timestamp(object).is_some(),
            is_referenced: BindingKind::ALL.into_iter().any(has_label),
            finalizers: hash_of(&object::finalizers(object).collect::<Vec<_>>()),
            marks: hash_of(
                &["/metadata/labels", "/metadata/annotations"].map(|map| object.pointer(map).map(Value::to_string)),
            ),
        }
    }

    /// Returns true if a change touched nothing but the finalizers: guards add theirs right after the creation. An object
    /// whose finalizers change with its content at once counts as this, too.
    fn has_other_finalizers_only(&self, other: &Self) -> bool {
        self.finalizers != other.finalizers && Self { finalizers: other.finalizers, ..*self } == *other
    }

    fn is_young(&self, now: Timestamp) -> bool {
        self.created.is_some_and(|created| now.duration_since(created) <= YOUNG)
    }

    /// Returns true if the last recorded activity has the creation of this object in it: it came later, or so shortly before
    /// that both are one burst. Then a first list that shows the object shows nothing new.
    pub fn is_recorded_by(&self, last: Option<Timestamp>) -> bool {
        self.created.zip(last).is_some_and(|(created, last)| created.duration_since(last) < BURST)
    }
}

/// Returns true if a change of an object is activity. `old` is `None` if the object was not known before, and `new` if it
/// is gone. The end of a Quota or of credentials whose deletion was noticed is no second activity: it follows as soon as
/// their guard has released them.
pub fn is_activity(kind: ActivityKind, old: Option<&Trace>, new: Option<&Trace>, now: Timestamp) -> bool {
    let counts = |trace: &Trace| kind == ActivityKind::Generation || trace.is_referenced;
    match (old, new) {
        (None, None) => false,
        (None, Some(new)) => counts(new) && new.is_young(now),
        (Some(old), None) => match kind {
            ActivityKind::Generation => true, // the end of a Shoot may come hours after its deletion
            ActivityKind::Referenced => old.is_referenced && !old.is_deleting,
        },
        (Some(old), Some(new)) => match kind {
            ActivityKind::Generation => {
                old.generation != new.generation || (new.is_deleting && !old.is_deleting) // spec 80 §10.1
            }
            ActivityKind::Referenced => (old.is_referenced || new.is_referenced) && !old.has_other_finalizers_only(new),
        },
    }
}

/// Returns the merge patch for `/status` that records activity at a time; `None` if that would move the time of the last
/// activity too little, or if the Project is being deleted.
pub fn activity_patch(project: &Value, now: Timestamp) -> Option<Value> {
    let last = time(project, "/status/lastActivityTimestamp");
    let is_due = is_due(last, now) && object::deletion_timestamp(project).is_none();
    is_due.then(|| json!({ "status": { "lastActivityTimestamp": whole_seconds(now).to_string() } }))
}

/// Returns true if activity at a time must be recorded. `last` is the time of the last recorded activity.
pub fn is_due(last: Option<Timestamp>, now: Timestamp) -> bool {
    last.is_none_or(|last| whole_seconds(now).duration_since(last).abs() >= BURST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-08-21T12:00:00.7Z".parse().unwrap()
    }

    fn trace(age: SignedDuration, generation: i64, labels: Value) -> Trace {
        Trace::of(&json!({ "metadata": {
            "creationTimestamp": (now() - age).to_string(), "generation": generation, "labels": labels,
        } }))
    }

    const SECONDS: SignedDuration = SignedDuration::from_secs(1);

    fn shoot(generation: i64) -> Trace {
        trace(YOUNG * 2, generation, Value::Null)
    }

    /// spec 82 C.2, scenarios 36 and 38
    #[test]
    fn activity_of_shoots_is_each_change_of_their_generation() {
        let is_activity = |old: Option<Trace>, new: Option<Trace>| {
            is_activity(ActivityKind::Generation, old.as_ref(), new.as_ref(), now())
        };

        assert!(is_activity(None, Some(trace(YOUNG, 1, Value::Null))));
        assert!(!is_activity(None, Some(trace(YOUNG + SECONDS, 1, Value::Null))));
        assert!(is_activity(None, Some(trace(-YOUNG * 2, 1, Value::Null))), "clocks differ");
        assert!(is_activity(Some(shoot(1)), Some(shoot(2))));
        assert!(!is_activity(Some(shoot(1)), Some(trace(YOUNG * 2, 1, json!({ "a": "b" })))));
        assert!(is_activity(Some(shoot(1)), None));
        assert!(!is_activity(None, None));
        assert!(!is_activity(None, Some(Trace::of(&json!({ "metadata": {} })))));
    }

    /// spec 82 C.2, spec 80 §10.1: a deletion counts also if the server does not count generations.
    #[test]
    fn activity_of_shoots_is_their_deletion() {
        let deleting = Trace { is_deleting: true, ..shoot(0) };
        let is_activity = |old: Trace, new: Trace| is_activity(ActivityKind::Generation, Some(&old), Some(&new), now());

        assert!(is_activity(shoot(0), deleting));
        assert!(!is_activity(deleting, deleting));
    }

    /// spec 82 C.2, D-2, scenario 37
    #[test]
    fn activity_of_credentials_is_each_change_while_they_have_a_reference_label() {
        let is_activity = |old: Option<Trace>, new: Option<Trace>| {
            is_activity(ActivityKind::Referenced, old.as_ref(), new.as_ref(), now())
        };
        let plain = || Some(trace(SECONDS, 1, json!({ "a": "b" })));
        for label in ["reference.gardener.cloud/secretbinding", "reference.gardener.cloud/credentialsbinding"] {
            for value in ["true", "false", ""] {
                let labelled = |age| Some(trace(age, 1, json!({ label: value })));

                assert!(is_activity(None, labelled(YOUNG)));
                assert!(!is_activity(None, labelled(YOUNG + SECONDS)));
                assert!(is_activity(labelled(YOUNG * 9), labelled(YOUNG * 9)));
                assert!(is_activity(plain(), labelled(SECONDS)));
                assert!(is_activity(labelled(SECONDS), plain()));
                assert!(is_activity(labelled(YOUNG * 9), None));
            }
        }
        for (old, new) in [(None, plain()), (plain(), plain()), (plain(), None), (None, None)] {
            assert!(!is_activity(old, new), "{old:?} {new:?}");
        }
    }

    /// spec 82 C.2, scenarios 36 and 37
    #[test]
    fn activity_of_a_deletion_counts_twice_for_shoots_and_once_for_credentials() {
        let labels = json!({ "reference.gardener.cloud/secretbinding": "true" });
        let alive = trace(YOUNG * 2, 1, labels);
        let deleting = Trace { is_deleting: true, generation: 2, ..alive };
        for (kind, counts_end) in [(ActivityKind::Generation, true), (ActivityKind::Referenced, false)] {
            assert!(is_activity(kind, Some(&alive), Some(&deleting), now()));
            assert_eq!(is_activity(kind, Some(&deleting), None, now()), counts_end);
            assert!(is_activity(kind, Some(&alive), None, now()), "without a finalizer it ends at once");
        }
    }

    /// spec 82 C.2: guards add and remove finalizers.
    #[test]
    fn activity_of_credentials_is_no_change_of_finalizers() {
        let secret = |finalizers: Value, marks: Value| {
            let labels = json!({ "reference.gardener.cloud/secretbinding": "true" });
            Trace::of(&json!({ "metadata": { "labels": labels, "annotations": marks, "finalizers": finalizers } }))
        };
        let is_activity = |new: Trace| {
            let old = secret(json!([]), json!({}));
            is_activity(ActivityKind::Referenced, Some(&old), Some(&new), now())
        };

        assert!(!is_activity(secret(json!(["gardener"]), json!({}))));
        assert!(is_activity(secret(json!(["gardener"]), json!({ "a": "b" }))));
        assert!(is_activity(secret(json!([]), json!({}))), "its data changed");
    }

    /// spec 82 C.2, scenario 38
    #[test]
    fn activity_of_a_creation_is_recorded_by_a_later_one_and_by_one_of_the_same_burst() {
        let created = trace(SECONDS * 100, 1, Value::Null);
        let last = |age| Some(now() - SignedDuration::from_secs(age));

        assert!(!created.is_recorded_by(None));
        assert!(!created.is_recorded_by(last(3000)));
        assert!(!created.is_recorded_by(last(110)));
        assert!(created.is_recorded_by(last(109)));
        assert!(created.is_recorded_by(last(50)));
        assert!(!Trace::of(&json!({})).is_recorded_by(last(50)), "it has no time");
    }

    /// spec 82 C.3
    #[test]
    fn activity_moves_its_time_by_ten_seconds_or_more_and_the_first_time_in_any_case() {
        let patch = |last: Value| activity_patch(&json!({ "status": { "lastActivityTimestamp": last } }), now());
        let expected = json!({ "status": { "lastActivityTimestamp": "2026-08-21T12:00:00Z" } });

        for (last, is_written) in [
            (Value::Null, true),
            (json!("garbage"), true),
            (json!("2020-01-01T00:00:00Z"), true),
            (json!("2026-08-21T11:59:50Z"), true),
            (json!("2026-08-21T11:59:51Z"), false),
            (json!("2026-08-21T12:00:00Z"), false),
            (json!("2026-08-21T12:00:09Z"), false),
            (json!("2026-08-21T12:00:10Z"), true),
        ] {
            assert_eq!(patch(last.clone()), is_written.then(|| expected.clone()), "{last}");
        }
        assert_eq!(activity_patch(&json!({}), now()), Some(expected));
    }

    /// spec 82 C.3
    #[test]
    fn activity_of_a_project_in_deletion_is_not_recorded() {
        let project = json!({ "metadata": { "deletionTimestamp": "2026-08-21T11:00:00Z" } });

        assert_eq!(activity_patch(&project, now()), None);
    }
}
