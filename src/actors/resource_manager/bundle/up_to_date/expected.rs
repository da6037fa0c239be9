//! The live object after a merged object is sent: a preview for people.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{BESIDE_THE_BODY, Comparison, ForeignFields, equal};
use crate::api::meta::quantity;

/// Decides about fields that only the live object has.
struct ExpectedPosition<'a> {
    /// The manifest that was applied before, at this position.
    before: Option<&'a Value>,
    foreign: ForeignFields<'a>,
    /// The values here are amounts, in a notation that the API server chooses.
    amounts: bool,
}

/// Returns the live object as it would be after `merged` is sent. Fields that only the live object has disappear if
/// another manager than `own_manager` owns them, or if `before`, the manifest applied last, had them. All others count
/// as defaults of the API server and stay. `null` in a manifest asks for a default. Amounts keep the notation of the
/// live object.
pub fn expected(merged: &Value, live: &Value, before: Option<&Value>, own_manager: &str) -> Value {
    let (Some(merged_fields), Some(live_fields)) = (merged.as_object(), live.as_object()) else {
        return merged.clone();
    };
    let (comparison, merged_fields) = Comparison::of(merged, merged_fields, live_fields);
    let position = ExpectedPosition { before, foreign: ForeignFields::of(live, own_manager), amounts: false };
    let mut object = comparison.map(&merged_fields, live_fields, &position);
    // A merge starts from the live fields: a missing field must go.
    for field in BESIDE_THE_BODY {
        match merged_fields.get(field) {
            Some(value) => object.insert(field.to_owned(), value.clone()),
            None => object.remove(field),
        };
    }
    Value::Object(object)
}

impl Comparison {
    fn map(
        self,
        merged: &Map<String, Value>,
        live: &Map<String, Value>,
        position: &ExpectedPosition<'_>,
    ) -> Map<String, Value> {
        let mut result = Map::new();
        for (name, value) in merged.iter().filter(|(_, value)| !value.is_null()) {
            let value = match live.get(name) {
                Some(live) => {
                    let amount = position.amounts || self.is_amount(name);
                    let below = ExpectedPosition {
                        before: position.before.and_then(|before| before.get(name)),
                        foreign: position.foreign.field(name),
                        amounts: self.holds_amounts(name),
                    };
                    if amount && quantity::same_amount(value, live) {
                        live.clone()
                    } else {
                        self.value(value, live, &below)
                    }
                }
                None => value.clone(),
            };
            result.insert(name.clone(), value);
        }
        for (name, value) in live.iter().filter(|(name, _)| merged.get(*name).is_none_or(Value::is_null)) {
            let was_ours = position.before.is_some_and(|before| before.get(name).is_some_and(|value| !value.is_null()));
            if !was_ours && !position.foreign.field(name).own_something() {
                result.insert(name.clone(), value.clone());
            }
        }
        result
    }

    fn value(self, merged: &Value, live: &Value, position: &ExpectedPosition<'_>) -> Value {
        match (merged, live) {
            (Value::Object(merged), Value::Object(live)) => Value::Object(self.map(merged, live, position)),
            (Value::Array(merged), Value::Array(live)) => self.list(merged, live, position),
            _ if equal(merged, live) => live.clone(),
            _ => merged.clone(),
        }
    }

    /// Items correspond by name if all have a name, else by index in lists of the same length.
    fn list(self, merged: &[Value], live: &[Value], position: &ExpectedPosition<'_>) -> Value {
        let by_name = by_name(merged).and_then(|_| by_name(live));
        let before = position.before.and_then(Value::as_array);
        let items = merged.iter().enumerate().map(|(index, item)| {
            let partner = match &by_name {
                Some(names) => names.get(item["name"].as_str().unwrap_or_default()).copied(),
                None => (merged.len() == live.len()).then_some(index),
            };
            let Some(index) = partner else { return item.clone() };
            let name = item.get("name");
            let before = match name {
                Some(_) => before.and_then(|items| items.iter().find(|before| before.get("name") == name)),
                None => before.and_then(|items| items.get(index)),
            };
            let below =
                ExpectedPosition { before, foreign: position.foreign.item(index, &live[index]), amounts: false };
            self.value(item, &live[index], &below)
        });
        Value::Array(items.collect())
    }
}

