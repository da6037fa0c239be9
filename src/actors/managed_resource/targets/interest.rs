//! Which bundles hold which objects.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::object::{GroupKind, NamespacedName, ObjectKey};

/// Which bundles hold which objects.
#[derive(Default)]
pub(super) struct Interest {
    holders: BTreeMap<ObjectKey, BTreeSet<NamespacedName>>,
    held: BTreeMap<NamespacedName, BTreeSet<ObjectKey>>,
}

// === impl Interest ===

impl Interest {
    /// Sets a bundle's keys; gives back those that nobody is interested in any more.
    pub(super) fn replace(&mut self, bundle: &NamespacedName, keys: BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
        let before =
            if keys.is_empty() { self.held.remove(bundle) } else { self.held.insert(bundle.clone(), keys.clone()) };
        for key in &keys {
            self.holders.entry(key.clone()).or_default().insert(bundle.clone());
        }
        let mut lost = Vec::new();
        for key in before.unwrap_or_default().difference(&keys) {
            if let Some(holders) = self.holders.get_mut(key) {
                holders.remove(bundle);
                if holders.is_empty() {
                    self.holders.remove(key);
                    lost.push(key.clone());
                }
            }
        }
        lost
    }

    /// The bundles that hold an object; none when nobody does.
    pub(super) fn holders(&self, key: &ObjectKey) -> Option<&BTreeSet<NamespacedName>> {
        self.holders.get(key)
    }

    /// The objects a bundle holds; none when it holds nothing.
    pub(super) fn held_by(&self, bundle: &NamespacedName) -> Option<&BTreeSet<ObjectKey>> {
        self.held.get(bundle)
    }

    /// The namespaces of the objects of a kind.
    pub(super) fn namespaces(&self, kind: &GroupKind) -> BTreeSet<String> {
        let first = ObjectKey { group: kind.group.clone(), kind: kind.kind.clone(), ..ObjectKey::default() };
        let keys = self.holders.range(first..).map(|(key, _)| key);
        let keys = keys.take_while(|key| key.group == kind.group && key.kind == kind.kind);
        keys.map(|key| key.namespace.clone()).collect()
    }

    /// Whether anybody holds an object of a kind.
    pub(super) fn has_kind(&self, kind: &GroupKind) -> bool {
        self.of_kind(kind).next().is_some()
    }

    /// The bundles that hold objects of a kind.
    pub(super) fn holders_of(&self, kind: &GroupKind) -> BTreeSet<NamespacedName> {
        self.of_kind(kind).flatten().cloned().collect()
    }

    /// The holders of each object of a kind.
    pub(super) fn of_kind(&self, kind: &GroupKind) -> impl Iterator<Item = &BTreeSet<NamespacedName>> {
        let first = ObjectKey { group: kind.group.clone(), kind: kind.kind.clone(), ..ObjectKey::default() };
        let objects = self.holders.range(first..);
        let objects = objects.take_while(move |(key, _)| key.group == kind.group && key.kind == kind.kind);
        objects.map(|(_, holders)| holders)
    }
}
