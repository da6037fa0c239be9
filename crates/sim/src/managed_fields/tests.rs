use super::*;

const EARLY: &str = "2026-01-01T00:00:00Z";
const LATE: &str = "2026-01-01T00:01:00Z";

fn created(mut object: Value, manager: &str) -> Value {
    record(None, &mut object, manager, "", EARLY);
    object
}

fn updated(old: &Value, mut new: Value, manager: &str, subresource: &str) -> Value {
    record(Some(old), &mut new, manager, subresource, LATE);
    new
}

fn fields(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array();
    let entry = entries.into_iter().flatten().find(|entry| entry["manager"] == manager);
    entry.map(|entry| entry["fieldsV1"].clone()).unwrap_or_default()
}

fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"l": "m"}}, "data": data})
}

#[test]
fn the_creator_owns_all_fields() {
    let object = created(config_map(&json!({"a": "1"})), "m1");

    assert_eq!(
        object["metadata"]["managedFields"],
        json!([{
            "manager": "m1", "operation": "Update", "apiVersion": "v1", "time": EARLY, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:l": {}}}, "f:data": {".": {}, "f:a": {}}},
        }])
    );
}

#[test]
fn a_changed_field_moves_to_its_writer_and_a_removed_one_leaves_all() {
    let old = created(config_map(&json!({"a": "1", "b": "1", "c": "1"})), "m1");

    let new = updated(&old, config_map(&json!({"a": "1", "b": "2"})), "m2", "");

    assert_eq!(fields(&new, "m1")["f:data"], json!({".": {}, "f:a": {}}));
    assert_eq!(fields(&new, "m2"), json!({"f:data": {"f:b": {}}}));
}

#[test]
fn an_entry_without_fields_goes() {
    let old = created(config_map(&json!({"a": "1"})), "m1");
    let mut other = config_map(&json!({"a": "2"}));
    other["metadata"]["labels"] = json!({"l": "n"});
    let old = updated(&old, other, "m2", "");
    let mut empty = config_map(&json!({"a": "2"}));
    empty["metadata"] = json!({"name": "a"});
    empty["data"] = json!({});

    let new = updated(&old, empty, "m1", "");

    assert_eq!(fields(&new, "m2"), Value::Null);
}

#[test]
fn a_write_without_changes_keeps_the_entries() {
    let old = created(config_map(&json!({"a": "1"})), "m1");

    let new = updated(&old, config_map(&json!({"a": "1"})), "m2", "");

    assert_eq!(new, old);
}

#[test]
fn the_status_has_an_entry_of_its_own() {
    let pdb = |status: Value| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"},
            "spec": {"minAvailable": 1}, "status": status})
    };
    let old = created(pdb(json!({"x": 0})), "m1");

    let new = updated(&old, pdb(json!({"x": 1, "conditions": [{"type": "A", "status": "True"}]})), "m1", "status");

    let entries = new["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["fieldsV1"], json!({"f:spec": {"f:minAvailable": {}}}));
    assert_eq!(entries[1]["subresource"], "status");
    assert_eq!(
        entries[1]["fieldsV1"],
        json!({"f:status": {
            "f:x": {},
            "f:conditions": {".": {}, "k:{\"type\":\"A\"}": {".": {}, "f:type": {}, "f:status": {}}},
        }})
    );
}

#[test]
fn an_empty_list_takes_all_entries_away_for_good() {
    let old = created(config_map(&json!({"a": "1"})), "m1");
    let mut cleared = config_map(&json!({"a": "1"}));
    cleared["metadata"]["managedFields"] = json!([]);

    let cleared = updated(&old, cleared, "m1", "");
    let later = updated(&cleared, config_map(&json!({"a": "2"})), "m1", "");

    assert_eq!(cleared["metadata"].get("managedFields"), None);
    assert_eq!(later["metadata"].get("managedFields"), None);
}

#[test]
fn list_items_have_owners_where_the_kind_says_so() {
    let object = created(
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "finalizers": ["x/y"], "ownerReferences": [{"uid": "u", "name": "o"}]},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                    "tolerations": [{"key": "k"}],
                    "containers": [{"name": "c", "resources": {}, "args": ["x"], "ports": [{"containerPort": 80}]}],
                }},
            },
        }),
        "m1",
    );

    assert_eq!(
        fields(&object, "m1"),
        json!({
            "f:metadata": {
                "f:finalizers": {".": {}, "v:\"x/y\"": {}},
                "f:ownerReferences": {".": {}, "k:{\"uid\":\"u\"}": {}},
            },
            "f:spec": {
                "f:selector": {},
                "f:template": {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {
                    "f:tolerations": {},
                    "f:containers": {"k:{\"name\":\"c\"}": {
                        ".": {}, "f:name": {}, "f:resources": {}, "f:args": {},
                        "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                    }},
                }},
            },
        })
    );
}

#[test]
fn custom_kinds_own_their_lists_as_a_whole() {
    let object = created(
        json!({"apiVersion": "g.io/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"list": [{"name": "x"}]}}),
        "m1",
    );

    assert_eq!(fields(&object, "m1"), json!({"f:spec": {".": {}, "f:list": {}}}));
}
