use serde_json::json;

use super::*;

/// spec 10 §12.1
#[test]
fn metadata_and_status_are_live_and_the_rest_is_the_manifests() {
    let manifest = json!({
        "apiVersion": "g.io/v1", "kind": "Thing", "metadata": {"name": "a", "finalizers": ["mine"], "resourceVersion": "1"},
        "spec": {"a": 1}, "extra": {"b": 2}, "status": {"from": "manifest"},
    });
    let live = json!({
        "apiVersion": "g.io/v1", "kind": "Thing",
        "metadata": {"name": "a", "resourceVersion": "7", "uid": "u", "finalizers": ["theirs"], "future": 1},
        "spec": {"a": 2, "gone": true}, "old": 1, "status": {"from": "live"},
    });

    let merged = merged(&manifest, &live);

    assert_eq!(merged["spec"], json!({"a": 1}));
    assert_eq!(merged["extra"], json!({"b": 2}));
    assert_eq!(merged["status"], json!({"from": "live"}));
    assert_eq!(merged.get("old"), None);
    for field in ["resourceVersion", "uid", "finalizers", "future"] {
        assert_eq!(merged["metadata"][field], live["metadata"][field], "{field}");
    }
}

/// spec 10 §12.1
#[test]
fn a_status_that_is_no_filled_map_is_removed() {
    for status in [json!({}), json!(null), json!("x")] {
        let mut live = object("g.io/v1", "Thing", json!({}));
        live["status"] = status;
        let mut manifest = live.clone();
        manifest["status"] = json!({"from": "manifest"});

        assert_eq!(merged(&manifest, &live).get("status"), None);
    }
}

/// spec 10 scenario 38
#[test]
fn owner_references_are_only_the_manifests() {
    let mut live = object("v1", "ConfigMap", json!({}));
    live["metadata"]["ownerReferences"] = json!([{"name": "foreign"}]);
    let mut manifest = object("v1", "ConfigMap", json!({}));

    assert_eq!(merged(&manifest, &live)["metadata"].get("ownerReferences"), None);

    for none in [json!(null), json!([])] {
        manifest["metadata"]["ownerReferences"] = none;
        assert_eq!(merged(&manifest, &live)["metadata"].get("ownerReferences"), None);
    }
    manifest["metadata"]["ownerReferences"] = json!([{"name": "ours"}]);
    assert_eq!(merged(&manifest, &live)["metadata"]["ownerReferences"], json!([{"name": "ours"}]));
}

/// spec 10 §11.3.2, scenario 1
#[test]
fn a_creation_sends_finalizers_status_and_the_marks() {
    let context = MergeContext { origin: "id:ns/mr", ..context() };
    let mut manifest = object("g.io/v1", "Thing", json!({"a": 1}));
    manifest["metadata"]["finalizers"] = json!(["f"]);
    manifest["status"] = json!({"s": 1});

    let created = for_create(&manifest, &context).unwrap();

    assert_eq!(
        created,
        json!({
            "apiVersion": "g.io/v1", "kind": "Thing", "spec": {"a": 1}, "status": {"s": 1},
            "metadata": {
                "namespace": "ns", "name": "a", "finalizers": ["f"],
                "labels": {"resources.gardener.cloud/managed-by": "gardener"},
                "annotations": {
                    "resources.gardener.cloud/origin": "id:ns/mr",
                    "resources.gardener.cloud/description": "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n\
                        Any modifications are discarded and the resource is returned to the original state.",
                },
            },
        })
    );
}

