//! When a Shoot may migrate to another Seed (spec 84 H). Pure.

use cluster::object;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    actors::controller_manager::{
        fields::{list, text, whole_seconds},
        shoot_record::{LastOperation, OperationType},
    },
    api::meta::conditions::{Condition, ConditionStatus, find_in, status_patch},
};

/// The list of constraints in the status of a Shoot.
const CONSTRAINTS: &str = "constraints";

/// The constraint that this controller keeps.
const READY: &str = "ReadyForMigration";

/// The conditions that the destination must have, in the order of the checks (H.2, checks 4 and 5).
const REQUIRED: [&str; 2] = ["GardenletReady", "SeedSystemComponentsHealthy"];

/// What is kept of a Shoot's way from one Seed to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// `status.seedName`; empty if there is none.
    pub source: Box<str>,
    /// `spec.seedName`; empty if there is none.
    pub destination: Box<str>,
    /// It has the constraint, readable or not.
    pub has_constraint: bool,
    /// The constraint, if it is readable.
    constraint: Option<Box<Condition>>,
    /// It has the constraint, and its last operation is no migration.
    pub is_leftover: bool,
}

/// What counts of a Seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedState {
    is_deleting: bool,
    /// `status.gardener.version`; `None` if `status.gardener` is absent.
    version: Option<Box<str>>,
    generation: i64,
    observed: i64,
    /// Status, reason and message of those in [`REQUIRED`].
    conditions: [Option<Box<[String; 3]>>; 2],
}

/// Whether the destination is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It is (H-5).
    Ready,
    /// It is not, for this reason (H-4).
    Unready(String),
    /// It is being deleted (H-3).
    InDeletion,
}

impl Migration {
    /// Reads a Shoot.
    pub fn of(shoot: &Value) -> Self {
        let has_constraint = list(shoot, "/status/constraints").any(is_ready_constraint);
        let is_migrate = LastOperation::of(shoot).is_some_and(|operation| operation.kind == OperationType::Migrate);
        Self {
            source: text(shoot, "/status/seedName").into(),
            destination: text(shoot, "/spec/seedName").into(),
            has_constraint,
            constraint: find_in(shoot, CONSTRAINTS, READY).map(Box::new),
            is_leftover: has_constraint && !is_migrate,
        }
    }

    /// Returns true if the Shoot is on the way from one Seed to another.
    pub fn is_migrating(&self) -> bool {
        !self.source.is_empty() && !self.destination.is_empty() && self.source != self.destination
    }

    /// Returns true if it is on the same way as another state of the Shoot.
    pub fn is_on_way_of(&self, other: &Self) -> bool {
        self.source == other.source && self.destination == other.destination
    }

    /// Returns true if the constraint says that the destination is ready.
    pub fn says_ready(&self) -> bool {
        self.constraint.as_ref().is_some_and(|constraint| constraint.status == ConditionStatus::True)
    }

    /// Returns true if the constraint must be written.
    pub fn differs_from(&self, readiness: &Readiness, now: Timestamp) -> bool {
        let known = self.constraint.as_deref();
        known != Some(&readiness.constraint(known, now))
    }

    /// Returns the next full second if the constraint must become `True` and took another status in this second. The time of
    /// a change has no fractions, so readers could not tell two changes within one second apart. The way back does not wait.
    pub fn postponed(&self, readiness: &Readiness, now: Timestamp) -> Option<Timestamp> {
        let is_approval = *readiness == Readiness::Ready && !self.says_ready();
        let last = self.constraint.as_ref()?.last_transition_time.filter(|last| *last == whole_seconds(now))?;
        is_approval.then(|| last.checked_add(SignedDuration::from_secs(1)).ok()).flatten()
    }
}

