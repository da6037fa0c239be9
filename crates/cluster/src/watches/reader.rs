//! The typed side of an informer: one reader's store, indexes and event handlers.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

use kit::Signal;
use serde_json::Value;
use tokio::time::Instant;

use super::{Change, Found, How, ReadCached, event_handlers::EventHandlers, index::Indexed, watch_options::Keep};
use crate::{
    ApiError, Cached, Store, StoreState,
    object::{self, NamespacedName},
    store::Put,
};

/// The calls of an informer to a reader. All readers get an event in the same turn.
pub(super) trait Sink {
    fn keeps(&self, name: &NamespacedName) -> bool;
    fn put(&self, name: &NamespacedName, object: &Value, how: How<'_>);
    /// The object is gone, or left the selection, at a version, which ends older versions; without it that is unknown.
    fn remove(&self, name: &NamespacedName, version: Option<u64>, how: How<'_>);
    /// A list is complete: objects that match `is_in` and were not `seen` are gone at its version.
    fn listed(
        &self,
        is_in: &dyn Fn(&NamespacedName) -> bool,
        seen: &BTreeSet<NamespacedName>,
        version: Option<u64>,
        how: How<'_>,
    );
    /// From now on the reader gets all changes.
    fn begun(&self, now: Instant);
    fn knows_any(&self, is_in: &dyn Fn(&NamespacedName) -> bool) -> bool;
    /// These objects are no longer watched.
    fn lose(&self, is_lost: &dyn Fn(&NamespacedName) -> bool);
    /// Time of the last contact with the server, of the least recently heard scope.
    fn heard(&self, heard: Option<Instant>);
    fn show(&self, reader_state: ReaderState);
    /// The watched namespaces changed, or the state of a scope.
    fn scopes_changed(&self);
    fn denied(&self);
    fn state(&self) -> StoreState;
    fn len(&self) -> usize;
}

/// The combined state of a reader's scopes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReaderState {
    /// Not watched: the kind is not served, or the watch has ended.
    Off,
    /// It is watched, or will be.
    On {
        listed: bool,
        /// Why one of them cannot be followed.
        error: Option<String>,
    },
}

pub(super) struct Reader<R: Cached> {
    pub(super) name: String,
    pub(super) store: Store<R>,
    /// Raised when the state of the store changes.
    pub(super) signal: Signal,
    /// Raised when the state of a scope changes.
    pub(super) scopes: Signal,
    cached: ReadCached<R>,
    keep: Keep,
    event_handlers: EventHandlers<R>,
    indexes: RefCell<Vec<Rc<dyn Indexed<R>>>>,
    /// Objects whose last write had an answer that was not wanted.
    altered: RefCell<BTreeSet<NamespacedName>>,
}

/// Maximum number of objects whose last write is remembered as altered.
const MOST_ALTERED: usize = 8192;

impl<R: Cached> Reader<R> {
    pub(super) fn new(name: String, cached: ReadCached<R>, keep: Keep) -> Self {
        Self {
            event_handlers: EventHandlers::new(name.clone()),
            name,
            store: Store::default(),
            signal: Signal::default(),
            scopes: Signal::default(),
            cached,
            keep,
            indexes: RefCell::default(),
            altered: RefCell::default(),
        }
    }

