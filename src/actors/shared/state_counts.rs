//! Metrics that count objects by their state.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use cluster::object::NamespacedName;
use kit::Observers;

/// A gauge of the number of objects in each state; the state is its last label.
pub(in crate::actors) struct StateCounts {
    observers: Rc<dyn Observers>,
    figure: &'static str,
    /// The labels before that of the state.
    labels: Vec<&'static str>,
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
        Self::labelled(observers, figure, &[], states)
    }

    /// As [`Self::new`], for a gauge with further labels, which have these values.
    pub(in crate::actors) fn labelled(
        observers: &Rc<dyn Observers>,
        figure: &'static str,
        labels: &[&'static str],
        states: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let counts = RefCell::new(states.into_iter().map(|state| (state, 0)).collect());
        Self { observers: observers.clone(), figure, labels: labels.to_vec(), objects: RefCell::default(), counts }
    }

    /// Shows the counts of all states.
    pub(in crate::actors) fn show(&self) {
        for (state, count) in &*self.counts.borrow() {
            match self.labels.as_slice() {
                [] => self.observers.figure(self.figure, state, f64::from(*count)),
                labels => {
                    let labels = [labels, &[state]].concat();
                    self.observers.figure_series(self.figure, &labels, Some(f64::from(*count)));
                }
            }
        }
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
