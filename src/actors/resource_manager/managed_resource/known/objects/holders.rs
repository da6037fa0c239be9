use std::{collections::BTreeMap, rc::Rc};

use cluster::object::{GroupKind, NamespacedName};

use super::{ManagedObjects, Owners};

impl ManagedObjects {
    /// Returns the owned kinds for which `is_such` returns true. It gets their group and, if known, their plural.
    pub(crate) fn held_kinds(&self, is_such: impl Fn(&str, Option<&str>) -> bool) -> Vec<GroupKind> {
        let kinds = self.inner.kinds.borrow();
        let plural = |kind: &GroupKind| kinds.get(kind).map(|kind| kind.watch.resource().plural.to_string());
        let held = self.inner.owners.borrow().kinds.keys().cloned().collect::<Vec<_>>().into_iter();
        held.filter(|kind| is_such(&kind.group, plural(kind).as_deref())).collect()
    }

    /// Returns the owners of objects in these namespaces, each with its least value. Iterates over all objects once.
    pub(crate) fn holders_in<T: Copy + Ord>(&self, namespaces: &BTreeMap<String, T>) -> Vec<(Rc<NamespacedName>, T)> {
        self.inner.owners.borrow().holders_in(namespaces)
    }
}

impl Owners {
    fn holders_in<T: Copy + Ord>(&self, namespaces: &BTreeMap<String, T>) -> Vec<(Rc<NamespacedName>, T)> {
        let least =
            |held: &super::owners::Held| held.keys.iter().filter_map(|key| namespaces.get(&key.namespace)).min();
        self.held.iter().filter_map(|(bundle, held)| Some((bundle.clone(), *least(held)?))).collect()
    }
}
