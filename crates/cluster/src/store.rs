//! Stores: the cached objects of one kind. A store has one writer, its watch, and any number of readers on any thread.
//! No lock is held across an await.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};

use kit::hash_of;
use serde_json::Value;
use tokio::time::Instant;

use crate::object::NamespacedName;

/// A store is fresh for this long after contact with the server: two of its bookmarks, one a minute, may be missed.
pub const IDLE_LIMIT: Duration = Duration::from_secs(150);

/// How long a removal is remembered: longer than an older answer may be in flight (a list of all pages has 5 minutes).
const REMOVAL_MEMORY: Duration = Duration::from_secs(600);

const REMOVALS: usize = 8192; // maximum number of remembered removals: at about 150 bytes each, a MiB per kind

const PACK_AFTER: usize = 64; // a map is not rebuilt for fewer new entries than this, which might save some 10 KiB

/// What a store keeps of an object.
pub trait Cached: Clone + Send + Sync + 'static {
    /// `metadata.uid`, or empty if it is not kept.
    fn uid(&self) -> &str;
    /// Tells the object from an earlier or later one of its name: equal numbers stand for equal uids.
    fn incarnation(&self) -> u64 {
        hash_of(self.uid())
    }
    /// `metadata.resourceVersion` as a number. All kinds of a cluster share one counter, so versions can be compared.
    fn version(&self) -> u64;
    /// Returns an object with `metadata.resourceVersion`, `finalizers`, and, if it is in deletion, `uid` and
    /// `deletionTimestamp`; `None` if they are not kept.
    fn finalizers(&self) -> Option<Value> {
        None
    }
}

/// The cached objects of one kind, by namespace and name. Cheap to clone.
#[derive(Debug)]
pub struct Store<R> {
    inner: Arc<RwLock<Inner<R>>>,
}

#[derive(Debug)]
struct Inner<R> {
    cached_objects: BTreeMap<NamespacedName, R>,
    packed: usize, // number of cached objects at the last packing, minus those removed since
    removals: Removals,
    /// Objects read before this may be deleted unnoticed: a later list lacks them, or the removal was forgotten.
    horizon: Option<Instant>,
    state: StoreState,
    /// Objects that exist and cannot be read, and at which version. Their cached objects are stale.
    unreadable: BTreeMap<NamespacedName, u64>,
    listed: bool,
    heard: Option<Instant>,
}

/// Deleted objects. Answers and pages may arrive after the event of a later deletion: without this they would put the
/// object back, and no event would ever remove it.
#[derive(Debug, Default)]
struct Removals {
    /// The version at which the object was gone, and when that became known.
    versions: BTreeMap<NamespacedName, (u64, Instant)>,
    /// The same by age, oldest first; may hold replaced entries.
    ages: VecDeque<(Instant, NamespacedName)>,
}

