//! A reader as its informer sees it: which changes it gets, and which lists it needs.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    rc::Rc,
};

use super::{super::StoreState, Start, reader::Sink, scope::Scope, watch_options::Elsewhere};

pub(super) struct Member {
    pub(super) sink: Rc<dyn Sink>,
    pub(super) whole: bool,
    pub(super) start: Start,
    pub(super) optional: bool,
    pub(super) elsewhere: Option<Elsewhere>,
    /// The command that installs the definition of the kind.
    pub(super) installed_by: Option<&'static str>,
    /// Scopes whose changes it has all got since their list.
    pub(super) covered: RefCell<BTreeSet<u64>>,
    /// Scopes that a reader of changes needs a list for, because it got some changes from another scope.
    owed: RefCell<BTreeSet<u64>>,
    /// Whether all its scopes were covered at once: then a list brings differences.
    pub(super) complete: Cell<bool>,
    pub(super) gone: Cell<bool>,
    pub(super) shown: RefCell<Vec<(u64, StoreState)>>,
}

impl Member {
    /// `whole`: whether it needs more than metadata.
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
            installed_by: None,
            covered: RefCell::default(),
            owed: RefCell::default(),
            complete: Cell::default(),
            gone: Cell::default(),
            shown: RefCell::default(),
        }
    }

    pub(super) fn installed_by(self, command: Option<&'static str>) -> Self {
        Self { installed_by: command, ..self }
    }

    pub(super) fn covers(&self, scope: &Scope) -> bool {
        self.covered.borrow().contains(&scope.id)
    }

    pub(super) fn cover(&self, scope: &Scope) {
        self.owed.borrow_mut().remove(&scope.id);
        self.covered.borrow_mut().insert(scope.id);
    }

    pub(super) fn owe(&self, scope: &Scope) {
        self.owed.borrow_mut().insert(scope.id);
    }

    pub(super) fn owe_nothing(&self) {
        self.owed.borrow_mut().clear();
    }

    pub(super) fn is_owed(&self, scope: &Scope) -> bool {
        self.owed.borrow().contains(&scope.id)
    }

    pub(super) fn uncover(&self, scope: &Scope) {
        self.covered.borrow_mut().remove(&scope.id);
    }
}
