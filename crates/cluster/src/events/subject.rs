//! What an Event says and about which object.

use std::{rc::Rc, time::Duration};

use serde::Serialize;
use serde_json::Value;

use crate::{
    Resource,
    object::{self, NamespacedName},
};

/// How long a repetition still belongs to the series of an Event (spec 80 S-11).
pub(super) const SERIES: Duration = Duration::from_secs(360);

/// The object an Event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// `group/version`, or `version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects, whose Events are in `default`.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// uid; may be empty.
    pub uid: String,
}

/// Type of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum EventType {
    /// Something happened.
    Normal,
    /// Something needs attention.
    Warning,
}

/// The API of an Event. Both have the same store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EventForm {
    CoreV1,
    EventsV1 { host: Rc<str> },
}

/// Everything that makes two Events repetitions of each other.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject {
    pub(super) form: EventForm,
    pub(super) component: Rc<str>,
    pub(super) action: Rc<str>,
    pub(super) regarding: Reference,
    pub(super) event_type: EventType,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Reference {
    /// Creates a reference to an object of a kind; `uid` may be empty.
    pub fn new(kind: &Resource, name: &NamespacedName, uid: impl Into<String>) -> Self {
        Self {
            api_version: kind.api_version(),
            kind: kind.kind.to_string(),
            namespace: name.namespace.clone(),
            name: name.name.clone(),
            uid: uid.into(),
        }
    }

    /// Returns a reference to an object as the server sent it (with `apiVersion` and `kind`).
    pub fn of(object: &Value) -> Self {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            namespace: object::namespace(object).into(),
            name: object::name(object).into(),
            uid: object::uid(object).into(),
        }
    }

    pub(super) fn event_namespace(&self) -> &str {
        if self.namespace.is_empty() { "default" } else { &self.namespace }
    }
}

impl EventForm {
    /// Returns after which time without repetitions the next one is a new Event; `None`: never. Repetitions are written
    /// as rarely.
    pub(super) fn longest_gap(&self) -> Option<Duration> {
        match self {
            Self::CoreV1 => None,
            Self::EventsV1 { .. } => Some(SERIES),
        }
    }
}

/// Returns `<name>.<suffix>`, or the suffix alone if the object's name is invalid for an Event (RBAC names are free).
pub(super) fn event_name(object: &str, suffix: &str) -> String {
    let fits = object.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte));
    if fits && !object.is_empty() && object.len() + suffix.len() < 253 {
        format!("{object}.{suffix}")
    } else {
        format!("event.{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_are_valid_for_all_names_of_objects() {
        let suffix = "0123456789abcdef";

        assert_eq!(event_name("a.b-c", suffix), "a.b-c.0123456789abcdef");
        assert_eq!(event_name("system:x", suffix), "event.0123456789abcdef");
        assert_eq!(event_name(&"a".repeat(253), suffix), "event.0123456789abcdef");
    }
}
