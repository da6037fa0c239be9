//! Texts that thousands of objects have in common, each stored once: origins, reasons of conditions.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    sync::Arc,
};

/// Unused texts are dropped only after this many new ones.
const FORGET_AFTER: usize = 64;

#[derive(Default)]
pub(crate) struct SharedTexts {
    known: RefCell<BTreeSet<Arc<str>>>,
    /// Number of texts after the last removal of unused ones.
    left: Cell<usize>,
}

impl SharedTexts {
    pub(crate) fn shared(&self, text: &str) -> Arc<str> {
        let mut known = self.known.borrow_mut();
        if let Some(known) = known.get(text) {
            return known.clone();
        }
        if known.len() >= 2 * self.left.get() + FORGET_AFTER {
            known.retain(|text| Arc::strong_count(text) > 1);
            self.left.set(known.len());
        }
        let text = Arc::<str>::from(text);
        known.insert(text.clone());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_texts_are_stored_once() {
        let texts = SharedTexts::default();
        let first = texts.shared("shoot/one");

        assert!(Arc::ptr_eq(&first, &texts.shared("shoot/one")));
        assert_eq!(&*texts.shared("shoot/two"), "shoot/two");
    }

    #[test]
    fn shared_texts_that_nothing_uses_are_dropped() {
        let texts = SharedTexts::default();
        let held: Vec<_> = (0..10).map(|number| texts.shared(&format!("held/{number}"))).collect();
        for number in 0..10_000 {
            texts.shared(&format!("gone/{number}"));
        }

        assert!(texts.known.borrow().len() <= 2 * 10 + FORGET_AFTER + 1, "{}", texts.known.borrow().len());
        assert!(held.iter().all(|text| Arc::ptr_eq(text, &texts.shared(text))));
    }
}
