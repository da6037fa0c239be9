//! SubjectAccessReviews (spec 61): every body gets an answer, and an agent's own writes give it no further rights.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gardener_resource_manager::{
    api::config::resource_manager::{NodeAgentAuthorizer, Webhooks},
    webhooks::{
        exchange::{Body, Received},
        knowledge::Manifests,
        registry::{self, WebhookEntry},
    },
};
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use crate::json_value;

const JSON: &str = "application/json";
const PREFIX: &str = "gardener.cloud:node-agent:machine:";

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn review_of_any_bytes_gets_an_answer(
        content_type in select(vec![JSON, JSON, "text/plain", ""]), body in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        status(&body, content_type);
    }

    #[test]
    fn review_with_any_part_gets_an_answer(review in review(), any in json_value(), at in select(vec![
        "", "/apiVersion", "/spec", "/spec/user", "/spec/groups", "/spec/group", "/spec/resourceAttributes",
        "/spec/resourceAttributes/verb", "/spec/resourceAttributes/fieldSelector",
        "/spec/resourceAttributes/fieldSelector/requirements", "/spec/resourceAttributes/fieldSelector/rawSelector",
    ]), cut in 0..600_usize) {
        let mut other = review;
        if let Some(part) = other.pointer_mut(at) {
            *part = any;
        }
        let mut body = other.to_string().into_bytes();
        status(&body, JSON);
        body.truncate(cut);
        status(&body, JSON);
    }

    #[test]
    fn unknown_fields_change_nothing(review in review(), any in json_value()) {
        let expected = status(review.to_string().as_bytes(), JSON);
        let mut other = review;
        for at in ["", "/spec", "/spec/resourceAttributes", "/spec/resourceAttributes/fieldSelector", "/metadata"] {
            if let Some(fields) = other.pointer_mut(at).and_then(Value::as_object_mut) {
                fields.insert("later".to_owned(), any.clone());
            }
        }
        other["metadata"] = any.clone();
        other["status"] = any.clone();
        other["spec"]["extra"] = any.clone();
        other["spec"]["uid"] = any.clone();
        other["spec"]["resourceAttributes"]["labelSelector"] = any.clone();
        let of_other_version = if other["apiVersion"] == "authorization.k8s.io/v1beta1" { "groups" } else { "group" };
        other["spec"][of_other_version] = any;

        assert_eq!(status(other.to_string().as_bytes(), JSON), expected, "{other}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// spec 61 §5.3, §5.6, decision 33: the agent may write the labels of its own Node.
    #[test]
    fn node_labels_give_an_agent_no_foreign_lease_or_secret(
        pool in label(), host in select(vec![None, Some(""), Some("h1"), Some("h2"), Some("h3")]),
        machines in any::<bool>(), verb in select(vec!["get", "list", "watch", "update"]),
        resource in select(vec!["leases", "secrets"]), name in select(NAMES.to_vec()),
    ) {
        let group = if resource == "leases" { "coordination.k8s.io" } else { "" };
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": format!("{PREFIX}{}", if machines { "a" } else { "b" }), "groups": ["gardener.cloud:node-agents"],
            "resourceAttributes": {"verb": verb, "group": group, "resource": resource, "namespace": "kube-system", "name": name},
        }});
        let labels = json!({"worker.gardener.cloud/gardener-node-agent-secret-name": pool, "kubernetes.io/hostname": host});
        let (authorizer, cluster) = authorizer_of(machines, &labels);
        let status = status_of(&authorizer, &cluster, review.to_string().as_bytes(), JSON);

        let is_pool = |name: &str| matches!(name, "c" | "d");
        // The pool comes from objects that no agent may write, where Machines exist.
        let of_pool = if machines { Some("c") } else { pool.filter(|pool| is_pool(pool)) };
        let needs = |file: &str| of_pool == Some("c") && (file == "all" || Some(file) == host);
        let expected = match resource {
            "leases" => name == "gardener-node-agent-b" || pool == Some(name) && is_pool(name),
            _ => {
                verb != "update"
                    && (name == "gardener-valitail" || !name.is_empty() && of_pool == Some(name)
                        || name.strip_prefix("of-").is_some_and(needs))
            }
        };
        prop_assert_eq!(&status["allowed"], expected, "{} with {}: {}", review, labels, status);
    }
}

/// Names of Leases and Secrets: of the pools `c` and `d`, of a Secret without a pool, of the config of `c`, and others.
const NAMES: [&str; 9] =
    ["", "c", "d", "plain", "kube-controller-manager", "gardener-node-agent-b", "gardener-valitail", "of-all", "of-h1"];

fn label() -> impl Strategy<Value = Option<&'static str>> {
    select([None].into_iter().chain(NAMES.map(Some)).collect::<Vec<_>>())
}

/// Returns the status of the answer, and checks that it is a decision or an error, but not both.
fn status(body: &[u8], content_type: &str) -> Value {
    let pool = json!({"worker.gardener.cloud/gardener-node-agent-secret-name": "c"});
    let (authorizer, cluster) = authorizer_of(true, &pool);
    status_of(&authorizer, &cluster, body, content_type)
}

