//! Tables of spec 41 part A: the nodes of a DaemonSet, and obstacles of a node.

use std::sync::Arc;

use cluster::object::NamespacedName;
use serde_json::{Value, json};

use super::{
    daemon_set::DaemonSet,
    node::{Node, TAINT, Tainted, drivers, tainted},
    obstacle::{Obstacle, find},
    pod::Pod,
};

fn node(labels: &Value, more_taints: &[Value]) -> Tainted {
    let mut taints = vec![json!({"key": TAINT, "effect": "NoSchedule"})];
    taints.extend_from_slice(more_taints);
    let metadata = json!({"name": "n1", "uid": "u", "labels": labels});
    *tainted(&json!({"metadata": metadata, "spec": {"taints": taints}})).unwrap()
}

fn daemon_set(name: &str, spec: Value) -> (NamespacedName, Arc<DaemonSet>) {
    let mut template = json!({"tolerations": [{"key": TAINT, "operator": "Exists"}]});
    json_patch::merge(&mut template, &spec);
    let template = json!({"metadata": {"labels": {super::CRITICAL: "true"}}, "spec": template});
    let object = json!({"metadata": {"uid": format!("uid-{name}")}, "spec": {"template": template}});
    (NamespacedName::new("kube-system", name), Arc::new(DaemonSet::of(&object)))
}

fn pod(name: &str, owner: Option<&str>, object: Value) -> (NamespacedName, Arc<Pod>) {
    let owners =
        owner.map(|uid| json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": true, "uid": uid}]));
    let mut pod = json!({
        "metadata": {"ownerReferences": owners}, "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    json_patch::merge(&mut pod, &object);
    (NamespacedName::new("kube-system", name), Arc::new(Pod::of(&pod)))
}

fn unready() -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
}

fn obstacle(
    node: &Tainted,
    sets: &[(NamespacedName, Arc<DaemonSet>)],
    pods: &[(NamespacedName, Arc<Pod>)],
    drivers: &[Box<str>],
) -> String {
    find(&Node { name: "n1", node }, sets, pods, drivers).map(|obstacle| obstacle.text()).unwrap_or_default()
}

fn is_awaited(node: &Tainted, spec: Value) -> bool {
    !obstacle(node, &[daemon_set("cni", spec)], &[], &[]).is_empty()
}

/// spec 41 §A.4.1; spec 41 scenarios 5, 6, 9
#[test]
fn daemon_set_is_awaited_where_its_pods_may_run() {
    let required = |terms: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});
    let by_label = |key: &str, operator: &str, values: Value| {
        required(json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]))
    };
    let by_name = |key: &str, operator: &str, values: Value| {
        required(json!([{"matchFields": [{"key": key, "operator": operator, "values": values}]}]))
    };
    let name = "metadata.name";
    let table = [
        (json!({}), true),
        (json!({"tolerations": []}), false),
        (json!({"nodeName": "n1"}), true),
        (json!({"nodeName": "n2"}), false),
        (json!({"nodeSelector": {"pool": "a"}}), true),
        (json!({"nodeSelector": {"pool": "b"}}), false),
        (json!({"nodeSelector": {"pool": "a", "other": ""}}), false),
        (by_label("pool", "In", json!(["a", "b"])), true),
        (by_label("pool", "In", json!(["b"])), false),
        (by_label("pool", "In", json!([])), false),
        (by_label("pool", "NotIn", json!(["b"])), true),
        (by_label("none", "NotIn", json!(["b"])), true),
        (by_label("pool", "NotIn", json!(["a"])), false),
        (by_label("pool", "Exists", json!([])), true),
        (by_label("pool", "Exists", json!(["a"])), false),
        (by_label("none", "Exists", json!([])), false),
        (by_label("none", "DoesNotExist", json!([])), true),
        (by_label("pool", "DoesNotExist", json!([])), false),
        (by_label("cores", "Gt", json!(["7"])), true),
        (by_label("cores", "Gt", json!(["8"])), false),
        (by_label("cores", "Gt", json!(["many"])), false),
        (by_label("cores", "Lt", json!(["9"])), true),
        (by_label("pool", "Lt", json!(["9"])), false),
        (by_label("none", "Gt", json!(["0"])), false),
        (by_label("pool", "Unknown", json!(["a"])), false),
        (by_label("pool", "In", json!(["a", "-"])), false),
        (by_name(name, "In", json!(["n1"])), true),
        (by_name(name, "In", json!(["n2"])), false),
        (by_name(name, "NotIn", json!(["n2"])), true),
        (by_name(name, "In", json!(["n1", "n2"])), false),
        (by_name("metadata.uid", "NotIn", json!(["n1"])), false),
        (required(json!([{}])), false),
        (required(json!([])), false),
        (required(json!([{}, {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}])), true),
        (json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": null}}}), true),
        (
            json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [{"key": "none", "operator": "Exists"}]}}]}}}),
            true,
        ),
    ];
    let node = node(&json!({"pool": "a", "cores": "8"}), &[]);

    for (spec, expected) in table {
        assert_eq!(is_awaited(&node, spec.clone()), expected, "{spec}");
    }
}

