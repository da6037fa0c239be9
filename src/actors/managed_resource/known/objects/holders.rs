//! Who holds what, for those who ask by more than one object.

use std::{collections::BTreeMap, rc::Rc};

use super::{ManagedObjects, Owners};
use crate::api::object::{GroupKind, NamespacedName};

impl ManagedObjects {
    /// The kinds that somebody is interested in of which `is_such` says so: it is given their group and, if that is known,
    /// the plural of their resource.
    pub(crate) fn held_kinds(&self, is_such: impl Fn(&str, Option<&str>) -> bool) -> Vec<GroupKind> {
        let kinds = self.inner.kinds.borrow();
        let plural = |kind: &GroupKind| kinds.get(kind).map(|kind| kind.watch.resource().plural.to_string());
        let held = self.inner.owners.borrow().kinds.keys().cloned().collect::<Vec<_>>().into_iter();
        held.filter(|kind| is_such(&kind.group, plural(kind).as_deref())).collect()
    }

    /// The bundles that are interested in objects in these namespaces, each with the least value of its namespaces. It walks
    /// over all objects once.
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
