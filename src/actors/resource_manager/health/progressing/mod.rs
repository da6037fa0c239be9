//! Whether an object is still being rolled out (spec 20 §14): one file per kind or family. The first broken rule
//! describes the roll-out. A kind without an entry in [`check`] is never in a roll-out.

mod certificate;
mod daemon_set;
mod deployment;
mod monitoring;
mod stateful_set;

#[cfg(test)]
mod tests;

use cluster::object::GroupVersionKind;
use serde_json::Value;

use super::{
    fields::{Check, Trouble, bad},
    pods::Quota,
};

/// Runs the rules of a kind. Returns how Pods are counted if only Pods can still speak against the object. Fails with
/// the first rule that says it is in a roll-out, or with a field that cannot be read.
pub(super) fn check(kind: &GroupVersionKind, object: &Value) -> Result<Option<Quota>, Trouble> {
    let done: Check = match (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str()) {
        ("apps", "v1", "Deployment") => return deployment::check(object).map(Some),
        ("apps", "v1", "StatefulSet") => stateful_set::check(object),
        ("apps", "v1", "DaemonSet") => daemon_set::check(object),
        ("monitoring.coreos.com", "v1", "Prometheus" | "Alertmanager") => monitoring::check(object),
        ("cert.gardener.cloud", "v1alpha1", "Certificate" | "Issuer") => certificate::check(object),
        _ => Ok(()),
    };
    done.map(|()| None)
}

fn updated(updated: i64, desired: i64) -> Check {
    if updated < desired {
        return bad(format!("{updated} of {desired} replica(s) have been updated"));
    }
    Ok(())
}
