//! Nodes (spec 41) in the whole program.

pub(super) mod availability;
mod components;
pub(super) mod delays;
mod join;

use gardener_resource_manager::api::config::resource_manager::NodeCriticalComponents;
use serde_json::{Value, json};

use crate::world::{World, seconds};

pub(super) const TAINT: &str = "node.gardener.cloud/critical-components-not-ready";
pub(super) const CRITICAL: &str = "node.gardener.cloud/critical-component";
pub(super) const SYSTEM: &str = "kube-system";

pub(super) fn put(world: &World, object: Value) {
    world.sim.put(object).expect("it is valid");
}

pub(super) async fn start(world: &World) {
    put(world, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}));
    let settings = NodeCriticalComponents::default();
    world.config.borrow_mut().controllers.node_critical_components = settings.into();
    begin(world).await;
}

pub(super) async fn begin(world: &World) {
    world.start().await;
    seconds(2).await;
    world.sim.clear_requests();
}

pub(super) fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": "a"}},
        "spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"}]},
    })
}

pub(super) fn daemon_set(name: &str) -> Value {
    let labels = json!({CRITICAL: "true", "app": name});
    let spec = json!({"tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": "i"}]});
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"namespace": SYSTEM, "name": name, "labels": {CRITICAL: "true"}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    })
}

pub(super) fn pod(world: &World, node: &str, name: &str, set: Option<&str>) -> Value {
    let uid = |set| world.sim.object("daemonsets.apps", SYSTEM, set).map(|set| set["metadata"]["uid"].clone());
    let owner =
        |set| json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": true, "name": set, "uid": uid(set)}]);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": SYSTEM, "name": name, "labels": {CRITICAL: "true"}, "ownerReferences": set.map(owner).unwrap_or_else(|| json!([]))},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    })
}

pub(super) fn set_ready(world: &World, pod: &str) {
    world.sim.edit("pods", SYSTEM, pod, |live| {
        live["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    });
}

pub(super) fn taints(world: &World, node: &str) -> Vec<String> {
    let node = world.sim.object("nodes", "", node).unwrap_or_default();
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints.iter().map(|taint| taint["key"].as_str().unwrap_or_default().to_owned()).collect()
}

pub(super) fn events(world: &World) -> Vec<(String, String)> {
    let mut events = world.sim.objects("events");
    events.retain(|event| event["involvedObject"]["kind"] == "Node");
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    events.sort_by_key(|event| event["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse::<u64>().ok()));
    events.iter().map(|event| (text(event, "reason"), text(event, "message"))).collect()
}
