use serde_json::json;

use super::{
    node_taints::{Taint, TaintSet},
    *,
};
use crate::webhooks::testing::{TestView, changes, failure, leaves, object, request};

const READ: &str = "taints of Nodes";

/// The configuration of spec 50 §4.
fn webhook() -> SystemComponents {
    webhook_with(
        "{worker.gardener.cloud/system-components: 'true'}",
        "[{key: dedicated, operator: Equal, value: infra, effect: NoSchedule}]",
    )
}

fn webhook_with(pod_node_selector: &str, pod_tolerations: &str) -> SystemComponents {
    SystemComponents::new(&SystemComponentsConfig {
        node_selector: BTreeMap::new(),
        pod_node_selector: serde_json::from_value(object(pod_node_selector)).unwrap(),
        pod_tolerations: serde_json::from_value(object(pod_tolerations)).unwrap(),
    })
}

fn view() -> TestView {
    TestView::new().tolerations_of_nodes("[{key: pool, operator: Equal, value: sys, effect: NoExecute}]")
}

#[track_caller]
fn assert_tolerations(view: &TestView, before: &str, after: &str) {
    let pod = |tolerations| format!("spec:\n  tolerations:\n    {tolerations}");
    changes(&webhook_with("{}", "[]"), view, &format!("{}\n---\n{}", pod(before), pod(after)));
}

/// spec 50 §10.1
#[test]
fn pod_gets_the_node_selector_and_the_tolerations() {
    let view = view();

    changes(
        &webhook(),
        &view,
        "
metadata: {ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: coredns-5f, controller: true}]}
spec:
  nodeSelector: {kubernetes.io/os: linux}
  tolerations:
  - {key: CriticalAddonsOnly, operator: Exists}
---
metadata: {ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: coredns-5f, controller: true}]}
spec:
  nodeSelector: {kubernetes.io/os: linux, worker.gardener.cloud/system-components: 'true'}
  tolerations:
  - {key: CriticalAddonsOnly, operator: Exists}
  - {key: dedicated, operator: Equal, value: infra, effect: NoSchedule}
  - {key: pool, operator: Equal, value: sys, effect: NoExecute}
",
    );
    assert_eq!(view.reads(), [READ]);
}

/// spec 50 §10.1 rule 1, §10.2, scenario 31
#[test]
fn daemon_set_pods_stay_and_nodes_are_not_read() {
    let pod = |owners| {
        format!("{{metadata: {{ownerReferences: {owners}}}, spec: {{tolerations: [{{key: a}}, {{key: a}}]}}}}")
    };

    for (owners, is_of_daemon_set) in [
        ("[{apiVersion: apps/v1, kind: DaemonSet, controller: true}]", true),
        ("[{apiVersion: v1, kind: Node}, {apiVersion: apps/v1, kind: DaemonSet, controller: true}]", true),
        ("[{apiVersion: apps/v1, kind: DaemonSet}]", false),
        ("[{apiVersion: apps/v1, kind: DaemonSet, controller: false}]", false),
        ("[{apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet, controller: true}]", false),
        ("[{apiVersion: extensions/v1beta1, kind: DaemonSet, controller: true}]", false),
        ("[{apiVersion: apps/v1, kind: ReplicaSet, controller: true}]", false),
        ("null", false),
    ] {
        let view = view();
        let mut made = object(&pod(owners));
        let request = request(&webhook(), &made);

        webhook().mutate(&mut made, &request, &view).unwrap();

        assert_eq!(made == object(&pod(owners)), is_of_daemon_set, "{owners}");
        assert_eq!(view.reads().is_empty(), is_of_daemon_set, "{owners}");
    }
}

/// spec 50 §10.1 rule 2, scenario 32
#[test]
fn node_selector_of_the_configuration_takes_precedence() {
    let view = TestView::new();
    let after = "spec: {nodeSelector: {a: '2', b: '3'}}";

    for before in ["spec: {nodeSelector: {a: '1'}}", "spec: {nodeSelector: null}", "{}"] {
        changes(&webhook_with("{a: '2', b: '3'}", "[]"), &view, &format!("{before}\n---\n{after}"));
    }
}

/// spec 50 §10.1
#[test]
fn pod_stays_without_configuration_and_nodes() {
    let webhook = webhook_with("{}", "[]");

    for pod in ["{}", "spec: {nodeSelector: null, tolerations: null}", "spec: {nodeSelector: {}, tolerations: []}"] {
        leaves(&webhook, &TestView::new(), pod);
    }
}

/// spec 50 §10.1 rule 3, §2.7
#[test]
fn nodes_that_cannot_be_read_deny_the_pod() {
    let denied = Failure::Denied("the cache is not started, can not read objects".into());

    assert_eq!(failure(&webhook(), &view().failing(READ, denied.clone()), "{}"), denied);
}

