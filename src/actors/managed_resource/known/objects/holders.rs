//! Who holds what, for those who ask by more than one object.

use std::{collections::BTreeSet, rc::Rc};

use super::{Interest, ManagedObjects};
use crate::api::object::{GroupKind, NamespacedName};

// === impl ManagedObjects ===

impl ManagedObjects {
    /// The kinds that somebody is interested in of which `is_such` says so: it is given their group and, if that is known,
    /// the plural of their resource.
    pub(crate) fn held_kinds(&self, is_such: impl Fn(&str, Option<&str>) -> bool) -> Vec<GroupKind> {
        let kinds = self.inner.kinds.borrow();
        let plural = |kind: &GroupKind| kinds.get(kind).map(|kind| kind.watch.resource().plural.to_string());
        let held = self.inner.interest.borrow().kinds.keys().cloned().collect::<Vec<_>>().into_iter();
        held.filter(|kind| is_such(&kind.group, plural(kind).as_deref())).collect()
    }

    /// The bundles that are interested in objects in one of these namespaces.
    pub(crate) fn holders_in(&self, namespaces: &BTreeSet<String>) -> BTreeSet<Rc<NamespacedName>> {
        self.inner.interest.borrow().holders_in(namespaces)
    }
}

// === impl Interest ===

impl Interest {
    fn holders_in(&self, namespaces: &BTreeSet<String>) -> BTreeSet<Rc<NamespacedName>> {
        let holds = |held: &&super::interest::Held| held.keys.iter().any(|key| namespaces.contains(&key.namespace));
        self.held.iter().filter(|(_, held)| holds(held)).map(|(bundle, _)| bundle.clone()).collect()
    }
}
