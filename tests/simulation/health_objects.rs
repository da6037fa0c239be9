//! Shared by the scenarios of spec 20: a ManagedResource `one`, its objects, and its conditions.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{NAMESPACE, World};

pub(crate) const APPLIED: &str = "ResourcesApplied";
pub(crate) const HEALTHY: &str = "ResourcesHealthy";
pub(crate) const PROGRESSING: &str = "ResourcesProgressing";
pub(crate) const ALL_HEALTHY: [&str; 3] = ["True", "ResourcesHealthy", "All resources are healthy."];
pub(crate) const ROLLED_OUT: [&str; 3] = ["False", "ResourcesRolledOut", "All resources have been fully rolled out."];
pub(crate) const MRS: &str = "managedresources.resources.gardener.cloud";
pub(crate) const SKIP: &str = "resources.gardener.cloud/skip-health-check";

pub(crate) fn condition(world: &World, kind: &str) -> [String; 3] {
    world.condition("one", kind).map(|(status, reason, message)| [status, reason, message]).unwrap_or_default()
}

pub(crate) async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

pub(crate) fn workload(kind: &str, name: &str, replicas: i64) -> Value {
    let labels = json!({ "app": name });
    let containers = json!([{ "name": "c", "image": "pause" }]);
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": containers } },
        },
    });
    if kind != "DaemonSet" {
        object["spec"]["replicas"] = json!(replicas);
    }
    if kind == "StatefulSet" {
        object["spec"]["serviceName"] = json!(name);
    }
    object
}

pub(crate) fn pod(name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": NAMESPACE, "name": name, "labels": { "app": app } },
        "spec": { "containers": [{ "name": "c", "image": "pause" }] },
    })
}

pub(crate) fn set_status(world: &World, resource: &str, name: &str, status: Value) {
    assert!(world.sim.edit(resource, NAMESPACE, name, |live| live["status"] = status), "{name} exists");
}

pub(crate) fn rolled_out() -> Value {
    json!({ "observedGeneration": 9, "conditions": [
        { "type": "Available", "status": "True" },
        { "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
    ] })
}

pub(crate) fn ready(replicas: i64) -> Value {
    json!({ "observedGeneration": 9, "replicas": 2, "readyReplicas": replicas, "updatedReplicas": 2 })
}

pub(crate) async fn stands(world: &World, kind: &str, expected: [&str; 3]) {
    world.eventually(&format!("{kind} is {expected:?}"), || condition(world, kind) == expected).await;
}

pub(crate) fn unhealthy(kind: &str, name: &str, text: &str) -> [String; 3] {
    let message = format!("{kind} \"{NAMESPACE}/{name}\" is unhealthy: {text}");
    ["False".to_owned(), format!("{kind}Unhealthy"), message]
}

pub(crate) fn missing(kind: &str, name: &str) -> [String; 3] {
    let message = format!("Required {kind} \"{name}\" in namespace \"{NAMESPACE}\" is missing");
    ["False".to_owned(), format!("{kind}Missing"), message]
}

pub(crate) fn status_writes(world: &World) -> usize {
    world.writes().iter().filter(|write| write.starts_with("update managedresources/status")).count()
}

pub(crate) async fn healthy_stateful_set(world: &World) {
    world.start().await;
    world.bundle("one", &[workload("StatefulSet", "db", 2)]);
    world.applied("one").await;
    set_status(world, "statefulsets.apps", "db", ready(2));
    stands(world, HEALTHY, ALL_HEALTHY).await;
    stands(world, PROGRESSING, ROLLED_OUT).await;
}
