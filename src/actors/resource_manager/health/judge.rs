//! Whether an object is healthy (spec 20 §11). The rules of a kind run top-down, and the first broken rule names the
//! trouble. Kinds without an entry in [`rules`] are fine as long as they exist.

#[cfg(test)]
mod tests;

use cluster::object::{GroupKind, GroupVersionKind};
use kit::quote::quoted;
use serde_json::Value;

use super::fields::{
    Check, Trouble, at, bad, generation_observed, list, may_be, must_be, number, optional_number, replicas, required,
    text,
};

type Rules = fn(&Value) -> Check;

/// Runs the rules of a kind; the version must match. Fails with the first broken rule or unreadable field.
pub(super) fn check(kind: &GroupVersionKind, object: &Value) -> Check {
    rules(&kind.group, &kind.version, &kind.kind).map_or(Ok(()), |rules| rules(object))
}

pub(crate) fn is_checked(kind: &GroupVersionKind) -> bool {
    rules(&kind.group, &kind.version, &kind.kind).is_some()
}

/// Returns the version in which objects of a kind are judged and watched, or `None` if there are no rules.
pub(crate) fn checked_version(kind: &GroupKind) -> Option<&'static str> {
    ["v1", "v1alpha1", "v1beta1"].into_iter().find(|version| rules(&kind.group, version, &kind.kind).is_some())
}

/// Returns the rules of a group, version and kind (spec 20 §11.2).
fn rules(group: &str, version: &str, kind: &str) -> Option<Rules> {
    Some(match (group, version, kind) {
        ("apiextensions.k8s.io", "v1" | "v1beta1", "CustomResourceDefinition") => definition,
        ("apps", "v1", "DaemonSet") => daemon_set,
        ("apps", "v1", "Deployment") => deployment,
        ("batch", "v1", "Job") => |job| may_be(job, "Failed", "False"),
        ("", "v1", "Pod") => pod,
        ("apps", "v1", "ReplicaSet") => |set| replicas_are_ready(set, "ReplicaSet"),
        ("", "v1", "ReplicationController") => |controller| replicas_are_ready(controller, "ReplicationController"),
        ("", "v1", "Service") => service,
        ("apps", "v1", "StatefulSet") => stateful_set,
        ("monitoring.coreos.com", "v1", "Prometheus" | "Alertmanager") => monitoring,
        // Its generation is ignored: it may be created before any controller observes it, and waiting for that would
        // never end.
        ("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler") => |it| may_be(it, "ConfigUnsupported", "False"),
        ("cert.gardener.cloud", "v1alpha1", "Certificate") => certificate,
        ("cert.gardener.cloud", "v1alpha1", "Issuer") => |issuer| state_is_ready(issuer, "issuer"),
        _ => return None,
    })
}

fn definition(object: &Value) -> Check {
    must_be(object, "NamesAccepted", "True")?;
    must_be(object, "Established", "True")?;
    may_be(object, "Terminating", "False")
}

/// The number of ready Pods does not matter: Nodes come and go.
fn daemon_set(object: &Value) -> Check {
    generation_observed(object)?;
    let desired = number(object, "status.desiredNumberScheduled")?;
    let current = number(object, "status.currentNumberScheduled")?;
    enough("scheduled pods", current, desired)?;
    let misscheduled = number(object, "status.numberMisscheduled")?;
    if misscheduled > 0 {
        return bad(format!("misscheduled pods found ({misscheduled})"));
    }
    let unavailable = number(object, "status.numberUnavailable")?;
    if number(object, "status.updatedNumberScheduled")? < desired {
        let max = max_unavailable(object, desired)?;
        if i128::from(unavailable) > max {
            return bad(format!(
                "too many unavailable pods found ({unavailable}/{current}, only max. {max} unavailable pods allowed)"
            ));
        }
    } else if unavailable > 0 {
        return bad(format!("too many unavailable pods found ({unavailable}/{current})"));
    }
    Ok(())
}

/// Returns how many Pods may be unavailable during a roll-out; 0 for values that are not understood.
fn max_unavailable(object: &Value, desired: i64) -> Result<i128, Trouble> {
    const FIELD: &str = "spec.updateStrategy.rollingUpdate.maxUnavailable";

    if desired == 0 || text(object, "spec.updateStrategy.type")? != "RollingUpdate" {
        return Ok(0);
    }
    match at(object, FIELD)? {
        None => Ok(0),
        Some(Value::String(share)) => Ok(percent_of(share, desired)),
        Some(number) => number
            .as_i64()
            .map(i128::from)
            .ok_or_else(|| Trouble::Unreadable(format!("{FIELD} is neither an integer nor a string"))),
    }
}

fn percent_of(share: &str, total: i64) -> i128 {
    let percent = share.strip_suffix('%').and_then(|percent| percent.parse::<i64>().ok()).unwrap_or_default();
    (i128::from(percent) * i128::from(total)).div_euclid(100)
}

/// The number of replicas does not matter. A paused Deployment is unhealthy.
fn deployment(object: &Value) -> Check {
    generation_observed(object)?;
    must_be(object, "Available", "True")?;
    may_be(object, "Progressing", "True")?;
    may_be(object, "ReplicaFailure", "False")
}

fn pod(object: &Value) -> Check {
    let phase = text(object, "status.phase")?;
    if matches!(phase, "Running" | "Succeeded") {
        return Ok(());
    }
    bad(format!("pod is in invalid phase {} (expected one of [\"Running\" \"Succeeded\"])", quoted(phase)))
}

fn replicas_are_ready(object: &Value, kind: &str) -> Check {
    generation_observed(object)?;
    match optional_number(object, "spec.replicas")? {
        Some(replicas) if number(object, "status.readyReplicas")? < replicas => {
            bad(format!("{kind} does not have minimum availability"))
        }
        Some(_) | None => Ok(()),
    }
}

/// A Service of type LoadBalancer must have an address.
fn service(object: &Value) -> Check {
    if text(object, "spec.type")? == "LoadBalancer" && list(object, "status.loadBalancer.ingress")?.is_empty() {
        return bad("service is missing ingress status");
    }
    Ok(())
}

fn stateful_set(object: &Value) -> Check {
    generation_observed(object)?;
    let wanted = replicas(object)?;
    enough("ready replicas", number(object, "status.readyReplicas")?, wanted)
}

/// Prometheus and Alertmanager of the Prometheus operator. Each of their conditions has its own generation.
fn monitoring(object: &Value) -> Check {
    let available = required(object, "Available")?;
    available.generation_observed(object)?;
    available.is("True")?;
    let wanted = replicas(object)?;
    enough("available replicas", number(object, "status.availableReplicas")?, wanted)
}

fn enough(what: &str, present: i64, wanted: i64) -> Check {
    if present < wanted {
        return bad(format!("not enough {what} ({present}/{wanted})"));
    }
    Ok(())
}

fn certificate(object: &Value) -> Check {
    may_be(object, "Ready", "True")?;
    state_is_ready(object, "certificate")
}

fn state_is_ready(object: &Value, name: &str) -> Check {
    match text(object, "status.state")? {
        "Ready" => Ok(()),
        state => bad(format!("{name} state is {} (\"Ready\" expected)", quoted(state))),
    }
}
