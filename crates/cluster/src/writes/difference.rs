//! JSON merge patches (RFC 7386).

use serde_json::{Map, Value};

/// Returns the merge patch that turns `before` into `after`; `None` if nothing differs. Objects are compared key by
/// key, and a missing key becomes null. Lists are values: a changed list is sent as a whole, in the order of `after`. A
/// merge patch cannot set null, because null means *remove*: a key with value null counts as absent, except within
/// lists. Numbers are equal only if they are written alike: 1 and 1.0 differ.
pub fn difference(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let removed = old.iter().filter(|(key, value)| !value.is_null() && is_absent(new, key));
    let mut patch: Map<String, Value> = removed.map(|(key, _)| (key.clone(), Value::Null)).collect();
    for (key, value) in new.iter().filter(|(_, value)| !value.is_null()) {
        let changed = match old.get(key) {
            None | Some(Value::Null) => Some(value.clone()),
            Some(old) => difference(old, value),
        };
        if let Some(changed) = changed {
            patch.insert(key.clone(), changed);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Returns true if a merge patch changes an object. Null, a missing key and an empty list are equal.
pub(crate) fn changes(object: Option<&Value>, patch: &Value) -> bool {
    match (object.filter(|object| !is_nothing(object)), patch) {
        (Some(Value::Object(old)), Value::Object(patch)) => {
            patch.iter().any(|(key, value)| changes(old.get(key), value))
        }
        (None, Value::Object(patch)) => patch.is_empty() || patch.values().any(|value| changes(None, value)),
        (None, patch) => !is_nothing(patch),
        (Some(old), patch) => old != patch,
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// Returns an object after a merge patch (RFC 7386 §2).
pub(crate) fn merged(object: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut fields = match object {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            let old = fields.remove(key).unwrap_or_default();
            fields.insert(key.clone(), merged(old, value));
        }
    }
    fields.into()
}

/// Fields of the metadata that a server sets with each write or deletion.
const SET_BY_SERVER: [&str; 5] =
    ["resourceVersion", "generation", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// Returns true if two states of an object, or of its metadata, differ in more than the server sets by itself.
pub(crate) fn differs_from(one: Option<&Value>, other: Option<&Value>) -> bool {
    let plain = |value: Option<&Value>| {
        let mut value = value.cloned().unwrap_or_default();
        let metadata = if value.get("metadata").is_some() { value.get_mut("metadata") } else { Some(&mut value) };
        if let Some(fields) = metadata.and_then(Value::as_object_mut) {
            fields.retain(|key, _| !SET_BY_SERVER.contains(&key.as_str()));
        }
        value
    };
    difference(&plain(one), &plain(other)).is_some()
}

fn is_absent(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).is_none_or(Value::is_null)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn without_nulls(value: &Value) -> Value {
        match value {
            Value::Object(object) => {
                let kept = object.iter().filter(|(_, value)| !value.is_null());
                kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect::<Map<_, _>>().into()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => value.clone(),
        }
    }

    #[test]
    fn merge_patch_contains_only_the_difference() {
        let table = [
            (json!({}), json!({}), None),
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": {"b": null}}), json!({"a": {}}), None),
            (json!({"a": {}}), json!({"a": {"b": null}, "c": null}), None),
            (json!({"a": 1}), json!({"a": 2}), Some(json!({"a": 2}))),
            (json!({"a": 1, "b": 2}), json!({"b": 2}), Some(json!({"a": null}))),
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1}}), Some(json!({"a": {"c": null}}))),
            (json!({"a": {"b": 1}}), json!({"a": {}}), Some(json!({"a": {"b": null}}))),
            (json!({"a": [1, 2]}), json!({"a": [2, 1]}), Some(json!({"a": [2, 1]}))),
            (json!({"a": [1]}), json!({"a": []}), Some(json!({"a": []}))),
            (json!({}), json!({"a": {}}), Some(json!({"a": {}}))),
            (json!({"a": {"b": 1}}), json!({"a": "x"}), Some(json!({"a": "x"}))),
            (json!({"a": "x"}), json!({"a": {"b": 1}}), Some(json!({"a": {"b": 1}}))),
            (json!({"a": null}), json!({"a": false}), Some(json!({"a": false}))),
        ];

        for (before, after, expected) in table {
            assert_eq!(difference(&before, &after), expected, "{before} -> {after}");
        }
    }

    #[test]
    fn patch_without_effect_is_recognised() {
        let object = json!({"a": {"b": 1}, "list": [1], "none": null});
        let table = [
            (json!({}), false),
            (json!({"a": {"b": 1}}), false),
            (json!({"a": {"b": 2}}), true),
            (json!({"a": {"c": null}}), false),
            (json!({"a": null}), true),
            (json!({"none": null, "other": null}), false),
            (json!({"none": []}), false),
            (json!({"other": {"c": null}}), false),
            (json!({"other": {}}), true),
            (json!({"list": []}), true),
            (json!({"list": [1]}), false),
        ];
        for (patch, expected) in table {
            assert_eq!(changes(Some(&object), &patch), expected, "{patch}");
        }
    }

    #[test]
    fn states_that_differ_only_in_what_the_server_sets_are_equal() {
        let object = |version: &str, label: &str| json!({"metadata": {"resourceVersion": version, "generation": 1, "labels": {"l": label}}, "spec": {}});
        let differs = |one: &Value, other: &Value| differs_from(Some(one), Some(other));

        assert!(!differs(&object("1", "a"), &object("2", "a")));
        assert!(differs(&object("1", "a"), &object("1", "b")));
        assert!(!differs(&object("1", "a")["metadata"], &object("2", "a")["metadata"]));
    }

    fn node() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3_i64).prop_map(Value::from),
            "[xy]?".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from), object(inner)]
        })
    }

    /// Few names, so that both sides often have the same.
    fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
        let members = proptest::collection::btree_map("[abc]", value, 0..4);
        members.prop_map(|members| Value::Object(members.into_iter().collect()))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn merge_patch_leads_from_before_to_after(before in object(node()), after in object(node())) {
            let patch = difference(&before, &after).unwrap_or_else(|| json!({}));

            prop_assert_eq!(without_nulls(&merged(before, &patch)), without_nulls(&after));
        }

        #[test]
        fn merge_patch_is_none_between_equal_objects(object in object(node())) {
            prop_assert_eq!(difference(&object, &object), None);
            prop_assert_eq!(difference(&object, &without_nulls(&object)), None);
        }
    }
}
