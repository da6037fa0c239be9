use std::{collections::BTreeSet, rc::Rc};

use serde_json::Value;

use super::super::{Cluster, Resource};
use crate::{CachedFields, object::NamespacedName};

/// Options of a watch. Default: whole objects, any labels, beginning with a list, in the configured namespaces, or all.
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
    pub(super) installed_by: Option<&'static str>,
    pub(super) cached: ReadCached<R>,
    pub(super) keep: Keep,
}

/// Converts an object into its cached form; `None` if the object cannot be read.
pub type ReadCached<R> = Box<dyn Fn(&Value) -> Option<R>>;

pub(super) type Keep = Box<dyn Fn(&NamespacedName) -> bool>;

pub(super) type Elsewhere = Rc<dyn Fn() -> BTreeSet<String>>; // the namespaces to watch while watching all is denied

/// How a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With a list of all objects.
    List,
    /// With the changes from now on.
    Now,
}

/// A change of a cached object.
pub struct Change<'a, R> {
    /// The object.
    pub name: &'a NamespacedName,
    /// The cached object before.
    pub old: Option<&'a R>,
    /// The cached object now; `None` if it is gone or no longer selected.
    pub new: Option<&'a R>,
    /// Source of the change.
    pub how: How<'a>,
}

/// Source of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How<'a> {
    /// The first list, or the replay of the store to a new event handler.
    First,
    /// A watch event, or an answer that shows somebody else's change before its watch event.
    Event,
    /// The list after a lost watch.
    Relist,
    /// The answer to a write of this process.
    Own {
        /// The key of the actor that wrote.
        writer: &'a str,
    },
    /// None: its namespace or version is no longer watched. The object may exist.
    Lost,
}

/// Result of [`Watch::found`](super::Watch::found).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The object exists, or nothing is known.
    Known,
    /// The object is gone since the list was requested, or may be.
    Removed,
}

impl<T> WatchOptions<CachedFields<T>> {
    /// As [`Self::new`], for a cache of a few fields of each object.
    pub fn fields(resource: Resource, fields: impl Fn(&Value) -> T + 'static) -> Self {
        Self::new(resource, move |object| CachedFields::of(object, fields(object)))
    }

    /// As [`Self::fields`], for objects whose finalizers are written.
    pub fn fields_with_finalizers(resource: Resource, fields: impl Fn(&Value) -> T + 'static) -> Self {
        Self::new(resource, move |object| CachedFields::with_finalizers(object, fields(object)))
    }
}

impl<R> WatchOptions<R> {
    /// Creates options for all objects of a kind. `cached` converts an object, or returns `None` if it cannot be read.
    /// Then the store keeps what it knew of the object, if anything, and is no evidence for it.
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
            installed_by: None,
            cached: Box::new(cached),
            keep: Box::new(|_| true),
        }
    }

    /// Requests metadata only. If another reader of the informer needs more, `cached` gets whole objects.
    #[must_use]
    pub fn metadata(self) -> Self {
        Self { whole: false, ..self }
    }

    /// Selects objects with these labels, in the API's syntax.
    #[must_use]
    pub fn labelled(self, selector: impl Into<String>) -> Self {
        Self { label_selector: Some(selector.into()), ..self }
    }

    /// Selects objects with these fields, in the API's syntax, e.g. `metadata.name=a`.
    #[must_use]
    pub fn selecting(self, fields: impl Into<String>) -> Self {
        Self { field_selector: Some(fields.into()), ..self }
    }

    /// Starts without a list, with the changes from now on. A list for another reason reports the unknown objects.
    #[must_use]
    pub fn from_now(self) -> Self {
        Self { start: Start::Now, ..self }
    }

    /// Keeps only objects for which `keep` returns true. It is called for each event.
    #[must_use]
    pub fn keeping(self, keep: impl Fn(&NamespacedName) -> bool + 'static) -> Self {
        Self { keep: Box::new(keep), ..self }
    }

    /// Watches all namespaces, whatever is configured.
    #[must_use]
    pub fn everywhere(self) -> Self {
        Self { everywhere: true, ..self }
    }

    /// Watches these namespaces, whatever is configured.
    #[must_use]
    pub fn within(self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { within: Some(namespaces.into_iter().map(Into::into).collect()), ..self }
    }

    /// While watching all namespaces is denied, watches these, at most [`MOST_NAMESPACES`](super::MOST_NAMESPACES).
    #[must_use]
    pub fn narrowing(self, to: impl Fn() -> BTreeSet<String> + 'static) -> Self {
        Self { elsewhere: Some(Rc::new(to)), ..self }
    }

    /// Allows that the server does not serve the kind (yet). The watch follows that; readiness does not wait for it.
    #[must_use]
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// [`Synced`](super::Synced) does not wait for its first list.
    #[must_use]
    pub fn unawaited(self) -> Self {
        Self { awaited: false, ..self }
    }

    /// Names the command that installs the definition of the kind, for errors about a server that does not serve it.
    #[must_use]
    pub fn installed_by(self, command: &'static str) -> Self {
        Self { installed_by: Some(command), ..self }
    }

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
