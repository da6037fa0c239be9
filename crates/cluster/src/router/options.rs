//! What a router is told to do, and what it tells.

use serde_json::Value;

use crate::{Resource, object::NamespacedName};

/// What a router watches, and what it keeps of it.
pub struct RouterOptions<R> {
    /// Place in the census and in logs, e.g. `source/managedresources`.
    pub name: String,
    /// The kind.
    pub resource: Resource,
    /// Namespaces; `None` means all of them (or cluster scope).
    pub scopes: Vec<Option<String>>,
    /// Only objects with these labels.
    pub label_selector: Option<String>,
    /// Whether metadata is enough.
    pub metadata_only: bool,
    /// Whether to begin with a list of everything.
    pub start: Start,
    /// What is kept of an object.
    pub record: ReadRecord<R>,
    /// Whether anybody wants to know of an object.
    pub keep: Box<dyn Fn(&NamespacedName) -> bool>,
}

/// Makes a record of an object; `None` if the object cannot be read.
pub type ReadRecord<R> = Box<dyn Fn(&Value) -> Option<R>>;

/// How a router begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With a list of all objects.
    List,
    /// With what changes from now on.
    Now,
}

/// A difference between what was known and what is known now.
pub struct Change<'a, R> {
    /// The object.
    pub name: &'a NamespacedName,
    /// What was known of it.
    pub old: Option<&'a R>,
    /// What is known of it; `None` where it left the view: it is gone, or no longer selected.
    pub new: Option<&'a R>,
    /// How it became known.
    pub how: How<'a>,
}

/// How a change became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How<'a> {
    /// By the first list, or by the replay of the store to a new filter.
    First,
    /// By a watch event.
    Event,
    /// By the list after a lost watch.
    Relist,
    /// By the answer to a write of this process; `writer` names who wrote.
    Own {
        /// The key of the actor that wrote.
        writer: &'a str,
    },
}

/// What the router knows of an object that was found in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// That it is there, or nothing.
    Known,
    /// That it is gone since the list was asked for, or may be.
    Removed,
}
