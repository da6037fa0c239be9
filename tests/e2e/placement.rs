//! We expect pods of a DaemonSet exactly where Kubernetes' DaemonSet controller places them (spec 41 §A.4.1).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Result, ensure};
use gardener_resource_manager::actors::resource_manager::node::critical_components::{
    node::TAINT, placement::Placement,
};
use serde_json::{Value, json};

use crate::{
    objects::{Admin, core},
    support::{ControlPlane, Options, eventually},
};

const NAMESPACE: &str = "placement";
const SETS: &str = "/apis/apps/v1/namespaces/placement/daemonsets";
const NODES: usize = 20;
const DAEMON_SETS: usize = 60;
/// The controller may send twenty requests a second.
const LIMIT: Duration = Duration::from_secs(180);

type Places = BTreeMap<String, BTreeSet<String>>;

/// spec 41 §A.4.1: random nodes and DaemonSets
#[tokio::test]
async fn daemon_set_placement_equals_that_of_kubernetes() -> Result<()> {
    let controllers = Some("daemonset-controller".to_owned());
    let cluster = ControlPlane::start(Options { controllers, ..Options::default() }).await?;
    let admin = Admin::prepare(&cluster, NAMESPACE).await?;
    let mut random = fastrand::Rng::with_seed(41);
    for number in 0..NODES {
        admin.create("/api/v1/nodes", &node(&mut random, number)).await?;
    }
    for number in 0..DAEMON_SETS {
        admin.create(SETS, &daemon_set(&mut random, number)).await?;
    }
    // As the API server stores them: it adds a taint to each new node.
    let (nodes, sets) = (admin.list("/api/v1/nodes").await?, admin.list(SETS).await?);
    let expected: Places = sets.iter().map(|set| (name(set), admitted(set, &nodes))).collect();
    let all: usize = expected.values().map(BTreeSet::len).sum();
    ensure!(all > 100 && all < NODES * DAEMON_SETS / 2, "{all} placements are a poor test");

    eventually("the controller has placed its pods where we expect them", LIMIT, async || {
        for set in admin.list(SETS).await? {
            let (name, status) = (name(&set), &set["status"]);
            ensure!(status["observedGeneration"] == 1, "{name} has not been reconciled");
            let (wanted, ours) = (&status["desiredNumberScheduled"], expected[&name].len());
            ensure!(
                *wanted == ours,
                "{name}: the controller wants {wanted} pods, we {ours}: {}",
                set["spec"]["template"]["spec"]
            );
        }
        let placed = placed(&admin.list(&core(NAMESPACE, "pods")).await?);
        for (set, nodes) in &expected {
            let there = placed.get(set).cloned().unwrap_or_default();
            ensure!(there == *nodes, "{set}: pods on {there:?}, expected on {nodes:?}");
        }
        Ok(())
    })
    .await
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn admitted(set: &Value, nodes: &[Value]) -> BTreeSet<String> {
    let placement = Placement::of(&set["spec"]["template"]["spec"]);
    let is_admitted = |node: &&Value| {
        let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
        let labels = labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect();
        let taints = node["spec"]["taints"].as_array().map_or(&[][..], Vec::as_slice);
        placement.admits(&name(node), &labels, taints)
    };
    nodes.iter().filter(is_admitted).map(name).collect()
}

/// The nodes that pods must be scheduled on: the controller pins each by a field of its affinity.
fn placed(pods: &[Value]) -> Places {
    let mut placed = Places::new();
    for pod in pods {
        let pin = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
        let node = pod.pointer(pin).and_then(Value::as_str).unwrap_or_default();
        let set = pod.pointer("/metadata/ownerReferences/0/name").and_then(Value::as_str).unwrap_or_default();
        placed.entry(set.to_owned()).or_default().insert(node.to_owned());
    }
    placed
}

fn one_of<'a>(random: &mut fastrand::Rng, all: &[&'a str]) -> &'a str {
    all[random.usize(0..all.len())]
}

