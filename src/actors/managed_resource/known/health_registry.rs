//! Which bundles are judged at present: only those are woken by their objects. And which objects a pass found gone.
//!
//! An object that somebody deletes is made anew within milliseconds. That it was gone must be seen in the condition all the
//! same (spec 20 §4.3, scenario 23), so it is noted here until the condition says so.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use crate::api::object::{NamespacedName, ObjectKey};

/// The registry of the bundles that are judged.
#[derive(Default)]
pub(crate) struct HealthRegistry {
    /// Bundles that are judged, with the objects that were found gone since the condition was last written.
    judged: RefCell<BTreeMap<NamespacedName, BTreeSet<ObjectKey>>>,
    /// Bundles that wait until a kind is served.
    awaiting_kinds: RefCell<BTreeSet<NamespacedName>>,
}

// === impl HealthRegistry ===

impl HealthRegistry {
    /// A bundle is judged, or not.
    pub(crate) fn set(&self, bundle: &NamespacedName, is_judged: bool) {
        let mut judged = self.judged.borrow_mut();
        if !is_judged {
            judged.remove(bundle);
        } else if !judged.contains_key(bundle) {
            judged.insert(bundle.clone(), BTreeSet::new());
        }
    }

    /// Whether the bundle is judged.
    pub(crate) fn is_judged(&self, bundle: &NamespacedName) -> bool {
        self.judged.borrow().contains_key(bundle)
    }

    /// An object of the bundle is gone.
    pub(crate) fn note_absence(&self, bundle: &NamespacedName, object: &ObjectKey) {
        if let Some(absent) = self.judged.borrow_mut().get_mut(bundle) {
            absent.insert(object.clone());
        }
    }

    /// Takes the objects that were found gone.
    pub(crate) fn take_absent(&self, bundle: &NamespacedName) -> BTreeSet<ObjectKey> {
        self.judged.borrow_mut().get_mut(bundle).map(std::mem::take).unwrap_or_default()
    }

    /// The bundle waits for a kind.
    pub(crate) fn awaits_kind(&self, bundle: &NamespacedName) {
        self.awaiting_kinds.borrow_mut().insert(bundle.clone());
    }

    /// Takes the bundles that wait for a kind.
    pub(crate) fn take_awaiting_kinds(&self) -> BTreeSet<NamespacedName> {
        std::mem::take(&mut self.awaiting_kinds.borrow_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absence_is_noted_for_bundles_that_are_judged_only_and_forgotten_when_they_are_no_longer() {
        let (registry, bundle) = (HealthRegistry::default(), NamespacedName::new("shoot", "one"));
        let object = ObjectKey { kind: "ConfigMap".into(), name: "a".into(), ..ObjectKey::default() };

        registry.note_absence(&bundle, &object);
        assert!(registry.take_absent(&bundle).is_empty());
        registry.set(&bundle, true);
        registry.note_absence(&bundle, &object);
        registry.set(&bundle, true);
        assert_eq!(registry.take_absent(&bundle), BTreeSet::from([object.clone()]));
        assert!(registry.take_absent(&bundle).is_empty());
        registry.note_absence(&bundle, &object);
        registry.set(&bundle, false);
        registry.set(&bundle, true);

        assert!(registry.take_absent(&bundle).is_empty() && registry.is_judged(&bundle));
    }
}
