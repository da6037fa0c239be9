//! `describe`: a ManagedResource with its conditions, its Events, and the live state of its objects.

use super::{
    Clusters, InspectError,
    description::Description,
    event::About,
    live::ObjectState,
    missing, report_of,
    text::{self, Shown},
};
use crate::{
    cli::DescribeOptions,
    commands::{DIFFERENT, Said, output::foreign, screen::Content},
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
    let about = About::Object { name: &key.name, uid: &found.mr.metadata.uid };
    let events =
        clusters.events(Some(&key.namespace), about, EVENTS).await.map_err(|error| foreign(&error.to_string()));
    // The text says it itself.
    let unknown_events =
        events.as_ref().err().filter(|_| options.report.output.is_some()).map(|error| format!("warning: {error}"));
    let secrets = clusters.existing(&found).await;
    let references = found.mr.status.resources.clone();
    let states = clusters.states(&references).await;
    let contents = if options.tree { Some(clusters.contents(&found).await) } else { None };
    let objects = references.into_iter().zip(states).collect();
    let description = Description { found, secrets, events, objects, contents };
    let shown = Shown { now: clusters.now(), colours };
    let (out, content) = match &options.report.output {
        Some(format) => (report_of(&description.json(), format)?, Content::Data),
        None => (text::description(&description, shown), Content::Painted),
    };
    let all = description.objects.len();
    let unread = description.objects.iter().filter(|(_, state)| matches!(state, ObjectState::Unknown(_))).count();
    let remarks = (unread > 0).then(|| format!("warning: the state of {unread} of {all} objects is unknown"));
    let remarks = remarks.into_iter().chain(unknown_events).collect();
    Ok(Said { out, content, remarks, ..Said::default() })
}
