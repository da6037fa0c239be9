//! The default ResourceQuota of a Project's Namespace (spec 82 A.6). Pure.

use cluster::object;
use serde_json::{Map, Value, json};

use crate::{
    actors::controller_manager::{
        fields::list,
        owner_references::{owner_uids, with_owner},
        project_resource_quota::rules::CountedKind,
    },
    api::{
        config::controller_manager::ProjectQuota,
        kinds,
        meta::selector::{Labels, Selector, SelectorError},
    },
};

/// Name of the default ResourceQuota.
pub const NAME: &str = "gardener";

/// A configured ResourceQuota, and the Projects that get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    selector: Selector,
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
    hard: Map<String, Value>,
}

/// What counts of a ResourceQuota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaState {
    /// uids in the owner references.
    owner_uids: Box<[Box<str>]>,
    /// For each template, whether the ResourceQuota has all that the template says.
    fits: Box<[bool]>,
}

/// Returns the first template that selects a Project with these labels.
pub fn first_match<'t>(templates: &'t [Template], labels: &Labels) -> Option<(usize, &'t Template)> {
    templates.iter().enumerate().find(|(_, template)| template.selector.matches(labels))
}

impl Template {
    /// Reads a configured ResourceQuota. Fails if the selector is none.
    pub fn new(quota: &ProjectQuota) -> Result<Self, SelectorError> {
        let object = quota.config.to_object();
        let map = |pointer| object.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default();
        Ok(Self {
            selector: Selector::new(&quota.project_selector)?,
            labels: map("/metadata/labels"),
            annotations: map("/metadata/annotations"),
            hard: map("/spec/hard"),
        })
    }

    /// Returns the ResourceQuota for a Namespace, to be created.
    pub fn new_quota(&self, namespace: &str, owner: &Value) -> Value {
        let maps = [("labels", &self.labels), ("annotations", &self.annotations)].into_iter();
        let maps = maps.filter(|(_, map)| !map.is_empty()).map(|(field, map)| (field, map.clone().into()));
        let named = [("name", NAME.into()), ("namespace", namespace.into()), ("ownerReferences", json!([owner]))];
        let metadata: Map<String, Value> =
            named.into_iter().chain(maps).map(|(field, value)| (field.to_owned(), value)).collect();
        json!({
            "apiVersion": kinds::RESOURCE_QUOTA.api_version(), "kind": &*kinds::RESOURCE_QUOTA.kind,
            "metadata": metadata, "spec": {"hard": self.hard},
        })
    }

    /// Returns the merge patch that gives a ResourceQuota what it lacks; `None` if it lacks nothing. Limits that exist
    /// keep their values, limits that are not configured go. The annotations of `project-resourcequota` belong to it.
    pub fn patch(&self, quota: &Value, owner: &Value) -> Option<Value> {
        let mut patch = self.content_patch(quota);
        if let Some(owners) = with_owner(quota, owner) {
            *object::field_mut(&mut patch, &["metadata", "ownerReferences"]) = owners;
        }
        (!patch.is_null()).then_some(patch)
    }

    /// As [`Self::patch`], without the owner; null if there is nothing to do.
    fn content_patch(&self, quota: &Value) -> Value {
        let map = |pointer| quota.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default();
        let differing = |wanted: &Map<String, Value>, live: &Map<String, Value>| -> Map<String, Value> {
            let differing = wanted.iter().filter(|(key, value)| live.get(*key) != Some(value));
            differing.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let mut annotations = differing(&self.annotations, &map("/metadata/annotations"));
        annotations.retain(|key, _| !is_of_alignment(key));
        let hard = map("/spec/hard");
        let missing = self.hard.iter().filter(|(key, _)| hard.get(*key).is_none_or(Value::is_null));
        let surplus = hard.keys().filter(|key| !self.hard.contains_key(*key));
        let limits: Map<String, Value> = missing
            .map(|(key, value)| (key.clone(), value.clone()))
            .chain(surplus.map(|key| (key.clone(), Value::Null)))
            .collect();
        let changes = [
            (["metadata", "labels"], differing(&self.labels, &map("/metadata/labels"))),
            (["metadata", "annotations"], annotations),
            (["spec", "hard"], limits),
        ];
        let mut patch = Value::Null;
        for (path, change) in changes.into_iter().filter(|(_, change)| !change.is_empty()) {
            *object::field_mut(&mut patch, &path) = change.into();
        }
        patch
    }
}

/// Returns true if an annotation records an alignment, so that `project-resourcequota` changes it (spec 82 B.1). A template
/// sets it at creation only: two controllers must not write in turn.
fn is_of_alignment(annotation: &str) -> bool {
    CountedKind::ALL.into_iter().any(|kind| kind.annotation() == annotation)
}

impl QuotaState {
    /// Reads a ResourceQuota.
    pub fn of(quota: &Value, templates: &[Template]) -> Self {
        Self {
            owner_uids: owner_uids(quota).map(Box::from).collect(),
            fits: templates.iter().map(|template| template.content_patch(quota).is_null()).collect(),
        }
    }

    /// Returns true if it has all that the template with this index says, and this owner.
    pub fn fits(&self, template: usize, owner_uid: &str) -> bool {
        self.fits.get(template) == Some(&true) && self.owner_uids.iter().any(|uid| **uid == *owner_uid)
    }
}

/// Returns true if a configured ResourceQuota has scopes, which have no effect.
pub fn has_scopes(quota: &ProjectQuota) -> bool {
    let object = quota.config.to_object();
    list(&object, "/spec/scopes").next().is_some()
        || object.pointer("/spec/scopeSelector").is_some_and(Value::is_object)
}
