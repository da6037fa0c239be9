//! Objects in deletion that a controller's finalizer keeps: their number and the oldest of them, as metrics.

use std::{cell::RefCell, collections::BTreeSet, num::NonZeroU32, rc::Rc};

use cluster::{Cached, Resource, Watch, object, object::NamespacedName};
use jiff::Timestamp;
use kit::Observers;
use serde_json::Value;

use super::figures::{HELD_DELETION_OLDEST, HELD_DELETIONS};

/// When a deletion began, in whole seconds since 1970, as API servers write it. Small: caches keep one per object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeletionTime(NonZeroU32);

/// The objects of one kind that one controller keeps.
pub(super) struct HeldObjects {
    observers: Rc<dyn Observers>,
    controller: &'static str,
    kind: &'static str,
    held: RefCell<BTreeSet<(DeletionTime, NamespacedName)>>,
}

impl DeletionTime {
    /// Returns the time at which the deletion of an object began; `None` if it is not being deleted, or if its time cannot
    /// be read.
    pub fn of(object: &Value) -> Option<Self> {
        let time: Timestamp = object::deletion_timestamp(object)?.parse().ok()?;
        u32::try_from(time.as_second()).ok().and_then(NonZeroU32::new).map(Self)
    }

    /// Returns it as a time.
    pub fn get(self) -> Timestamp {
        Timestamp::from_second(self.0.get().into()).unwrap_or(Timestamp::MAX)
    }
}

impl HeldObjects {
    /// Shows the objects of a watch from now on. `since` returns when the deletion of an object began that the controller
    /// keeps, `None` for all others.
    pub(super) fn show<R: Cached>(
        observers: &Rc<dyn Observers>,
        (controller, kind): (&'static str, &'static Resource),
        watch: &Watch<R>,
        since: impl Fn(&R) -> Option<DeletionTime> + 'static,
    ) {
        let held = Self { observers: observers.clone(), controller, kind: &kind.kind, held: RefCell::default() };
        held.tell();
        watch.subscribe(move |change| {
            held.change(change.name, change.old.and_then(&since), change.new.and_then(&since));
        });
    }

    fn change(&self, name: &NamespacedName, old: Option<DeletionTime>, new: Option<DeletionTime>) {
        if old == new {
            return;
        }
        let mut held = self.held.borrow_mut();
        if let Some(old) = old {
            held.remove(&(old, name.clone()));
        }
        if let Some(new) = new {
            held.insert((new, name.clone()));
        }
        drop(held);
        self.tell();
    }

    fn tell(&self) {
        let held = self.held.borrow();
        let labels = [self.controller, self.kind];
        let number = u32::try_from(held.len()).unwrap_or(u32::MAX);
        let oldest = held.first().map(|(since, _)| f64::from(since.0.get()));
        self.observers.figure_series(HELD_DELETIONS, &labels, Some(f64::from(number)));
        self.observers.figure_series(HELD_DELETION_OLDEST, &labels, oldest);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kit::ReconcilerObserver;
    use serde_json::json;

    use super::*;

    /// The series as they are shown.
    #[derive(Default)]
    struct Shown(RefCell<BTreeMap<String, f64>>);

    impl Observers for Shown {
        fn reconciler(&self, _: &'static str, _: &'static str, _: usize) -> Rc<dyn ReconcilerObserver> {
            unreachable!("no controller starts")
        }

        fn figure_series(&self, name: &'static str, labels: &[&str], value: Option<f64>) {
            let series = format!("{name} {}", labels.join(" "));
            match value {
                Some(value) => drop(self.0.borrow_mut().insert(series, value)),
                None => drop(self.0.borrow_mut().remove(&series)),
            }
        }
    }

    fn at(second: u32) -> Option<DeletionTime> {
        NonZeroU32::new(second).map(DeletionTime)
    }

    #[test]
    fn deletion_time_is_that_of_an_object_in_deletion() {
        let of = |time: Value| DeletionTime::of(&json!({ "metadata": { "deletionTimestamp": time } }));

        assert_eq!(of(json!("1970-01-01T00:01:00Z")), at(60));
        assert_eq!(at(60).map(|time| time.get().to_string()).as_deref(), Some("1970-01-01T00:01:00Z"));
        for odd in [json!("soon"), json!(5), Value::Null, json!("1969-01-01T00:00:00Z"), json!("2300-01-01T00:00:00Z")]
        {
            assert_eq!(of(odd.clone()), None, "{odd}");
        }
    }

    #[test]
    fn held_objects_show_their_number_and_the_oldest() {
        let shown = Rc::new(Shown::default());
        let observers: Rc<dyn Observers> = shown.clone();
        let held = HeldObjects { observers, controller: "c", kind: "Quota", held: RefCell::default() };
        let name = |text: &str| NamespacedName::new("ns", text);
        let figures = || {
            let shown = shown.0.borrow();
            let figure = |name: &str| shown.get(&format!("{name} c Quota")).copied();
            (figure(HELD_DELETIONS), figure(HELD_DELETION_OLDEST))
        };

        held.tell();
        assert_eq!(figures(), (Some(0.0), None));
        held.change(&name("b"), None, at(20));
        held.change(&name("a"), None, at(10));
        held.change(&name("a"), None, at(10)); // a handler may see a change twice
        assert_eq!(figures(), (Some(2.0), Some(10.0)));
        held.change(&name("a"), at(10), None);
        held.change(&name("a"), at(10), None);
        assert_eq!(figures(), (Some(1.0), Some(20.0)));
        held.change(&name("b"), at(20), None);
        assert_eq!(figures(), (Some(0.0), None));
    }
}
