//! Services: addresses, node ports, and changes of the type.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{
    allocations::{Allocations, Owner, PORTS, Refused},
    child, fill, items, remove,
};
use crate::{
    kinds::ServedKind,
    status::{Cause, Failure},
};

const AFFINITY_SECONDS: i64 = 10_800;

pub(super) fn apply(
    kind: &ServedKind,
    new: &mut Value,
    old: Option<&Value>,
    allocations: &mut Allocations,
) -> Result<(), Failure> {
    let owner = Owner::of(new, old);
    let name = new["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let spec = child(new, "spec");
    common(spec);
    if let Some(old) = old {
        keep(spec, &old["spec"]);
        drop_of_other_types(spec, &old["spec"]);
    }
    families(spec);
    if let Some(cause) = old.and_then(|old| changed_address(spec, &old["spec"])) {
        return Err(Failure::invalid(kind, &name, vec![cause]));
    }
    let mut taken = allocations.clone(); // a copy, so that a failure changes nothing
    taken.release_all(&owner);
    let outcome = take_addresses(spec, &mut taken, &owner).and_then(|()| take_ports(spec, &mut taken, &owner));
    match outcome {
        Ok(()) => {
            *allocations = taken;
            Ok(())
        }
        Err(cause) => Err(Failure::invalid(kind, &name, vec![cause])),
    }
}

fn is_type(spec: &Value, types: &[&str]) -> bool {
    spec["type"].as_str().is_some_and(|name| types.contains(&name))
}

fn has_address(spec: &Value) -> bool {
    !is_type(spec, &["ExternalName"])
}

fn is_headless(spec: &Value) -> bool {
    spec["clusterIP"] == "None"
}

fn is_external(spec: &Value) -> bool {
    is_type(spec, &["NodePort", "LoadBalancer"])
}

fn has_node_ports(spec: &Value) -> bool {
    is_type(spec, &["NodePort"]) || (is_type(spec, &["LoadBalancer"]) && spec["allocateLoadBalancerNodePorts"] != false)
}

fn has_health_check(spec: &Value) -> bool {
    is_type(spec, &["LoadBalancer"]) && spec["externalTrafficPolicy"] == "Local"
}

fn common(spec: &mut Value) {
    fill(spec, "type", "ClusterIP");
    fill(spec, "sessionAffinity", "None");
    if spec["sessionAffinity"] == "ClientIP" {
        fill(child(child(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", AFFINITY_SECONDS);
    }
    if has_address(spec) {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if is_external(spec) {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if is_type(spec, &["LoadBalancer"]) {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
    for port in items(spec, "ports") {
        fill(port, "protocol", "TCP");
        let number = port["port"].clone();
        if matches!(&port["targetPort"], Value::Null) || port["targetPort"] == 0 || port["targetPort"] == "" {
            port["targetPort"] = number;
        }
    }
    for field in ["clusterIP", "ipFamilyPolicy"] {
        if spec[field] == "" {
            remove(spec, field);
        }
    }
    // Writers may set either of the two fields.
    if let Some(first) = spec["clusterIPs"].get(0).cloned() {
        fill(spec, "clusterIP", first);
    } else if let Some(address) = spec.get("clusterIP").cloned() {
        spec["clusterIPs"] = json!([address]);
    }
}

fn keep(spec: &mut Value, old: &Value) {
    if has_address(spec) && has_address(old) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = old.get(field).cloned() {
                fill(spec, field, value);
            }
        }
    }
    if has_node_ports(spec) && has_node_ports(old) {
        let used: Vec<Value> = items(spec, "ports").filter_map(|port| port.get("nodePort").cloned()).collect();
        for port in items(spec, "ports") {
            let known = old["ports"].as_array().into_iter().flatten();
            let same = |other: &&Value| other["port"] == port["port"] && other["protocol"] == port["protocol"];
            let kept = known.filter(same).find_map(|other| other.get("nodePort").cloned());
            if let Some(kept) = kept.filter(|kept| !used.contains(kept)) {
                fill(port, "nodePort", kept);
            }
        }
    }
    if has_health_check(spec)
        && has_health_check(old)
        && let Some(port) = old.get("healthCheckNodePort").cloned()
    {
        fill(spec, "healthCheckNodePort", port);
    }
}

/// Drops fields that only the old type needs, unless the writer changed them too.
fn drop_of_other_types(spec: &mut Value, old: &Value) {
    let drop_same = |spec: &mut Value, fields: &[&str]| {
        for field in fields {
            if spec.get(field) == old.get(field) {
                remove(spec, field);
            }
        }
    };
    if !has_address(spec) && has_address(old) {
        let fields = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"];
        drop_same(spec, &fields);
    }
    if !has_node_ports(spec) && has_node_ports(old) {
        let numbers: Vec<Value> =
            old["ports"].as_array().into_iter().flatten().filter_map(|port| port.get("nodePort").cloned()).collect();
        for port in items(spec, "ports") {
            if port.get("nodePort").is_some_and(|number| numbers.contains(number)) {
                remove(port, "nodePort");
            }
        }
    }
    if !is_external(spec) && is_external(old) {
        drop_same(spec, &["externalTrafficPolicy"]);
    }
    if !has_health_check(spec) && has_health_check(old) {
        drop_same(spec, &["healthCheckNodePort"]);
    }
    if !is_type(spec, &["LoadBalancer"]) && is_type(old, &["LoadBalancer"]) {
        drop_same(spec, &["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
}

/// Fails if the address changes although the type keeps it. Checked before another address is taken.
fn changed_address(spec: &Value, old: &Value) -> Option<Cause> {
    let is_fixed = has_address(spec) && has_address(old) && old["clusterIP"].is_string();
    let changed = is_fixed && (old["clusterIP"] != spec["clusterIP"] || old["clusterIPs"][0] != spec["clusterIPs"][0]);
    changed.then(|| Cause::invalid("spec.clusterIPs[0]", &spec["clusterIPs"], "may not change once set"))
}

fn families(spec: &mut Value) {
    if !has_address(spec) {
        return;
    }
    // Endpoints without a selector may be of both families.
    if is_headless(spec) && spec.get("selector").is_none() {
        fill(spec, "ipFamilyPolicy", "RequireDualStack");
        if spec["ipFamilyPolicy"] != "SingleStack" {
            fill(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
        }
    }
    fill(spec, "ipFamilyPolicy", "SingleStack");
    fill(spec, "ipFamilies", json!(["IPv4"]));
}

fn take_addresses(spec: &mut Value, allocations: &mut Allocations, owner: &Owner) -> Result<(), Cause> {
    if !has_address(spec) || is_headless(spec) {
        return Ok(());
    }
    if spec["ipFamilies"][0] == "IPv6" {
        let text = "not configured on this cluster";
        return Err(Cause::invalid("spec.ipFamilies[0]", &spec["ipFamilies"][0], text));
    }
    let asked = spec["clusterIP"].as_str().map(str::to_owned);
    let Some(asked) = asked else {
        let address = allocations.next_address(owner).map_err(|_| {
            let text = "failed to allocate a serviceIP: range is full";
            Cause::invalid("spec.clusterIPs", &json!([]), text)
        })?;
        spec["clusterIP"] = address.to_string().into();
        spec["clusterIPs"] = json!([address.to_string()]);
        return Ok(());
    };
    let refused = |text: &str| Cause::invalid("spec.clusterIPs", &json!([asked]), text);
    let Ok(address) = asked.parse::<Ipv4Addr>() else {
        let text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        return Err(Cause::invalid("spec.clusterIPs[0]", &asked.as_str().into(), text));
    };
    allocations.take_address(address, owner).map_err(|reason| {
        let reason = match reason {
            Refused::Taken | Refused::NoneLeft => "provided IP is already allocated".to_owned(),
            Refused::OutOfRange => "the provided network does not match the current range".to_owned(),
        };
        refused(&format!("failed to allocate IP {asked}: {reason}"))
    })
}

fn take_ports(spec: &mut Value, allocations: &mut Allocations, owner: &Owner) -> Result<(), Cause> {
    let takes_free_ones = has_node_ports(spec);
    // Requested ports first, so that automatic ones do not take them.
    for (index, port) in items(spec, "ports").enumerate() {
        let Some(number) = port.get("nodePort").filter(|number| **number != 0) else { continue };
        take_port(&format!("spec.ports[{index}].nodePort"), number, allocations, owner)?;
    }
    let mut given: Vec<(Value, Value, Value)> = Vec::new();
    for (index, port) in items(spec, "ports").enumerate() {
        let (number, protocol) = (port["port"].clone(), port["protocol"].clone());
        if takes_free_ones && port.get("nodePort").is_none_or(|number| *number == 0) {
            // One node port may serve a port of two protocols.
            let shared = given.iter().find(|(other, used, _)| *other == number && *used != protocol);
            port["nodePort"] = match shared {
                Some((_, _, node_port)) => node_port.clone(),
                None => next_port(&format!("spec.ports[{index}].nodePort"), allocations, owner)?,
            };
        }
        given.push((number, protocol, port["nodePort"].clone()));
        if port["nodePort"].is_null() {
            remove(port, "nodePort");
        }
    }
    if has_health_check(spec) {
        match spec.get("healthCheckNodePort") {
            Some(number) => take_port("spec.healthCheckNodePort", number, allocations, owner)?,
            None => spec["healthCheckNodePort"] = next_port("spec.healthCheckNodePort", allocations, owner)?,
        }
    }
    Ok(())
}

fn take_port(field: &str, number: &Value, allocations: &mut Allocations, owner: &Owner) -> Result<(), Cause> {
    let port = number.as_u64().and_then(|number| u16::try_from(number).ok()).unwrap_or_default();
    allocations.take_port(port, owner).map_err(|reason| {
        let text = match reason {
            Refused::Taken | Refused::NoneLeft => "provided port is already allocated".to_owned(),
            Refused::OutOfRange => format!(
                "provided port is not in the valid range. The range of valid ports is {}-{}",
                PORTS.start(),
                PORTS.end()
            ),
        };
        Cause::invalid(field, number, &text)
    })
}

fn next_port(field: &str, allocations: &mut Allocations, owner: &Owner) -> Result<Value, Cause> {
    let text = "failed to allocate a nodePort: range is full";
    allocations.next_port(owner).map(Value::from).map_err(|_| Cause::invalid(field, &0.into(), text))
}
