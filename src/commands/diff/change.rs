//! One object before and after, without secrets.

use std::fmt;

use cluster::object::GroupVersionKind;
use serde_json::{Map, Value, json};

use crate::{actors::resource_manager::bundle::up_to_date::is_empty, commands::output::one_line};

const HIDDEN: &str = "<hidden>";
const CHANGED: &str = "<changed>";
const OF_THE_SERVER: [&str; 6] =
    ["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"];
/// Annotation of kubectl that repeats the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What would happen to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It does not exist yet.
    Created,
    /// Something differs.
    Changed,
    /// The bundle does not contain it any more.
    Deleted,
    /// Its manifest says that it is managed elsewhere.
    Released,
    /// The bundle does not contain it any more, but it stays.
    Kept,
    /// Nothing differs.
    Unchanged,
}

/// The change of one object. Values of Secrets are already replaced.
#[derive(Clone, PartialEq, Eq)]
pub struct Change {
    /// What would happen.
    pub action: Action,
    /// `<apiVersion>/<kind>/<effective namespace>/<name>`.
    pub object: String,
    /// The object before; `None` if it does not exist or is not shown.
    pub before: Option<Value>,
    /// The object after; `None` if it does not exist or is not shown.
    pub after: Option<Value>,
    /// The reason, where it is not obvious.
    pub note: String,
}

impl Action {
    /// Whether the cluster would change.
    pub fn is_difference(self) -> bool {
        match self {
            Self::Created | Self::Changed | Self::Deleted | Self::Released => true,
            Self::Kept | Self::Unchanged => false,
        }
    }

    /// The action as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
            Self::Released => "released",
            Self::Kept => "kept",
            Self::Unchanged => "unchanged",
        }
    }
}

impl Change {
    pub(super) fn named(action: Action, object: String) -> Self {
        let object = one_line(&object);
        Self { action, object, before: None, after: None, note: String::new() }
    }

    pub(super) fn kept(object: String, note: String) -> Self {
        Self { note, ..Self::named(Action::Kept, object) }
    }

    pub(super) fn created(object: String, after: &Value) -> Self {
        let mut after = shown(after);
        if is_secret(&after) {
            hide(&mut after, None, HIDDEN);
        }
        Self { after: Some(after), ..Self::named(Action::Created, object) }
    }

    pub(super) fn between(object: String, live: &Value, after: &Value) -> Self {
        let (mut before, mut after) = (shown(live), shown(after));
        if before == after {
            return Self::named(Action::Unchanged, object);
        }
        if is_secret(&before) || is_secret(&after) {
            let original = before.clone();
            hide(&mut before, None, HIDDEN);
            hide(&mut after, Some(&original), CHANGED);
        }
        Self { before: Some(before), after: Some(after), ..Self::named(Action::Changed, object) }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "action": self.action.as_str(), "object": self.object, "note": self.note, "before": self.before,
            "after": self.after,
        })
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Change").field(&self.action).field(&self.object).finish()
    }
}

fn shown(object: &Value) -> Value {
    let mut object = object.clone();
    let Some(fields) = object.as_object_mut() else { return object };
    fields.remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, value| !OF_THE_SERVER.contains(&field.as_str()) && !is_empty(value));
    }
    fields.retain(|_, value| !is_empty(value)); // the API server also drops these fields when they are empty
    object
}

fn is_secret(object: &Value) -> bool {
    GroupVersionKind::of(object).is_some_and(|gvk| gvk.group.is_empty() && gvk.kind == "Secret")
}

/// Replaces the values of a Secret: those that equal `unchanged` by [`HIDDEN`], all others by `text`.
fn hide(secret: &mut Value, unchanged: Option<&Value>, text: &str) {
    let replace = |map: &mut Map<String, Value>, same: Option<&Value>| {
        for (key, value) in map.iter_mut() {
            let is_same = same.is_some_and(|same| same.get(key) == Some(value));
            *value = if is_same { HIDDEN } else { text }.into();
        }
    };
    for field in ["data", "stringData"] {
        match secret.get_mut(field) {
            Some(Value::Object(map)) => replace(map, unchanged.and_then(|object| object.get(field))),
            Some(other) => *other = text.into(),
            None => {}
        }
    }
    let same = unchanged.and_then(|object| object.pointer("/metadata/annotations"));
    if let Some(Value::Object(annotations)) = secret.pointer_mut("/metadata/annotations")
        && let Some(value) = annotations.get_mut(LAST_APPLIED)
    {
        let is_same = same.is_some_and(|same| same.get(LAST_APPLIED) == Some(value));
        *value = if is_same { HIDDEN } else { text }.into();
    }
}
