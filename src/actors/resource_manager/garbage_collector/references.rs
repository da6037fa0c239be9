//! References: annotations that name the Secrets and ConfigMaps an object needs (spec 33 §4.2).

use cluster::{Resource, object::GroupVersionKind};
use serde_json::Value;

use super::candidates::{CollectableKind, Identity};
use crate::api::{kinds, resources::keys::REFERENCE_PREFIX};

/// The kinds that can refer to candidates, in the order in which they are listed.
pub const HOLDERS: [Resource; 8] = [
    kinds::DEPLOYMENT,
    kinds::STATEFUL_SET,
    kinds::DAEMON_SET,
    kinds::JOB,
    kinds::POD,
    kinds::CRON_JOB,
    kinds::MANAGED_RESOURCE,
    kinds::PROMETHEUS,
];

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
