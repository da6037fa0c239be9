//! What `describe` shows, and its JSON.

use cluster::object;
use serde_json::{Value, json};

use super::{Found, documents::SecretContent, event::Event, live::ObjectState};
use crate::api::resources::{
    keys::DEFAULT_CLASS,
    managed_resource::{ManagedResource, ResourceRef},
};

/// The content of a description.
pub(super) struct Description {
    pub(super) found: Found,
    pub(super) secrets: Vec<(String, Result<bool, String>)>,
    /// The newest, the oldest of them first; or why they are unknown.
    pub(super) events: Result<Vec<Event>, String>,
    pub(super) objects: Vec<(ResourceRef, ObjectState)>,
    /// With `--tree`.
    pub(super) contents: Option<Vec<SecretContent>>,
}

pub(in crate::commands) fn class(mr: &ManagedResource) -> &str {
    mr.spec.class.as_deref().filter(|class| !class.is_empty()).unwrap_or(DEFAULT_CLASS)
}

pub(super) fn created(raw: &Value) -> Option<&str> {
    raw.pointer("/metadata/creationTimestamp").and_then(Value::as_str)
}

impl Description {
    pub(super) fn json(&self) -> Value {
        let Self { found: Found { raw, mr }, secrets, events, objects, contents } = self;
        let secret = |(name, exists): &(String, Result<bool, String>)| {
            json!({
                "name": name, "exists": exists.as_ref().ok(), "error": exists.as_ref().err(),
            })
        };
        json!({
            "namespace": mr.metadata.namespace,
            "name": mr.metadata.name,
            "class": class(mr),
            "created": created(raw),
            "generation": mr.metadata.generation,
            "observedGeneration": mr.status.observed_generation,
            "ignored": mr.is_ignored(),
            "deletionTimestamp": object::deletion_timestamp(raw),
            "secrets": secrets.iter().map(secret).collect::<Vec<_>>(),
            "conditions": mr.status.conditions,
            "events": events.as_ref().map(|events| events.iter().map(Event::json).collect::<Vec<_>>()).ok(),
            "objects": objects.iter().map(|(reference, state)| state.json(reference)).collect::<Vec<_>>(),
            "tree": contents.as_ref().map(|all| all.iter().map(SecretContent::json).collect::<Vec<_>>()),
        })
    }
}
