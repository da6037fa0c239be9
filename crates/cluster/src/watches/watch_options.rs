//! What a reader wants of a kind, and what it is told.

use std::{collections::BTreeSet, rc::Rc};

use serde_json::Value;

use super::super::{Cluster, Resource};
use crate::object::NamespacedName;

/// What a reader wants of a kind. By default: whole objects with any labels, beginning with a list of all there are, in the
/// namespaces of the configuration, or everywhere if it names none.
pub struct WatchOptions<R> {
    pub(super) resource: Resource,
    pub(super) label_selector: Option<String>,
    pub(super) field_selector: Option<String>,
    pub(super) whole: bool,
    pub(super) start: Start,
    pub(super) everywhere: bool,
    pub(super) within: Option<Vec<String>>,
    pub(super) elsewhere: Option<Elsewhere>,
    pub(super) optional: bool,
    pub(super) awaited: bool,
    pub(super) cached: ReadCached<R>,
    pub(super) keep: Keep,
}

/// Makes a record of an object; `None` if the object cannot be read.
pub type ReadCached<R> = Box<dyn Fn(&Value) -> Option<R>>;

/// Whether anybody wants to know of an object.
pub(super) type Keep = Box<dyn Fn(&NamespacedName) -> bool>;

/// The namespaces to watch where watching everywhere is denied.
pub(super) type Elsewhere = Rc<dyn Fn() -> BTreeSet<String>>;

/// How a watch begins.
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
    /// Not at all: it is no longer watched where the object is, or in its version. The object may exist.
    Lost,
}

/// What is known of an object that was found in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// That it is there, or nothing.
    Known,
    /// That it is gone since the list was asked for, or may be.
    Removed,
}

impl<R> WatchOptions<R> {
    /// All objects of a kind. `record` makes what is kept of one; `None` says that it cannot be read: it is left out, and
    /// what is known of it is no evidence.
    pub fn new(resource: Resource, cached: impl Fn(&Value) -> Option<R> + 'static) -> Self {
        Self {
            resource,
            label_selector: None,
            field_selector: None,
            whole: true,
            start: Start::List,
            everywhere: false,
            within: None,
            elsewhere: None,
            optional: false,
            awaited: true,
            cached: Box::new(cached),
            keep: Box::new(|_| true),
        }
    }

    /// Metadata is enough. Who shares the stream may want more: the records are then made of whole objects.
    #[must_use]
    pub fn metadata(self) -> Self {
        Self { whole: false, ..self }
    }

    /// Only objects with these labels, in the API's syntax.
    #[must_use]
    pub fn labelled(self, selector: impl Into<String>) -> Self {
        Self { label_selector: Some(selector.into()), ..self }
    }

    /// Only objects with these fields, in the API's syntax, e.g. `metadata.name=a`.
    #[must_use]
    pub fn selecting(self, fields: impl Into<String>) -> Self {
        Self { field_selector: Some(fields.into()), ..self }
    }

    /// Without a first list: only of what changes from now on. A list that is made for another reason (a lost watch, another
    /// reader of the stream) tells of what is unknown until then.
    #[must_use]
    pub fn from_now(self) -> Self {
        Self { start: Start::Now, ..self }
    }

    /// Keeps nothing of objects for which `keep` says no. It is asked with each event.
    #[must_use]
    pub fn keeping(self, keep: impl Fn(&NamespacedName) -> bool + 'static) -> Self {
        Self { keep: Box::new(keep), ..self }
    }

    /// In all namespaces, whatever the configuration says.
    #[must_use]
    pub fn everywhere(self) -> Self {
        Self { everywhere: true, ..self }
    }

    /// In these namespaces, whatever the configuration says.
    #[must_use]
    pub fn within(self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { within: Some(namespaces.into_iter().map(Into::into).collect()), ..self }
    }

    /// Where watching everywhere is denied, in these namespaces, but in no more than
    /// [`MOST_NAMESPACES`](super::MOST_NAMESPACES). Everywhere is tried again now and then.
    #[must_use]
    pub fn narrowing(self, to: impl Fn() -> BTreeSet<String> + 'static) -> Self {
        Self { elsewhere: Some(Rc::new(to)), ..self }
    }

    /// The server may not serve the kind, or only later. The watch comes and goes with it; nobody waits for it.
    #[must_use]
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Its first list is not waited for by [`Synced`](super::Synced).
    #[must_use]
    pub fn unawaited(self) -> Self {
        Self { awaited: false, ..self }
    }

    /// Where it is watched as long as that is not denied.
    pub(super) fn home(&self, cluster: &Cluster) -> Vec<Option<String>> {
        if let Some(within) = self.within.as_ref().filter(|_| self.resource.namespaced) {
            return within.iter().cloned().map(Some).collect();
        }
        match cluster.options().namespaces.as_slice() {
            [] => vec![None],
            _ if self.everywhere || !self.resource.namespaced => vec![None],
            namespaces => namespaces.iter().cloned().map(Some).collect(),
        }
    }
}
