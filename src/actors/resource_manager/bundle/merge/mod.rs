//! Manifest and live object → the object to send (spec 10 §12). [`merge`] is for an update, [`for_create`] for a
//! creation; both inject the labels (spec 10 §11.4) and honour the object-level ignore annotation (§11.3).
//!
//! The base rule is here and in [`metadata`]; the other files have the rules of some kinds: `pod_template`, `workload`,
//! `service` (addresses, node ports), `filled_in` (claims of volumes, aggregated rules, tokens, Secrets of accounts).
//! Everything works on raw JSON: unknown fields survive, and a rule applies to every version of its kind (§12.8).

use std::collections::BTreeMap;

use cluster::object::{GroupVersionKind, truthy};
use serde_json::{Map, Value};
use thiserror::Error;

use super::{
    identity,
    inject::{self, InjectError},
    plan::Old,
};
use crate::api::resources::{keys, managed_resource::ManagedResourceSpec, origin::Origin};

mod filled_in;
pub mod metadata;
mod pod_template;
mod service;
mod workload;

#[cfg(test)]
mod tests;

/// How the objects of a ManagedResource are merged.
#[derive(Debug, Clone)]
pub struct MergeSettings {
    origin: String,
    /// The labels to inject, see [`inject::labels_to_inject`].
    pub labels: BTreeMap<String, String>,
    force_overwrite_labels: bool,
    force_overwrite_annotations: bool,
}

/// Input of a merge besides the two objects.
#[derive(Debug, Clone, Copy)]
pub struct MergeContext<'a> {
    /// Value of the origin annotation (spec 10 §3.2).
    pub origin: &'a str,
    /// The labels to inject, see [`inject::labels_to_inject`].
    pub labels: &'a BTreeMap<String, String>,
    /// What was applied before, if anything.
    pub old: Option<&'a Old>,
    /// `spec.forceOverwriteLabels`.
    pub force_overwrite_labels: bool,
    /// `spec.forceOverwriteAnnotations`.
    pub force_overwrite_annotations: bool,
    /// Whether an autoscaler owns the replicas (spec 10 §11.2).
    pub preserve_replicas: bool,
}

/// A manifest that cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MergeError {
    /// The manifest has no room for the labels.
    #[error("error injecting labels into object \"{display}\": {source}")]
    Inject {
        /// Display string of the object.
        display: String,
        /// Why there is no room.
        source: InjectError,
    },
    /// A version of a kind whose shape is unknown (spec 10 §12.4).
    #[error("cannot merge objects with gvk: {}/{}, Kind={}", .0.group, .0.version, .0.kind)]
    UnknownVersion(GroupVersionKind),
}

impl MergeSettings {
    /// The settings of a ManagedResource. `managed_by`: value of the managed-by label.
    pub fn new(spec: &ManagedResourceSpec, origin: &Origin, managed_by: &str) -> Self {
        Self {
            origin: origin.to_string(),
            labels: inject::labels_to_inject(&spec.inject_labels, managed_by),
            force_overwrite_labels: spec.force_overwrite_labels,
            force_overwrite_annotations: spec.force_overwrite_annotations,
        }
    }

    /// The input for one object.
    pub fn context<'a>(&'a self, old: Option<&'a Old>, preserve_replicas: bool) -> MergeContext<'a> {
        let Self { origin, labels, force_overwrite_labels, force_overwrite_annotations } = self;
        MergeContext {
            origin,
            labels,
            old,
            force_overwrite_labels: *force_overwrite_labels,
            force_overwrite_annotations: *force_overwrite_annotations,
            preserve_replicas,
        }
    }
}

struct Rule<'a> {
    live: &'a Value,
    /// An autoscaler or the manifest's annotation keeps the live replicas.
    preserve_replicas: bool,
    /// The manifest's annotation keeps live requests and limits.
    preserve_resources: bool,
    force_overwrite_annotations: bool,
}

/// Returns the object to `PUT` (spec 10 §11.3.4, §12). `manifest` may have the injected labels already.
pub fn merge(manifest: &Value, live: &Value, context: &MergeContext<'_>) -> Result<Value, MergeError> {
    if is_ignored(manifest) {
        return Ok(without_description(live));
    }
    let mut merged = manifest.clone();
    inject::inject_labels(&mut merged, context.labels)
        .map_err(|source| MergeError::Inject { display: identity::display_of_object(manifest), source })?;
    merge_base(&mut merged, manifest, live, context);
    merge_kind(&mut merged, &Rule::new(manifest, live, context))?;
    Ok(merged)
}

