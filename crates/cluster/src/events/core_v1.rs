//! Events of core/v1: count and time of the last repetition are fields of the Event.

use jiff::Timestamp;
use kit::quote::cut_after;
use serde_json::{Value, json};

use super::{notebook::EventEntry, subject::Subject};
use crate::object::field_mut;

const LONGEST_MESSAGE: usize = 1024; // characters

/// Returns the message, or the beginning of a longer one with the mark that it was cut.
pub(super) fn cut(message: &str) -> String {
    let is_longer = message.chars().nth(LONGEST_MESSAGE).is_some();
    let shown = if is_longer { cut_after(LONGEST_MESSAGE - 1, message) } else { message.into() };
    shown.into_owned()
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
