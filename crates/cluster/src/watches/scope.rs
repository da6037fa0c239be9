//! A scope: a namespace, or all namespaces, that is listed and watched as one. And single namespaces instead of all.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use tokio::{sync::Notify, task::JoinHandle, time::Instant};

use super::super::store::IDLE_LIMIT;
use crate::object::NamespacedName;

/// Denials for this long show that a right is missing. An API server denies everything until it has read its roles.
const LASTING: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Scope {
    /// Unique within its informer.
    pub(super) id: u64,
    /// `None`: all namespaces.
    pub(super) namespace: Option<String>,
    pub(super) position: RefCell<Option<String>>,
    pub(super) listing: Cell<bool>,
    /// Whether the present list or watch returns whole objects.
    pub(super) whole: Cell<bool>,
    pub(super) error: RefCell<Option<String>>,
    pub(super) heard: Cell<Option<Instant>>,
    /// When the present watch was opened, if it was.
    pub(super) opened: Cell<Option<Instant>>,
    /// Whether there was a list before it.
    pub(super) listed: Cell<bool>,
    /// Whether it reported an object at another version than the one it was opened from.
    pub(super) moved: Cell<bool>,
    /// Number of watches in a row that ended at an unreadable event at this position.
    pub(super) unreadable: Cell<u32>,
    /// Number of watches in a row that ended by silence, since the last sign of life.
    pub(super) silent: Cell<u32>,
    /// Whether the last list or watch was denied.
    pub(super) forbidden: Cell<bool>,
    denials: Cell<Denials>,
    again: Cell<Again>,
    wake: Notify,
    task: RefCell<Option<Task>>,
}

/// The denials since the last success.
#[derive(Debug, Clone, Copy, Default)]
struct Denials {
    /// The first and the last denial without another result in between.
    row: Option<(Instant, Instant)>,
    /// There were denials over [`LASTING`].
    have_lasted: bool,
}

/// What a course must repeat because its readers changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Again {
    #[default]
    No,
    /// The watch, from its position.
    Watch,
    List,
}

/// The watches of single namespaces while not all may be watched. Dropping this ends them.
pub(super) struct Narrowed {
    pub(super) scopes: Vec<Rc<Scope>>,
    pub(super) _widening: Task,
}

/// A task that ends when this is dropped. Its panic ends the process, because an unwatched kind would look unchanged.
pub(super) struct Task(pub(super) JoinHandle<()>);

impl Scope {
    pub(super) fn new(id: u64, namespace: Option<String>) -> Self {
        Self { id, namespace, ..Self::default() }
    }

    pub(super) fn holds(&self, namespace: &str) -> bool {
        self.namespace.as_ref().is_none_or(|own| own == namespace)
    }

    pub(super) fn contains(&self, name: &NamespacedName) -> bool {
        self.holds(&name.namespace)
    }

    /// Returns true if there was contact with the server within [`IDLE_LIMIT`].
    pub(super) fn has_contact(&self) -> bool {
        self.heard.get().is_some_and(|heard| heard.elapsed() < IDLE_LIMIT)
    }

    /// Records a denial of the right to watch. Returns true if the denials became lasting with it.
    pub(super) fn deny(&self, now: Instant) -> bool {
        self.forbidden.set(true);
        let before = self.is_denied_lastingly();
        let Denials { row, have_lasted } = self.denials.get();
        let first = row.map_or(now, |(first, _)| first);
        self.denials.set(Denials { row: Some((first, now)), have_lasted });
        let has_lasted = self.is_denied_lastingly();
        self.denials.set(Denials { row: Some((first, now)), have_lasted: have_lasted || has_lasted });
        has_lasted && !before
    }

    /// Records another failure, which says nothing about the right.
    pub(super) fn fail(&self) {
        self.forbidden.set(false);
        self.denials.set(Denials { row: None, ..self.denials.get() });
    }

    /// Records that the right to watch exists, or may exist.
    pub(super) fn allow(&self) {
        self.forbidden.set(false);
        self.denials.take();
    }

    /// Returns true if uninterrupted denials over [`LASTING`] show that the right to watch is missing.
    pub(super) fn is_denied_lastingly(&self) -> bool {
        self.denials.get().row.is_some_and(|(first, last)| last - first >= LASTING)
    }

    /// Returns true if that was so once, and the right has not been seen since.
    pub(super) fn was_denied_lastingly(&self) -> bool {
        self.denials.get().have_lasted
    }

    pub(super) fn run(&self, course: Task) {
        self.task.replace(Some(course));
    }

    /// Stops following the server: the next course begins with a list.
    pub(super) fn halt(&self) {
        self.task.take();
        self.position.take();
        self.heard.set(None);
        self.listing.set(false);
        self.unreadable.set(0);
        self.silent.set(0);
    }

    /// Makes the course begin again, at its next await at the latest.
    pub(super) fn restart(&self, with: Again) {
        self.again.set(self.again.get().max(with));
        self.wake.notify_one();
    }

    pub(super) fn is_to_restart(&self) -> bool {
        self.again.get() != Again::No
    }

    pub(super) async fn restarted(&self) {
        while !self.is_to_restart() {
            self.wake.notified().await;
        }
    }

    pub(super) fn begin(&self) {
        if self.again.take() == Again::List {
            self.position.take();
        }
        self.listing.set(false);
        self.opened.set(None);
        self.listed.set(false);
        self.moved.set(false);
    }
}

impl Drop for Narrowed {
    fn drop(&mut self) {
        self.scopes.iter().for_each(|scope| scope.halt());
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 40 §5.6
    #[test]
    fn denials_mean_a_missing_right_only_when_they_last() {
        let (scope, start) = (Scope::new(1, None), Instant::now());
        let deny = |seconds: u64| scope.deny(start + Duration::from_secs(seconds));
        assert!(!deny(0) && !deny(29) && scope.forbidden.get() && !scope.is_denied_lastingly());
        scope.fail();
        assert!(!deny(31) && !deny(60) && !scope.was_denied_lastingly());
        assert!(deny(61) && !deny(62), "it is reported once");
        scope.fail();
        assert!(!scope.is_denied_lastingly() && scope.was_denied_lastingly());
        scope.allow();
        assert!(!deny(100) && !scope.is_denied_lastingly() && !scope.was_denied_lastingly());
    }
}
