//! The filters of a watch, each guarded by itself: one that panics takes nothing from those behind it, and is told again.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

use super::{Change, How};
use crate::{Cached, Store, object::NamespacedName};

/// Objects a filter owes a reaction to, at most. What it misses beyond that it hears of with the next change only as what
/// is new then.
const MOST_MISSED: usize = 8192;

/// All filters of a watch, in the order in which they came.
pub(super) struct EventHandlers<R> {
    /// For the log.
    watch: String,
    filters: RefCell<Vec<Rc<EventHandler<R>>>>,
}

/// What a reader does with a change.
type HandlerFn<R> = Box<dyn Fn(&Change<'_, R>)>;

struct EventHandler<R> {
    handler: HandlerFn<R>,
    /// Objects of whose last change it panicked twice, as it knows them.
    missed: RefCell<BTreeMap<NamespacedName, Option<R>>>,
}

impl<R: Cached> EventHandlers<R> {
    pub(super) fn new(watch: String) -> Self {
        Self { watch, filters: RefCell::default() }
    }

    /// Adds a filter and tells it of everything there is.
    pub(super) fn add(&self, filter: impl Fn(&Change<'_, R>) + 'static, store: &Store<R>) {
        let filter = Rc::new(EventHandler { handler: Box::new(filter), missed: RefCell::default() });
        for name in store.names() {
            if let Some(cached) = store.get(&name) {
                filter.handle(&self.watch, &Change { name: &name, old: None, new: Some(&cached), how: How::First });
            }
        }
        self.filters.borrow_mut().push(filter);
    }

    /// Tells all filters.
    pub(super) fn handle(&self, change: &Change<'_, R>) {
        let filters = self.filters.borrow().clone();
        for filter in filters {
            filter.handle(&self.watch, change);
        }
    }

    /// A list is over: tells filters once more of objects whose last change they missed.
    pub(super) fn handle_missed(&self, store: &Store<R>, is_listed: impl Fn(&NamespacedName) -> bool) {
        let filters = self.filters.borrow().clone();
        for filter in filters {
            let missed: Vec<_> = filter.missed.borrow().keys().filter(|name| is_listed(name)).cloned().collect();
            for name in missed {
                let new = store.get(&name);
                filter
                    .handle_late(&self.watch, &Change { name: &name, old: None, new: new.as_ref(), how: How::Relist });
            }
        }
    }
}

impl<R: Cached> EventHandler<R> {
    /// Tells of a change, and once more if the filter panics: it may have been about something that is over. A filter has to
    /// bear to be told the same twice.
    fn handle(&self, watch: &str, change: &Change<'_, R>) {
        if self.missed.borrow().contains_key(change.name) {
            self.handle_late(watch, change);
        } else if !self.attempt(watch, change) && !self.attempt(watch, change) {
            self.miss(change.name, change.old.cloned());
        }
    }

    /// Tells of all changes since the one that was missed, once.
    fn handle_late(&self, watch: &str, change: &Change<'_, R>) {
        let Some(known) = self.missed.borrow_mut().remove(change.name) else { return };
        if known.is_none() && change.new.is_none() {
            return; // it came and went
        }
        if !self.attempt(watch, &Change { old: known.as_ref(), ..*change }) {
            self.miss(change.name, known);
        }
    }

    fn miss(&self, name: &NamespacedName, known: Option<R>) {
        let mut missed = self.missed.borrow_mut();
        if missed.len() < MOST_MISSED {
            missed.insert(name.clone(), known);
        }
    }

    /// False if it panicked. The panic's text may hold parts of the object and is not logged here.
    fn attempt(&self, watch: &str, change: &Change<'_, R>) -> bool {
        let handler = catch_unwind(AssertUnwindSafe(|| (self.handler)(change))).is_ok();
        if !handler {
            tracing::error!(watch, "an event handler panicked");
        }
        handler
    }
}
