//! Whether an object is still being rolled out (spec 20 §14). The first broken rule describes the roll-out. A kind
//! without an entry in [`check`] is never in a roll-out.

#[cfg(test)]
mod tests;

use cluster::object::GroupVersionKind;
use serde_json::Value;

use super::{
    fields::{Check, Trouble, bad, generation_observed, number, replicas, required},
    pods::Quota,
};

/// Runs the rules of a kind. Returns how Pods are counted if only Pods can still speak against the object. Fails with
/// the first rule that says it is in a roll-out, or with a field that cannot be read.
pub(super) fn check(kind: &GroupVersionKind, object: &Value) -> Result<Option<Quota>, Trouble> {
    let done: Check = match (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str()) {
        ("apps", "v1", "Deployment") => return deployment(object).map(Some),
        ("apps", "v1", "StatefulSet") => stateful_set(object),
        ("apps", "v1", "DaemonSet") => daemon_set(object),
        ("monitoring.coreos.com", "v1", "Prometheus" | "Alertmanager") => monitoring(object),
        ("cert.gardener.cloud", "v1alpha1", "Certificate" | "Issuer") => generation_observed(object),
        _ => Ok(()),
    };
    done.map(|()| None)
}

/// The status of a Deployment does not show Pods of an earlier ReplicaSet that still end: those are counted.
fn deployment(object: &Value) -> Result<Quota, Trouble> {
    generation_observed(object)?;
    let progressing = required(object, "Progressing")?;
    if progressing.status()? != "True" || progressing.reason()? != "NewReplicaSetAvailable" {
        return Err(Trouble::Bad(progressing.message()?.to_owned()));
    }
    Quota::of(object)
}

fn stateful_set(object: &Value) -> Check {
    generation_observed(object)?;
    updated(number(object, "status.updatedReplicas")?, replicas(object)?)
}

fn daemon_set(object: &Value) -> Check {
    generation_observed(object)?;
    updated(number(object, "status.updatedNumberScheduled")?, number(object, "status.desiredNumberScheduled")?)
}

fn monitoring(object: &Value) -> Check {
    let reconciled = required(object, "Reconciled")?;
    reconciled.generation_observed(object)?;
    reconciled.is("True")?;
    updated(number(object, "status.updatedReplicas")?, replicas(object)?)
}

fn updated(updated: i64, desired: i64) -> Check {
    if updated < desired {
        return bad(format!("{updated} of {desired} replica(s) have been updated"));
    }
    Ok(())
}
