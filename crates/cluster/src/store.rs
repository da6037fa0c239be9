//! Stores: what watches know of the objects of one kind.
//!
//! A store has one writer, its watch, and any number of readers on any thread. No lock is held across an await.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};

use tokio::time::Instant;

use crate::object::NamespacedName;

/// A store is fresh while its watch heard of the server within this time. The server sends a bookmark about each
/// minute, so two may be missed.
pub const IDLE_LIMIT: Duration = Duration::from_secs(150);

/// A removal is remembered for this long: longer than any answer that was given before it may be under way (a list of
/// all pages has 5 minutes).
const REMOVAL_MEMORY: Duration = Duration::from_secs(600);

/// Removals that are remembered at most: at about 150 bytes, a MiB per kind.
const REMOVALS: usize = 8192;

/// A map is not built anew for less than this many new entries: some 10 KiB that might be saved.
const PACK_AFTER: usize = 64;

/// What a store keeps of an object.
pub trait Cached: Clone + Send + Sync + 'static {
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
    cached_objects: BTreeMap<NamespacedName, R>,
    /// How many records there were when they were packed last; fewer if some were taken out since.
    packed: usize,
    removals: Removals,
    /// Whatever was asked of the server before this may be gone since, without that being known: its deletion may have
    /// come before a list that does not hold it, or be forgotten.
    horizon: Option<Instant>,
    state: StoreState,
    /// Objects that exist and cannot be read, and at which version. What is known of them is of before.
    unreadable: BTreeMap<NamespacedName, u64>,
    /// Whether it was synced once.
    listed: bool,
    heard: Option<Instant>,
}