    pub(super) fn subscribe(&self, filter: impl Fn(&Change<'_, R>) + 'static) {
        self.event_handlers.add(filter, &self.store);
    }

    pub(super) fn add_index(&self, index: Rc<dyn Indexed<R>>) {
        self.store.for_each(|name, cached| {
            index.stage(name, cached);
            index.commit(name, None);
        });
        self.indexes.borrow_mut().push(index);
    }

    pub(super) fn upsert(&self, name: &NamespacedName, object: &Value, how: How<'_>, asked: Option<Instant>) -> Found {
        let version = object::resource_version(object);
        if self.store.knows(name, version) || !self.keeps(name) {
            return Found::Known;
        }
        match self.read(name, object) {
            Some(cached) => self.enter(name, cached, how, asked),
            None => {
                if self.store.set_unreadable(name, version.parse().unwrap_or_default()) {
                    tracing::warn!(watch = %self.name, object = %name, "an object cannot be read and is left out");
                }
                Found::Known
            }
        }
    }

    /// Converts an object that was read live. An unreadable object is an error, because nothing is known of it.
    pub(super) fn converted(&self, object: &Value) -> Result<R, ApiError> {
        let unreadable = || ApiError::Decode(format!("{} {} is unreadable", self.name, NamespacedName::of(object)));
        catch_unwind(AssertUnwindSafe(|| (self.cached)(object))).unwrap_or_default().ok_or_else(unreadable)
    }

    /// Records that the answer to a write was what was wanted. Returns true.
    pub(super) fn note_settled(&self, name: &NamespacedName) -> bool {
        self.altered.borrow_mut().remove(name);
        true
    }

    /// Records that the answer to a write was not what was wanted. Returns true for the first one in a row.
    pub(super) fn note_altered(&self, name: &NamespacedName) -> bool {
        let mut altered = self.altered.borrow_mut();
        altered.len() < MOST_ALTERED && altered.insert(name.clone())
    }

    /// Converts an object and stages its index keys. Returns `None` if the object cannot be read.
    fn read(&self, name: &NamespacedName, object: &Value) -> Option<R> {
        let read = || {
            let cached = (self.cached)(object)?;
            self.stage(name, &cached);
            Some(cached)
        };
        catch_unwind(AssertUnwindSafe(read)).unwrap_or_default()
    }

    fn stage(&self, name: &NamespacedName, cached: &R) {
        self.indexes.borrow().iter().for_each(|index| index.stage(name, cached));
    }

    /// Puts in a cached object whose index keys are staged. The end of an earlier object of this name, which a list may
    /// hide, is reported before.
    fn enter(&self, name: &NamespacedName, cached: R, how: How<'_>, asked: Option<Instant>) -> Found {
        let ended = |old: &R| old.version() < cached.version() && old.incarnation() != cached.incarnation();
        let ended = self.store.with(name, |old| ended(old).then(|| old.version())).flatten();
        if let Some(version) = ended {
            self.take(name, version, if matches!(how, How::Own { .. }) { How::Event } else { how });
        }
        // The last list had the earlier object: it says nothing against this one.
        let asked = asked.filter(|_| ended.is_none());
        match self.store.put(name, cached.clone(), asked) {
            Put::Stored(old) => {
                self.indexes.borrow().iter().for_each(|index| index.commit(name, old.as_ref()));
                self.event_handlers.handle(&Change { name, old: old.as_ref(), new: Some(&cached), how });
            }
            Put::Older => {}
            Put::Removed => return Found::Removed,
        }
        Found::Known
    }

    /// Reports the change from the answer to a write to the cached object, if that is newer. Otherwise nobody would know
    /// that the written state was undone before the answer came: a watch may skip the written version, and then the object
    /// looks as before the write.
    pub(super) fn report_what_followed(&self, name: &NamespacedName, answer: &Value) {
        let Ok(version) = object::resource_version(answer).parse::<u64>() else { return };
        if !self.store.with(name, |cached| cached.version() > version).unwrap_or_default() {
            return;
        }
        let (Some(cached), Ok(answered)) = (self.store.get(name), self.converted(answer)) else { return };
        // The creation of a later object was reported.
        if cached.incarnation() == answered.incarnation() {
            let change = Change { name, old: Some(&answered), new: Some(&cached), how: How::Event };
            self.event_handlers.handle(&change);
        }
    }

    pub(super) fn put_cached(&self, name: &NamespacedName, cached: R, how: How<'_>, asked: Instant) {
        if self.keeps(name) {
            self.stage(name, &cached);
            self.enter(name, cached, how, Some(asked));
        }
    }

    /// Removes a cached object that is stale since `version`, without a call of the event handlers.
    pub(super) fn forget(&self, name: &NamespacedName, version: u64) {
        if let Some(old) = self.store.take(name, version) {
            self.indexes.borrow().iter().for_each(|index| index.remove(name, &old));
        }
    }

    /// Removes an object that is gone, unless the cached one is newer than `version`.
    pub(super) fn take(&self, name: &NamespacedName, version: u64, how: How<'_>) {
        if let Some(old) = self.store.take(name, version) {
            self.indexes.borrow().iter().for_each(|index| index.remove(name, &old));
            self.event_handlers.handle(&Change { name, old: Some(&old), new: None, how });
        }
    }
}

impl<R: Cached> Sink for Reader<R> {
    fn keeps(&self, name: &NamespacedName) -> bool {
        (self.keep)(name)
    }

    fn put(&self, name: &NamespacedName, object: &Value, how: How<'_>) {
        self.upsert(name, object, how, None);
    }

    fn remove(&self, name: &NamespacedName, version: Option<u64>, how: How<'_>) {
        if let Some(version) = version.filter(|_| self.keeps(name)) {
            self.store.remember_removal(name, version);
        }
        self.take(name, version.unwrap_or(u64::MAX), how);
    }

    fn listed(
        &self,
        is_in: &dyn Fn(&NamespacedName) -> bool,
        seen: &BTreeSet<NamespacedName>,
        version: Option<u64>,
        how: How<'_>,
    ) {
        for name in self.store.all_names() {
            if is_in(&name) && !seen.contains(&name) {
                self.remove(&name, version, how);
            }
        }
        self.event_handlers.handle_missed(&self.store, is_in);
    }

    fn begun(&self, now: Instant) {
        self.store.listed(now);
    }

    fn knows_any(&self, is_in: &dyn Fn(&NamespacedName) -> bool) -> bool {
        self.store.all_names().iter().any(is_in)
    }

    fn lose(&self, is_lost: &dyn Fn(&NamespacedName) -> bool) {
        for name in self.store.all_names() {
            if is_lost(&name) {
                self.take(&name, u64::MAX, How::Lost);
            }
        }
    }

    fn heard(&self, heard: Option<Instant>) {
        self.store.heard(heard);
    }

    fn show(&self, reader_state: ReaderState) {
        let state = match reader_state {
            ReaderState::Off => StoreState::Off,
            // A store that was complete keeps its state while the watch is reopened; its age shows the gap.
            ReaderState::On { listed, error: Some(error) } if !listed || !self.store.has_contact() => {
                StoreState::Failing(error)
            }
            ReaderState::On { listed: true, .. } => StoreState::Synced,
            ReaderState::On { listed: false, .. } => StoreState::Starting,
        };
        if self.store.set_state(state) {
            self.signal.raise();
        }
    }

    fn scopes_changed(&self) {
        self.scopes.raise();
    }

    fn denied(&self) {
        self.signal.raise();
    }

    fn state(&self) -> StoreState {
        self.store.state()
    }

    fn len(&self) -> usize {
        self.store.len()
    }
}
