//! What the pod template of a workload keeps (spec 10 §12.3).

use serde_json::{Map, Value};

use super::{Rule, child_map};
use crate::api::resources::keys;

/// The resources that autoscalers and users tune; others always come from the manifest.
const PRESERVED_RESOURCES: [&str; 2] = ["cpu", "memory"];

pub(super) fn merge_template_of(spec: &mut Map<String, Value>, live_spec: Option<&Value>, rule: &Rule<'_>) {
    let live = live_spec.and_then(|spec| spec.get("template"));
    if let (Some(template), Some(live)) = (spec.get_mut("template").and_then(Value::as_object_mut), live) {
        keep_restarted_at(template, live);
        if rule.preserve_resources {
            keep_resources(template, live);
        }
    }
}

/// Keeps the effect of `kubectl rollout restart`.
fn keep_restarted_at(template: &mut Map<String, Value>, live: &Value) {
    let annotations = live.pointer("/metadata/annotations");
    let Some(restarted_at) = annotations.and_then(|annotations| annotations.get(keys::RESTARTED_AT)) else { return };
    if let Some(metadata) = child_map(template, "metadata")
        && let Some(annotations) = child_map(metadata, "annotations")
    {
        annotations.insert(keys::RESTARTED_AT.to_owned(), restarted_at.clone());
    }
}

fn keep_resources(template: &mut Map<String, Value>, live: &Value) {
    let live_containers = live.pointer("/spec/containers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let containers = template.get_mut("spec").and_then(|spec| spec.get_mut("containers")).and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
        let name = container.get("name").and_then(Value::as_str);
        let live =
            live_containers.iter().find(|live| name.is_some() && live.get("name").and_then(Value::as_str) == name);
        if let Some(live_resources) = live.and_then(|live| live.get("resources")) {
            keep_container_resources(container, live_resources);
        }
    }
}

fn keep_container_resources(container: &mut Map<String, Value>, live: &Value) {
    for kind in ["requests", "limits"] {
        for resource in PRESERVED_RESOURCES {
            let amount = live.get(kind).and_then(|amounts| amounts.get(resource)).filter(|amount| !amount.is_null());
            if let Some(amount) = amount
                && let Some(resources) = child_map(container, "resources")
                && let Some(amounts) = child_map(resources, kind)
            {
                amounts.insert(resource.to_owned(), amount.clone());
            }
        }
    }
}
