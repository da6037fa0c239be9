use serde_json::json;

use super::*;

const OWN: &str = "gardener-resource-manager";

/// A live object: `merged`, overlaid by additions of the API server or others, with `managedFields`.
fn live(merged: &Value, additions: Value, managed_fields: Value) -> Value {
    let mut live = merged.clone();
    overlay(&mut live, additions);
    live["metadata"]["managedFields"] = managed_fields;
    live
}

fn overlay(target: &mut Value, additions: Value) {
    match (target, additions) {
        (Value::Object(target), Value::Object(additions)) => {
            for (key, value) in additions {
                overlay(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(target), Value::Array(additions)) => {
            target.iter_mut().zip(additions).for_each(|(target, addition)| overlay(target, addition));
        }
        (target, addition) => *target = addition,
    }
}

fn is_up_to_date(body: &Value, live: &Value) -> bool {
    let mut merged = body.clone();
    merged["metadata"] = live["metadata"].clone();
    up_to_date(&merged, live, OWN)
}

fn entry(manager: &str, fields: Value) -> Value {
    json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "ns"},
        "spec": {"replicas": 1, "template": {"metadata": {"labels": {"a": "1"}}, "spec": {
            "containers": [
                {"name": "a", "image": "x", "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}}},
                {"name": "b", "image": "y", "args": ["1", "2"]},
            ],
        }}},
    })
}

fn deployment_defaults() -> Value {
    json!({
        "spec": {"revisionHistoryLimit": 10, "strategy": {"type": "RollingUpdate"}, "template": {"spec": {
            "dnsPolicy": "ClusterFirst", "securityContext": {},
            "containers": [
                {"imagePullPolicy": "Always", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
                {"resources": {}, "terminationMessagePath": "/dev/termination-log"},
            ],
        }}},
        "status": {"replicas": 1},
    })
}

fn own_entry() -> Value {
    entry(OWN, json!({"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {}}}}}))
}

#[test]
fn defaults_rewritten_amounts_and_status_do_not_count() {
    let live = live(&deployment(), deployment_defaults(), json!([own_entry()]));

    assert!(is_up_to_date(&deployment(), &live));
    assert!(differs(&deployment(), &live), "the strict comparison would send it");
}

#[test]
fn each_changed_field_counts() {
    for (path, value) in [
        ("/spec/replicas", json!(2)),
        ("/spec/template/spec/containers/0/image", json!("z")),
        ("/spec/template/spec/containers/1/args", json!(["1"])),
        ("/spec/template/spec/containers/1/args", json!(["2", "1"])),
        ("/spec/template/spec/containers/0/resources/requests/cpu", json!("2")),
        ("/spec/template/spec/containers", json!([])),
        ("/spec/template/metadata/labels/a", json!("2")),
        ("/spec/template", json!(null)),
        ("/kind", json!("Other")),
    ] {
        let mut live = live(&deployment(), deployment_defaults(), json!([own_entry()]));
        *live.pointer_mut(path).unwrap() = value;

        assert!(!is_up_to_date(&deployment(), &live), "{path}");
    }
}

#[test]
fn foreign_field_of_another_manager_counts() {
    let container =
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"b\"}": {".": {}, "f:env": {}}}}}}});
    let by_index = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"i:1": {"f:env": {}}}}}}});
    let whole = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {}}}}});
    let elsewhere =
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:env": {}}}}}}});
    let other_index = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"i:0": {"f:env": {}}}}}}});
    let table = [
        ("named item", entry("kubectl-edit", container.clone()), false),
        ("item by index", entry("kubectl-edit", by_index), false),
        ("the list as a whole", entry("kubectl-edit", whole), false),
        ("our own", entry(OWN, container), true),
        ("another item", entry("kubectl-edit", elsewhere), true),
        ("another index", entry("kubectl-edit", other_index), true),
        ("metadata only", entry("kubectl-label", json!({"f:metadata": {"f:labels": {"f:x": {}}}})), true),
        ("unreadable", json!({"manager": "kubectl-edit"}), false),
    ];

    for (case, foreign, expected) in table {
        let added = json!({"spec": {"template": {"spec": {"containers": [{}, {"env": [{"name": "X"}]}]}}}});
        let mut live = live(&deployment(), added, json!([foreign]));
        if case == "the list as a whole" {
            live["spec"]["template"]["spec"]["containers"][0]["resources"] =
                deployment()["spec"]["template"]["spec"]["containers"][0]["resources"].clone();
        }

        assert_eq!(is_up_to_date(&deployment(), &live), expected, "{case}");
    }
}

