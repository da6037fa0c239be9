//! `events`: Events about ManagedResources, the oldest first.

use serde_json::Value;

use super::{
    Clusters, InspectError,
    event::{About, Event},
    report_of,
    text::{self, Shown},
};
use crate::{
    cli::EventsOptions,
    commands::{Said, screen::Content},
};

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
    let about = key.as_ref().map_or(About::All, |key| About::Name(&key.name));
    let events = clusters.events(namespace, about, usize::MAX).await?;
    if let Some(format) = &options.report.output {
        let out = report_of(&Value::Array(events.iter().map(Event::json).collect()), format)?;
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
    let out = text::events(&events, options.all_namespaces, key.is_none(), "", shown);
    Ok(Said { out, content: Content::Painted, ..Said::default() })
}