/// Trustworthiness of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreState {
    /// Not watched.
    Off,
    /// The first list is not complete.
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

    /// Returns its state.
    pub fn state(&self) -> StoreState {
        self.read().state.clone()
    }

    /// Returns true once a list was complete. The store may be stale since.
    pub fn is_listed(&self) -> bool {
        self.read().listed
    }

    /// Returns true if the store is evidence: synced, with contact within [`IDLE_LIMIT`]. Do not delete an object or
    /// report it missing because of a store that is not fresh.
    pub fn is_fresh(&self) -> bool {
        self.state() == StoreState::Synced && self.has_contact()
    }

    /// Returns true if the store is evidence for one object: fresh, and the object is readable.
    pub fn is_fresh_for(&self, name: &NamespacedName) -> bool {
        self.is_fresh() && !self.is_unreadable(name)
    }

    /// Returns true if there was contact with the server within [`IDLE_LIMIT`].
    pub fn has_contact(&self) -> bool {
        self.read().heard.is_some_and(|heard| heard.elapsed() < IDLE_LIMIT)
    }

    /// Returns the time since the last contact with the server.
    pub fn age(&self) -> Option<Duration> {
        self.read().heard.map(|heard| heard.elapsed())
    }

    /// Returns the number of cached objects.
    pub fn len(&self) -> usize {
        self.read().cached_objects.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the names of all cached objects, in order.
    pub fn names(&self) -> Vec<NamespacedName> {
        self.read().cached_objects.keys().cloned().collect()
    }

    /// Returns true if an object exists and cannot be read: its cached object is stale or absent, and no evidence.
    pub fn is_unreadable(&self, name: &NamespacedName) -> bool {
        self.read().unreadable.contains_key(name)
    }

    /// Returns true if any object cannot be read.
    pub fn has_unreadable(&self) -> bool {
        !self.read().unreadable.is_empty()
    }

    pub(super) fn all_names(&self) -> Vec<NamespacedName> {
        let inner = self.read();
        let without_cached = inner.unreadable.keys().filter(|name| !inner.cached_objects.contains_key(name));
        inner.cached_objects.keys().chain(without_cached).cloned().collect()
    }

    /// Records that an object cannot be read at a version. Returns false if that was known.
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

    /// Calls `look` with one cached object, without a copy. Returns `None` if there is none.
    pub fn with<T>(&self, name: &NamespacedName, look: impl FnOnce(&R) -> T) -> Option<T> {
        self.read().cached_objects.get(name).map(look)
    }

    /// Calls `look` with each cached object in the order of names. `look` must not use the store.
    pub fn for_each(&self, mut look: impl FnMut(&NamespacedName, &R)) {
        for (name, cached) in &self.read().cached_objects {
            look(name, cached);
        }
    }

    /// Calls `look` with at most `most` cached objects, in the order of names, from the first one after `name` on. `look` must
    /// not use the store.
    pub fn for_each_after(&self, name: &NamespacedName, most: usize, mut look: impl FnMut(&NamespacedName, &R)) {
        let inner = self.read();
        let later = inner.cached_objects.range((Bound::Excluded(name), Bound::Unbounded));
        later.take(most).for_each(|(name, cached)| look(name, cached));
    }

    /// Calls `look` with each cached object of a namespace in the order of names. `look` must not use the store.
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

    /// Records the last contact. `None`: the server denied access, and the store is no evidence until the next contact.
    pub(super) fn heard(&self, heard: Option<Instant>) {
        self.write(|inner| inner.heard = heard);
    }
}

impl<R: Cached> Store<R> {
    /// Returns a copy of one cached object.
    pub fn get(&self, name: &NamespacedName) -> Option<R> {
        self.read().cached_objects.get(name).cloned()
    }

    /// Returns true if the store has this version or a newer one: most events echo own writes and need no conversion.
    pub(super) fn knows(&self, name: &NamespacedName, version: &str) -> bool {
        let Ok(version) = version.parse::<u64>() else { return false };
        self.read().cached_objects.get(name).is_some_and(|known| known.version() >= version)
    }

    /// Puts a cached object in, unless the store has a newer one, or the object may have been deleted since. `asked` is
    /// when the request was sent whose answer this is; `None` for objects from the watch or its list.
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

    /// Returns true if the object is known to be gone at `version` or later.
    pub(super) fn is_removed(&self, name: &NamespacedName, version: u64) -> bool {
        let inner = self.read();
        !inner.cached_objects.contains_key(name) && inner.removals.covers(name, version)
    }

    /// Returns true if the end of an object became known less than `age` ago, and nothing of it since.
    pub(super) fn ended_within(&self, name: &NamespacedName, age: Duration) -> bool {
        let inner = self.read();
        let is_known = inner.cached_objects.contains_key(name) || inner.unreadable.contains_key(name);
        !is_known && inner.removals.versions.get(name).is_some_and(|(_, since)| since.elapsed() < age)
    }

    /// Remembers that an object is gone at `version`: `put` ignores this and older versions from now on.
    pub(super) fn remember_removal(&self, name: &NamespacedName, version: u64) {
        self.write(|inner| {
            let forgotten = inner.removals.add(name, version, Instant::now());
            inner.horizon = inner.horizon.max(forgotten);
        });
    }

    /// Records a complete list: answers to older requests add no object that it lacks.
    pub(super) fn listed(&self, now: Instant) {
        self.write(|inner| inner.horizon = inner.horizon.max(Some(now)));
    }

    /// Removes a cached object if it is not newer than `version`. Returns it.
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
    /// Rebuilds the map after growth. The nodes of a map that is filled in order, as by lists, are half empty; those of
    /// a map that is built at once are full. Rebuilding after each eighth of growth moves each entry about nine times.
    fn pack_if_grown(&mut self) {
        if self.cached_objects.len() > self.packed + self.packed / 8 + PACK_AFTER {
            self.cached_objects = std::mem::take(&mut self.cached_objects).into_iter().collect();
            self.packed = self.cached_objects.len();
        }
    }
}

pub(super) enum Put<R> {
    Older,
    /// The object is known to be gone since, or may be.
    Removed,
    /// It is in, and replaced this one.
    Stored(Option<R>),
}

impl Removals {
    /// Adds a removal. If it displaces others, returns when the latest of those became known.
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
