//! Conditions (and constraints) in the status of an object of unknown shape (spec 80 §16.2). Entries of other types keep
//! their content and their places.

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::Condition;

/// Returns the condition of a type from a list of the status, e.g. `conditions` or `constraints`. Returns `None` if the
/// list has none or its entry is unreadable.
pub fn find_in(object: &Value, list: &str, kind: &str) -> Option<Condition> {
    entries(object, list).iter().find(|entry| entry["type"] == kind).and_then(read)
}

/// Returns the merge patch for `/status` that replaces or appends `changed` in a list of the status. It applies only to
/// the version of `object`: a concurrent change of another type is not lost. Returns `None` if nothing differs.
pub fn status_patch(object: &Value, list: &str, changed: &[Condition]) -> Option<Value> {
    let mut entries = entries(object, list).to_vec();
    let mut differs = false;
    for condition in changed {
        let known = entries.iter_mut().find(|entry| entry["type"] == condition.kind.as_str());
        if known.as_deref().and_then(read).as_ref() == Some(condition) {
            continue;
        }
        differs = true;
        match known {
            Some(known) => *known = json!(condition),
            None => entries.push(json!(condition)),
        }
    }
    let version = &object["metadata"]["resourceVersion"];
    differs.then(|| json!({"metadata": {"resourceVersion": version}, "status": {list: entries}}))
}

fn entries<'a>(object: &'a Value, list: &str) -> &'a [Value] {
    object["status"][list].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn read(entry: &Value) -> Option<Condition> {
    Condition::deserialize(entry).ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::{
        super::{CONDITION_INITIALIZED, ConditionStatus},
        *,
    };

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn now() -> Timestamp {
        time("2026-08-21T17:55:55.123Z")
    }

    fn entry(kind: &str, message: &str) -> Value {
        json!({"type": kind, "status": "True", "reason": "R", "message": message, "codes": ["ERR_A"],
            "lastTransitionTime": "2026-08-21T10:00:00Z", "lastUpdateTime": "2026-08-21T10:00:00Z"})
    }

    fn seed(conditions: Value) -> Value {
        json!({"metadata": {"name": "s", "resourceVersion": "7"}, "status": {"conditions": conditions}})
    }

    fn updated(seed: &Value, kind: &str, status: ConditionStatus, message: &str, codes: &[String]) -> Condition {
        let known = find_in(seed, "conditions", kind).unwrap_or_else(|| Condition::new(kind, now()));
        known.updated_with_codes(status, "R", message, codes, now())
    }

    /// spec 80 §16.2
    #[test]
    fn condition_patch_keeps_other_entries_and_their_order() {
        let foreign = json!({"type": "GardenletReady", "status": "Odd", "note": {"of": "another program"}});
        let seed = seed(json!([entry("BackupBucketsReady", "m"), foreign, entry("ExtensionsReady", "m")]));
        let changed = updated(&seed, "BackupBucketsReady", ConditionStatus::False, "m", &["ERR_A".to_owned()]);

        let patch = status_patch(&seed, "conditions", &[changed]).unwrap();

        let mut expected = entry("BackupBucketsReady", "m");
        expected["status"] = json!("False");
        expected["lastTransitionTime"] = json!("2026-08-21T17:55:55Z");
        let list = json!([expected, foreign, entry("ExtensionsReady", "m")]);
        assert_eq!(patch, json!({"metadata": {"resourceVersion": "7"}, "status": {"conditions": list}}));
    }

    /// spec 80 §16.2
    #[test]
    fn condition_patch_appends_a_new_type_and_writes_all_fields() {
        for seed in [seed(json!([])), seed(Value::Null), json!({"metadata": {"resourceVersion": "7"}})] {
            let changed = updated(&seed, "ExtensionsReady", ConditionStatus::Progressing, "", &[]);

            let patch = status_patch(&seed, "conditions", &[changed]).unwrap();

            let now = "2026-08-21T17:55:55Z";
            assert_eq!(
                patch["status"]["conditions"],
                json!([{"type": "ExtensionsReady", "status": "Progressing", "reason": "R",
                    "message": "No message given.", "lastTransitionTime": now, "lastUpdateTime": now}])
            );
        }
    }

    /// spec 80 §16.2
    #[test]
    fn condition_patch_is_not_needed_when_nothing_differs() {
        let mut same = entry("ExtensionsReady", "m");
        same["lastUpdateTime"] = json!("2026-08-21T10:00:00.987Z");
        let seed = seed(json!([same]));

        let unchanged = updated(&seed, "ExtensionsReady", ConditionStatus::True, "m", &["ERR_A".to_owned()]);
        let without_codes = updated(&seed, "ExtensionsReady", ConditionStatus::True, "m", &[]);

        assert_eq!(status_patch(&seed, "conditions", &[unchanged]), None);
        assert_eq!(status_patch(&seed, "conditions", &[]), None);
        let patch = status_patch(&seed, "conditions", &[without_codes]).unwrap();
        assert_eq!(patch["status"]["conditions"][0].get("codes"), None);
    }

    /// spec 80 §16.2
    #[test]
    fn condition_patch_replaces_an_unreadable_entry_of_its_type() {
        let seed = seed(json!([{"type": "ExtensionsReady", "status": 5}, 5, null]));
        assert_eq!(find_in(&seed, "conditions", "ExtensionsReady"), None);
        let changed = updated(&seed, "ExtensionsReady", ConditionStatus::True, "m", &[]);
        assert_ne!(changed.reason, CONDITION_INITIALIZED);

        let patch = status_patch(&seed, "conditions", std::slice::from_ref(&changed)).unwrap();

        assert_eq!(patch["status"]["conditions"], json!([changed, 5, null]));
    }

    /// spec 80 §16.2
    #[test]
    fn condition_patch_is_for_constraints_too() {
        let shoot = json!({"metadata": {"resourceVersion": "7"}, "status": {"constraints": [entry("HibernationPossible", "m")],
            "conditions": [entry("EveryNodeReady", "m")]}});
        let known = find_in(&shoot, "constraints", "HibernationPossible").unwrap();

        let changed = known.updated(ConditionStatus::True, "R", "n", now());
        let patch = status_patch(&shoot, "constraints", &[changed]).unwrap();

        assert_eq!(patch["status"]["constraints"][0]["message"], "n");
        assert_eq!(patch["status"].get("conditions"), None);
        assert_eq!(find_in(&shoot, "constraints", "EveryNodeReady"), None);
    }
}