fn status_of(authorizer: &WebhookEntry, cluster: &Manifests, body: &[u8], content_type: &str) -> Value {
    let received = Received { body: Body::Whole(body.to_vec().into()), content_type: content_type.to_owned() };
    let answer = authorizer.endpoint.answer(&received, cluster).expect("all is known");
    assert_eq!(answer.reply.status, 200);
    let answer: Value = serde_json::from_slice(&answer.reply.body).expect("an answer is JSON");
    let status = &answer["status"];
    let is = |field: &str| status.get(field).is_some_and(|value| value == true);
    let has = |field: &str| status.get(field).is_some_and(|value| value.as_str().is_some_and(|text| !text.is_empty()));
    assert!(status["allowed"].is_boolean(), "{answer}");
    assert!(u8::from(is("allowed")) + u8::from(is("denied")) + u8::from(has("evaluationError")) <= 1, "{answer}");
    assert!(!has("reason") || is("denied"), "{answer}");
    assert!(content_type == JSON || has("evaluationError"), "{answer}");
    status.clone()
}

/// An authorizer with or without Machines. Machine `a` is on node `b`, which has these labels except for null values.
fn authorizer_of(machines: bool, labels: &Value) -> (WebhookEntry, Manifests) {
    let machine_namespace = machines.then(|| "ns".to_owned());
    let node_agent_authorizer = NodeAgentAuthorizer { machine_namespace, authorize_with_selectors: true }.into();
    let webhooks = Webhooks { node_agent_authorizer, ..Webhooks::default() };
    let mut entries = registry::enabled(&webhooks);
    let mut cluster = Manifests::new(&registry::reads(&entries), registry::node_selector(&webhooks));
    let pool = json!({"worker.gardener.cloud/gardener-node-agent-secret-name": "c"});
    let file = |name: &str, host: Value| json!({"content": {"secretRef": {"name": name}}, "hostName": host});
    let files = [file("of-all", Value::Null), file("of-h1", json!("h1")), file("of-h2", json!("h2"))];
    let osc = BASE64_STANDARD.encode(json!({"spec": {"files": files}}).to_string());
    let secret = |name: &str, labels: Value| {
        let metadata = json!({"namespace": "kube-system", "name": name, "labels": labels});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"osc.yaml": osc}})
    };
    let mut labels = labels.clone();
    labels.as_object_mut().expect("labels are an object").retain(|_, value| !value.is_null());
    for object in [
        json!({"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
            "metadata": {"namespace": "ns", "name": "a", "labels": {"node": "b"}},
            "spec": {"nodeTemplate": {"metadata": {"labels": pool}}}}),
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b", "labels": labels}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "c", "name": "a"}, "spec": {"nodeName": "b"}}),
        secret("c", json!({"worker.gardener.cloud/pool": "c"})),
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "kube-system", "name": "d", "labels": {"worker.gardener.cloud/pool": ""}}}),
        secret("plain", json!({"other": "c"})),
    ] {
        let is_read = cluster.add(&object);
        let is_expected = match (&object["kind"], &object["metadata"]["name"]) {
            (kind, _) if kind == "Machine" => machines,
            (_, name) => name != "plain",
        };
        assert_eq!(is_read, is_expected, "{object}");
    }
    (entries.remove(0), cluster)
}

fn review() -> impl Strategy<Value = Value> {
    let version =
        select(vec!["authorization.k8s.io/v1", "authorization.k8s.io/v1", "authorization.k8s.io/v1beta1", "v9"]);
    let machine = select(vec!["a", "a", "b", ""]);
    let verb = select(vec!["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]);
    let object = select(vec![
        ("", "nodes"),
        ("", "pods"),
        ("", "secrets"),
        ("", "events"),
        ("coordination.k8s.io", "leases"),
        ("certificates.k8s.io", "certificatesigningrequests"),
        ("apps", "deployments"),
    ]);
    let namespace = select(vec!["", "kube-system", "c"]);
    let name = select(vec!["", "a", "b", "c", "gardener-node-agent-b"]);
    let selector = select(vec![
        Value::Null,
        json!({"rawSelector": "spec.nodeName=b"}),
        json!({"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["b"]}]}),
        json!({"requirements": [{"key": "spec.nodeName", "operator": "Exists"}]}),
    ]);
    (version, machine, verb, object, namespace, name, selector).prop_map(
        |(version, machine, verb, (group, resource), namespace, name, selector)| {
            let groups = json!(["system:authenticated", "gardener.cloud:node-agents"]);
            let mut review = json!({"apiVersion": version, "kind": "SubjectAccessReview", "metadata": {}, "spec": {
                "user": format!("{PREFIX}{machine}"),
                "resourceAttributes": {
                    "verb": verb, "group": group, "version": "v1", "resource": resource, "namespace": namespace, "name": name,
                    "fieldSelector": selector,
                },
            }});
            let key = if version == "authorization.k8s.io/v1beta1" { "group" } else { "groups" };
            review["spec"][key] = groups;
            review
        },
    )
}
