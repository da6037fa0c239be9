use std::collections::BTreeMap;

use cluster::object::{self, GroupVersionKind, truthy};
use serde_json::{Map, Value};

use super::{Issue, Issues, built_in, metadata, names, template};
use crate::{
    actors::resource_manager::bundle::{inject, merge},
    api::{
        meta::field::{Error, ErrorKind},
        resources::keys,
    },
    commands::bundles::{LIST_REMEDY, is_list},
    producer::{decode::LabelWarning, unique},
    webhooks::validating::extensions::Extension,
};

/// Maps of strings in the API. The API server refuses unquoted booleans and numbers in them.
const TEXT_MAPS: [&str; 5] = ["matchLabels", "nodeSelector", "selector", "labels", "annotations"];
const SEE_EXTENSIONS: &str = "the webhook extensionValidation refuses it";
const DEPTH: usize = 100;

/// Returns all findings about one manifest. Texts name fields, never the content of Secrets.
pub(super) fn check(manifest: &Value, warnings: &[LabelWarning]) -> Issues {
    let mut issues = Issues::default();
    if is_list(manifest) {
        issues.push(Issue::error("the list cannot be taken apart", LIST_REMEDY));
        return issues;
    }
    identity(manifest, &mut issues);
    for LabelWarning { field, key, .. } in warnings {
        issues.push(if key.is_empty() {
            Issue::error(format!("metadata.{field} is no map"), "write key: \"value\" pairs")
        } else {
            let what = format!("all metadata.{field} are ignored, because the value of {key:?} is no string");
            Issue::error(what, "quote the value")
        });
    }
    names::check(manifest, &mut issues);
    metadata::check(manifest, &mut issues);
    shape(manifest, &mut issues);
    template::check(manifest, &mut issues);
    let before = issues.count();
    match built_in::kind(manifest) {
        Some(kind) => built_in::fields(manifest, kind, &mut issues),
        None => texts(manifest, &mut String::new(), DEPTH, &mut issues),
    }
    if issues.count() == before {
        data(manifest, &mut issues);
    }
    kind(manifest, &mut issues);
    extension(manifest, &mut issues);
    issues
}

/// Runs the rules of the webhook for extension objects as for a creation (spec 62).
fn extension(manifest: &Value, issues: &mut Issues) {
    let Some(extension) = GroupVersionKind::of(manifest).as_ref().and_then(Extension::find) else { return };
    match extension.check(manifest) {
        Ok(checked) => {
            // `kubectl apply` fills in a missing namespace.
            let is_filled_in = |error: &Error| error.kind == ErrorKind::Required && error.field == "metadata.namespace";
            let errors = checked.errors.iter().filter(|error| !is_filled_in(error)).map(Error::to_string);
            issues.extend(errors.chain(checked.errors.rest()).map(|text| Issue::error(text, SEE_EXTENSIONS)));
        }
        Err(text) => issues.push(Issue::error(text, SEE_EXTENSIONS)),
    }
}

fn identity(manifest: &Value, issues: &mut Issues) {
    for field in ["apiVersion", "kind"] {
        match manifest.get(field) {
            None | Some(Value::Null) => issues.push(Issue::error(format!("there is no {field}"), "add it")),
            Some(Value::String(text)) if text.is_empty() => {
                issues.push(Issue::error(format!("{field} is empty"), "add it"));
            }
            Some(Value::String(text)) if field == "apiVersion" && text.matches('/').count() > 1 => {
                issues.push(Issue::error("apiVersion is no <group>/<version>", "correct it"));
            }
            Some(Value::String(_)) => {}
            Some(_) => issues.push(Issue::error(format!("{field} is no string"), "quote it")),
        }
    }
    let metadata = &manifest["metadata"];
    for field in ["name", "namespace", "generateName"] {
        if metadata.get(field).is_some_and(|value| !value.is_string() && !value.is_null()) {
            issues.push(Issue::error(format!("metadata.{field} is no string"), "quote it"));
        }
    }
    let name = object::name(manifest);
    if name.is_empty() && !metadata.get("name").is_some_and(|name| !name.is_null() && !name.is_string()) {
        let remedy = if metadata.get("generateName").is_some_and(Value::is_string) {
            "give it a name: an object with generateName alone would be made anew each time"
        } else {
            "add it"
        };
        issues.push(Issue::error("there is no metadata.name", remedy));
    }
    for (field, text) in [("name", name), ("namespace", object::namespace(manifest))] {
        if names::is_no_segment(text) {
            issues.push(Issue::error(format!("metadata.{field} cannot be part of a path"), "leave out / and %"));
        }
    }
}

