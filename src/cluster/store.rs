//! Stores: what watch routers know of the objects of one kind.
//!
//! A store has one writer, its router, and any number of readers on any thread. No lock is held across an await.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};

use tokio::time::Instant;

use crate::api::object::NamespacedName;

/// A store is fresh while its router heard of the server within this time. The server sends a bookmark about each
/// minute, so two may be missed.
pub const IDLE_LIMIT: Duration = Duration::from_secs(150);

/// What a store keeps of an object.
pub trait Record: Clone + Send + Sync + 'static {
    /// `metadata.uid`.
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion` as a number; one counter for all kinds of a cluster, so versions can be compared.
    fn version(&self) -> u64;
}

/// What is known of the objects of one kind, by namespace and name. Cheap to clone.
#[derive(Debug)]
pub struct Store<R> {
    inner: Arc<RwLock<Inner<R>>>,
}

#[derive(Debug)]
struct Inner<R> {
    records: BTreeMap<NamespacedName, R>,
    state: StoreState,
    heard: Option<Instant>,
}

/// How far a store can be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreState {
    /// Not watched.
    Off,
    /// The first list is under way.
    Starting,
    /// Follows the server.
    Synced,
    /// Cannot follow the server, for this reason.
    Failing(String),
}

// === impl Store ===

impl<R> Clone for Store<R> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<R> Default for Store<R> {
    fn default() -> Self {
        let inner = Inner { records: BTreeMap::new(), state: StoreState::Starting, heard: None };
        Self { inner: Arc::new(RwLock::new(inner)) }
    }
}

impl<R> Store<R> {
    fn read(&self) -> RwLockReadGuard<'_, Inner<R>> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write<T>(&self, change: impl FnOnce(&mut Inner<R>) -> T) -> T {
        change(&mut self.inner.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// How far it can be trusted.
    pub fn state(&self) -> StoreState {
        self.read().state.clone()
    }

    /// Whether it is evidence: synced, and heard of within [`IDLE_LIMIT`]. Nothing may be deleted or called missing
    /// because of a store that is not.
    pub fn is_fresh(&self) -> bool {
        let inner = self.read();
        inner.state == StoreState::Synced && inner.heard.is_some_and(|heard| heard.elapsed() < IDLE_LIMIT)
    }

    /// Time since the server was last heard of.
    pub fn age(&self) -> Option<Duration> {
        self.read().heard.map(|heard| heard.elapsed())
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.read().records.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of all records, in order.
    pub fn names(&self) -> Vec<NamespacedName> {
        self.read().records.keys().cloned().collect()
    }

    /// Looks at one record without copying it.
    pub fn with<T>(&self, name: &NamespacedName, look: impl FnOnce(&R) -> T) -> Option<T> {
        self.read().records.get(name).map(look)
    }

    /// Looks at each record in the order of names. `look` must not use the store.
    pub fn for_each(&self, mut look: impl FnMut(&NamespacedName, &R)) {
        for (name, record) in &self.read().records {
            look(name, record);
        }
    }

    pub(super) fn set_state(&self, state: StoreState) -> bool {
        self.write(|inner| {
            let changed = inner.state != state;
            inner.state = state;
            changed
        })
    }

    pub(super) fn heard(&self, now: Instant) {
        self.write(|inner| inner.heard = Some(now));
    }
}

impl<R: Record> Store<R> {
    /// A copy of one record.
    pub fn get(&self, name: &NamespacedName) -> Option<R> {
        self.read().records.get(name).cloned()
    }

    /// Puts a record in, unless the store already knows a newer one. Gives the old one back if it was replaced.
    pub(super) fn put(&self, name: &NamespacedName, record: R) -> Put<R> {
        self.write(|inner| match inner.records.get_mut(name) {
            Some(known) if known.version() >= record.version() => Put::Older,
            Some(known) => Put::Stored(Some(std::mem::replace(known, record))),
            None => {
                inner.records.insert(name.clone(), record);
                Put::Stored(None)
            }
        })
    }

    /// Takes a record out if it is not newer than `version`.
    pub(super) fn take(&self, name: &NamespacedName, version: u64) -> Option<R> {
        self.write(|inner| match inner.records.get(name) {
            Some(known) if known.version() <= version => inner.records.remove(name),
            Some(_) | None => None,
        })
    }
}

/// What became of a record that was put in.
pub(super) enum Put<R> {
    /// The store knows a newer one.
    Older,
    /// It is in; this was there before.
    Stored(Option<R>),
}