fn by_name(items: &[Value]) -> Option<BTreeMap<&str, usize>> {
    let names: Option<BTreeMap<&str, usize>> =
        items.iter().enumerate().map(|(index, item)| Some((item.get("name")?.as_str()?, index))).collect();
    names.filter(|names| names.len() == items.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OWN: &str = "gardener-resource-manager";

    fn deployment(containers: Value, more: Value) -> Value {
        let mut spec = json!({"template": {"spec": {"containers": containers}}});
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec})
    }

    fn managed(mut object: Value, manager: &str, fields: Value) -> Value {
        object["metadata"]["managedFields"] = json!([{"manager": manager, "fieldsV1": fields}]);
        object
    }

    #[test]
    fn defaults_stay_and_amounts_keep_their_notation() {
        let live = deployment(
            json!([
                {"name": "a", "image": "a:1", "imagePullPolicy": "Always", "resources": {"limits": {"cpu": "1"}}},
                {"name": "b", "image": "b:1", "imagePullPolicy": "Always"},
            ]),
            json!({"replicas": 1, "paused": null}),
        );
        let live = managed(live, OWN, json!({"f:spec": {}}));
        let merged = deployment(
            json!([
                {"name": "new", "image": "n:1"},
                {"name": "b", "image": "b:2"},
                {"name": "a", "image": "a:1", "resources": {"limits": {"cpu": "1000m"}}},
            ]),
            json!({"replicas": null}),
        );

        let expected = expected(&merged, &live, None, OWN);

        let containers = json!([
            {"name": "new", "image": "n:1"},
            {"name": "b", "image": "b:2", "imagePullPolicy": "Always"},
            {"name": "a", "image": "a:1", "imagePullPolicy": "Always", "resources": {"limits": {"cpu": "1"}}},
        ]);
        assert_eq!(expected["spec"]["template"]["spec"]["containers"], containers);
        assert_eq!(expected["spec"]["replicas"], 1);
    }

    #[test]
    fn expected_object_loses_fields_of_others_and_of_the_manifest_before() {
        let live = deployment(json!([]), json!({"paused": true, "minReadySeconds": 5, "progressDeadlineSeconds": 600}));
        let live = managed(live, "kubectl-edit", json!({"f:spec": {"f:paused": {}}}));
        let merged = deployment(json!([]), json!({}));
        let before = deployment(json!([]), json!({"minReadySeconds": 5}));

        let expected = expected(&merged, &live, Some(&before), OWN);

        assert_eq!(expected["spec"], json!({"template": {"spec": {"containers": []}}, "progressDeadlineSeconds": 600}));
    }

    #[test]
    fn text_of_a_secret_becomes_its_data() {
        let secret = |field: &str, value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {}, field: {"a": value}});
        let live = managed(secret("data", "eA=="), OWN, json!({}));

        let expected = expected(&secret("stringData", "x"), &live, None, OWN);

        assert_eq!(expected, secret("data", "eA=="));
    }

    fn spec_after(api_version: &str, kind: &str, merged: Value, live: Value, before: Option<Value>) -> Value {
        let object = |spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec});
        let live = managed(object(live), OWN, json!({}));

        expected(&object(merged), &live, before.map(object).as_ref(), OWN)["spec"].clone()
    }

    #[test]
    fn notation_of_the_live_object_is_kept_for_amounts_and_equal_numbers_only() {
        for (api_version, kind, merged, live, is_kept) in [
            ("v1", "Pod", json!({"sizeLimit": "1024Mi"}), json!({"sizeLimit": "1Gi"}), true),
            ("v1", "Pod", json!({"sizeLimit": "2Gi"}), json!({"sizeLimit": "1Gi"}), false),
            ("v1", "Pod", json!({"limits": {"cpu": "2"}}), json!({"limits": {"cpu": "1000m"}}), false),
            ("v1", "Pod", json!({"other": "1000m"}), json!({"other": "1"}), false),
            ("v1", "Pod", json!({"replicas": 1.0}), json!({"replicas": 1}), true),
            ("v1", "Pod", json!({"replicas": 2.0}), json!({"replicas": 1}), false),
            ("v1", "LimitRange", json!({"max": {"cpu": "1000m"}}), json!({"max": {"cpu": "1"}}), true),
            ("g.io/v1", "Thing", json!({"limits": {"cpu": "1000m"}}), json!({"limits": {"cpu": "1"}}), false),
        ] {
            let after = spec_after(api_version, kind, merged.clone(), live.clone(), None);

            assert_eq!(after, if is_kept { live } else { merged }, "{kind}");
        }
    }

    #[test]
    fn items_of_lists_belong_together_by_name_or_by_position() {
        for (merged, live, after) in [
            (json!([{"port": 1}]), json!([{"port": 1, "protocol": "TCP"}]), json!([{"port": 1, "protocol": "TCP"}])),
            (json!([{"port": 1}]), json!([{"port": 2, "protocol": "TCP"}]), json!([{"port": 1, "protocol": "TCP"}])),
            (json!([{"port": 1}]), json!([{"port": 1, "protocol": "TCP"}, {"port": 2}]), json!([{"port": 1}])),
            (
                json!([{"name": "b", "x": 1}]),
                json!([{"name": "a", "y": 1}, {"name": "b", "y": 2}]),
                json!([{"name": "b", "x": 1, "y": 2}]),
            ),
            // Names that are not unique identify nothing.
            (
                json!([{"name": "a", "x": 1}, {"name": "a", "x": 2}]),
                json!([{"name": "a", "y": 1}, {"name": "a", "y": 2}]),
                json!([{"name": "a", "x": 1, "y": 1}, {"name": "a", "x": 2, "y": 2}]),
            ),
            (
                json!([{"name": "a"}, {"name": "b"}]),
                json!([{"name": "b", "y": 1}, {"y": 2}]),
                json!([{"name": "a", "y": 1}, {"name": "b", "y": 2}]),
            ),
        ] {
            let spec = |list: &Value| json!({"list": list});

            assert_eq!(spec_after("v1", "Pod", spec(&merged), spec(&live), None), spec(&after), "{merged} {live}");
        }
    }

    #[test]
    fn list_fields_of_the_manifest_before_are_ours_too() {
        for (before, merged, live, after) in [
            (json!({"a": 1}), json!({}), json!({"a": 1, "b": 1}), json!({"b": 1})),
            (json!({"a": null}), json!({}), json!({"a": 1, "b": 1}), json!({"a": 1, "b": 1})),
            (
                json!({"list": [{"name": "x", "b": 1}, {"name": "y", "a": 1}]}),
                json!({"list": [{"name": "y"}]}),
                json!({"list": [{"name": "y", "a": 1, "b": 1}]}),
                json!({"list": [{"name": "y", "b": 1}]}),
            ),
            (
                json!({"list": [{"b": 1}, {"a": 1}]}),
                json!({"list": [{}, {}]}),
                json!({"list": [{"a": 1, "b": 1}, {"a": 1, "b": 1}]}),
                json!({"list": [{"a": 1}, {"b": 1}]}),
            ),
        ] {
            assert_eq!(spec_after("v1", "Pod", merged, live, Some(before.clone())), after, "{before}");
        }
    }

    #[test]
    fn metadata_is_that_of_the_merged_object_and_other_values_are_sent_as_they_are() {
        let live =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "1"}}, "status": {"phase": "x"}});
        let merged = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {}}});

        assert_eq!(expected(&merged, &live, None, OWN), merged);
        assert_eq!(expected(&merged, &json!(null), None, OWN), merged);
    }

    #[test]
    fn string_data_means_something_in_core_secrets_only() {
        for (api_version, kind) in [("v1", "ConfigMap"), ("g.io/v1", "Secret")] {
            let object = |field: &str, text: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {}, field: {"a": text}});
            let live = managed(object("data", "eA=="), OWN, json!({}));

            let after = expected(&object("stringData", "x"), &live, None, OWN);

            assert_eq!(after["stringData"], json!({"a": "x"}), "{kind}");
        }
    }
}
