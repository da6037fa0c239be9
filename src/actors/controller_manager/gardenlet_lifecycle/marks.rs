//! The marks on Shoots whose gardenlet is silent (spec 81 K.4), and which Shoots are its own. Pure.

use cluster::object;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::heartbeat::{REASON, Reported};
use crate::{
    actors::controller_manager::fields::{list, text},
    api::meta::conditions::{Condition, ConditionStatus, find_in, status_patch},
};

const MESSAGE: &str = "Gardenlet stopped sending heartbeats.";

const EVERY_NODE_READY: &str = "EveryNodeReady";
const CONDITIONS: [&str; 5] = [
    "APIServerAvailable",
    "ControlPlaneHealthy",
    "ObservabilityComponentsHealthy",
    EVERY_NODE_READY,
    "SystemComponentsHealthy",
];
const CONSTRAINTS: [&str; 2] = ["HibernationPossible", "MaintenancePreconditionsSatisfied"];

/// What counts of a Shoot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShootState {
    /// The Seed whose gardenlet cares for it: `status.seedName`; empty if there is none.
    pub seed: String,
    /// What its own gardenlet reported; `None` unless it is self-hosted.
    pub own_gardenlet: Option<Box<Reported>>,
    /// It has all marks.
    pub is_marked: bool,
}

impl ShootState {
    /// Reads a Shoot.
    pub fn of(shoot: &Value) -> Self {
        Self {
            seed: text(shoot, "/status/seedName").to_owned(),
            own_gardenlet: is_self_hosted(shoot).then(|| Box::new(Reported::of(shoot))),
            is_marked: is_marked(shoot),
        }
    }
}

/// Returns true if a Shoot runs its own control plane (decision 32, spec 80 §16.1).
pub fn is_self_hosted(shoot: &Value) -> bool {
    let has_control_plane = |pool: &Value| pool.get("controlPlane").is_some_and(|it| !it.is_null());
    object::label(shoot, "shoot.gardener.cloud/self-hosted") == Some("true")
        || list(shoot, "/spec/provider/workers").any(has_control_plane)
}

/// Returns the merge patch for `/status` that sets all marks; `None` if the Shoot has them. Other entries stay.
pub fn mark(shoot: &Value, now: Timestamp) -> Option<Value> {
    let part = |list: &str, kinds: &mut dyn Iterator<Item = &'static str>| {
        let marked: Vec<_> = kinds
            .map(|kind| {
                let known = find_in(shoot, list, kind).unwrap_or_else(|| Condition::new(kind, now));
                known.updated(ConditionStatus::Unknown, REASON, MESSAGE, now)
            })
            .collect();
        status_patch(shoot, list, &marked)
            .and_then(|patch| Some((list.to_owned(), patch.get("status")?.get(list)?.clone())))
    };
    let conditions = part("conditions", &mut conditions_of(shoot));
    let constraints = part("constraints", &mut CONSTRAINTS.into_iter());
    let lists: serde_json::Map<_, _> = conditions.into_iter().chain(constraints).collect();
    (!lists.is_empty()).then(|| json!({ "status": lists }))
}

fn is_marked(shoot: &Value) -> bool {
    let has_mark = |list: &str, kind: &str| {
        find_in(shoot, list, kind).is_some_and(|condition| {
            let Condition { status, reason, message, codes, last_transition_time, last_update_time, .. } = condition;
            let is_unknown = status == ConditionStatus::Unknown && reason == REASON && message == MESSAGE;
            is_unknown && codes.is_empty() && last_transition_time.is_some() && last_update_time.is_some()
        })
    };
    conditions_of(shoot).all(|kind| has_mark("conditions", kind))
        && CONSTRAINTS.iter().all(|kind| has_mark("constraints", kind))
}

