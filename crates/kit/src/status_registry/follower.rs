//! Finds what changed in a status registry. The registry notes the paths of changed cells for each follower, so that a
//! look costs as much as what changed, however many cells rest.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{Activity, ActorState, StatusRegistry};

/// Learns from the registry which cells change, as long as it lives.
#[derive(Debug)]
pub struct Follower {
    registry: StatusRegistry,
    /// The registry's version before the last look.
    seen: u64,
    changed: Arc<ChangedPaths>,
    /// Hashes of the last headlines of all actors.
    headlines: HashMap<Arc<str>, u64>,
    /// Actors that changed while their headlines stayed.
    waiting: HashSet<Arc<str>>,
}

/// What changed between two looks.
#[derive(Debug, PartialEq)]
pub struct RegistryChanges {
    /// The registry's version before this look.
    pub version: u64,
    /// New and changed states, sorted by path; none of them is gone.
    pub changed: Vec<ActorState>,
    /// Paths whose actors are gone, sorted. An actor that came and went between two looks is among them, and an actor
    /// whose end was already reported may be, too.
    pub gone: Vec<Arc<str>>,
}

/// The followers of a registry. Without any, a change costs one comparison more.
#[derive(Default, Debug)]
pub(super) struct Followers {
    count: AtomicUsize,
    lists: Mutex<Vec<Weak<ChangedPaths>>>,
}

/// The cells that changed since a follower's last look. It has at most as many paths as actors lived since then.
#[derive(Default, Debug)]
struct ChangedPaths(Mutex<HashSet<Arc<str>>>);

impl Follower {
    /// Follows a registry from its present state on: looks report what changes later.
    pub fn new(registry: StatusRegistry) -> Self {
        let changed = registry.shared.followers.add();
        let seen = registry.version();
        let headline = |path: Arc<str>| Some((registry.look(&path, ActorState::headline)?, path));
        let headlines = registry.paths().into_iter().filter_map(headline).map(|(headline, path)| (path, headline));
        Self { seen, headlines: headlines.collect(), registry, changed, waiting: HashSet::new() }
    }

    /// The registry's version before the last look.
    pub fn version(&self) -> u64 {
        self.seen
    }

    /// Reports the changes since the last look, `None` if there are none.
    pub fn look(&mut self) -> Option<RegistryChanges> {
        self.look_for(true)
    }

    /// Reports actors that are new, gone, or whose headline changed since the last look: what is wrong with them, and the
    /// object that they look after. `None` if there are none. Other changes wait for [`Self::look`]. Most changes are
    /// reconciles that begin and end as before.
    pub fn look_for_headlines(&mut self) -> Option<RegistryChanges> {
        self.look_for(false)
    }

    fn look_for(&mut self, everything: bool) -> Option<RegistryChanges> {
        let version = self.registry.version();
        let mut paths = self.changed.take();
        if everything {
            paths.extend(self.waiting.drain());
        }
        // A cell is read after its path was noted, so that the copy holds the noted change.
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        for path in paths {
            let Some(headline) = self.registry.look(&path, ActorState::headline) else {
                self.headlines.remove(&path);
                self.waiting.remove(&path);
                gone.push(path);
                continue;
            };
            let is_new = self.headlines.insert(path.clone(), headline) != Some(headline);
            if is_new || everything {
                self.waiting.remove(&path);
                changed.extend(self.registry.actor(&path));
            } else {
                self.waiting.insert(path);
            }
        }
        if changed.is_empty() && gone.is_empty() {
            return None;
        }
        changed.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        gone.sort_unstable();
        self.seen = version;
        Some(RegistryChanges { version, changed, gone })
    }
}

impl ActorState {
    /// A hash of what somebody who watches wants to know at once.
    fn headline(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let is_out_of_order = matches!(self.activity, Activity::Failing | Activity::Quarantined | Activity::Stopped);
        (is_out_of_order, self.restarts, &self.problem, &self.last_error, &self.object).hash(&mut hasher);
        hasher.finish()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.registry.shared.followers.remove(&self.changed);
    }
}

impl Followers {
    fn add(&self) -> Arc<ChangedPaths> {
        let changed = Arc::default();
        let mut lists = lock(&self.lists);
        lists.push(Arc::downgrade(&changed));
        self.count.store(lists.len(), Ordering::Release);
        changed
    }

    fn remove(&self, changed: &Arc<ChangedPaths>) {
        let mut lists = lock(&self.lists);
        lists.retain(|list| !std::ptr::eq(list.as_ptr(), &raw const **changed));
        self.count.store(lists.len(), Ordering::Release);
    }

    /// Notes that the cell at `path` changed. Call it after the change, so that a follower that gets the path reads the
    /// changed cell.
    pub(super) fn note(&self, path: &Arc<str>) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        for list in lock(&self.lists).iter().filter_map(Weak::upgrade) {
            list.insert(path);
        }
    }
}

impl ChangedPaths {
    fn insert(&self, path: &Arc<str>) {
        let mut paths = lock(&self.0);
        if !paths.contains(path) {
            paths.insert(path.clone());
        }
    }

    fn take(&self) -> HashSet<Arc<str>> {
        mem::take(&mut *lock(&self.0))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
