//! Events of `events.k8s.io/v1`: repetitions are a series (spec 80 S-11). Everything except the series is immutable.

use jiff::Timestamp;
use kit::quote::cut_within;
use serde_json::{Value, json};

use super::{notebook::EventEntry, subject::Subject};
use crate::object::field_mut;

/// Longest note in bytes.
const LONGEST_NOTE: usize = 1024;
/// Longest reporting instance in bytes.
const LONGEST_INSTANCE: usize = 128;

/// Returns the note, or the beginning of a longer one with the mark that it was cut.
pub(super) fn cut(note: &str) -> String {
    cut_within(LONGEST_NOTE, note).into_owned()
}

pub(super) fn event(subject: &Subject, host: &str, name: &str, entry: &EventEntry) -> Value {
    let about = &subject.regarding;
    let instance = format!("{}-{host}", subject.component);
    // The server requires an action.
    let action = if subject.action.is_empty() { &*subject.reason } else { &*subject.action };
    let mut event = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": about.event_namespace()},
        "eventTime": micros(entry.first),
        "reportingController": &*subject.component,
        "reportingInstance": first_bytes(&instance, LONGEST_INSTANCE),
        "action": action,
        "reason": subject.reason,
        "regarding": about,
        "note": subject.message,
        "type": subject.event_type,
    });
    // The server refuses a series of one.
    if entry.count > 1 {
        *field_mut(&mut event, &["series"]) = series(entry);
    }
    event
}

/// Returns the change of the Event by its repetitions.
pub(super) fn repeated(entry: &EventEntry) -> Value {
    json!({"series": series(entry)})
}

fn series(entry: &EventEntry) -> Value {
    json!({"count": entry.count, "lastObservedTime": micros(entry.last)})
}

/// Returns the longest beginning of at most this many bytes that ends at a character boundary.
fn first_bytes(text: &str, bytes: usize) -> &str {
    text.split_at(text.floor_char_boundary(bytes)).0
}

/// RFC 3339 with six decimals.
fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests;
