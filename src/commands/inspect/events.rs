//! `events`: Events about ManagedResources, the oldest first.

use serde_json::Value;

use super::{
    Clusters, InspectError, json_text,
    text::{self, Shown},
};
use crate::{cli::EventsOptions, commands::Said};

pub(in crate::commands) async fn events(
    clusters: &Clusters,
    options: &EventsOptions,
    colours: bool,
) -> Result<Said, InspectError> {
    let key = options.name.as_deref().map(|name| clusters.key(name, options.namespace.as_deref()));
    let namespace = match &key {
        Some(key) => Some(key.namespace.as_str()),
        None if options.all_namespaces => None,
        None => Some(options.namespace.as_deref().unwrap_or(&clusters.namespace)),
    };
    let events = clusters.events(namespace, key.as_ref().map(|key| key.name.as_str())).await?;
    if options.output.is_some() {
        let out = json_text(&Value::Array(events.iter().map(super::event::Event::json).collect()));
        return Ok(Said { out, ..Said::default() });
    }
    if events.is_empty() {
        let location = match (&key, namespace) {
            (Some(key), _) => format!(" about ManagedResource {key}"),
            (None, Some(namespace)) => format!(" about ManagedResources in namespace {namespace}"),
            (None, None) => " about ManagedResources".to_owned(),
        };
        return Ok(Said { remarks: vec![format!("no Events found{location}")], ..Said::default() });
    }
    let shown = Shown { now: clusters.now(), colours };
    Ok(Said { out: text::events(&events, options.all_namespaces, key.is_none(), "", shown), ..Said::default() })
}