impl SeedState {
    /// Reads a Seed. An absent generation is 0.
    pub fn of(seed: &Value) -> Self {
        let condition = |kind: &str| {
            let entry = list(seed, "/status/conditions").find(|entry| text(entry, "/type") == kind)?;
            Some(Box::new(["/status", "/reason", "/message"].map(|field| text(entry, field).to_owned())))
        };
        let gardener = seed.pointer("/status/gardener").filter(|gardener| gardener.is_object());
        Self {
            is_deleting: object::deletion_timestamp(seed).is_some(),
            version: gardener.map(|gardener| text(gardener, "/version").into()),
            generation: object::generation(seed),
            observed: seed.pointer("/status/observedGeneration").and_then(Value::as_i64).unwrap_or_default(),
            conditions: REQUIRED.map(condition),
        }
    }
}

impl Readiness {
    /// Judges a destination (H-3 to H-5).
    pub fn of(destination: &SeedState, source: &SeedState) -> Self {
        if destination.is_deleting {
            return Self::InDeletion;
        }
        problem(destination, source).map_or(Self::Ready, Self::Unready)
    }

    /// Returns the log text of a change of the constraint.
    pub fn announcement(&self) -> &'static str {
        match self {
            Self::Ready => "Updating constraint to True since destination seed is ready",
            Self::Unready(_) => "Updating constraint to False since destination seed is unready",
            Self::InDeletion => "Updating constraint to False since destination seed is being deleted",
        }
    }

    fn constraint(&self, known: Option<&Condition>, now: Timestamp) -> Condition {
        let known = known.cloned().unwrap_or_else(|| Condition::new(READY, now));
        match self {
            Self::Ready => known.updated(
                ConditionStatus::True,
                "DestinationSeedReady",
                "Destination seed cluster is ready for the shoot migration",
                now,
            ),
            Self::Unready(text) => known.updated(ConditionStatus::False, "DestinationSeedUnready", text, now),
            Self::InDeletion => {
                known.updated(ConditionStatus::False, "DestinationSeedInDeletion", "Seed is being deleted", now)
            }
        }
    }

    /// Returns the merge patch for `/status` that makes the constraint of a Shoot say this (H-6); `None` if it does. Other
    /// constraints stay.
    pub fn patch(&self, shoot: &Value, now: Timestamp) -> Option<Value> {
        let constraint = self.constraint(find_in(shoot, CONSTRAINTS, READY).as_ref(), now);
        status_patch(shoot, CONSTRAINTS, &[constraint])
    }
}

/// Returns the text of the first check that fails.
fn problem(destination: &SeedState, source: &SeedState) -> Option<String> {
    let (Some(version), Some(source)) = (&destination.version, &source.version) else {
        return Some("missing Gardener version information on source or destination seed".to_owned());
    };
    if version != source {
        return Some(format!("observing Gardener version not up to date ({version}/{source})"));
    }
    let SeedState { generation, observed, .. } = *destination;
    if observed < generation {
        return Some(format!("observed generation outdated ({observed}/{generation})"));
    }
    let conditions = || REQUIRED.iter().zip(&destination.conditions);
    if let Some((kind, _)) = conditions().find(|(_, condition)| condition.is_none()) {
        return Some(format!("condition \"{kind}\" is missing"));
    }
    conditions().find_map(|(kind, condition)| {
        let [status, reason, message] = condition.as_deref()?;
        let text =
            || format!("condition \"{kind}\" has invalid status {status} (expected True) due to {reason}: {message}");
        (status != "True").then(text)
    })
}

/// Returns the merge patch for `/status` that removes the constraint of a Shoot that does not migrate (H-1); `None` if it
/// has none. Other constraints stay.
pub fn removal_patch(shoot: &Value) -> Option<Value> {
    let migration = Migration::of(shoot);
    let others: Vec<_> = list(shoot, "/status/constraints").filter(|entry| !is_ready_constraint(entry)).collect();
    let is_due = migration.has_constraint && !migration.is_migrating();
    is_due.then(|| json!({ "status": { CONSTRAINTS: others } }))
}

