use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    child, empty, fill, items,
    quantity::{canonicalize, canonicalize_all},
    workload,
};
use crate::kinds::ServedKind;

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn apply(kind: &ServedKind, new: &mut Value, old: Option<&Value>) {
    match kind.kind.as_str() {
        "Namespace" => namespace(new, old),
        "Secret" => secret(new),
        "PersistentVolumeClaim" => {
            protect(new, old, "kubernetes.io/pvc-protection");
            workload::claim(child(new, "spec"));
        }
        "PersistentVolume" => {
            protect(new, old, "kubernetes.io/pv-protection");
            let spec = child(new, "spec");
            fill(spec, "volumeMode", "Filesystem");
            fill(spec, "persistentVolumeReclaimPolicy", "Retain");
            canonicalize_all(spec.get_mut("capacity"));
            if let Some(path) = spec.get_mut("hostPath") {
                fill(path, "type", "");
            }
        }
        "ResourceQuota" => canonicalize_all(child(new, "spec").get_mut("hard")),
        "LimitRange" => limits(child(new, "spec")),
        "Endpoints" => items(new, "subsets").for_each(protocols),
        "EndpointSlice" => endpoint_slice(new),
        "Event" if kind.group.is_empty() => {
            fill(new, "source", empty());
            fill(new, "reportingComponent", "");
            fill(new, "reportingInstance", "");
        }
        "NetworkPolicy" => network_policy(child(new, "spec")),
        "IngressClass" => {
            if let Some(parameters) = new.pointer_mut("/spec/parameters") {
                fill(parameters, "scope", "Cluster");
            }
        }
        "HorizontalPodAutoscaler" => autoscaler(child(new, "spec"), kind.version == "v2"),
        "RoleBinding" | "ClusterRoleBinding" => binding(new),
        "MutatingWebhookConfiguration" => items(new, "webhooks").for_each(|hook| webhook(hook, true)),
        "ValidatingWebhookConfiguration" => items(new, "webhooks").for_each(|hook| webhook(hook, false)),
        "APIService" => {
            if let Some(service) = new.pointer_mut("/spec/service") {
                fill(service, "port", 443);
            }
        }
        "CustomResourceDefinition" => definition(child(new, "spec")),
        "StorageClass" => {
            fill(new, "reclaimPolicy", "Delete");
            fill(new, "volumeBindingMode", "Immediate");
        }
        "CSIDriver" => driver(child(new, "spec")),
        "PriorityClass" => fill(new, "preemptionPolicy", "PreemptLowerPriority"),
        _ => {}
    }
}

/// Only `/finalize` changes the finalizers: it sends a spec, most other writers do not.
fn namespace(new: &mut Value, old: Option<&Value>) {
    let name = new["metadata"]["name"].clone();
    child(child(new, "metadata"), "labels")["kubernetes.io/metadata.name"] = name;
    match old {
        None => {
            let spec = child(new, "spec");
            fill(spec, "finalizers", json!([]));
            if let Value::Array(finalizers) = &mut spec["finalizers"]
                && !finalizers.iter().any(|name| name == "kubernetes")
            {
                finalizers.push("kubernetes".into());
            }
        }
        Some(old) => fill(new, "spec", old.get("spec").cloned().unwrap_or_else(empty)),
    }
}

fn secret(new: &mut Value) {
    fill(new, "type", "Opaque");
    let Some(texts) = new.as_object_mut().and_then(|fields| fields.remove("stringData")) else { return };
    for (key, text) in texts.as_object().into_iter().flatten() {
        let data = child(new, "data");
        if data.is_object() {
            data[key] = STANDARD.encode(text.as_str().unwrap_or_default()).into();
        }
    }
}

fn protect(new: &mut Value, old: Option<&Value>, finalizer: &str) {
    if old.is_some() {
        return;
    }
    let metadata = child(new, "metadata");
    fill(metadata, "finalizers", json!([]));
    if let Value::Array(finalizers) = &mut metadata["finalizers"]
        && !finalizers.iter().any(|name| name == finalizer)
    {
        finalizers.push(finalizer.into());
    }
}

