//! References: annotations that name the Secrets and ConfigMaps an object needs (spec 33 §4.2).

use cluster::{Resource, object::GroupVersionKind};
use serde_json::Value;

use super::candidates::{CollectableKind, Identity};
use crate::api::keys::REFERENCE_PREFIX;

/// The kinds that can refer to candidates, in the order in which they are listed: group, version, kind, plural.
pub const HOLDERS: [(&str, &str, &str, &str); 8] = [
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    ("apps", "v1", "DaemonSet", "daemonsets"),
    ("batch", "v1", "Job", "jobs"),
    ("", "v1", "Pod", "pods"),
    ("batch", "v1", "CronJob", "cronjobs"),
    ("resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources"),
    ("monitoring.coreos.com", "v1", "Prometheus", "prometheuses"),
];

/// The [`HOLDERS`] as resources.
pub fn holders() -> impl Iterator<Item = Resource> {
    HOLDERS.into_iter().map(|(group, version, kind, plural)| Resource::new(group, version, kind, plural, true))
}

/// Returns kind and name of the referenced objects. The hash in the key and annotations of pod templates are ignored.
pub fn of(object: &Value) -> impl Iterator<Item = (CollectableKind, &str)> {
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    annotations.into_iter().flatten().filter_map(|(key, value)| {
        let (kind, hash) = key.strip_prefix(REFERENCE_PREFIX)?.split_once('-')?;
        let name = value.as_str().filter(|name| !name.is_empty() && !hash.contains('-'))?;
        Some((CollectableKind::of_reference(kind)?, name))
    })
}

/// The references with their namespace.
pub fn identities(object: &Value) -> impl Iterator<Item = Identity> {
    of(object).map(|(kind, name)| {
        let namespace = cluster::object::namespace(object).to_owned();
        Identity { namespace, kind, name: name.to_owned() }
    })
}

/// The list kind, as error texts name it.
pub fn list_kind(kind: &GroupVersionKind) -> String {
    format!("{}/{}, Kind={}List", kind.group, kind.version, kind.kind)
}