/// spec 41 §A.4.1 E4; spec 41 scenarios 6, 7, 8
#[test]
fn taints_exclude_daemon_sets_without_toleration() {
    let taint = |key: &str, value: &str, effect: &str| json!({"key": key, "value": value, "effect": effect});
    let tolerating = |toleration: Value| json!({"tolerations": [{"key": TAINT, "operator": "Exists"}, toleration]});
    let (own, host) = (json!({}), json!({"hostNetwork": true}));
    let network = "node.kubernetes.io/network-unavailable";
    let table = [
        (taint("a", "b", "NoSchedule"), own.clone(), false),
        (taint("a", "b", "NoExecute"), own.clone(), false),
        (taint("a", "b", "PreferNoSchedule"), own.clone(), true),
        (taint("a", "b", "NoSchedule"), tolerating(json!({"operator": "Exists"})), true),
        (taint("a", "b", "NoSchedule"), tolerating(json!({"key": "a", "operator": "Exists"})), true),
        (taint("a", "b", "NoSchedule"), tolerating(json!({"key": "a", "value": "b"})), true),
        (taint("a", "b", "NoSchedule"), tolerating(json!({"key": "a", "operator": "Equal", "value": "c"})), false),
        (taint("a", "b", "NoSchedule"), tolerating(json!({"key": "a", "operator": "Lt", "value": "b"})), false),
        (
            taint("a", "b", "NoSchedule"),
            tolerating(json!({"key": "a", "operator": "Exists", "effect": "NoExecute"})),
            false,
        ),
        (taint("node.kubernetes.io/unschedulable", "", "NoSchedule"), own.clone(), true),
        (taint("node.kubernetes.io/disk-pressure", "", "NoSchedule"), own.clone(), true),
        (taint("node.kubernetes.io/not-ready", "", "NoExecute"), own.clone(), true),
        (taint("node.kubernetes.io/not-ready", "", "NoSchedule"), own.clone(), false),
        (taint(network, "", "NoSchedule"), own, false),
        (taint(network, "", "NoSchedule"), host, true),
    ];

    for (taint, spec, expected) in table {
        assert_eq!(
            is_awaited(&node(&json!({}), std::slice::from_ref(&taint)), spec.clone()),
            expected,
            "{taint} {spec}"
        );
    }
}