/// Checks that the labels which every object gets can be set.
fn shape(manifest: &Value, issues: &mut Issues) {
    let labels = inject::labels_to_inject(&BTreeMap::new(), keys::DEFAULT_MANAGED_BY);
    if let Err(error) = inject::inject_labels(&mut manifest.clone(), &labels) {
        issues.push(Issue::error(error.to_string(), "correct the type"));
    }
}

fn data(manifest: &Value, issues: &mut Issues) {
    if manifest["apiVersion"] == "v1"
        && matches!(manifest["kind"].as_str(), Some("Secret" | "ConfigMap"))
        && let Err(error) = unique::content(manifest)
    {
        issues.push(Issue::error(error.to_string(), "quote the value, or encode it"));
    }
}

/// Finds unquoted booleans and numbers where the API server's own kinds want strings, in versions whose fields are not
/// known.
fn texts(value: &Value, path: &mut String, depth: usize, issues: &mut Issues) {
    let Some(fields) = value.as_object() else {
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            descend(item, &format!("[{index}]"), path, depth, issues);
        }
        return;
    };
    for (name, field) in fields {
        // The object's metadata is checked elsewhere. Schemas of custom kinds describe fields with these names.
        if path.is_empty() && (name == "metadata" || !is_of_the_api_server(value)) || name == "openAPIV3Schema" {
            continue;
        }
        if TEXT_MAPS.contains(&name.as_str())
            && let Some(key) = field.as_object().and_then(unquoted)
        {
            issues.error(|| format!("{path}.{name}: the value of {key:?} is no string"), "quote the value");
        }
        if name == "env" {
            for (index, item) in field.as_array().into_iter().flatten().enumerate() {
                if item.get("value").is_some_and(|value| !value.is_string() && !value.is_null()) {
                    issues.error(|| format!("{path}.env[{index}].value is no string"), "quote the value");
                }
            }
        }
        descend(field, &format!(".{name}"), path, depth, issues);
    }
}

fn descend(value: &Value, step: &str, path: &mut String, depth: usize, issues: &mut Issues) {
    if depth == 0 {
        return;
    }
    let length = path.len();
    path.push_str(step);
    texts(value, path, depth - 1, issues);
    path.truncate(length);
}

fn is_of_the_api_server(manifest: &Value) -> bool {
    let group = GroupVersionKind::of(manifest).map(|gvk| gvk.group);
    group.is_some_and(|group| crate::actors::resource_manager::bundle::identity::is_built_in_group(&group))
}

/// The first key with a boolean or a number. Lists and maps are allowed: other fields have the same names.
fn unquoted(map: &Map<String, Value>) -> Option<&str> {
    map.iter().find(|(_, value)| value.is_boolean() || value.is_number()).map(|(key, _)| key.as_str())
}

/// Checks kinds that need care (spec 10 §12.4, §12.9).
fn kind(manifest: &Value, issues: &mut Issues) {
    let gvk = GroupVersionKind::of(manifest).unwrap_or_default();
    let ignored = merge::is_ignored(manifest);
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Pod" | "PersistentVolumeClaim") if !ignored => issues.push(Issue::warning(
            format!("the API server fills in immutable fields of a {}, so later updates fail", gvk.kind),
            format!("create it once only: annotation {}: \"true\"", keys::IGNORE),
        )),
        ("batch", "CronJob") if !matches!(gvk.version.as_str(), "v1" | "v1beta1") => {
            issues.push(Issue::error(format!("CronJobs of version {} cannot be merged", gvk.version), "use batch/v1"));
        }
        (_, "Secret" | "ConfigMap") if gvk.group.is_empty() => {}
        _ if truthy(object::label(manifest, keys::GARBAGE_COLLECTABLE)) => issues.push(Issue::warning(
            format!("label {} has no effect on this kind", keys::GARBAGE_COLLECTABLE),
            "use it for Secrets and ConfigMaps only",
        )),
        _ => {}
    }
}
