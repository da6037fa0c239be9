//! `describe`: a ManagedResource with its conditions, its Events, and the live state of its objects.

use cluster::object;
use serde_json::{Value, json};

use super::{
    Clusters, Found, InspectError,
    documents::SecretContent,
    event::Event,
    json_text,
    live::ObjectState,
    missing,
    text::{self, Shown},
};
use crate::{
    api::resources::{
        keys::DEFAULT_CLASS,
        managed_resource::{ManagedResource, ResourceRef},
    },
    cli::DescribeOptions,
    commands::{DIFFERENT, Said},
};

const EVENTS: usize = 10;

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

pub(in crate::commands) async fn describe(
    clusters: &Clusters,
    options: &DescribeOptions,
    colours: bool,
) -> Result<Said, InspectError> {
    let key = clusters.key(&options.name, options.namespace.as_deref());
    let Some(found) = clusters.managed_resource(&key).await? else {
        return Ok(Said { remarks: vec![missing(&key)], code: DIFFERENT, ..Said::default() });
    };
    let events = clusters.events(Some(&key.namespace), Some(&key.name)).await;
    let events = events.map(|all| newest(all, &found.mr.metadata.uid)).map_err(|error| error.to_string());
    // The text says it itself.
    let unknown_events =
        events.as_ref().err().filter(|_| options.output.is_some()).map(|error| format!("warning: {error}"));
    let secrets = clusters.existing(&found).await;
    let references = found.mr.status.resources.clone();
    let states = clusters.states(&references).await;
    let contents = if options.tree { Some(clusters.contents(&found).await) } else { None };
    let objects = references.into_iter().zip(states).collect();
    let description = Description { found, secrets, events, objects, contents };
    let shown = Shown { now: clusters.now(), colours };
    let out = match options.output {
        Some(_) => json_text(&description.json()),
        None => text::description(&description, shown),
    };
    let all = description.objects.len();
    let unread = description.objects.iter().filter(|(_, state)| matches!(state, ObjectState::Unknown(_))).count();
    let remarks = (unread > 0).then(|| format!("warning: the state of {unread} of {all} objects is unknown"));
    let remarks = remarks.into_iter().chain(unknown_events).collect();
    Ok(Said { out, remarks, ..Said::default() })
}

/// Leaves out Events about an earlier ManagedResource of the same name.
fn newest(all: Vec<Event>, uid: &str) -> Vec<Event> {
    let mut events: Vec<Event> = all.into_iter().filter(|event| event.uid.is_empty() || event.uid == uid).collect();
    events.drain(..events.len().saturating_sub(EVENTS));
    events
}

pub(in crate::commands) fn class(mr: &ManagedResource) -> &str {
    mr.spec.class.as_deref().filter(|class| !class.is_empty()).unwrap_or(DEFAULT_CLASS)
}

pub(super) fn created(raw: &Value) -> Option<&str> {
    raw.pointer("/metadata/creationTimestamp").and_then(Value::as_str)
}

impl Description {
    fn json(&self) -> Value {
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