fn is_ready_constraint(entry: &Value) -> bool {
    text(entry, "/type") == READY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-08-21T12:00:00.5Z".parse().unwrap()
    }

    fn seed(version: Value, generation: i64, observed: Value, conditions: &str) -> SeedState {
        let condition = |entry: &str| {
            let (kind, status) = entry.split_once('-').unwrap();
            json!({ "type": kind, "status": status, "reason": "R", "message": "m." })
        };
        let conditions: Vec<_> = conditions.split_whitespace().map(condition).collect();
        SeedState::of(&json!({
            "metadata": { "generation": generation },
            "status": { "gardener": version, "observedGeneration": observed, "conditions": conditions },
        }))
    }

    fn shoot(source: &str, destination: &str, kind: &str, constraints: Value) -> Value {
        json!({
            "metadata": { "resourceVersion": "7" },
            "spec": { "seedName": destination },
            "status": { "seedName": source, "lastOperation": { "type": kind }, "constraints": constraints },
        })
    }

    const GOOD: &str = "GardenletReady-True SeedSystemComponentsHealthy-True";

    /// spec 84 H-4, H-5, checks 1 to 5, scenarios 102 to 104
    #[test]
    fn destination_is_ready_if_all_checks_pass() {
        let v1 = || json!({ "version": "v1" });
        let table = [
            (v1(), v1(), 1, json!(1), GOOD, ""),
            (v1(), v1(), 1, json!(2), "Other-False SeedSystemComponentsHealthy-True GardenletReady-True", ""),
            (v1(), v1(), 0, Value::Null, GOOD, ""),
            (json!({}), json!({}), 1, json!(1), GOOD, ""),
            (Value::Null, v1(), 1, json!(1), "", "missing Gardener version information on source or destination seed"),
            (v1(), json!("v1"), 1, json!(1), "", "missing Gardener version information on source or destination seed"),
            (
                json!({ "version": "bar" }),
                json!({ "version": "foo" }),
                2,
                json!(1),
                "",
                "observing Gardener version not up to date (bar/foo)",
            ),
            (v1(), v1(), 2, json!(1), "", "observed generation outdated (1/2)"),
            (v1(), v1(), 2, json!("2"), "", "observed generation outdated (0/2)"),
            (v1(), v1(), 1, json!(1), "", "condition \"GardenletReady\" is missing"),
            (v1(), v1(), 1, json!(1), "GardenletReady-False", "condition \"SeedSystemComponentsHealthy\" is missing"),
            (
                v1(),
                v1(),
                1,
                json!(1),
                "SeedSystemComponentsHealthy-False GardenletReady-Unknown",
                "condition \"GardenletReady\" has invalid status Unknown (expected True) due to R: m.",
            ),
            (
                v1(),
                v1(),
                1,
                json!(1),
                "SeedSystemComponentsHealthy-Progressing GardenletReady-True",
                "condition \"SeedSystemComponentsHealthy\" has invalid status Progressing (expected True) due to R: m.",
            ),
        ];
        for (destination, source, generation, observed, conditions, text) in table {
            let source = seed(source, 9, json!(1), "");

            let readiness = Readiness::of(&seed(destination, generation, observed, conditions), &source);

            let expected = if text.is_empty() { Readiness::Ready } else { Readiness::Unready(text.to_owned()) };
            assert_eq!(readiness, expected);
        }
    }

    /// spec 84 H-3, scenario 105
    #[test]
    fn destination_in_deletion_is_not_ready() {
        let good = seed(json!({ "version": "v1" }), 1, json!(1), GOOD);
        let deleting = SeedState { is_deleting: true, ..good.clone() };

        assert_eq!(Readiness::of(&deleting, &good), Readiness::InDeletion);
        assert_eq!(Readiness::of(&good, &deleting), Readiness::Ready, "the source may go");
    }

    /// spec 84 H-6, scenarios 103 and 104; spec 80 §16.2
    #[test]
    fn constraint_follows_reason_and_message_and_keeps_its_time() {
        let earlier = "2026-08-21T10:00:00Z";
        let known = json!({
            "type": READY, "status": "False", "reason": "DestinationSeedUnready", "message": "m", "codes": ["E"],
            "lastTransitionTime": earlier, "lastUpdateTime": earlier,
        });
        let other = json!({ "type": "HibernationPossible", "status": 5 });
        let before = shoot("a", "b", "Reconcile", json!([other, known]));
        let now_text = "2026-08-21T12:00:00Z";
        for (readiness, status, reason, message, transition) in [
            (Readiness::Unready("n".to_owned()), "False", "DestinationSeedUnready", "n", earlier),
            (Readiness::InDeletion, "False", "DestinationSeedInDeletion", "Seed is being deleted", earlier),
            (
                Readiness::Ready,
                "True",
                "DestinationSeedReady",
                "Destination seed cluster is ready for the shoot migration",
                now_text,
            ),
        ] {
            assert!(Migration::of(&before).differs_from(&readiness, now()));
            let patch = readiness.patch(&before, now()).unwrap();

            let entry = json!({
                "type": READY, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": transition, "lastUpdateTime": now_text,
            });
            let expected =
                json!({ "metadata": { "resourceVersion": "7" }, "status": { "constraints": [other, entry] } });
            assert_eq!(patch, expected);
            let after = shoot("a", "b", "Migrate", json!([other, entry]));
            assert!(!Migration::of(&after).differs_from(&readiness, now()));
            assert_eq!(readiness.patch(&after, now()), None);
            assert_eq!(Migration::of(&after).says_ready(), status == "True");
        }
    }

    /// spec 84 H-6, scenario 103
    #[test]
    fn constraint_becomes_true_in_another_second_than_it_became_false() {
        let constraint = |status: &str, transition: &str| {
            let entry = json!({ "type": READY, "status": status, "lastTransitionTime": transition });
            Migration::of(&shoot("a", "b", "Reconcile", json!([entry])))
        };
        let next = "2026-08-21T12:00:01Z".parse().ok();
        let this = "2026-08-21T12:00:00Z";
        let table = [
            (constraint("False", this), Readiness::Ready, next),
            (constraint("True", this), Readiness::InDeletion, None),
            (constraint("False", this), Readiness::InDeletion, None),
            (constraint("False", "2026-08-21T11:59:59Z"), Readiness::Ready, None),
            (constraint("False", "2026-08-21T12:00:09Z"), Readiness::Ready, None),
            (Migration::of(&shoot("a", "b", "Reconcile", json!([]))), Readiness::Ready, None),
        ];
        for (migration, readiness, expected) in table {
            assert_eq!(migration.postponed(&readiness, now()), expected, "{migration:?} {readiness:?}");
        }
    }

    /// spec 84 H.1, H-1, scenario 106
    #[test]
    fn constraint_goes_when_the_shoot_does_not_migrate() {
        let other = json!({ "type": "MaintenancePreconditionsSatisfied", "status": "True" });
        let constraints = json!([other, { "type": READY, "status": "True" }, 7, { "type": READY }]);
        let table = [
            // source, destination, type of the operation; is it leftover, is it removed by H-1
            ("a", "a", "Restore", true, true),
            ("a", "a", "Migrate", false, true),
            ("", "a", "Migrate", false, true),
            ("a", "", "", true, true),
            ("a", "b", "Restore", true, false),
            ("a", "b", "Migrate", false, false),
        ];
        for (source, destination, kind, is_leftover, is_removed) in table {
            let shoot = shoot(source, destination, kind, constraints.clone());

            assert_eq!(Migration::of(&shoot).is_leftover, is_leftover, "{shoot}");
            let expected = json!({ "status": { "constraints": [other, 7] } });
            assert_eq!(removal_patch(&shoot), is_removed.then_some(expected), "{shoot}");
        }
        for none in [json!(null), json!([]), json!([other]), json!(READY)] {
            assert_eq!(removal_patch(&shoot("a", "a", "Restore", none)), None);
        }
    }
}