/// spec 41 §A.4 C1, scenarios 2, 4, 19
#[test]
fn daemon_set_is_scheduled_if_a_pod_has_its_uid() {
    let (node, sets) = (node(&json!({}), &[]), [daemon_set("cni", json!({}))]);
    let text = "Node-critical DaemonSets found that were not scheduled to Node yet: kube-system/cni";

    assert_eq!(obstacle(&node, &sets, &[], &[]), text);
    assert_eq!(obstacle(&node, &sets, &[pod("p", Some("uid-cni"), json!({}))], &[]), "");
    assert_eq!(obstacle(&node, &sets, &[pod("p", Some("uid-before"), json!({}))], &[]), text);
    for (field, value) in
        [("controller", json!(false)), ("apiVersion", json!("apps/v1beta2")), ("kind", json!("ReplicaSet"))]
    {
        let mut owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": true, "uid": "uid-cni"});
        owner[field] = value;
        let other = pod("p", None, json!({"metadata": {"ownerReferences": [owner]}}));
        assert_eq!(obstacle(&node, &sets, &[other], &[]), text, "{field}");
    }
    let unlabelled = DaemonSet::of(
        &json!({"metadata": {"uid": "u"}, "spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}}),
    );
    assert_eq!(obstacle(&node, &[(NamespacedName::new("kube-system", "x"), Arc::new(unlabelled))], &[], &[]), "");
}

/// spec 41 §A.4 C2, scenario 10, better 3
#[test]
fn pods_must_be_ready_unless_they_ended_or_were_replaced() {
    let (node, sets) = (node(&json!({}), &[]), [daemon_set("cni", json!({}))]);
    let of_set = |name: &str, object: Value| pod(name, Some("uid-cni"), object);
    let over = |phase: &str| json!({"status": {"phase": phase, "conditions": []}});
    let going = || json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"conditions": []}});
    let unready_text = |names: &str| format!("Unready node-critical Pods found on Node: {names}");
    let unscheduled = "Node-critical DaemonSets found that were not scheduled to Node yet: kube-system/cni";
    let good = of_set("good", json!({}));
    let table = [
        (vec![good.clone(), pod("bare", None, unready())], unready_text("kube-system/bare")),
        (
            vec![good.clone(), pod("b", None, unready()), pod("a", None, json!({"status": {"conditions": []}}))],
            unready_text("kube-system/a, kube-system/b"),
        ),
        (vec![good.clone(), pod("job", None, over("Succeeded")), of_set("evicted", over("Failed"))], String::new()),
        (vec![of_set("evicted", over("Failed"))], unscheduled.to_owned()),
        (vec![good.clone(), of_set("old", going())], String::new()),
        (vec![of_set("old", going())], unready_text("kube-system/old")),
        (vec![of_set("new", unready()), of_set("old", going())], unready_text("kube-system/new, kube-system/old")),
        (vec![good, pod("bare", None, going())], unready_text("kube-system/bare")),
    ];

    for (pods, expected) in table {
        assert_eq!(obstacle(&node, &sets, &pods, &[]), expected);
    }
}

/// spec 41 §A.4 C3, scenarios 13, 14
#[test]
fn csi_drivers_that_pods_wait_for_must_be_registered() {
    let node = node(&json!({}), &[]);
    let waiting = |name: &str, suffix: &str, driver: &str| {
        let key = format!("node.gardener.cloud/wait-for-csi-node-{suffix}");
        pod(name, None, json!({"metadata": {"annotations": {key: driver, "other": "x"}}}))
    };
    let pods = [waiting("p", "x", "disk"), waiting("q", "y", "file"), waiting("r", "z", "disk")];
    let registered = drivers(&json!({"spec": {"drivers": [{"name": "file"}, {"name": "Disk"}]}}));

    assert_eq!(obstacle(&node, &[], &pods, &[]), "Unready required CSI drivers for Node: [disk file]");
    assert_eq!(obstacle(&node, &[], &pods, &registered), "Unready required CSI drivers for Node: [disk]");
    assert_eq!(obstacle(&node, &[], &pods, &["disk".into(), "file".into()]), "");
    assert_eq!(Obstacle::Drivers(vec!["disk".into()]).reason(), "UnreadyRequiredCSIDrivers");
}

/// spec 41 §A.5, scenario 15, A-T7
#[test]
fn taint_is_removed_completely_and_others_keep_their_order() {
    let [z, a] = ["z", "a"].map(|key| json!({"key": key, "effect": "NoSchedule"}));
    let again = json!({"key": TAINT, "effect": "NoExecute", "value": "v"});

    let patch = |taints: &[Value]| node(&json!({}), taints).without_taint();
    let some = json!({"spec": {"taints": [z.clone(), a.clone()]}});
    assert_eq!(patch(&[z, again, a]), some);
    assert_eq!(patch(&[]), json!({"spec": {"taints": null}}));
    assert_eq!(tainted(&json!({"metadata": {}, "spec": {"taints": [{"key": "z"}]}})), None);
}
