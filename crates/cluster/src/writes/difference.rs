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

fn is_absent(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).is_none_or(Value::is_null)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// RFC 7386 §2, word by word.
    fn merge_patch(target: Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else { return patch.clone() };
        let mut target = match target {
            Value::Object(target) => target,
            _ => Map::new(),
        };
        for (name, value) in patch {
            if value.is_null() {
                target.remove(name);
            } else {
                let old = target.remove(name).unwrap_or_default();
                target.insert(name.clone(), merge_patch(old, value));
            }
        }
        target.into()
    }

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

            prop_assert_eq!(without_nulls(&merge_patch(before, &patch)), without_nulls(&after));
        }

        #[test]
        fn merge_patch_is_none_between_equal_objects(object in object(node())) {
            prop_assert_eq!(difference(&object, &object), None);
            prop_assert_eq!(difference(&object, &without_nulls(&object)), None);
        }
    }
}