#[test]
fn a_foreign_field_that_holds_what_the_manifest_wants_does_not_count() {
    let foreign = entry("kubectl-scale", json!({"f:spec": {"f:replicas": {}}}));

    assert!(is_up_to_date(&deployment(), &live(&deployment(), json!({}), json!([foreign]))));
}

#[test]
fn entries_for_the_status_do_not_count_but_those_of_scale_do() {
    let body = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "a"}, "spec": {}});
    for (subresource, expected) in [("status", true), ("scale", false)] {
        let mut foreign = entry("x", json!({"f:spec": {"f:replicas": {}}}));
        foreign["subresource"] = json!(subresource);

        assert_eq!(is_up_to_date(&body, &live(&body, json!({"spec": {"replicas": 5}}), json!([foreign]))), expected);
    }
}

#[test]
fn without_managed_fields_any_further_field_may_be_foreign() {
    for managed_fields in [json!(null), json!([])] {
        assert!(!is_up_to_date(&deployment(), &live(&deployment(), deployment_defaults(), managed_fields.clone())));
        assert!(is_up_to_date(&deployment(), &live(&deployment(), json!({}), managed_fields)));
    }
}

#[test]
fn items_of_a_set_are_named_by_value() {
    let names = |key: &str, value: Value| {
        let tree = json!({"f:list": {key: {}}});
        let object = json!({"metadata": {"managedFields": [{"manager": "x", "fieldsV1": tree}]}});
        ForeignFields::of(&object, OWN).field("list").item(0, &value).own_something()
    };

    assert!(names("v:\"a\"", json!("a")));
    assert!(!names("v:\"b\"", json!("a")));
    assert!(names("k:{\"port\":80,\"protocol\":\"TCP\"}", json!({"port": 80, "protocol": "TCP", "x": 1})));
    assert!(!names("k:{\"port\":80,\"protocol\":\"UDP\"}", json!({"port": 80, "protocol": "TCP"})));
    assert!(names("k:not json", json!({})), "what cannot be read may mean this item");
}

#[test]
fn metadata_must_be_equal() {
    let live =
        live(&deployment(), json!({"metadata": {"labels": {"a": "1"}, "ownerReferences": []}}), json!([own_entry()]));
    let with = |path: &str, value: Value| {
        let mut merged = deployment();
        merged["metadata"] = live["metadata"].clone();
        merged["metadata"][path] = value;
        up_to_date(&merged, &live, OWN)
    };

    assert!(with("labels", json!({"a": "1"})));
    assert!(!with("labels", json!({})));
    assert!(!with("labels", json!({"a": "1", "b": "2"})));
    assert!(!with("ownerReferences", json!([{"name": "x"}])));
    assert!(!with("annotations", json!({"a": "1"})));
}

#[test]
fn a_null_asks_for_nothing_and_an_empty_map_is_not_an_absent_one() {
    let mut body = deployment();
    body["spec"]["template"]["metadata"] = json!(null);
    body["spec"]["paused"] = json!(null);
    let added = live(&deployment(), json!({"spec": {"paused": false}}), json!([own_entry()]));
    assert!(is_up_to_date(&body, &added));

    body["spec"]["selector"] = json!({});
    assert!(!is_up_to_date(&body, &added));
}

