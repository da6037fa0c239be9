use serde_json::{Value, json};

use super::{
    child, empty, fill, items,
    quantity::{canonicalize, canonicalize_all},
    remove,
};

const TOLERATION_SECONDS: i64 = 300; // seconds that a pod stays on a node that is not ready or not reachable

pub(super) fn pod(pod: &mut Value, is_new: bool) {
    let spec = child(pod, "spec");
    fill(spec, "enableServiceLinks", true);
    fill(spec, "priority", 0);
    fill(spec, "preemptionPolicy", "PreemptLowerPriority");
    self::spec(spec);
    let is_on_host_network = spec["hostNetwork"] == true;
    for list in ["initContainers", "containers"] {
        for container in items(spec, list) {
            requests_from_limits(container);
            if is_on_host_network {
                for port in items(container, "ports") {
                    let number = port["containerPort"].clone();
                    fill(port, "hostPort", number);
                }
            }
        }
    }
    if is_new {
        add_tolerations(spec);
    }
}

pub(super) fn template(template: &mut Value) {
    child(template, "metadata");
    spec(child(template, "spec"));
}

pub(super) fn spec(spec: &mut Value) {
    fill(spec, "restartPolicy", "Always");
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "securityContext", empty());
    fill(spec, "schedulerName", "default-scheduler");
    // The old and the new name of the same field.
    for (from, to) in [("serviceAccountName", "serviceAccount"), ("serviceAccount", "serviceAccountName")] {
        if let Some(name) = spec.get(from).cloned() {
            fill(spec, to, name);
        }
    }
    canonicalize_all(spec.get_mut("overhead"));
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        items(spec, list).for_each(container);
    }
    items(spec, "volumes").for_each(volume);
}

fn container(container: &mut Value) {
    let policy =
        if has_moving_tag(container["image"].as_str().unwrap_or_default()) { "Always" } else { "IfNotPresent" };
    fill(container, "imagePullPolicy", policy);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    fill(container, "resources", empty());
    resources(&mut container["resources"]);
    for port in items(container, "ports") {
        fill(port, "protocol", "TCP");
    }
    for variable in items(container, "env") {
        references(variable.get_mut("valueFrom"));
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        container.get_mut(name).into_iter().for_each(probe);
    }
    for hook in ["postStart", "preStop"] {
        container.get_mut("lifecycle").and_then(|lifecycle| lifecycle.get_mut(hook)).into_iter().for_each(action);
    }
}

fn has_moving_tag(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    if image.is_empty() || name.contains('@') {
        return false;
    }
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

pub(super) fn resources(resources: &mut Value) {
    for list in ["limits", "requests"] {
        canonicalize_all(resources.get_mut(list));
    }
}

fn requests_from_limits(container: &mut Value) {
    let Some(limits) = container["resources"].get("limits").and_then(Value::as_object).cloned() else { return };
    let requests = child(&mut container["resources"], "requests");
    for (name, amount) in limits {
        fill(requests, &name, amount);
    }
}

fn references(source: Option<&mut Value>) {
    let Some(source) = source else { return };
    if let Some(field) = source.get_mut("fieldRef") {
        fill(field, "apiVersion", "v1");
    }
    if let Some(field) = source.get_mut("resourceFieldRef") {
        fill(field, "divisor", "0");
        field.get_mut("divisor").into_iter().for_each(canonicalize);
    }
}

fn probe(probe: &mut Value) {
    for (field, default) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        // Zero counts as absent.
        if probe.get(field).is_some_and(|value| *value == 0) {
            remove(probe, field);
        }
        fill(probe, field, default);
    }
    action(probe);
    if let Some(call) = probe.get_mut("grpc") {
        fill(call, "service", "");
    }
}

fn action(handler: &mut Value) {
    if let Some(request) = handler.get_mut("httpGet") {
        fill(request, "path", "/");
        fill(request, "scheme", "HTTP");
    }
}

fn volume(volume: &mut Value) {
    if volume.as_object().is_some_and(|fields| fields.keys().all(|field| field == "name")) {
        volume["emptyDir"] = empty();
    }
    for source in ["secret", "configMap", "projected", "downwardAPI"] {
        if let Some(source) = volume.get_mut(source) {
            fill(source, "defaultMode", 420);
        }
    }
    if let Some(path) = volume.get_mut("hostPath") {
        fill(path, "type", "");
    }
    if let Some(limit) = volume.get_mut("emptyDir").and_then(|directory| directory.get_mut("sizeLimit")) {
        canonicalize(limit);
    }
    if let Some(source) = volume.get_mut("downwardAPI") {
        items(source, "items").for_each(|item| references(Some(item)));
    }
    if let Some(projected) = volume.get_mut("projected") {
        for source in items(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                fill(token, "expirationSeconds", 3600);
            }
            if let Some(source) = source.get_mut("downwardAPI") {
                items(source, "items").for_each(|item| references(Some(item)));
            }
        }
    }
    if let Some(spec) = volume.pointer_mut("/ephemeral/volumeClaimTemplate/spec") {
        fill(spec, "volumeMode", "Filesystem");
    }
}

fn add_tolerations(spec: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let present = spec["tolerations"].as_array().into_iter().flatten();
        let covers = |toleration: &Value| {
            let names = toleration["key"].as_str().unwrap_or_default();
            let effect = toleration["effect"].as_str().unwrap_or_default();
            (names == key || names.is_empty()) && matches!(effect, "" | "NoExecute")
        };
        if present.into_iter().any(covers) {
            continue;
        }
        fill(spec, "tolerations", Value::Array(Vec::new()));
        if let Value::Array(tolerations) = &mut spec["tolerations"] {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}