/// Returns the object to `POST`: the merge of the manifest (without injected labels) into itself (spec 10 §11.3.2).
pub fn for_create(manifest: &Value, context: &MergeContext<'_>) -> Result<Value, MergeError> {
    merge(manifest, manifest, context)
}

/// Returns true if the manifest (not the live object) says: create once, never update (spec 10 §11.3.4).
pub fn is_ignored(manifest: &Value) -> bool {
    let annotations = inject::string_map(manifest, "annotations");
    truthy(annotations.get(keys::IGNORE).map(String::as_str))
}

fn without_description(live: &Value) -> Value {
    let mut object = live.clone();
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
        && annotations.remove(keys::DESCRIPTION).is_some()
        && annotations.is_empty()
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("annotations");
    }
    object
}

/// spec 10 §12.1
fn merge_base(merged: &mut Value, manifest: &Value, live: &Value, context: &MergeContext<'_>) {
    let new_metadata = metadata::merge_metadata(manifest, live, context);
    let Some(root) = merged.as_object_mut() else { return };
    root.insert("metadata".to_owned(), Value::Object(new_metadata));
    match live.get("status").filter(|status| status.as_object().is_some_and(|fields| !fields.is_empty())) {
        Some(status) => root.insert("status".to_owned(), status.clone()),
        None => root.remove("status"),
    };
}

/// spec 10 §12.4 - §12.8a; the group and the kind alone choose the rule.
fn merge_kind(merged: &mut Value, rule: &Rule<'_>) -> Result<(), MergeError> {
    let gvk = identity::gvk_of(merged);
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apps", "DaemonSet") => workload::merge_daemon_set(merged, rule),
        ("batch", "Job") => workload::merge_job(merged, rule),
        ("batch", "CronJob") => match gvk.version.as_str() {
            "v1" | "v1beta1" => workload::merge_cron_job(merged, rule),
            _ => return Err(MergeError::UnknownVersion(gvk)),
        },
        ("apps" | "extensions", "Deployment") => workload::merge_deployment(merged, rule),
        ("apps" | "extensions", "StatefulSet") => workload::merge_stateful_set(merged, rule),
        ("", "ServiceAccount") => filled_in::merge_service_account(merged, rule),
        ("", "Service") => service::merge_service(merged, rule),
        ("", "PersistentVolume") => filled_in::merge_persistent_volume(merged, rule),
        ("", "Secret") => filled_in::merge_secret(merged, rule),
        ("rbac.authorization.k8s.io", "ClusterRole") => filled_in::merge_cluster_role(merged, rule),
        _ => {}
    }
    Ok(())
}

impl<'a> Rule<'a> {
    /// The annotations count on the manifest, and exactly as `true`: not as truthy (spec 10 §18, trap 15).
    fn new(manifest: &Value, live: &'a Value, context: &MergeContext<'_>) -> Self {
        let annotations = inject::string_map(manifest, "annotations");
        let is_true = |key| annotations.get(key).is_some_and(|value| value == "true");
        Self {
            live,
            preserve_replicas: context.preserve_replicas || is_true(keys::PRESERVE_REPLICAS),
            preserve_resources: is_true(keys::PRESERVE_RESOURCES),
            force_overwrite_annotations: context.force_overwrite_annotations,
        }
    }

    fn live_spec(&self) -> Option<&'a Value> {
        self.live.get("spec")
    }
}

fn copy_field(to: &mut Map<String, Value>, from: Option<&Value>, field: &str) {
    match from.and_then(|from| from.get(field)) {
        Some(value) => to.insert(field.to_owned(), value.clone()),
        None => to.remove(field),
    };
}

/// Returns the map in a field, created if it is absent or null; `None` if the field has another type.
fn child_map<'a>(parent: &'a mut Map<String, Value>, field: &str) -> Option<&'a mut Map<String, Value>> {
    let value = parent.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

/// Returns `spec` if it is a map. If not, the API server refuses the object, and there is nothing to merge.
fn spec_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("spec").and_then(Value::as_object_mut)
}