#[test]
fn amounts_are_compared_as_such_only_where_the_api_server_rewrites_them() {
    let table = [
        (
            "v1",
            "ResourceQuota",
            json!({"hard": {"requests.cpu": "1000m"}}),
            json!({"hard": {"requests.cpu": "1"}}),
            true,
        ),
        (
            "v1",
            "LimitRange",
            json!({"limits": [{"max": {"cpu": 1}}]}),
            json!({"limits": [{"max": {"cpu": "1"}}]}),
            true,
        ),
        (
            "v1",
            "PersistentVolume",
            json!({"capacity": {"storage": "1024Gi"}}),
            json!({"capacity": {"storage": "1Ti"}}),
            true,
        ),
        ("v1", "Pod", json!({"sizeLimit": "1024Mi"}), json!({"sizeLimit": "1Gi"}), true),
        ("v1", "Pod", json!({"max": {"cpu": "1000m"}}), json!({"max": {"cpu": "1"}}), false),
        ("v1", "Pod", json!({"timeout": "60s"}), json!({"timeout": "1m"}), false),
        ("v1", "Pod", json!({"other": "1000m"}), json!({"other": "1"}), false),
        ("v1", "ResourceQuota", json!({"hard": {"x": "not"}}), json!({"hard": {"x": "not"}}), true),
        ("g.io/v1", "Thing", json!({"limits": {"cpu": "1000m"}}), json!({"limits": {"cpu": "1"}}), false),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({"limits": {"cpu": "1000m"}}),
            json!({"limits": {"cpu": "1"}}),
            false,
        ),
    ];

    for (api_version, kind, wanted, found, expected) in table {
        let object =
            |spec: &Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec});

        assert_eq!(up_to_date(&object(&wanted), &object(&found), OWN), expected, "{kind} {wanted} {found}");
    }
}

#[test]
fn string_data_of_a_secret_is_found_in_its_data() {
    let secret = |fields: Value| {
        let mut secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "managedFields": [own_entry()]}});
        overlay(&mut secret, fields);
        secret
    };
    let stored = secret(json!({"type": "Opaque", "data": {"a": "YQ==", "b": "Yg=="}}));
    let table = [
        (json!({"stringData": {"a": "a", "b": "b"}}), true),
        (json!({"stringData": {"a": "a"}, "data": {"b": "Yg=="}}), true),
        (json!({"stringData": {"a": "a", "b": "b"}, "data": {"b": "overridden"}}), true),
        (json!({"stringData": {"a": "x", "b": "b"}}), false),
        (json!({"stringData": {"a": "a", "c": "c"}, "data": {"b": "Yg=="}}), false),
        (json!({"stringData": {}}), true),
        (json!({"stringData": {"a": 1}}), false),
    ];

    for (fields, expected) in table {
        assert_eq!(up_to_date(&secret(fields.clone()), &stored, OWN), expected, "{fields}");
    }
    for (field, other) in [("kind", "ConfigMap"), ("apiVersion", "g.io/v1")] {
        let (mut merged, mut stored) = (secret(json!({"stringData": {"a": "a", "b": "b"}})), stored.clone());
        merged[field] = json!(other);
        stored[field] = json!(other);

        assert!(!up_to_date(&merged, &stored, OWN), "{other}");
    }
}

/// spec 10 §11.3
#[test]
fn the_strict_comparison_knows_null_empty_and_numbers() {
    let table = [
        (json!({"a": null}), json!({"a": {}}), false),
        (json!({"a": null}), json!({"a": []}), false),
        (json!({"a": 1}), json!({"a": 1.0}), false),
        (json!({"a": 1}), json!({"a": 1.5}), true),
        (json!({"a": 1.5}), json!({"a": 1.5}), false),
        (json!({"a": 1.5}), json!({"a": 2.5}), true),
        (json!({"a": true}), json!({"a": true}), false),
        (json!({"a": true}), json!({"a": false}), true),
        (json!({"a": null}), json!({"a": false}), true),
        (json!({"a": null}), json!({"a": [null]}), true),
        (json!({"a": {}}), json!({}), true),
        (json!({"a": null}), json!({}), true),
        (json!({"a": {}}), json!({"a": []}), true),
        (json!({"a": [1, 2]}), json!({"a": [2, 1]}), true),
        (json!({"a": 9_007_199_254_740_993_i64}), json!({"a": 9_007_199_254_740_992.0}), true),
        (json!({"a": 1}), json!({"a": "1"}), true),
        (json!({"a": 1}), json!({"a": 1, "b": 2}), true),
    ];

    for (a, b, expected) in table {
        assert_eq!(differs(&a, &b), expected, "{a} {b}");
        assert_eq!(differs(&b, &a), expected, "{b} {a}");
    }
}

/// They cannot be told apart, so no owner loses a field.
#[test]
fn empty_map_in_place_of_a_null_is_up_to_date_for_any_owner() {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": null});
    let foreign = json!([entry("other", json!({"f:data": {}}))]);

    assert!(is_up_to_date(&body, &live(&body, json!({"data": {}}), foreign.clone())));
    assert!(!is_up_to_date(&body, &live(&body, json!({"data": {"a": "b"}}), foreign)));
}
