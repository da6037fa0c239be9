//! Which bundles are judged at present: only those are woken by their objects. And which objects a pass found gone.
//!
//! An object that somebody deletes is made anew within milliseconds. That it was gone must be seen in the condition all the
//! same (spec 20 §4.3, scenario 23), so it is noted here until the condition says so.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use crate::api::object::{NamespacedName, ObjectKey};

/// The desk.
#[derive(Default)]
pub(in super::super) struct Desk {
    /// Open bundles, with the objects that were found gone since the condition was last written.
    open: RefCell<BTreeMap<NamespacedName, BTreeSet<ObjectKey>>>,
    /// Bundles that wait until a kind is served.
    awaiting_kinds: RefCell<BTreeSet<NamespacedName>>,
}

// === impl Desk ===

impl Desk {
    /// The gate of a bundle is open, or not.
    pub(in super::super) fn set(&self, bundle: &NamespacedName, is_open: bool) {
        let mut open = self.open.borrow_mut();
        if !is_open {
            open.remove(bundle);
        } else if !open.contains_key(bundle) {
            open.insert(bundle.clone(), BTreeSet::new());
        }
    }

    /// Whether the bundle is judged.
    pub(in super::super) fn is_open(&self, bundle: &NamespacedName) -> bool {
        self.open.borrow().contains_key(bundle)
    }

    /// An object of the bundle is gone.
    pub(in super::super) fn note_absence(&self, bundle: &NamespacedName, object: &ObjectKey) {
        if let Some(absent) = self.open.borrow_mut().get_mut(bundle) {
            absent.insert(object.clone());
        }
    }

    /// Takes the objects that were found gone.
    pub(in super::super) fn take_absent(&self, bundle: &NamespacedName) -> BTreeSet<ObjectKey> {
        self.open.borrow_mut().get_mut(bundle).map(std::mem::take).unwrap_or_default()
    }

    /// The bundle waits for a kind.
    pub(super) fn awaits_kind(&self, bundle: &NamespacedName) {
        self.awaiting_kinds.borrow_mut().insert(bundle.clone());
    }

    /// Takes the bundles that wait for a kind.
    pub(in super::super) fn take_awaiting_kinds(&self) -> BTreeSet<NamespacedName> {
        std::mem::take(&mut self.awaiting_kinds.borrow_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absence_is_noted_for_open_bundles_only_and_forgotten_when_the_gate_closes() {
        let (desk, bundle) = (Desk::default(), NamespacedName::new("shoot", "one"));
        let object = ObjectKey { kind: "ConfigMap".into(), name: "a".into(), ..ObjectKey::default() };

        desk.note_absence(&bundle, &object);
        assert!(desk.take_absent(&bundle).is_empty());
        desk.set(&bundle, true);
        desk.note_absence(&bundle, &object);
        desk.set(&bundle, true);
        assert_eq!(desk.take_absent(&bundle), BTreeSet::from([object.clone()]));
        assert!(desk.take_absent(&bundle).is_empty());
        desk.note_absence(&bundle, &object);
        desk.set(&bundle, false);
        desk.set(&bundle, true);

        assert!(desk.take_absent(&bundle).is_empty() && desk.is_open(&bundle));
    }
}
