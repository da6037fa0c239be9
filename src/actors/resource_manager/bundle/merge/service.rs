//! Services (spec 10 §12.7): addresses and ports that the API server allocated.

use std::collections::BTreeSet;

use cluster::object;
use serde_json::{Map, Value};

use super::{Rule, child_map, copy_field};
use crate::api::resources::keys;

const CLUSTER_IP: &str = "ClusterIP";
const NODE_PORT: &str = "NodePort";
const LOAD_BALANCER: &str = "LoadBalancer";
const EXTERNAL_NAME: &str = "ExternalName";

/// What two ports may have in common, the strongest reason to keep a node port first. A name says more than a number,
/// and one number may serve two protocols (DNS).
const MATCHES: [fn(&Value, &Value) -> bool; 5] = [
    |new, old| same_port(new, old) && name(new) == name(old) && protocol(new) == protocol(old),
    |new, old| !name(new).is_empty() && name(new) == name(old),
    |new, old| same_port(new, old) && protocol(new) == protocol(old),
    |new, old| same_port(new, old),
    |new, old| name(new).is_empty() && name(old).is_empty(),
];

pub(super) fn merge_service(merged: &mut Value, rule: &Rule<'_>) {
    if rule.force_overwrite_annotations {
        keep_openstack_annotations(merged, rule.live);
    }
    let Some(root) = merged.as_object_mut() else { return };
    if let Some(spec) = child_map(root, "spec") {
        let empty = Value::Null;
        merge_spec(spec, rule.live_spec().unwrap_or(&empty));
    }
}

fn merge_spec(spec: &mut Map<String, Value>, live: &Value) {
    // A type that is no text is left for the API server to refuse.
    if spec.get("type").is_some_and(|value| !(value.is_null() || value.is_string())) {
        return;
    }
    let new_type = service_type(spec.get("type")).to_owned();
    let old_type = service_type(live.get("type"));
    spec.insert("type".to_owned(), Value::String(new_type.clone()));

    if new_type == LOAD_BALANCER || new_type == NODE_PORT {
        keep_node_ports(spec, live);
        keep_text(spec, live, "loadBalancerIP");
    }
    if new_type == EXTERNAL_NAME {
        return;
    }
    if spec.get("clusterIP").and_then(Value::as_str) != Some("None") && old_type != EXTERNAL_NAME {
        copy_field(spec, Some(live), "clusterIP");
    }
    if new_type != LOAD_BALANCER || old_type != LOAD_BALANCER {
        return;
    }
    // A webhook or the cloud sets the class at the creation, and updates may not change it.
    keep_text(spec, live, "loadBalancerClass");
    let is_local = |policy: Option<&Value>| policy.and_then(Value::as_str) == Some("Local");
    if is_local(spec.get("externalTrafficPolicy"))
        && is_local(live.get("externalTrafficPolicy"))
        && is_zero(spec.get("healthCheckNodePort"))
        && number(live.get("healthCheckNodePort")) != 0
    {
        copy_field(spec, Some(live), "healthCheckNodePort");
    }
}

/// Gives ports without a node port one of the live ones. Each live port gives its number away once, no number is used
/// twice for one protocol, and numbers in the manifest are not given away. (A deviation: upstream takes the last match
/// and may send a number twice.)
fn keep_node_ports(spec: &mut Map<String, Value>, live: &Value) {
    let Some(ports) = spec.get_mut("ports").and_then(Value::as_array_mut) else { return };
    let old_ports = live.get("ports").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut taken: BTreeSet<(String, i64)> = ports
        .iter()
        .filter(|port| node_port(port) != 0)
        .map(|port| (protocol(port).to_owned(), node_port(port)))
        .collect();

    for matches in MATCHES {
        for port in ports.iter_mut().filter(|port| port.is_object() && is_zero(port.get("nodePort"))) {
            let is_taken = |by: &Value, number| taken.contains(&(protocol(by).to_owned(), number));
            let is_free = |old: &&Value| {
                let number = node_port(old);
                number != 0 && !is_taken(old, number) && !is_taken(port, number)
            };
            // The last match wins, as in upstream.
            let Some(old) = old_ports.iter().rev().filter(is_free).find(|old| matches(port, old)) else { continue };
            taken.insert((protocol(port).to_owned(), node_port(old)));
            taken.insert((protocol(old).to_owned(), node_port(old)));
            *object::field_mut(port, &["nodePort"]) = node_port(old).into();
        }
    }
}

/// Annotations of the cloud provider survive forced annotations, unless the manifest sets them (a deviation: upstream
/// intends that, but loses them).
fn keep_openstack_annotations(merged: &mut Value, live: &Value) {
    let annotations = merged.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    let live = live.pointer("/metadata/annotations").and_then(Value::as_object);
    if let (Some(annotations), Some(live)) = (annotations, live) {
        for (key, value) in live.iter().filter(|(key, _)| key.starts_with(keys::OPENSTACK_LOAD_BALANCER_PREFIX)) {
            annotations.entry(key).or_insert_with(|| value.clone());
        }
    }
}

fn service_type(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).filter(|text| !text.is_empty()).unwrap_or(CLUSTER_IP)
}

/// Keeps a live text that the manifest does not set.
fn keep_text(spec: &mut Map<String, Value>, live: &Value, field: &str) {
    if is_empty_text(spec.get(field)) && !is_empty_text(live.get(field)) {
        copy_field(spec, Some(live), field);
    }
}

fn is_empty_text(value: Option<&Value>) -> bool {
    value.is_none_or(|value| value.is_null() || value == "")
}

fn is_zero(value: Option<&Value>) -> bool {
    value.is_none_or(|value| value.is_null() || value.as_f64() == Some(0.0))
}

fn number(value: Option<&Value>) -> i64 {
    value.and_then(|value| value.as_i64().or_else(|| value.as_f64().map(|number| number as i64))).unwrap_or_default()
}

fn node_port(port: &Value) -> i64 {
    number(port.get("nodePort"))
}

fn same_port(new: &Value, old: &Value) -> bool {
    number(new.get("port")) == number(old.get("port"))
}

fn name(port: &Value) -> &str {
    port.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn protocol(port: &Value) -> &str {
    port.get("protocol").and_then(Value::as_str).filter(|text| !text.is_empty()).unwrap_or("TCP")
}