/// A Shoot without workers has no condition of its Nodes.
fn conditions_of(shoot: &Value) -> impl Iterator<Item = &'static str> {
    let is_workerless = list(shoot, "/spec/provider/workers").next().is_none();
    CONDITIONS.into_iter().filter(move |kind| !is_workerless || *kind != EVERY_NODE_READY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-08-21T12:00:00Z".parse().unwrap()
    }

    fn shoot(workers: &Value, status: Value) -> Value {
        json!({ "metadata": { "name": "s" }, "spec": { "provider": { "workers": workers } }, "status": status })
    }

    fn kinds(entries: &Value) -> Vec<&str> {
        entries.as_array().unwrap().iter().map(|entry| entry["type"].as_str().unwrap()).collect()
    }

    fn is_mark(entry: &Value) -> bool {
        entry["status"] == "Unknown"
            && entry["reason"] == REASON
            && entry["message"] == MESSAGE
            && entry.get("codes").is_none()
    }

    /// spec 81 K.4, scenario 78
    #[test]
    fn shoot_gets_marks_at_the_places_of_its_conditions_and_in_order() {
        let foreign = json!({ "type": "Other", "status": "True" });
        let known = json!({ "type": "EveryNodeReady", "status": "True", "codes": ["E"], "lastTransitionTime": "2026-08-21T10:00:00Z" });
        let before = shoot(&json!([{}]), json!({ "conditions": [known, foreign], "other": 1 }));

        let patch = mark(&before, now()).unwrap();

        let (conditions, constraints) = (&patch["status"]["conditions"], &patch["status"]["constraints"]);
        let others =
            ["APIServerAvailable", "ControlPlaneHealthy", "ObservabilityComponentsHealthy", "SystemComponentsHealthy"];
        assert_eq!(kinds(conditions), [&["EveryNodeReady", "Other"][..], &others].concat());
        assert_eq!(kinds(constraints), CONSTRAINTS);
        assert_eq!(conditions[1], foreign);
        let marks = conditions.as_array().unwrap().iter().filter(|entry| is_mark(entry)).count();
        assert_eq!((marks, constraints.as_array().unwrap().iter().all(is_mark)), (5, true));
        assert_eq!(patch.get("metadata"), None);
        assert!(!ShootState::of(&before).is_marked);
    }

    /// spec 81 K.4, scenarios 78 and 79
    #[test]
    fn shoot_with_all_marks_needs_no_write() {
        for workers in [json!([{}]), json!([]), Value::Null] {
            let patch = mark(&shoot(&workers, Value::Null), now()).unwrap();
            let marked = shoot(&workers, patch["status"].clone());

            let expected = if workers == json!([{}]) { 5 } else { 4 };
            assert_eq!(patch["status"]["conditions"].as_array().map(Vec::len), Some(expected), "{workers}");
            assert_eq!(mark(&marked, now() + jiff::SignedDuration::from_hours(1)), None);
            assert!(ShootState::of(&marked).is_marked);
        }
    }

    /// spec 81 K.4: only the list that differs is written.
    #[test]
    fn shoot_that_lacks_one_mark_gets_only_its_list() {
        let mut status = mark(&shoot(&Value::Null, Value::Null), now()).unwrap()["status"].clone();
        status["constraints"][0]["status"] = json!("True");
        let before = shoot(&Value::Null, status);

        let patch = mark(&before, now()).unwrap();

        assert_eq!(patch["status"].as_object().unwrap().keys().collect::<Vec<_>>(), ["constraints"]);
        assert!(!ShootState::of(&before).is_marked);
    }

    /// decision 32; spec 80 scenario 36, spec 81 scenario 82
    #[test]
    fn shoot_is_self_hosted_by_its_label_or_by_its_workers() {
        let labelled = |value: &str| json!({ "metadata": { "labels": { "shoot.gardener.cloud/self-hosted": value } } });
        for (shoot, expected) in [
            (labelled("true"), true),
            (labelled("false"), false),
            (shoot(&json!([{}, { "controlPlane": {} }]), Value::Null), true),
            (shoot(&json!([{ "controlPlane": null }]), Value::Null), false),
            (json!({}), false),
        ] {
            assert_eq!(is_self_hosted(&shoot), expected, "{shoot}");
        }
    }

    /// spec 81 D-13, scenario 80
    #[test]
    fn shoot_belongs_to_the_seed_of_its_status() {
        let shoot = json!({ "spec": { "seedName": "s1" }, "status": { "seedName": "s2" } });

        assert_eq!(ShootState::of(&shoot).seed, "s2");
    }
}