fn node(random: &mut fastrand::Rng, number: usize) -> Value {
    let mut labels =
        json!({"pool": one_of(random, &["a", "b", "c"]), "cores": one_of(random, &["4", "8", "many", "016"])});
    if random.bool() {
        labels["zone"] = json!(one_of(random, &["", "north"]));
    }
    let mut taints = Vec::new();
    for (key, value, effect, share) in [
        (TAINT, "", "NoSchedule", 2),
        ("dedicated", "db", "NoSchedule", 5),
        ("dedicated", "web", "NoExecute", 5),
        ("rather-not", "", "PreferNoSchedule", 3),
        ("node.kubernetes.io/unschedulable", "", "NoSchedule", 4),
        ("node.kubernetes.io/network-unavailable", "", "NoSchedule", 4),
        ("node.kubernetes.io/disk-pressure", "", "NoSchedule", 6),
        ("node.kubernetes.io/not-ready", "", "NoExecute", 4),
    ] {
        if random.usize(0..share) == 0 {
            taints.push(json!({"key": key, "value": value, "effect": effect}));
        }
    }
    let metadata = json!({"name": format!("n{number}"), "labels": labels});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints}})
}

fn daemon_set(random: &mut fastrand::Rng, number: usize) -> Value {
    let name = format!("set-{number}");
    let mut spec = json!({
        "containers": [{"name": "c", "image": "i"}], "hostNetwork": random.bool(), "tolerations": tolerations(random),
    });
    if random.usize(0..5) == 0 {
        spec["nodeSelector"] = json!({"pool": one_of(random, &["a", "b"])});
    }
    if random.usize(0..12) == 0 {
        spec["nodeName"] = json!(format!("n{}", random.usize(0..NODES)));
    }
    if random.bool() {
        let terms: Vec<Value> = (0..random.usize(1..4)).map(|_| term(random)).collect();
        spec["affinity"] =
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    }
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    })
}

/// Most tolerate the taint that the API server adds to each new node; otherwise there would be nothing to compare.
fn tolerations(random: &mut fastrand::Rng) -> Vec<Value> {
    if random.usize(0..4) == 0 {
        return vec![json!({"operator": "Exists"})];
    }
    let mut tolerations = Vec::new();
    if random.usize(0..8) > 0 {
        tolerations.push(json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}));
    }
    for toleration in [
        json!({"key": TAINT, "operator": "Exists"}),
        json!({"key": TAINT, "effect": "NoSchedule"}),
        json!({"key": "dedicated", "operator": "Equal", "value": "db"}),
        json!({"key": "dedicated", "value": "web", "effect": "NoExecute", "tolerationSeconds": 60}),
        json!({"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}),
        json!({"operator": "Exists", "effect": "NoExecute"}),
    ] {
        if random.bool() {
            tolerations.push(toleration);
        }
    }
    tolerations
}

fn term(random: &mut fastrand::Rng) -> Value {
    let mut term = json!({});
    if random.usize(0..4) > 0 {
        let expressions: Vec<Value> = (0..random.usize(1..3)).map(|_| expression(random)).collect();
        term["matchExpressions"] = json!(expressions);
    }
    if random.usize(0..4) == 0 {
        let node = format!("n{}", random.usize(0..NODES));
        let operator = one_of(random, &["In", "NotIn", "NotIn"]);
        term["matchFields"] = json!([{"key": "metadata.name", "operator": operator, "values": [node]}]);
    }
    term
}

fn expression(random: &mut fastrand::Rng) -> Value {
    let key = one_of(random, &["pool", "cores", "zone", "none", "example.org/none"]);
    let operator = one_of(random, &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]);
    let values = match operator {
        "Exists" | "DoesNotExist" => json!([]),
        "Gt" | "Lt" => json!([one_of(random, &["5", "05", "4", "many"])]),
        _ => json!([one_of(random, &["a", "b", "", "8"]), one_of(random, &["c", "north", "west"])]),
    };
    json!({"key": key, "operator": operator, "values": values})
}
