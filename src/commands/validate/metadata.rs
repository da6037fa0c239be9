//! Checks annotations and labels that the controller uses (spec 10 §2.7), and metadata that it does not want.

use cluster::{
    Propagation,
    object::{self, truthy},
};
use kit::duration::GoDuration;
use serde_json::Value;

use super::{Issue, Issues};
use crate::api::resources::keys;

const TRUTHY: [&str; 3] = [keys::IGNORE, keys::KEEP_OBJECT, keys::DELETE_ON_INVALID_UPDATE];
const EXACTLY_TRUE: [&str; 3] = [keys::PRESERVE_REPLICAS, keys::PRESERVE_RESOURCES, keys::SKIP_HEALTH_CHECK];
const WRITTEN: [&str; 2] = [keys::ORIGIN, keys::DESCRIPTION]; // annotations that the controller overwrites
const FALSE: [&str; 6] = ["0", "f", "F", "false", "FALSE", "False"];
const KNOWN: [&str; 5] = [
    keys::MODE,
    keys::DELETION_PROPAGATION_ON_INVALID_UPDATE,
    keys::FINALIZE_DELETION_AFTER,
    keys::GARBAGE_COLLECTABLE,
    keys::MANAGED_BY,
];
const PREFIX: &str = "resources.gardener.cloud/";

pub(super) fn check(manifest: &Value, issues: &mut Issues) {
    let annotations = manifest.pointer("/metadata/annotations").and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flatten() {
        issues.extend(value.as_str().and_then(|value| annotation(key, value)));
    }
    let mode = object::annotation(manifest, keys::DELETION_PROPAGATION_ON_INVALID_UPDATE);
    if mode.is_some() && !truthy(object::annotation(manifest, keys::DELETE_ON_INVALID_UPDATE)) {
        let what = format!("annotation {} has no effect alone", keys::DELETION_PROPAGATION_ON_INVALID_UPDATE);
        issues.push(Issue::warning(what, format!("add {}: \"true\"", keys::DELETE_ON_INVALID_UPDATE)));
    }
    if object::label(manifest, keys::MANAGED_BY).is_some() {
        let what = format!("label {} is overwritten by the controller", keys::MANAGED_BY);
        issues.push(Issue::warning(what, "leave it out"));
    }
    if !object::resource_version(manifest).is_empty() {
        issues.push(Issue::error("metadata.resourceVersion makes its creation fail", "leave it out"));
    }
    if manifest.get("status").and_then(Value::as_object).is_some_and(|status| !status.is_empty()) {
        issues.push(Issue::warning("status is never updated from a manifest", "leave it out"));
    }
    if manifest.pointer("/metadata/ownerReferences").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        let what = "metadata.ownerReferences name objects by uid, which other clusters do not have";
        issues.push(Issue::warning(what, "leave them out"));
    }
}

fn annotation(key: &str, value: &str) -> Option<Issue> {
    let shown = format!("annotation {key}: {value:?}");
    if TRUTHY.contains(&key) {
        let is_clear = truthy(Some(value)) || FALSE.contains(&value);
        return (!is_clear)
            .then(|| Issue::warning(format!("{shown} counts as false"), "write \"true\", or leave it out"));
    }
    if EXACTLY_TRUE.contains(&key) {
        let is_clear = value == "true" || FALSE.contains(&value);
        return (!is_clear).then(|| Issue::error(format!("{shown} has no effect"), "write exactly \"true\""));
    }
    match key {
        keys::MODE => (value != keys::MODE_IGNORE)
            .then(|| Issue::error(format!("{shown} has no effect"), format!("write exactly {:?}", keys::MODE_IGNORE))),
        keys::DELETION_PROPAGATION_ON_INVALID_UPDATE => Propagation::from_name(value).is_none().then(|| {
            let known = Propagation::ALL.map(Propagation::as_str).join(", ");
            Issue::error(format!("{shown} is no propagation policy"), format!("write one of {known}"))
        }),
        keys::FINALIZE_DELETION_AFTER => value
            .parse::<GoDuration>()
            .err()
            .map(|_| Issue::error(format!("{shown} is no duration"), "write it as Go does, e.g. \"1h30m\"")),
        key if WRITTEN.contains(&key) => {
            Some(Issue::warning(format!("annotation {key} is overwritten by the controller"), "leave it out"))
        }
        key if key.starts_with(PREFIX) && !KNOWN.contains(&key) => {
            Some(Issue::warning(format!("annotation {key} is not known"), "see docs/producers.md"))
        }
        _ => None,
    }
}
