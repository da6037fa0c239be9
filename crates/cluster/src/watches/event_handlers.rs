//! The event handlers of a watch. A panic of one of them does not affect the others; it gets the change again.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

use super::{Change, How};
use crate::{Cached, Store, object::NamespacedName};

/// Maximum number of objects with a missed change per handler. Beyond it the handler only gets the next change.
const MOST_MISSED: usize = 8192;

pub(super) struct EventHandlers<R> {
    watch: String,
    handlers: RefCell<Vec<Rc<EventHandler<R>>>>,
}

type HandlerFn<R> = Box<dyn Fn(&Change<'_, R>)>;

struct EventHandler<R> {
    handler: HandlerFn<R>,
    /// Objects for whose last change the handler panicked twice, as the handler knows them.
    missed: RefCell<BTreeMap<NamespacedName, Option<R>>>,
}

impl<R: Cached> EventHandlers<R> {
    pub(super) fn new(watch: String) -> Self {
        Self { watch, handlers: RefCell::default() }
    }

    /// Adds an event handler and calls it for each cached object.
    pub(super) fn add(&self, handler: impl Fn(&Change<'_, R>) + 'static, store: &Store<R>) {
        let handler = Rc::new(EventHandler { handler: Box::new(handler), missed: RefCell::default() });
        for name in store.names() {
            if let Some(cached) = store.get(&name) {
                handler.handle(&self.watch, &Change { name: &name, old: None, new: Some(&cached), how: How::First });
            }
        }
        self.handlers.borrow_mut().push(handler);
    }

    pub(super) fn handle(&self, change: &Change<'_, R>) {
        let handlers = self.handlers.borrow().clone();
        for handler in handlers {
            handler.handle(&self.watch, change);
        }
    }

    /// After a list: calls the event handlers again for objects whose last change they missed.
    pub(super) fn handle_missed(&self, store: &Store<R>, is_listed: impl Fn(&NamespacedName) -> bool) {
        let handlers = self.handlers.borrow().clone();
        for handler in handlers {
            let missed: Vec<_> = handler.missed.borrow().keys().filter(|name| is_listed(name)).cloned().collect();
            for name in missed {
                let new = store.get(&name);
                handler
                    .handle_late(&self.watch, &Change { name: &name, old: None, new: new.as_ref(), how: How::Relist });
            }
        }
    }
}

impl<R: Cached> EventHandler<R> {
    /// Calls the handler, and again after a panic, as the cause may be temporary: it must tolerate a change twice.
    fn handle(&self, watch: &str, change: &Change<'_, R>) {
        if self.missed.borrow().contains_key(change.name) {
            self.handle_late(watch, change);
        } else if !self.attempt(watch, change) && !self.attempt(watch, change) {
            self.miss(change.name, change.old.cloned());
        }
    }

    /// Reports all changes since the missed one, as one change.
    fn handle_late(&self, watch: &str, change: &Change<'_, R>) {
        let Some(known) = self.missed.borrow_mut().remove(change.name) else { return };
        if known.is_none() && change.new.is_none() {
            return; // created and deleted again
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

    /// Returns false if the handler panicked. The panic's text may contain parts of the object and is not logged here.
    fn attempt(&self, watch: &str, change: &Change<'_, R>) -> bool {
        let succeeded = catch_unwind(AssertUnwindSafe(|| (self.handler)(change))).is_ok();
        if !succeeded {
            tracing::error!(watch, "an event handler panicked");
        }
        succeeded
    }
}
