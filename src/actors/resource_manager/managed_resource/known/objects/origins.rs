//! Origins of objects, each stored once: all objects of a ManagedResource have the same.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    sync::Arc,
};

/// Unused origins are dropped only after this many new ones.
const FORGET_AFTER: usize = 64;

#[derive(Default)]
pub(super) struct Origins {
    known: RefCell<BTreeSet<Arc<str>>>,
    /// Number of origins after the last removal of unused ones.
    left: Cell<usize>,
}

impl Origins {
    pub(super) fn shared(&self, origin: Arc<str>) -> Arc<str> {
        let mut known = self.known.borrow_mut();
        if let Some(known) = known.get(&origin) {
            return known.clone();
        }
        if known.len() >= 2 * self.left.get() + FORGET_AFTER {
            known.retain(|origin| Arc::strong_count(origin) > 1);
            self.left.set(known.len());
        }
        known.insert(origin.clone());
        origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_stored_once() {
        let origins = Origins::default();
        let first = origins.shared("shoot/one".into());

        assert!(Arc::ptr_eq(&first, &origins.shared("shoot/one".into())));
        assert_eq!(&*origins.shared("shoot/two".into()), "shoot/two");
    }

    #[test]
    fn origins_without_objects_are_dropped() {
        let origins = Origins::default();
        let held: Vec<_> = (0..10).map(|number| origins.shared(format!("held/{number}").into())).collect();
        for number in 0..10_000 {
            origins.shared(format!("gone/{number}").into());
        }

        assert!(origins.known.borrow().len() <= 2 * 10 + FORGET_AFTER + 1, "{}", origins.known.borrow().len());
        assert!(held.iter().all(|origin| Arc::ptr_eq(origin, &origins.shared(origin.clone()))));
    }
}
