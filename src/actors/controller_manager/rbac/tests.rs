use serde_json::{Value, json};

use super::{Keeper, PolicyRule, RbacObject, RbacState, RbacVerdict, Subject};
use crate::api::meta::selector::Labels;

fn keeper(labels: &[(&str, &str)]) -> Keeper {
    let labels: Labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Keeper { owner: json!({"uid": "u1", "name": "dev"}), labels }
}

fn role() -> RbacObject {
    let rule = PolicyRule { api_group: "", resource: "namespaces", name: "n".into(), verbs: &["get"] };
    RbacObject::cluster_role("r", &keeper(&[]), &[rule])
}

fn aggregated() -> RbacObject {
    RbacObject::aggregated_cluster_role("a", &keeper(&[("own", "label")]), ("collect", "foo"))
}

fn binding() -> RbacObject {
    let subjects = [Subject::of(&json!({"kind": "User", "name": "u"}))];
    RbacObject::cluster_role_binding("b", &keeper(&[]), "r", &subjects.iter().collect::<Vec<_>>())
}

fn edited(object: &RbacObject, edit: impl FnOnce(&mut Value)) -> RbacVerdict {
    let mut live = object.object().clone();
    edit(&mut live);
    object.judge(&RbacState::of(&live))
}

/// spec 82 A-T5: what the server adds, and empty fields, are no difference.
#[test]
fn object_as_created_is_kept() {
    for object in [role(), aggregated(), binding()] {
        let verdict = edited(&object, |live| {
            live["metadata"]["uid"] = json!("x");
            live["metadata"]["resourceVersion"] = json!("9");
            live["metadata"]["annotations"] = json!({"foreign": "annotation"});
            live["metadata"]["finalizers"] = json!(["example.com/x"]);
        });
        assert_eq!(verdict, RbacVerdict::Keep);
    }
    let empty = RbacObject::cluster_role_binding("b", &keeper(&[]), "r", &[]);
    assert_eq!(edited(&empty, |live| live["subjects"] = json!([])), RbacVerdict::Keep);
    let defaulted = |live: &mut Value| live["subjects"][0]["apiGroup"] = json!("rbac.authorization.k8s.io");
    assert_eq!(edited(&binding(), defaulted), RbacVerdict::Keep);
}

/// spec 82 B1, B2, B6: foreign labels and owners go, the patch has nothing else.
#[test]
fn drift_of_metadata_is_patched() {
    let patch = |metadata: Value| RbacVerdict::Patch(json!({"metadata": metadata}));
    let owner = json!({"uid": "u1", "name": "dev"});

    let labels = edited(&role(), |live| live["metadata"]["labels"] = json!({"foreign": "x"}));
    assert_eq!(labels, patch(json!({"labels": {"foreign": null}})));
    let labels = edited(&aggregated(), |live| live["metadata"]["labels"] = json!({"own": "other", "x": "y"}));
    assert_eq!(labels, patch(json!({"labels": {"own": "label", "x": null}})));
    for owners in [json!([]), Value::Null, json!([owner, {"uid": "u2"}]), json!([{"uid": "u1", "name": "x"}])] {
        let verdict = edited(&binding(), |live| live["metadata"]["ownerReferences"] = owners);
        assert_eq!(verdict, patch(json!({"ownerReferences": [owner]})));
    }
}

/// spec 82 B6: rules, aggregation rule and subjects are authoritative, with their order.
#[test]
fn drift_of_a_grant_is_patched() {
    let rules = role().object()["rules"].clone();
    let patch = RbacVerdict::Patch(json!({"rules": rules, "aggregationRule": null}));
    assert_eq!(edited(&role(), |live| live["rules"] = Value::Null), patch);
    assert_eq!(edited(&role(), |live| live["rules"][0]["verbs"] = json!(["get", "list"])), patch);
    assert_eq!(edited(&role(), |live| live["rules"][0]["nonResourceURLs"] = json!(["/"])), patch);
    let aggregate = |live: &mut Value| live["aggregationRule"] = json!({"clusterRoleSelectors": [{}]});
    assert_eq!(edited(&role(), aggregate), patch);

    let subjects = binding().object()["subjects"].clone();
    let thief = |live: &mut Value| live["subjects"] = json!([{"kind": "User", "name": "thief"}]);
    assert_eq!(edited(&binding(), thief), RbacVerdict::Patch(json!({"subjects": subjects})));
    let empty = RbacObject::cluster_role_binding("b", &keeper(&[]), "r", &[]);
    assert_eq!(edited(&empty, thief), RbacVerdict::Patch(json!({"subjects": null})));
}

/// spec 82 B8, scenario 19
#[test]
fn rules_of_an_aggregated_role_are_never_compared_or_written() {
    let filled = |live: &mut Value| live["rules"] = json!([{"apiGroups": ["x"], "resources": ["y"], "verbs": ["get"]}]);
    assert_eq!(edited(&aggregated(), filled), RbacVerdict::Keep);

    let verdict = edited(&aggregated(), |live| {
        filled(live);
        live["aggregationRule"] = Value::Null;
    });

    let rule = aggregated().object()["aggregationRule"].clone();
    assert_eq!(verdict, RbacVerdict::Patch(json!({"aggregationRule": rule})));
}

/// spec 82 B9, scenario 20
#[test]
fn binding_of_another_role_is_replaced() {
    let other = |live: &mut Value| live["roleRef"]["name"] = json!("cluster-admin");
    assert_eq!(edited(&binding(), other), RbacVerdict::Replace);
    assert_eq!(edited(&binding(), |live| live["roleRef"]["kind"] = json!("Role")), RbacVerdict::Replace);
    let ending = edited(&binding(), |live| {
        other(live);
        live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    assert_eq!(ending, RbacVerdict::Ending);
}
