//! Metrics that count objects by their state.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use cluster::object::NamespacedName;
use kit::Observers;

/// A gauge of the number of objects in each state; the state is its label.
pub(in crate::actors) struct StateCounts {
    observers: Rc<dyn Observers>,
    figure: &'static str,
    objects: RefCell<BTreeMap<NamespacedName, &'static str>>,
    counts: RefCell<BTreeMap<&'static str, u32>>,
}

impl StateCounts {
    /// Counts no object yet. `figure` names the gauge.
    pub(in crate::actors) fn new(
        observers: &Rc<dyn Observers>,
        figure: &'static str,
        states: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let counts = RefCell::new(states.into_iter().map(|state| (state, 0)).collect());
        Self { observers: observers.clone(), figure, objects: RefCell::default(), counts }
    }

    /// Shows the counts of all states.
    pub(in crate::actors) fn show(&self) {
        let counts = self.counts.borrow();
        counts.iter().for_each(|(state, count)| self.observers.figure(self.figure, state, f64::from(*count)));
    }

    /// Sets the state of an object; `None` if it does not count any more.
    pub(in crate::actors) fn enter(&self, object: &NamespacedName, state: Option<&'static str>) {
        let before = match state {
            Some(state) => self.objects.borrow_mut().insert(object.clone(), state),
            None => self.objects.borrow_mut().remove(object),
        };
        if before == state {
            return;
        }
        let mut counts = self.counts.borrow_mut();
        if let Some(count) = before.and_then(|before| counts.get_mut(before)) {
            *count -= 1;
        }
        if let Some(state) = state {
            *counts.entry(state).or_default() += 1;
        }
        drop(counts);
        self.show();
    }
}