/// spec 10 scenarios 10 and 11
#[test]
fn label_drift_is_reset_and_foreign_labels_stay_unless_forced() {
    let mut live = object("v1", "ConfigMap", json!({}));
    live["metadata"]["labels"] = json!({"a": "changed", "x": "1"});
    let mut manifest = object("v1", "ConfigMap", json!({}));
    manifest["metadata"]["labels"] = json!({"a": "1"});
    let old = old(&[("a", "1")]);

    let kept = merge(&manifest, &live, &MergeContext { old: Some(&old), ..context() }).unwrap();
    let forced = merge(&manifest, &live, &MergeContext { force_overwrite_labels: true, ..context() }).unwrap();

    assert_eq!(kept["metadata"]["labels"], json!({"a": "1", "x": "1", keys::MANAGED_BY: "gardener"}));
    assert_eq!(forced["metadata"]["labels"], json!({"a": "1", keys::MANAGED_BY: "gardener"}));
}

/// spec 10 scenario 12
#[test]
fn stale_reference_annotations_go_and_other_foreign_ones_stay() {
    let live = annotated(
        object("apps/v1", "Deployment", json!({})),
        "reference.resources.gardener.cloud/secret-aaaaaaaa",
        "x",
    );
    let live = annotated(live, "foreign", "1");
    let manifest = object("apps/v1", "Deployment", json!({}));
    let manifest = annotated(manifest, "reference.resources.gardener.cloud/secret-bbbbbbbb", "y");

    let annotations = merged(&manifest, &live)["metadata"]["annotations"].clone();

    let keys: Vec<_> = annotations.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        ["foreign", "reference.resources.gardener.cloud/secret-bbbbbbbb", keys::DESCRIPTION, keys::ORIGIN]
    );
}

/// spec 10 §12.2
#[test]
fn forced_annotations_are_exactly_the_manifests_and_the_two_marks() {
    let live = annotated(object("v1", "ConfigMap", json!({})), "foreign", "1");
    let manifest = annotated(object("v1", "ConfigMap", json!({})), "mine", "1");

    let merged = merge(&manifest, &live, &MergeContext { force_overwrite_annotations: true, ..context() }).unwrap();

    assert_eq!(
        merged["metadata"]["annotations"],
        json!({"mine": "1", keys::DESCRIPTION: keys::DESCRIPTION_TEXT, keys::ORIGIN: "ns/mr"})
    );
}

/// spec 10 scenario 22
#[test]
fn an_ignored_object_is_created_as_it_is_and_keeps_what_users_change() {
    let manifest = annotated(object("apps/v1", "Deployment", json!({"replicas": 1})), keys::IGNORE, "TRUE");
    let live = annotated(object("apps/v1", "Deployment", json!({"replicas": 7, "paused": true})), "user", "1");

    assert_eq!(merged(&manifest, &manifest), manifest);
    assert_eq!(merged(&manifest, &live), live);
}

/// spec 10 §11.3.4
#[test]
fn an_ignored_object_only_loses_an_old_description() {
    let manifest = annotated(object("v1", "ConfigMap", json!({})), keys::IGNORE, "t");
    let live = annotated(object("v1", "ConfigMap", json!({})), "user", "1");

    let merged = merged(&manifest, &annotated(live.clone(), keys::DESCRIPTION, "old"));

    assert_eq!(merged, live);
}

/// spec 10 §18, trap 16
#[test]
fn the_ignore_annotation_of_the_live_object_has_no_effect() {
    let live = annotated(object("g.io/v1", "Thing", json!({"a": 2})), keys::IGNORE, "true");

    assert_eq!(merged(&object("g.io/v1", "Thing", json!({"a": 1})), &live)["spec"], json!({"a": 1}));
}

/// spec 10 scenario 18
#[test]
fn secrets_of_a_service_account_are_live() {
    let account = |secrets: Value, pull: Value| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": secrets, "imagePullSecrets": pull,
            "automountServiceAccountToken": false})
    };
    let live = account(json!([{"name": "token"}]), json!([{"name": "live"}]));

    let kept = merged(&account(json!(null), json!([{"name": "manifest"}])), &live);
    assert_eq!(kept["secrets"], live["secrets"]);
    assert_eq!(kept["imagePullSecrets"], live["imagePullSecrets"]);

    let bare = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}});
    assert_eq!(merged(&live, &bare).get("secrets"), None);
}
