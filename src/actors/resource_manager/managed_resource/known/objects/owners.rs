use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    rc::Rc,
};

use cluster::object::{GroupKind, NamespacedName, ObjectKey};

use super::super::named::Named;

/// Which ManagedResources own which objects. Each key is stored once, however often it is referred to.
#[derive(Default)]
pub(super) struct Owners {
    /// Sorted by ManagedResource; never empty. Nearly all objects have one owner. Never iterated.
    holders: HashMap<Rc<ObjectKey>, Vec<Rc<NamespacedName>>>,
    held: BTreeMap<Rc<NamespacedName>, Held>,
    pub(super) kinds: BTreeMap<GroupKind, usize>,
    news: u64,
}

#[derive(Default)]
struct Held {
    keys: BTreeSet<Rc<ObjectKey>>,
    kinds: Vec<GroupKind>,
    news: u64,
    /// Which labels and annotations of an object count for the ManagedResource. For objects without an entry all count.
    named: BTreeMap<Rc<ObjectKey>, Rc<Named>>,
}

impl Owners {
    /// Sets the keys of a ManagedResource. Returns the keys that have no owner any more.
    pub(super) fn replace(&mut self, bundle: &NamespacedName, keys: BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
        let (bundle, before, mut named) = match self.held.remove_entry(bundle) {
            Some((bundle, held)) if held.keys.iter().map(Rc::as_ref).eq(&keys) => {
                self.held.insert(bundle, held);
                return Vec::new();
            }
            Some((bundle, held)) => (bundle, held.keys, held.named),
            None => (Rc::new(bundle.clone()), BTreeSet::new(), BTreeMap::new()),
        };
        named.retain(|key, _| keys.contains(key));
        let mut held = Held { news: self.next_news(), named, ..Held::default() };
        let keys: Vec<_> = keys.into_iter().map(|key| self.add(key, &bundle)).collect();
        for key in &keys {
            if held.kinds.last().is_none_or(|kind| kind.group != key.group || kind.kind != key.kind) {
                held.kinds.push(key.group_kind());
            }
        }
        // Built at once: a set that grows takes twice the memory.
        held.keys = keys.into_iter().collect();
        let mut lost = Vec::new();
        for key in before.difference(&held.keys) {
            if let Some(holders) = self.holders.get_mut(key) {
                holders.retain(|holder| *holder != bundle);
                if holders.is_empty() {
                    self.holders.remove(key);
                    self.count(key, |objects| objects.saturating_sub(1));
                    lost.push(ObjectKey::clone(key));
                }
            }
        }
        if !held.keys.is_empty() {
            self.held.insert(bundle, held);
        }
        lost
    }

    fn add(&mut self, key: ObjectKey, bundle: &Rc<NamespacedName>) -> Rc<ObjectKey> {
        if let Some(known) = self.shared(&key) {
            let holders = self.holders.entry(known.clone()).or_default();
            if let Err(place) = holders.binary_search(bundle) {
                holders.insert(place, bundle.clone());
            }
            return known;
        }
        let key = Rc::new(key);
        self.count(&key, |objects| objects + 1);
        self.holders.insert(key.clone(), vec![bundle.clone()]);
        key
    }

    pub(super) fn name(&mut self, bundle: &NamespacedName, named: impl Iterator<Item = (ObjectKey, Named)>) {
        let Some(held) = self.held.get_mut(bundle) else { return };
        // Most objects of a ManagedResource have the same.
        let mut shared: BTreeSet<Rc<Named>> = BTreeSet::new();
        let named = named.filter_map(|(key, named)| {
            let key = held.keys.get(&key)?.clone();
            let named = match shared.get(&named) {
                Some(known) => known.clone(),
                None => {
                    let named = Rc::new(named);
                    shared.insert(named.clone());
                    named
                }
            };
            Some((key, named))
        });
        let named: BTreeMap<_, _> = named.collect();
        held.named = named;
    }