/// What is known to be gone. Answers and pages may come later than the event of a deletion that followed them: without
/// this they would put the object back, and no event would ever take it out again.
#[derive(Debug, Default)]
struct Removals {
    /// The version at which the object was gone, and when that became known.
    versions: BTreeMap<NamespacedName, (u64, Instant)>,
    /// The same by age, oldest first; may hold entries that were replaced since.
    ages: VecDeque<(Instant, NamespacedName)>,
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

impl<R> Clone for Store<R> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<R> Default for Store<R> {
    fn default() -> Self {
        let inner = Inner {
            cached_objects: BTreeMap::new(),
            packed: 0,
            removals: Removals::default(),
            horizon: None,
            state: StoreState::Starting,
            unreadable: BTreeMap::new(),
            listed: false,
            heard: None,
        };
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

    /// Whether all there is was listed once. What is known may be out of date since.
    pub fn is_listed(&self) -> bool {
        self.read().listed
    }

    /// Whether it is evidence: synced, and heard of within [`IDLE_LIMIT`]. Nothing may be deleted or called missing
    /// because of a store that is not.
    pub fn is_fresh(&self) -> bool {
        self.state() == StoreState::Synced && self.is_heard_of()
    }

    /// Whether what it says of an object is evidence: as [`Self::is_fresh`], and of the object itself.
    pub fn is_fresh_for(&self, name: &NamespacedName) -> bool {
        self.is_fresh() && !self.is_unreadable(name)
    }

    /// Whether the server was heard of within [`IDLE_LIMIT`].
    pub fn is_heard_of(&self) -> bool {
        self.read().heard.is_some_and(|heard| heard.elapsed() < IDLE_LIMIT)
    }

    /// Time since the server was last heard of.
    pub fn age(&self) -> Option<Duration> {
        self.read().heard.map(|heard| heard.elapsed())
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.read().cached_objects.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of all records, in order.
    pub fn names(&self) -> Vec<NamespacedName> {
        self.read().cached_objects.keys().cloned().collect()
    }

    /// Whether an object exists that cannot be read: what is known of it is of before, or nothing, and no evidence. It is
    /// not gone.
    pub fn is_unreadable(&self, name: &NamespacedName) -> bool {
        self.read().unreadable.contains_key(name)
    }

    /// Whether there is such an object.
    pub fn has_unreadable(&self) -> bool {
        !self.read().unreadable.is_empty()
    }

    /// The names of all records, and of objects that cannot be read.
    pub(super) fn all_names(&self) -> Vec<NamespacedName> {
        let inner = self.read();
        let without_cached = inner.unreadable.keys().filter(|name| !inner.cached_objects.contains_key(name));
        inner.cached_objects.keys().chain(without_cached).cloned().collect()
    }

    /// An object cannot be read at a version. False if that was known of the object.
    pub(super) fn set_unreadable(&self, name: &NamespacedName, version: u64) -> bool {
        self.write(|inner| {
            if inner.removals.covers(name, version) {
                return false;
            }
            let known = inner.unreadable.get(name).copied();
            inner.unreadable.insert(name.clone(), known.unwrap_or_default().max(version));
            known.is_none()
        })
    }

    /// Looks at one record without copying it.
    pub fn with<T>(&self, name: &NamespacedName, look: impl FnOnce(&R) -> T) -> Option<T> {
        self.read().cached_objects.get(name).map(look)
    }

    /// Looks at each record in the order of names. `look` must not use the store.
    pub fn for_each(&self, mut look: impl FnMut(&NamespacedName, &R)) {
        for (name, cached) in &self.read().cached_objects {
            look(name, cached);
        }
    }

    /// Looks at each record of a namespace in the order of names. `look` must not use the store.
    pub fn for_each_in(&self, namespace: &str, mut look: impl FnMut(&NamespacedName, &R)) {
        let inner = self.read();
        let cached_objects = inner.cached_objects.range(NamespacedName::new(namespace, "")..);
        for (name, cached) in cached_objects.take_while(|(name, _)| name.namespace == namespace) {
            look(name, cached);
        }
    }

    pub(super) fn set_state(&self, state: StoreState) -> bool {
        self.write(|inner| {
            let changed = inner.state != state;
            inner.listed |= state == StoreState::Synced;
            inner.state = state;
            changed
        })
    }

    /// The server refused to tell: what is known is no evidence until it is heard of again.
    pub(super) fn unheard(&self) {
        self.write(|inner| inner.heard = None);
    }

    pub(super) fn heard(&self, now: Instant) {
        self.write(|inner| inner.heard = Some(now));
    }
}

impl<R: Cached> Store<R> {
    /// A copy of one record.
    pub fn get(&self, name: &NamespacedName) -> Option<R> {
        self.read().cached_objects.get(name).cloned()
    }

    /// Whether the store has this version of an object, or a newer one. Nearly all events are echoes of own writes, and this
    /// spares making a record of them.
    pub(super) fn knows(&self, name: &NamespacedName, version: &str) -> bool {
        let Ok(version) = version.parse::<u64>() else { return false };
        self.read().cached_objects.get(name).is_some_and(|known| known.version() >= version)
    }

    /// Puts a record in, unless the store already knows a newer one, or the object may be gone since. Gives the old one
    /// back if it was replaced. `asked` is when the request was sent that this process had an answer to; `None` for what
    /// the watch or its list brings.
    pub(super) fn put(&self, name: &NamespacedName, cached: R, asked: Option<Instant>) -> Put<R> {
        self.write(|inner| match inner.cached_objects.get_mut(name) {
            Some(known) if known.version() >= cached.version() => Put::Older,
            _ if inner.unreadable.get(name).is_some_and(|version| *version > cached.version()) => Put::Older,
            Some(known) => {
                inner.unreadable.remove(name);
                Put::Stored(Some(std::mem::replace(known, cached)))
            }
            None if inner.removals.covers(name, cached.version()) => Put::Removed,
            None if asked.is_some_and(|asked| inner.horizon.is_some_and(|horizon| asked < horizon)) => Put::Removed,
            None => {
                inner.unreadable.remove(name);
                inner.cached_objects.insert(name.clone(), cached);
                inner.pack_if_grown();
                Put::Stored(None)
            }
        })
    }

    /// Whether the object is known to be gone at `version` or later.
    pub(super) fn is_removed(&self, name: &NamespacedName, version: u64) -> bool {
        let inner = self.read();
        !inner.cached_objects.contains_key(name) && inner.removals.covers(name, version)
    }

    /// Remembers that an object is gone at `version`: nothing of this or an older version is put in any more.
    pub(super) fn remember_removal(&self, name: &NamespacedName, version: u64) {
        self.write(|inner| {
            let forgotten = inner.removals.add(name, version, Instant::now());
            inner.horizon = inner.horizon.max(forgotten);
        });
    }

    /// A list told of all objects there were: what it did not hold is not put in by an answer to an older request.
    pub(super) fn listed(&self, now: Instant) {
        self.write(|inner| inner.horizon = inner.horizon.max(Some(now)));
    }

    /// Takes a record out if it is not newer than `version`.
    pub(super) fn take(&self, name: &NamespacedName, version: u64) -> Option<R> {
        self.write(|inner| match inner.cached_objects.get(name) {
            _ if inner.unreadable.get(name).is_some_and(|unreadable| *unreadable > version) => None,
            Some(known) if known.version() <= version => {
                inner.unreadable.remove(name);
                let taken = inner.cached_objects.remove(name);
                inner.packed = inner.packed.min(inner.cached_objects.len());
                taken
            }
            Some(_) => None,
            None => {
                inner.unreadable.remove(name);
                None
            }
        })
    }
}

impl<R> Inner<R> {
    /// The nodes of a map that gets its entries in order, as lists bring them, are half empty; those of one that is built at
    /// once are full. Building it after each eighth of growth moves each entry about nine times.
    fn pack_if_grown(&mut self) {
        if self.cached_objects.len() > self.packed + self.packed / 8 + PACK_AFTER {
            self.cached_objects = std::mem::take(&mut self.cached_objects).into_iter().collect();
            self.packed = self.cached_objects.len();
        }
    }
}

/// What became of a record that was put in.
pub(super) enum Put<R> {
    /// The store knows a newer one.
    Older,
    /// The object is known to be gone since, or may be.
    Removed,
    /// It is in; this was there before.
    Stored(Option<R>),
}

impl Removals {
    /// Adds one; gives when the latest of those became known that are forgotten for it.
    fn add(&mut self, name: &NamespacedName, version: u64, now: Instant) -> Option<Instant> {
        let version = self.versions.get(name).map_or(version, |(known, _)| version.max(*known));
        self.versions.insert(name.clone(), (version, now));
        self.ages.push_back((now, name.clone()));
        let mut forgotten = None;
        while self
            .ages
            .front()
            .is_some_and(|(since, _)| self.ages.len() > REMOVALS || now.duration_since(*since) > REMOVAL_MEMORY)
        {
            let Some((since, name)) = self.ages.pop_front() else { break };
            if self.versions.get(&name).is_some_and(|(_, last)| *last == since) {
                self.versions.remove(&name);
                forgotten = forgotten.max(Some(since));
            }
        }
        forgotten
    }

    /// Whether the object is known to be gone at `version` or later.
    fn covers(&self, name: &NamespacedName, version: u64) -> bool {
        self.versions.get(name).is_some_and(|(removed, _)| version <= *removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug)]
    struct Entry(u64);

    impl Cached for Entry {
        fn uid(&self) -> &'static str {
            ""
        }

        fn version(&self) -> u64 {
            self.0
        }
    }

    fn name(name: &str) -> NamespacedName {
        NamespacedName::new("default", name)
    }

    fn is_in(store: &Store<Entry>, object: &str, version: u64) -> bool {
        matches!(store.put(&name(object), Entry(version), None), Put::Stored(_))
    }

    #[tokio::test(start_paused = true)]
    async fn removed_object_is_not_put_back_by_an_older_answer() {
        let store = Store::default();

        store.remember_removal(&name("a"), 6);
        store.remember_removal(&name("a"), 5);

        assert!(!is_in(&store, "a", 5) && !is_in(&store, "a", 6));
        assert!(is_in(&store, "b", 5));
        assert!(is_in(&store, "a", 7), "it was created again");
    }

    #[test]
    fn store_map_is_packed_after_growth_by_an_eighth_without_loss() {
        let store = Store::default();
        let packed = || store.read().packed;
        let put = |range: std::ops::Range<u32>| {
            for number in range {
                assert!(is_in(&store, &format!("{number:05}"), 1));
            }
        };
        put(0..64);
        assert_eq!(packed(), 0);
        put(64..65);
        assert_eq!(packed(), 65);
        put(65..2000);
        assert!((1700..=2000).contains(&packed()), "{}", packed());
        assert_eq!(store.names(), (0..2000).map(|number| name(&format!("{number:05}"))).collect::<Vec<_>>());

        for number in 0..1000 {
            store.take(&name(&format!("{number:05}")), 1);
        }
        assert_eq!((store.len(), packed()), (1000, 1000));
        put(0..500);
        assert!(packed() >= 1189, "{}", packed());
    }

    #[tokio::test(start_paused = true)]
    async fn removals_are_remembered_for_minutes_and_in_bounded_number() {
        let store = Store::default();
        for index in 0..2 * REMOVALS {
            store.remember_removal(&name(&index.to_string()), 6);
        }
        let remembered =
            |store: &Store<Entry>| (store.read().removals.versions.len(), store.read().removals.ages.len());
        assert_eq!(remembered(&store), (REMOVALS, REMOVALS));
        assert!(is_in(&store, "0", 5) && !is_in(&store, &REMOVALS.to_string(), 5));

        tokio::time::sleep(REMOVAL_MEMORY + Duration::from_secs(1)).await;
        store.remember_removal(&name("last"), 6);

        assert_eq!(remembered(&store), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn stale_answer_from_before_a_list_or_a_forgotten_removal_adds_nothing() {
        let put = |store: &Store<Entry>, object: &str, asked| store.put(&name(object), Entry(5), Some(asked));
        let store = Store::default();
        let before = Instant::now();
        store.remember_removal(&name("a"), 6);
        tokio::time::sleep(REMOVAL_MEMORY + Duration::from_secs(1)).await;
        let between = Instant::now();
        store.remember_removal(&name("b"), 6);
        assert!(matches!(put(&store, "c", before - Duration::from_secs(1)), Put::Removed));
        assert!(matches!(put(&store, "c", between), Put::Stored(None)));

        tokio::time::sleep(Duration::from_secs(1)).await;
        store.listed(Instant::now());

        assert!(matches!(put(&store, "d", between), Put::Removed));
        assert!(matches!(put(&store, "d", Instant::now()), Put::Stored(None)));
        assert!(matches!(store.put(&name("c"), Entry(7), Some(between)), Put::Stored(Some(_))), "it is known");
    }
}
