//! What is kept of an RBAC object: enough to find each difference from the wanted one. Pure.

use cluster::object;
use kit::hash_of;
use serde_json::{Map, Value, json};

use super::object::{RbacObject, Subject};
use crate::{
    actors::controller_manager::fields::{list, without_empty},
    api::meta::selector::{Labels, labels_in},
};

/// What counts of an RBAC object, mostly as hashes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RbacState {
    labels: Labels,
    owners: u64,
    /// The role of a binding.
    role: u64,
    /// Subjects, the aggregation rule, or the rules of a role without aggregation.
    grant: u64,
    is_deleting: bool,
}

/// What to do with an RBAC object.
#[derive(Debug, Clone, PartialEq)]
pub enum RbacVerdict {
    /// Nothing.
    Keep,
    /// Send this merge patch.
    Patch(Value),
    /// Delete it and create it again: it binds another role, which cannot be changed (spec 82 B9).
    Replace,
    /// Nothing. It must be replaced, and it is being deleted already.
    Ending,
}

impl RbacState {
    /// Reads an object.
    pub fn of(object: &Value) -> Self {
        let hash = |pointer| hash_of(&object.pointer(pointer).map(without_empty).filter(|value| !is_none(value)));
        Self {
            labels: labels_in(object.pointer("/metadata/labels").unwrap_or(&Value::Null)),
            owners: hash("/metadata/ownerReferences"),
            role: hash("/roleRef"),
            grant: grant(object),
            is_deleting: object::deletion_timestamp(object).is_some(),
        }
    }

    /// Returns true if it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.is_deleting
    }

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }
}

/// Returns a hash of what an object grants. The rules of a role with an aggregation rule belong to the controller that
/// collects them (spec 82 B8).
fn grant(object: &Value) -> u64 {
    if object.get("roleRef").is_some_and(Value::is_object) {
        return hash_of(&list(object, "/subjects").map(Subject::of).collect::<Vec<_>>());
    }
    let part = |field| object.get(field).map(without_empty).filter(|value| !is_none(value));
    match part("aggregationRule") {
        Some(aggregation) => hash_of(&("aggregationRule", aggregation)),
        None => hash_of(&("rules", part("rules"))),
    }
}

/// Null, absent and empty are equal (spec 80 §10 A12).
fn is_none(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

impl RbacObject {
    /// Judges the object that has this name.
    pub fn judge(&self, live: &RbacState) -> RbacVerdict {
        let wanted = &self.state;
        if live.role != wanted.role {
            return if live.is_deleting { RbacVerdict::Ending } else { RbacVerdict::Replace };
        }
        let (mut patch, mut metadata) = (Map::new(), Map::new());
        let labels = self.label_difference(&live.labels);
        if !labels.is_empty() {
            metadata.insert("labels".to_owned(), labels.into());
        }
        if live.owners != wanted.owners {
            metadata.insert("ownerReferences".to_owned(), self.object["metadata"]["ownerReferences"].clone());
        }
        if !metadata.is_empty() {
            patch.insert("metadata".to_owned(), metadata.into());
        }
        if live.grant != wanted.grant {
            patch.extend(self.grant_patch());
        }
        if patch.is_empty() { RbacVerdict::Keep } else { RbacVerdict::Patch(patch.into()) }
    }

    /// Returns a hash of what is wanted.
    pub fn intent(&self) -> u64 {
        hash_of(&self.state)
    }

    fn label_difference(&self, live: &Labels) -> Map<String, Value> {
        let wanted = &self.state.labels;
        let foreign = live.keys().filter(|key| !wanted.contains_key(*key)).map(|key| (key.clone(), Value::Null));
        let missing = wanted.iter().filter(|(key, value)| live.get(*key) != Some(value));
        foreign.chain(missing.map(|(key, value)| (key.clone(), json!(value)))).collect()
    }

    /// Returns the fields that grant rights. The rules of an aggregated role are none of them.
    fn grant_patch(&self) -> impl Iterator<Item = (String, Value)> + use<'_> {
        let is_binding = self.object.get("roleRef").is_some();
        let is_aggregated = self.object.get("aggregationRule").is_some();
        let fields: &[&str] = match (is_binding, is_aggregated) {
            (true, _) => &["subjects"],
            (false, true) => &["aggregationRule"],
            (false, false) => &["rules", "aggregationRule"],
        };
        let value = |field: &&str| ((*field).to_owned(), self.object.get(*field).cloned().unwrap_or_default());
        fields.iter().map(value)
    }
}
