//! Which conditions a Shoot shows that is a Seed (spec 84 A.2). Pure, and linear in the number of conditions.

use std::{collections::BTreeMap, sync::Arc};

use cluster::object;
use serde_json::{Value, json};

use crate::actors::controller_manager::{
    fields::{list, text},
    gardenlet_lifecycle::{heartbeat::GARDENLET_READY, marks::is_self_hosted},
};

/// The namespace of ManagedSeeds, and of the Shoots that are Seeds (spec 80 §16 S-15).
pub const GARDEN: &str = "garden";

/// The types of conditions that are each Shoot's own (spec 80 §16.1).
const OWN: [&str; 5] = [
    "APIServerAvailable",
    "ControlPlaneHealthy",
    "ObservabilityComponentsHealthy",
    "EveryNodeReady",
    "SystemComponentsHealthy",
];

/// The conditions of a Seed, as in its status.
pub type SeedConditions = Arc<[Value]>;

/// Which conditions are a Shoot's own. All others come from a Seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owned {
    /// Those of each Shoot.
    Common,
    /// Those, and what its own gardenlet says of itself: the Shoot is self-hosted (trap A-T6).
    WithGardenlet,
}

/// What is kept of the conditions of a Shoot.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptConditions {
    /// A condition is not the Shoot's own.
    pub is_any_foreign: bool,
    owned: Owned,
    /// All of them, if the Shoot is in the namespace in which Shoots may be Seeds.
    all: Option<Arc<[Value]>>,
}

impl KeptConditions {
    /// Reads a Shoot.
    pub fn of(shoot: &Value) -> Self {
        let owned = Owned::by(shoot);
        let is_any_foreign = conditions_of(shoot).any(|condition| !owned.contains(condition));
        let is_in_garden = object::namespace(shoot) == GARDEN;
        Self { is_any_foreign, owned, all: is_in_garden.then(|| conditions_of(shoot).cloned().collect()) }
    }

    /// Returns true if the Shoot must be written. `of_seed`: the conditions of the Seed that it is; `None` if it is none.
    pub fn differ_from(&self, of_seed: Option<&[Value]>) -> bool {
        match (of_seed, &self.all) {
            (None, _) => self.is_any_foreign,
            (Some(of_seed), Some(all)) => !shown(self.owned, all.iter(), of_seed).into_iter().eq(all.iter()),
            (Some(_), None) => true, // the live Shoot decides
        }
    }
}

/// Reads the conditions of a Seed or Shoot.
pub fn conditions_of(object: &Value) -> impl Iterator<Item = &Value> {
    list(object, "/status/conditions")
}

/// Returns the merge patch for `/status` that makes a Shoot show its own conditions and those of its Seed;
/// `None` if it does. The order counts. An absent list is an empty one.
pub fn conditions_patch(shoot: &Value, of_seed: Option<&[Value]>) -> Option<Value> {
    let wanted = shown(Owned::by(shoot), conditions_of(shoot), of_seed.unwrap_or_default());
    let differs = !wanted.iter().copied().eq(conditions_of(shoot));
    differs.then(|| json!({ "status": { "conditions": wanted } }))
}

/// Returns the Shoot's own conditions. A condition of the Seed replaces that of the same type, or comes at the end. Of two
/// with the same type the last one counts (trap A-T3). An entry of a Seed without a type is no condition. What a Seed says
/// of its gardenlet is not copied into a Shoot that has its own (trap A-T6).
fn shown<'c>(owned: Owned, of_shoot: impl Iterator<Item = &'c Value>, of_seed: &'c [Value]) -> Vec<&'c Value> {
    let mut shown: Vec<&Value> = of_shoot.filter(|condition| owned.contains(condition)).collect();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, condition) in shown.iter().enumerate() {
        places.entry(kind_of(condition)).or_insert(place);
    }
    let is_own = |kind: &str| owned == Owned::WithGardenlet && kind == GARDENLET_READY;
    let is_copied = |kind: &str| !kind.is_empty() && !is_own(kind);
    for condition in of_seed.iter().filter(|condition| is_copied(kind_of(condition))) {
        let place = *places.entry(kind_of(condition)).or_insert(shown.len());
        match shown.get_mut(place) {
            Some(known) => *known = condition,
            None => shown.push(condition),
        }
    }
    shown
}

impl Owned {
    fn by(shoot: &Value) -> Self {
        if is_self_hosted(shoot) { Self::WithGardenlet } else { Self::Common }
    }

    fn contains(self, condition: &Value) -> bool {
        let kind = kind_of(condition);
        OWN.contains(&kind) || (self == Self::WithGardenlet && kind == GARDENLET_READY)
    }
}

