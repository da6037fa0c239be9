use serde_json::{Value, json};

use super::{child, empty, fill, quantity};
use crate::kinds::ServedKind;

/// Gives a new object the initial status of its kind, or completes the status it has.
pub(super) fn initialize(kind: &ServedKind, object: &mut Value) {
    if !kind.has_status {
        return;
    }
    let start = match kind.kind.as_str() {
        "Namespace" => json!({"phase": "Active"}),
        "Pod" => json!({"phase": "Pending", "qosClass": quality(&object["spec"])}),
        "PersistentVolume" | "PersistentVolumeClaim" => json!({"phase": "Pending"}),
        "Service" | "Ingress" => json!({"loadBalancer": {}}),
        "ReplicaSet" | "ReplicationController" => json!({"replicas": 0}),
        "StatefulSet" => json!({"replicas": 0, "availableReplicas": 0}),
        "DaemonSet" => json!({
            "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
        }),
        "PodDisruptionBudget" => {
            json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0})
        }
        "HorizontalPodAutoscaler" => json!({"desiredReplicas": 0}),
        "CustomResourceDefinition" => json!({
            "conditions": null,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored_versions(object),
        }),
        _ => empty(),
    };
    let status = child(object, "status");
    for (field, value) in start.as_object().into_iter().flatten() {
        fill(status, field, value.clone());
    }
}

fn stored_versions(definition: &Value) -> Vec<Value> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    versions.filter(|version| version["storage"] == true).map(|version| version["name"].clone()).collect()
}

fn quality(spec: &Value) -> &'static str {
    let containers = ["initContainers", "containers"];
    let containers = containers.into_iter().flat_map(|list| spec[list].as_array().into_iter().flatten());
    let mut is_guaranteed = true;
    let mut is_best_effort = true;
    for container in containers {
        for resource in ["cpu", "memory"] {
            let limit = container["resources"]["limits"].get(resource);
            let request = container["resources"]["requests"].get(resource);
            is_best_effort &= limit.is_none() && request.is_none();
            is_guaranteed &= match (limit, request) {
                (Some(limit), Some(request)) => quantity::is_same(limit, request),
                _ => false,
            };
        }
    }
    match (is_best_effort, is_guaranteed) {
        (true, _) => "BestEffort",
        (false, true) => "Guaranteed",
        (false, false) => "Burstable",
    }
}