/// spec 50 §10.1 rule 7, scenario 34
#[test]
fn tolerations_are_distinct_in_all_five_fields() {
    assert_tolerations(
        &view(),
        "
    - {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 10}
    - {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 10}
    - {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 20}
    - {key: a, operator: Exists, effect: NoExecute}
    - {key: a, operator: Exists, effect: NoExecute, value: '', tolerationSeconds: null}
    - {key: pool, value: sys, effect: NoExecute}
    - {key: a, operator: Exists, effect: NoSchedule}
    - {key: b, operator: Exists, effect: NoSchedule}
",
        "
    - {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 10}
    - {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 20}
    - {key: a, operator: Exists, effect: NoExecute}
    - {key: pool, value: sys, effect: NoExecute}
    - {key: a, operator: Exists, effect: NoSchedule}
    - {key: b, operator: Exists, effect: NoSchedule}
    - {key: pool, operator: Equal, value: sys, effect: NoExecute}
",
    );
}

/// spec 50 §10.1 rule 4
#[test]
fn tolerations_of_the_pod_are_not_added_again() {
    let all = "[{key: pool, operator: Equal, value: sys, effect: NoExecute, futureField: 7}]";

    assert_tolerations(&view(), all, all);
}

/// spec 50 §10.2
#[test]
fn tolerations_of_the_api_server_stay() {
    let own = "{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}";

    assert_tolerations(
        &view(),
        &format!("[{own}]"),
        &format!("[{own}, {{key: pool, operator: Equal, value: sys, effect: NoExecute}}]"),
    );
}

/// spec 50 §10.1 rule 8, scenario 35, "better" 4
#[test]
fn tolerations_have_the_same_order_for_the_same_pod_and_nodes() {
    let nodes: Vec<(String, Vec<Taint>)> = (0..7)
        .map(|node| {
            let taint =
                |key: usize| Taint { key: format!("k{key}"), value: String::new(), effect: "NoSchedule".into() };
            (format!("node-{node}"), vec![taint(node % 3), taint(6 - node)])
        })
        .collect();
    let mut results = Vec::new();

    for turn in 0..100 {
        let mut set = TaintSet::new(BTreeMap::new());
        for (name, taints) in nodes.iter().cycle().skip(turn).take(nodes.len()) {
            set.replace(name, Some((&BTreeMap::new(), taints)));
        }
        let mut pod =
            object("spec: {tolerations: [{key: z}, {key: a}, {key: k3, operator: Exists, effect: NoSchedule}]}");
        let view = TestView::new().tolerations_of_nodes(&json!(set.tolerations().as_ref()).to_string());
        let request = request(&webhook(), &pod);
        webhook().mutate(&mut pod, &request, &view).unwrap();
        results.push(pod);
    }

    results.dedup();
    assert_eq!(results.len(), 1);
    let keys: Vec<&Value> = results[0]["spec"]["tolerations"].as_array().unwrap().iter().map(|t| &t["key"]).collect();
    assert_eq!(keys, ["z", "a", "k3", "dedicated", "k0", "k1", "k2", "k4", "k5", "k6"]);
}

/// spec 50 §10.1 rule 4
#[test]
fn tolerations_of_the_configuration_keep_their_order_without_empty_fields() {
    let webhook = webhook_with(
        "{}",
        "
- {key: z, operator: Exists, value: '', effect: ''}
- {operator: Exists, effect: NoExecute, tolerationSeconds: 5}
- {key: a, value: b}
",
    );

    changes(
        &webhook,
        &TestView::new(),
        "
{}
---
spec:
  tolerations:
  - {key: z, operator: Exists}
  - {operator: Exists, effect: NoExecute, tolerationSeconds: 5}
  - {key: a, value: b}
",
    );
}

/// spec 50 §2.2 row 7
#[test]
fn wrong_type_is_an_error_before_anything_is_read() {
    for (pod, message) in [
        ("metadata: {ownerReferences: {}}", "metadata.ownerReferences: expected a list, found a map"),
        (
            "metadata: {ownerReferences: [{controller: 'true'}]}",
            "metadata.ownerReferences[0].controller: expected a boolean, found a string",
        ),
        ("spec: {nodeSelector: []}", "spec.nodeSelector: expected a map, found a list"),
        ("spec: {tolerations: [{}, a]}", "spec.tolerations[1]: expected a map, found a string"),
        (
            "spec: {tolerations: [{}, {tolerationSeconds: '1'}]}",
            "spec.tolerations[1].tolerationSeconds: expected an integer, found a string",
        ),
    ] {
        let view = view();

        let failure = failure(&webhook(), &view, pod);

        assert_eq!(failure, Failure::Errored { code: 400, message: message.to_owned() });
        assert!(view.reads().is_empty());
    }
}
