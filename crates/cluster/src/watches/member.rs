//! A reader as its feed sees it: what it has heard of, and what it is owed.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    rc::Rc,
};

use super::{super::StoreState, Start, reader::Sink, scope::Scope, watch_options::Elsewhere};

/// A reader as its feed sees it.
pub(super) struct Member {
    pub(super) sink: Rc<dyn Sink>,
    pub(super) whole: bool,
    pub(super) start: Start,
    pub(super) optional: bool,
    pub(super) elsewhere: Option<Elsewhere>,
    /// The scopes all of whose changes it has heard of since their list.
    pub(super) covered: RefCell<BTreeSet<u64>>,
    /// Those of which it needs a list, although it wants to hear of changes only: it has heard of some elsewhere.
    owed: RefCell<BTreeSet<u64>>,
    /// Whether all its scopes were covered at once.
    pub(super) complete: Cell<bool>,
    pub(super) gone: Cell<bool>,
    /// How its scopes stood when it was told last.
    pub(super) shown: RefCell<Vec<(u64, StoreState)>>,
}

impl Member {
    /// `whole`: whether metadata is not enough.
    pub(super) fn new(
        sink: Rc<dyn Sink>,
        whole: bool,
        start: Start,
        optional: bool,
        elsewhere: Option<Elsewhere>,
    ) -> Self {
        Self {
            sink,
            whole,
            start,
            optional,
            elsewhere,
            covered: RefCell::default(),
            owed: RefCell::default(),
            complete: Cell::default(),
            gone: Cell::default(),
            shown: RefCell::default(),
        }
    }

    /// Whether it hears of all changes in a scope.
    pub(super) fn covers(&self, scope: &Scope) -> bool {
        self.covered.borrow().contains(&scope.id)
    }

    pub(super) fn cover(&self, scope: &Scope) {
        self.owed.borrow_mut().remove(&scope.id);
        self.covered.borrow_mut().insert(scope.id);
    }

    /// It needs a list of a scope.
    pub(super) fn owe(&self, scope: &Scope) {
        self.owed.borrow_mut().insert(scope.id);
    }

    /// It needs none any more.
    pub(super) fn owe_nothing(&self) {
        self.owed.borrow_mut().clear();
    }

    /// Whether it needs a list of a scope.
    pub(super) fn is_owed(&self, scope: &Scope) -> bool {
        self.owed.borrow().contains(&scope.id)
    }

    pub(super) fn uncover(&self, scope: &Scope) {
        self.covered.borrow_mut().remove(&scope.id);
    }

    /// Whether it knows all there is, or did once: what a list brings then are differences.
    pub(super) fn is_complete(&self) -> bool {
        self.complete.get()
    }

    /// Whether it has left.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.get()
    }
}