fn kind_of(condition: &Value) -> &str {
    text(condition, "/type")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(kind: &str, message: &str) -> Value {
        json!({ "type": kind, "status": "True", "reason": "R", "message": message, "codes": ["ERR_X"],
            "lastTransitionTime": "2026-08-21T10:00:00Z", "lastUpdateTime": "2026-08-21T11:00:00Z", "unknown": { "a": 1 } })
    }

    /// `A-own` is a condition of type A with the message `own`.
    fn conditions(brief: &str) -> Vec<Value> {
        brief
            .split_whitespace()
            .map(|entry| entry.split_once('-').unwrap())
            .map(|(kind, text)| condition(kind, text))
            .collect()
    }

    fn shoot(namespace: &str, conditions: Value) -> Value {
        json!({ "metadata": { "namespace": namespace, "name": "s" }, "status": { "conditions": conditions } })
    }

    /// spec 84, traps A-T1 and A-T3, scenarios 1 to 4 and 6
    #[test]
    fn shoot_shows_its_own_conditions_and_those_of_its_seed() {
        let table = [
            // of the Shoot; of the Seed, if it is one; afterwards
            ("", None, ""),
            ("", Some(""), ""),
            ("EveryNodeReady-a", None, "EveryNodeReady-a"),
            ("custom-s EveryNodeReady-a GardenletReady-s", None, "EveryNodeReady-a"),
            ("custom-s EveryNodeReady-a", Some(""), "EveryNodeReady-a"),
            ("EveryNodeReady-a", Some("GardenletReady-s custom-s"), "EveryNodeReady-a GardenletReady-s custom-s"),
            ("EveryNodeReady-a GardenletReady-s", Some("GardenletReady-t"), "EveryNodeReady-a GardenletReady-t"),
            (
                "SystemComponentsHealthy-a GardenletReady-s APIServerAvailable-a",
                Some("APIServerAvailable-s GardenletReady-s"),
                "SystemComponentsHealthy-a APIServerAvailable-s GardenletReady-s",
            ),
            ("EveryNodeReady-a EveryNodeReady-b", Some("EveryNodeReady-s"), "EveryNodeReady-s EveryNodeReady-b"),
            ("", Some("x-1 y-2 x-3"), "x-3 y-2"),
        ];
        for namespace in ["garden", "a"] {
            for (before, of_seed, after) in table {
                let shoot = shoot(namespace, conditions(before).into());
                let of_seed = of_seed.map(conditions);

                let patch = conditions_patch(&shoot, of_seed.as_deref());

                let expected = (before != after).then(|| json!({ "status": { "conditions": conditions(after) } }));
                assert_eq!(patch, expected, "{before} {of_seed:?}");
                let differs = KeptConditions::of(&shoot).differ_from(of_seed.as_deref());
                assert_eq!(differs, before != after || (namespace == "a" && of_seed.is_some()), "{before}");
            }
        }
    }

    /// spec 84 trap A-T6: a Seed neither removes nor replaces what the gardenlet of a self-hosted Shoot says of itself.
    #[test]
    fn shoot_that_is_self_hosted_keeps_the_condition_of_its_gardenlet() {
        let table = [
            // of the Shoot; of the Seed, if it is one; afterwards
            ("GardenletReady-a", None, "GardenletReady-a"),
            ("custom-s GardenletReady-a EveryNodeReady-a", None, "GardenletReady-a EveryNodeReady-a"),
            ("GardenletReady-a", Some("GardenletReady-s custom-s"), "GardenletReady-a custom-s"),
            ("EveryNodeReady-a", Some("GardenletReady-s EveryNodeReady-s"), "EveryNodeReady-s"),
        ];
        for (before, of_seed, after) in table {
            let mut shoot = shoot("garden", conditions(before).into());
            shoot["metadata"]["labels"] = json!({ "shoot.gardener.cloud/self-hosted": "true" });
            let of_seed = of_seed.map(conditions);

            let patch = conditions_patch(&shoot, of_seed.as_deref());

            let expected = (before != after).then(|| json!({ "status": { "conditions": conditions(after) } }));
            assert_eq!(patch, expected, "{before} {of_seed:?}");
            assert_eq!(KeptConditions::of(&shoot).differ_from(of_seed.as_deref()), before != after, "{before}");
        }
    }

    /// spec 84 trap A-T1: nothing is written to a Shoot without conditions.
    #[test]
    fn shoot_without_a_list_of_conditions_needs_none() {
        for none in [json!(null), json!("x"), json!({}), json!([])] {
            assert_eq!(conditions_patch(&shoot("garden", none.clone()), Some(&[])), None, "{none}");
            assert_eq!(conditions_patch(&shoot("garden", none), None), None);
        }
        assert_eq!(conditions_patch(&json!({}), None), None);
    }

    /// What is no condition is not copied, and goes.
    #[test]
    fn shoot_shows_nothing_that_is_no_condition() {
        let odd = json!([5, null, "x", [], {}, { "type": 5 }, { "type": "" }]);
        let of_seed = odd.as_array().unwrap().clone();

        assert_eq!(conditions_patch(&shoot("a", json!([])), Some(&of_seed)), None);
        let patch = conditions_patch(&shoot("a", odd), None);
        assert_eq!(patch, Some(json!({ "status": { "conditions": [] } })));
    }

    /// Thousands of types cost no more than thousands of steps.
    #[test]
    fn shoot_shows_thousands_of_conditions() {
        let many: Vec<_> = (0..20_000).map(|number| condition(&format!("t{number}"), "m")).collect();

        let patch = conditions_patch(&shoot("garden", json!([])), Some(&many)).unwrap();

        assert_eq!(patch["status"]["conditions"], json!(many));
        assert_eq!(conditions_patch(&shoot("garden", json!(many)), Some(&many)), None);
    }
}
