//! Metrics: the number of nodes by what they wait for.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use cluster::object::NamespacedName;
use kit::Observers;

use super::obstacle::Obstacle;

/// Kind of a node without an obstacle that waits for a stale watch.
pub(super) const WATCHES: &str = "watches";

pub(super) struct WaitingMetrics {
    observers: Rc<dyn Observers>,
    waiting: RefCell<BTreeMap<NamespacedName, &'static str>>,
}

impl WaitingMetrics {
    pub(super) fn new(observers: Rc<dyn Observers>) -> Self {
        let metrics = Self { observers, waiting: RefCell::default() };
        Obstacle::KINDS.into_iter().chain([WATCHES]).for_each(|kind| metrics.show(kind));
        metrics
    }

    pub(super) fn enter(&self, node: &NamespacedName, kind: Option<&'static str>) {
        let before = match kind {
            Some(kind) => self.waiting.borrow_mut().insert(node.clone(), kind),
            None => self.waiting.borrow_mut().remove(node),
        };
        if before != kind {
            before.into_iter().chain(kind).for_each(|kind| self.show(kind));
        }
    }

    fn show(&self, kind: &'static str) {
        let count = self.waiting.borrow().values().filter(|known| **known == kind).count();
        self.observers.figure("nodes_waiting", kind, f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
    }
}
