use serde_json::json;

use super::*;
use crate::kinds;

fn kind(plural: &str) -> ServedKind {
    kinds::built_in().into_iter().find(|kind| kind.plural == plural).unwrap()
}

fn message(outcome: Result<(), Failure>) -> String {
    let failure = outcome.expect_err("it should be refused");
    let status: Value = serde_json::from_slice(&failure.body).unwrap();
    status["message"].as_str().unwrap().to_owned()
}

/// The table of facts §1.
#[test]
fn new_objects_are_refused_with_the_servers_words() {
    let table = [
        (
            "configmaps",
            json!({"metadata": {"name": "a", "finalizers": ["bad"]}}),
            "ConfigMap \"a\" is invalid: metadata.finalizers[0]: Invalid value: \"bad\": name is neither a standard finalizer name nor is it fully qualified",
        ),
        (
            "configmaps",
            json!({"metadata": {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n"}]}}),
            "ConfigMap \"a\" is invalid: metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ),
        (
            "secrets",
            json!({"metadata": {"name": "a"}, "type": "kubernetes.io/tls", "data": {"tls.key": ""}}),
            "Secret \"a\" is invalid: data[tls.crt]: Required value",
        ),
        (
            "services",
            json!({"metadata": {"name": "a.b"}, "spec": {"type": "ClusterIP", "ports": [{"port": 1}]}}),
            "Service \"a.b\" is invalid: metadata.name: Invalid value: \"a.b\": must not contain dots",
        ),
        (
            "roles",
            json!({"metadata": {"name": "a/b"}}),
            "Role.rbac.authorization.k8s.io \"a/b\" is invalid: metadata.name: Invalid value: \"a/b\": may not contain '/'",
        ),
        (
            "deployments",
            json!({"metadata": {"name": "e"}, "spec": {"template": {"metadata": {}, "spec": {"restartPolicy": "Always"}}}}),
            "Deployment.apps \"e\" is invalid: [spec.selector: Required value, spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`, spec.template.spec.containers: Required value]",
        ),
        (
            "networkpolicies",
            json!({"metadata": {"name": "a"}, "spec": {"ingress": [{"ports": [{"port": "10250"}]}]}}),
            "NetworkPolicy.networking.k8s.io \"a\" is invalid: spec.ingress[0].ports[0].port: Invalid value: \"10250\": must contain at least one letter (a-z)",
        ),
        (
            "configmaps",
            json!({"metadata": {"name": "a"}, "data": {"x": "y".repeat(1_048_577)}}),
            "ConfigMap \"a\" is invalid: []: Too long: may not be more than 1048576 bytes",
        ),
        (
            "events",
            json!({"metadata": {"name": "a", "namespace": "n"}, "involvedObject": {}}),
            "Event \"a\" is invalid: involvedObject.namespace: Invalid value: \"\": does not match event.namespace",
        ),
    ];
    for (plural, object, expected) in table {
        assert_eq!(message(create(&kind(plural), &object)), expected);
    }
    assert!(
        message(create(&kind("configmaps"), &json!({"metadata": {"name": "A"}})))
            .contains("a lowercase RFC 1123 subdomain")
    );
    assert!(
        message(create(&kind("secrets"), &json!({"metadata": {"name": "a"}, "data": {"k ey": ""}})))
            .contains("data[k ey]: Invalid value: \"k ey\"")
    );
}

#[test]
fn usual_objects_pass() {
    let table = [
        (
            "configmaps",
            json!({"metadata": {"name": "a.b", "labels": {"x.io/y": "z", "e": ""}, "finalizers": ["a.b/c", "orphan"]}, "data": {"k.e_y-1": "v"}}),
        ),
        ("configmaps", json!({"metadata": {"name": "0", "annotations": {"X.io/y": "any thing"}}})),
        (
            "clusterroles",
            json!({"metadata": {"name": "system:x"}, "rules": [{"verbs": ["*"], "nonResourceURLs": ["/x"]}]}),
        ),
        ("services", json!({"metadata": {"name": "0a"}, "spec": {"type": "ClusterIP", "ports": [{"port": 1}]}})),
    ];
    for (plural, object) in table {
        assert_eq!(create(&kind(plural), &object), Ok(()), "{object}");
    }
}

/// The table of facts §4.
#[test]
fn immutable_fields_stay() {
    let secret = |content: Value| {
        let mut object = json!({"metadata": {"name": "s"}, "type": "Opaque"});
        object.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
        object
    };
    let set = |service: &str| {
        json!({"metadata": {"name": "s"}, "spec": {"serviceName": service, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Always", "containers": [{"name": "c", "image": "i"}]}}}})
    };
    let table = [
        (
            "secrets",
            secret(json!({})),
            secret(json!({"type": "a/b"})),
            "type: Invalid value: \"a/b\": field is immutable",
        ),
        (
            "secrets",
            secret(json!({"immutable": true, "data": {"a": "eA=="}})),
            secret(json!({"immutable": true, "data": {"a": "eQ=="}})),
            "data: Forbidden: field is immutable when `immutable` is set",
        ),
        (
            "statefulsets",
            set("a"),
            set("b"),
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        ),
        (
            "configmaps",
            json!({"metadata": {"name": "c", "deletionTimestamp": "t", "finalizers": ["a.b/c"]}}),
            json!({"metadata": {"name": "c", "deletionTimestamp": "t", "finalizers": ["a.b/c", "a.b/e"]}}),
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"a.b/e\"}",
        ),
    ];
    for (plural, old, new, expected) in table {
        let message = message(update(&kind(plural), &old, &new, ""));

        assert!(message.ends_with(&format!("is invalid: {expected}")), "{message}");
    }
}

#[test]
fn approval_conditions_need_the_approval_subresource() {
    let request = |conditions: Value| json!({"metadata": {"name": "r"}, "status": {"conditions": conditions}});
    let kind = kind("certificatesigningrequests");
    let (none, approved) = (request(json!([])), request(json!([{"type": "Approved", "status": "True"}])));

    assert_eq!(update(&kind, &none, &approved, "approval"), Ok(()));
    assert!(
        message(update(&kind, &none, &approved, "status"))
            .contains("updates may not add a condition of type \"Approved\"")
    );
    assert!(
        message(update(&kind, &approved, &none, "approval"))
            .contains("updates may not remove a condition of type \"Approved\"")
    );
}

/// The table of facts §10.
#[test]
fn a_custom_object_has_to_fit_into_the_database() {
    let custom = ServedKind { custom: true, ..kind("configmaps") };
    let object = |length: usize| json!({"metadata": {"name": "a"}, "spec": {"text": "x".repeat(length)}});

    assert_eq!(create(&custom, &object(1_400_000)), Ok(()));
    assert_eq!(message(create(&custom, &object(1_600_000))), "etcdserver: request is too large");
    assert!(message(create(&custom, &object(2_900_000))).contains("trying to send message larger than max"));
}
