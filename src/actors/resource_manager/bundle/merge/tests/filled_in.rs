use serde_json::json;

use super::*;

fn volume(claim: Value) -> Value {
    object("v1", "PersistentVolume", json!({"capacity": {"storage": "1Gi"}, "claimRef": claim}))
}

/// spec 10 §12.8a
#[test]
fn filled_in_claim_of_a_volume_is_kept_unless_the_manifest_names_another() {
    let bound = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "ns", "name": "data",
        "uid": "u", "resourceVersion": "7"});
    let other = json!({"namespace": "ns", "name": "other"});
    let explicit = json!({"namespace": "ns", "name": "data", "uid": "v", "kind": "PersistentVolumeClaim"});
    let completed = json!({"namespace": "ns", "name": "data", "uid": "v", "kind": "PersistentVolumeClaim",
        "apiVersion": "v1", "resourceVersion": "7"});
    for (case, wanted, expected) in [
        ("none", json!(null), bound.clone()),
        ("the same claim", json!({"namespace": "ns", "name": "data"}), bound.clone()),
        ("the same claim, empty fields", json!({"namespace": "ns", "name": "data", "uid": ""}), bound.clone()),
        ("the same claim with an uid", explicit, completed),
        ("another claim", other.clone(), other),
        ("no map", json!("x"), json!("x")),
    ] {
        assert_eq!(merged(&volume(wanted), &volume(bound.clone()))["spec"]["claimRef"], expected, "{case}");
    }
    let mut without = volume(json!(null));
    without["spec"].as_object_mut().unwrap().remove("claimRef");
    assert_eq!(merged(&without, &volume(bound.clone()))["spec"]["claimRef"], bound);
    assert_eq!(merged(&without, &without)["spec"].get("claimRef"), None);
    let custom = |claim: Value| object("g.io/v1", "PersistentVolume", json!({"claimRef": claim}));
    assert_eq!(merged(&custom(json!(null)), &custom(bound))["spec"]["claimRef"], json!(null));
}

/// spec 10 §12.8a
#[test]
fn filled_in_rules_of_an_aggregated_role_are_live_whatever_the_manifest_says() {
    let role = |rule: Value, rules: Value| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a"},
            "aggregationRule": rule, "rules": rules})
    };
    let rule = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let live = role(rule.clone(), json!([{"verbs": ["get"]}]));

    for own in [json!([]), json!(null), json!([{"verbs": ["*"]}])] {
        assert_eq!(merged(&role(rule.clone(), own.clone()), &live)["rules"], live["rules"], "{own}");
        for none in [json!(null), json!({})] {
            assert_eq!(merged(&role(none, own.clone()), &live)["rules"], own, "without an aggregation");
        }
    }
    let manifest = role(rule, json!([]));
    assert_eq!(for_create(&manifest, &context()).unwrap()["rules"], json!([]));
}

/// spec 10 §12.8a
#[test]
fn filled_in_token_of_a_service_account_secret_is_kept_even_with_forced_annotations() {
    let uid = "kubernetes.io/service-account.uid";
    let secret = |secret_type: &str, fields: Value| {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": secret_type, "metadata": {"name": "a",
            "annotations": {"kubernetes.io/service-account.name": "robot"}}});
        secret.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        secret
    };
    let token = "kubernetes.io/service-account-token";
    let data = json!({"token": "dA==", "ca.crt": "Yw==", "namespace": "bg==", "foreign": "Zg=="});
    let live = annotated(secret(token, json!({ "data": data })), uid, "u");
    let forced = MergeContext { force_overwrite_annotations: true, ..context() };
    for (case, fields, expected) in [
        ("nothing", json!({}), json!({"token": "dA==", "ca.crt": "Yw==", "namespace": "bg=="})),
        ("null", json!({"data": null}), json!({"token": "dA==", "ca.crt": "Yw==", "namespace": "bg=="})),
        (
            "a key of its own",
            json!({"data": {"x": "eA==", "token": "b3du"}}),
            json!({"x": "eA==", "token": "b3du", "ca.crt": "Yw==", "namespace": "bg=="}),
        ),
        ("text", json!({"stringData": {"token": "own"}}), json!({"ca.crt": "Yw==", "namespace": "bg=="})),
        ("no map", json!({"data": "x"}), json!("x")),
    ] {
        let merged = merge(&secret(token, fields), &live, &forced).unwrap();

        assert_eq!(merged["data"], expected, "{case}");
        assert_eq!(merged["metadata"]["annotations"][uid], "u", "{case}");
    }
    let own = annotated(secret(token, json!({})), uid, "own");
    assert_eq!(merge(&own, &live, &forced).unwrap()["metadata"]["annotations"][uid], "own");
    let opaque = merge(&secret("Opaque", json!({})), &live, &forced).unwrap();
    assert_eq!((opaque.get("data"), opaque["metadata"]["annotations"].get(uid)), (None, None));
    let created = for_create(&secret(token, json!({})), &context()).unwrap();
    assert_eq!(created.get("data"), None);
}
