//! What a router is told to do.

use crate::{ReadRecord, Resource, Start, object::NamespacedName};

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