    /// Returns which labels and annotations of an object count for its owners, or `None` if all count.
    pub(super) fn named(&self, key: &ObjectKey) -> Option<Vec<Rc<Named>>> {
        let holders = self.holders.get(key)?;
        holders.iter().map(|holder| self.held.get(holder)?.named.get(key).cloned()).collect()
    }

    fn count(&mut self, key: &ObjectKey, change: impl FnOnce(usize) -> usize) {
        let kind = key.group_kind();
        let objects = change(self.kinds.get(&kind).copied().unwrap_or_default());
        if objects == 0 {
            self.kinds.remove(&kind);
        } else {
            self.kinds.insert(kind, objects);
        }
    }

    pub(super) fn holders(&self, key: &ObjectKey) -> &[Rc<NamespacedName>] {
        self.holders.get(key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn is_held(&self, key: &ObjectKey) -> bool {
        self.holders.contains_key(key)
    }

    pub(super) fn is_held_by(&self, key: &ObjectKey, bundle: &NamespacedName) -> bool {
        self.held.get(bundle).is_some_and(|held| held.keys.contains(key))
    }

    pub(super) fn held_by(&self, bundle: &NamespacedName) -> impl Iterator<Item = &ObjectKey> {
        self.held.get(bundle).into_iter().flat_map(|held| &held.keys).map(Rc::as_ref)
    }

    pub(super) fn shared(&self, key: &ObjectKey) -> Option<Rc<ObjectKey>> {
        self.holders.get_key_value(key).map(|(key, _)| key.clone())
    }

    pub(super) fn namespaces(&self, kind: &GroupKind) -> BTreeSet<String> {
        let held = self.of_kind(kind).flat_map(|(_, held)| &held.keys);
        let keys = held.filter(|key| key.group == kind.group && key.kind == kind.kind);
        keys.map(|key| key.namespace.clone()).collect()
    }

    pub(super) fn has_kind(&self, kind: &GroupKind) -> bool {
        self.kinds.contains_key(kind)
    }

    pub(super) fn holders_of(&self, kind: &GroupKind) -> BTreeSet<NamespacedName> {
        self.of_kind(kind).map(|(bundle, _)| NamespacedName::clone(bundle)).collect()
    }

    pub(super) fn holders_in<T: Copy + Ord>(&self, namespaces: &BTreeMap<String, T>) -> Vec<(Rc<NamespacedName>, T)> {
        let least = |held: &Held| held.keys.iter().filter_map(|key| namespaces.get(&key.namespace)).min();
        self.held.iter().filter_map(|(bundle, held)| Some((bundle.clone(), *least(held)?))).collect()
    }

    fn of_kind(&self, kind: &GroupKind) -> impl Iterator<Item = (&Rc<NamespacedName>, &Held)> {
        self.held.iter().filter(move |(_, held)| held.kinds.contains(kind))
    }

    pub(super) fn news_of(&mut self, key: &ObjectKey) -> Vec<Rc<NamespacedName>> {
        let holders = self.holders(key).to_vec();
        self.news_for(holders.iter().map(Rc::as_ref));
        holders
    }

    pub(super) fn news_of_kind(&mut self, kind: &GroupKind) -> Vec<Rc<NamespacedName>> {
        let holders: Vec<_> = self.of_kind(kind).map(|(holder, _)| holder.clone()).collect();
        self.news_for(holders.iter().map(Rc::as_ref));
        holders
    }

    pub(super) fn news_for<'a>(&mut self, bundles: impl IntoIterator<Item = &'a NamespacedName>) {
        let news = self.next_news();
        for bundle in bundles {
            if let Some(held) = self.held.get_mut(bundle) {
                held.news = news;
            }
        }
    }

    /// Returns the counter's value at the last news for a ManagedResource, and its kinds, or `None` if it owns nothing.
    pub(super) fn last_news(&self, bundle: &NamespacedName) -> Option<(u64, impl Iterator<Item = &GroupKind>)> {
        self.held.get(bundle).map(|held| (held.news, held.kinds.iter()))
    }

    fn next_news(&mut self) -> u64 {
        self.news += 1;
        self.news
    }
}
