//! Whether an object is healthy (spec 20 §11): one file per kind or family. Its rules run top-down, and the first
//! broken rule names the trouble. Kinds without an entry in [`check`] are fine as long as they exist.

mod autoscaler;
mod certificate;
mod daemon_set;
mod definition;
mod deployment;
mod job;
mod monitoring;
mod pod;
mod replicas;
mod service;
mod stateful_set;

#[cfg(test)]
mod tests;

use cluster::object::{GroupKind, GroupVersionKind};
use serde_json::Value;

use super::fields::Check;

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
        ("apiextensions.k8s.io", "v1" | "v1beta1", "CustomResourceDefinition") => definition::check,
        ("apps", "v1", "DaemonSet") => daemon_set::check,
        ("apps", "v1", "Deployment") => deployment::check,
        ("batch", "v1", "Job") => job::check,
        ("", "v1", "Pod") => pod::check,
        ("apps", "v1", "ReplicaSet") => replicas::of_replica_set,
        ("", "v1", "ReplicationController") => replicas::of_replication_controller,
        ("", "v1", "Service") => service::check,
        ("apps", "v1", "StatefulSet") => stateful_set::check,
        ("monitoring.coreos.com", "v1", "Prometheus" | "Alertmanager") => monitoring::check,
        ("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler") => autoscaler::check,
        ("cert.gardener.cloud", "v1alpha1", "Certificate") => certificate::of_certificate,
        ("cert.gardener.cloud", "v1alpha1", "Issuer") => certificate::of_issuer,
        _ => return None,
    })
}
