//! Indexes: objects by keys. They are updated together with the store, before event handlers run.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use crate::{Cached, object::NamespacedName};

/// The names of objects by key. Cheap to clone, readable from any thread.
#[derive(Debug)]
pub struct Index<K> {
    /// Names in order; nearly always there is one.
    names: Arc<RwLock<BTreeMap<K, Vec<NamespacedName>>>>,
}

pub(super) struct Keeper<K, R> {
    index: Index<K>,
    keys: Box<KeysOf<K, R>>,
    /// Keys of the cached object that is being put in.
    staged: RefCell<Vec<K>>,
}

type KeysOf<K, R> = dyn Fn(&NamespacedName, &R) -> Vec<K>;

pub(super) trait Indexed<R> {
    /// Computes the keys of a cached object before it is put in: the only step that may panic.
    fn stage(&self, name: &NamespacedName, new: &R);
    /// The staged object was put in and replaced `old`.
    fn commit(&self, name: &NamespacedName, old: Option<&R>);
    fn remove(&self, name: &NamespacedName, old: &R);
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self { names: self.names.clone() }
    }
}

impl<K: Ord> Index<K> {
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<K, Vec<NamespacedName>>> {
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the objects of a key, in order.
    pub fn get(&self, key: &K) -> Vec<NamespacedName> {
        self.read().get(key).cloned().unwrap_or_default()
    }

    /// Calls `look` with the objects of a key, in order, without a copy of them.
    pub fn with<T>(&self, key: &K, look: impl FnOnce(&[NamespacedName]) -> T) -> T {
        look(self.read().get(key).map_or(&[], Vec::as_slice))
    }

    /// Returns the number of objects of a key.
    pub fn count(&self, key: &K) -> usize {
        self.read().get(key).map_or(0, Vec::len)
    }

    /// Returns true if a key has an object.
    pub fn contains(&self, key: &K) -> bool {
        self.read().contains_key(key)
    }

    fn change(&self, name: &NamespacedName, old: &[K], new: Vec<K>) {
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        for key in old {
            if let Some(of_key) = names.get_mut(key) {
                of_key.retain(|other| other != name);
                if of_key.is_empty() {
                    names.remove(key);
                }
            }
        }
        for key in new {
            let of_key = names.entry(key).or_insert_with(|| Vec::with_capacity(1));
            if let Err(place) = of_key.binary_search(name) {
                of_key.insert(place, name.clone());
            }
        }
    }
}

impl<K: Ord + Clone> Index<K> {
    /// Returns all keys that have an object, in order.
    pub fn keys(&self) -> Vec<K> {
        self.read().keys().cloned().collect()
    }
}

impl<K, R> Keeper<K, R> {
    pub(super) fn new(keys: impl Fn(&NamespacedName, &R) -> Vec<K> + 'static) -> (Index<K>, Self) {
        let index = Index { names: Arc::default() };
        (index.clone(), Self { index, keys: Box::new(keys), staged: RefCell::default() })
    }
}

impl<K: Ord, R: Cached> Indexed<R> for Keeper<K, R> {
    fn stage(&self, name: &NamespacedName, new: &R) {
        let keys = (self.keys)(name, new);
        self.staged.replace(keys);
    }

    fn commit(&self, name: &NamespacedName, old: Option<&R>) {
        let (old, new) = (old.map(|old| (self.keys)(name, old)).unwrap_or_default(), self.staged.take());
        if old != new {
            self.index.change(name, &old, new);
        }
    }

    fn remove(&self, name: &NamespacedName, old: &R) {
        self.index.change(name, &(self.keys)(name, old), Vec::new());
    }
}
