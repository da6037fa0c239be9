//! Events of core/v1: count and time of the last repetition are fields of the Event.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{notebook::EventEntry, subject::Subject};
use crate::object::field_mut;

const LONGEST_MESSAGE: usize = 1024; // characters

pub(super) fn cut(message: &str) -> String {
    message.chars().take(LONGEST_MESSAGE).collect()
}

pub(super) fn event(subject: &Subject, name: &str, entry: &EventEntry) -> Value {
    let about = &subject.regarding;
    let mut event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": about.event_namespace()},
        "involvedObject": about,
        "type": subject.event_type,
        "reason": subject.reason,
        "message": subject.message,
        "source": {"component": &*subject.component},
        "reportingComponent": &*subject.component,
        "reportingInstance": "",
        "count": entry.count,
        "firstTimestamp": seconds(entry.first),
        "lastTimestamp": seconds(entry.last),
    });
    if !subject.action.is_empty() {
        *field_mut(&mut event, &["action"]) = (*subject.action).into();
    }
    event
}

/// Returns the change of the Event by its repetitions.
pub(super) fn repeated(entry: &EventEntry) -> Value {
    json!({"count": entry.count, "lastTimestamp": seconds(entry.last)})
}

/// RFC 3339 in whole seconds.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
