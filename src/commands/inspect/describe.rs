//! `describe`: a ManagedResource with its conditions, its Events, and the live state of its objects.

use super::{
    Clusters, InspectError,
    description::Description,
    event::Event,
    json_text,
    live::ObjectState,
    missing,
    text::{self, Shown},
};
use crate::{
    cli::DescribeOptions,
    commands::{DIFFERENT, Said},
};

const EVENTS: usize = 10;

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