fn limits(spec: &mut Value) {
    for limit in items(spec, "limits") {
        for field in ["default", "defaultRequest", "max", "maxLimitRequestRatio", "min"] {
            canonicalize_all(limit.get_mut(field));
        }
    }
}

fn protocols(holder: &mut Value) {
    items(holder, "ports").for_each(|port| fill(port, "protocol", "TCP"));
}

fn endpoint_slice(new: &mut Value) {
    protocols(new);
    items(new, "ports").for_each(|port| fill(port, "name", ""));
    items(new, "endpoints").for_each(|endpoint| fill(endpoint, "conditions", empty()));
}

fn network_policy(spec: &mut Value) {
    fill(spec, "podSelector", empty());
    let types: &[&str] = if spec.get("egress").is_some() { &["Ingress", "Egress"] } else { &["Ingress"] };
    fill(spec, "policyTypes", types);
    for direction in ["ingress", "egress"] {
        items(spec, direction).for_each(protocols);
    }
}

fn autoscaler(spec: &mut Value, has_metrics: bool) {
    fill(spec, "minReplicas", 1);
    if !has_metrics {
        return;
    }
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    fill(spec, "metrics", json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    for metric in items(spec, "metrics") {
        let sources = metric.as_object_mut().into_iter().flatten().map(|(_, source)| source);
        for target in sources.filter_map(|source| source.get_mut("target")) {
            for field in ["value", "averageValue"] {
                if let Some(amount) = target.get_mut(field) {
                    canonicalize(amount);
                }
            }
        }
    }
    if let Some(behavior) = spec.get_mut("behavior") {
        let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
        let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
        let up = child(behavior, "scaleUp");
        fill(up, "stabilizationWindowSeconds", 0);
        fill(up, "selectPolicy", "Max");
        fill(up, "policies", json!([pods, percent]));
        let down = child(behavior, "scaleDown");
        fill(down, "selectPolicy", "Max");
        fill(down, "policies", json!([percent]));
    }
}

fn binding(new: &mut Value) {
    for subject in items(new, "subjects") {
        if subject["kind"] == "User" || subject["kind"] == "Group" {
            fill(subject, "apiGroup", RBAC);
        } else if subject["apiGroup"] == "" {
            super::remove(subject, "apiGroup");
        }
    }
    let role = child(new, "roleRef");
    if role["apiGroup"] == "" {
        super::remove(role, "apiGroup");
    }
    fill(role, "apiGroup", RBAC);
}

fn webhook(webhook: &mut Value, is_mutating: bool) {
    fill(webhook, "failurePolicy", "Fail");
    fill(webhook, "matchPolicy", "Equivalent");
    fill(webhook, "namespaceSelector", empty());
    fill(webhook, "objectSelector", empty());
    fill(webhook, "timeoutSeconds", 10);
    if is_mutating {
        fill(webhook, "reinvocationPolicy", "Never");
    }
    if let Some(service) = webhook.pointer_mut("/clientConfig/service") {
        fill(service, "port", 443);
    }
    items(webhook, "rules").for_each(|rule| fill(rule, "scope", "*"));
}

fn definition(spec: &mut Value) {
    let names = child(spec, "names");
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    fill(names, "singular", kind.to_lowercase());
    fill(names, "listKind", format!("{kind}List"));
    fill(child(spec, "conversion"), "strategy", "None");
    if let Some(service) = spec.pointer_mut("/conversion/webhook/clientConfig/service") {
        fill(service, "port", 443);
    }
}

fn driver(spec: &mut Value) {
    fill(spec, "attachRequired", true);
    fill(spec, "podInfoOnMount", false);
    fill(spec, "storageCapacity", false);
    fill(spec, "requiresRepublish", false);
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    fill(spec, "volumeLifecycleModes", json!(["Persistent"]));
}
