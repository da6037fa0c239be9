//! One place where a kind is watched: a namespace, or everywhere. And some namespaces in place of everywhere.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use kit::Fatal;
use tokio::{sync::Notify, task::JoinHandle, time::Instant};

use super::super::store::IDLE_LIMIT;
use crate::object::NamespacedName;

/// Denials over so long show that a right is missing. Until an API server has read its roles, it denies everything.
const LASTING: Duration = Duration::from_secs(30);

/// How far the watch of one scope has come.
#[derive(Default)]
pub(super) struct Scope {
    /// Unlike that of any other scope of its feed.
    pub(super) id: u64,
    /// `None`: everywhere.
    pub(super) namespace: Option<String>,
    /// The version to watch from.
    pub(super) position: RefCell<Option<String>>,
    /// Whether the first list, or one after it, is under way.
    pub(super) listing: Cell<bool>,
    /// Whether the present list or watch is one of whole objects.
    pub(super) whole: Cell<bool>,
    pub(super) error: RefCell<Option<String>>,
    pub(super) heard: Cell<Option<Instant>>,
    /// When the present watch was opened, if it was.
    pub(super) opened: Cell<Option<Instant>>,
    /// Whether there was a list before it.
    pub(super) listed: Cell<bool>,
    /// Whether it told of an object at another version than that from which it was opened.
    pub(super) moved: Cell<bool>,
    /// How many watches in a row ended at an event at this position that cannot be read.
    pub(super) unreadable: Cell<u32>,
    /// How many watches in a row ended by silence, since anything was heard.
    pub(super) silent: Cell<u32>,
    /// Whether the last list or watch was denied.
    pub(super) forbidden: Cell<bool>,
    denials: Cell<Denials>,
    again: Cell<Again>,
    wake: Notify,
    task: RefCell<Option<Task>>,
}

/// The denials since the right to watch was there.
#[derive(Debug, Clone, Copy, Default)]
struct Denials {
    /// The first and the last without another answer or failure in between.
    row: Option<(Instant, Instant)>,
    /// There were denials over [`LASTING`].
    have_lasted: bool,
}

/// What a course has to begin anew with, because its readers are others than before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Again {
    /// Nothing.
    #[default]
    No,
    /// The watch, from its position.
    Watch,
    /// The list.
    List,
}

/// The watches of single namespaces, where not everything may be watched. They end when this is dropped.
pub(super) struct Narrowed {
    /// By namespace.
    pub(super) scopes: Vec<Rc<Scope>>,
    /// Looks for the way back.
    _widening: Task,
}

/// A task that ends when this is dropped. Its panic ends the process: a kind that nobody follows any more looks as if nothing
/// happened to it.
pub(super) struct Task(JoinHandle<()>);

impl Scope {
    pub(super) fn new(id: u64, namespace: Option<String>) -> Self {
        Self { id, namespace, ..Self::default() }
    }

    /// Whether it holds objects of a namespace.
    pub(super) fn holds(&self, namespace: &str) -> bool {
        self.namespace.as_ref().is_none_or(|own| own == namespace)
    }

    /// Whether it holds an object.
    pub(super) fn contains(&self, name: &NamespacedName) -> bool {
        self.holds(&name.namespace)
    }

    /// Whether the server was heard of within [`IDLE_LIMIT`].
    pub(super) fn is_heard_of(&self) -> bool {
        self.heard.get().is_some_and(|heard| heard.elapsed() < IDLE_LIMIT)
    }

    /// The right to watch was denied; whether that has lasted now and had not before.
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

    /// Another answer, or none: it says nothing about the right.
    pub(super) fn fail(&self) {
        self.forbidden.set(false);
        self.denials.set(Denials { row: None, ..self.denials.get() });
    }

    /// The right to watch is there, or may be.
    pub(super) fn allow(&self) {
        self.forbidden.set(false);
        self.denials.take();
    }

    /// Whether denials that came over [`LASTING`], and nothing else since, show that the right to watch is missing.
    pub(super) fn is_denied_lastingly(&self) -> bool {
        self.denials.get().row.is_some_and(|(first, last)| last - first >= LASTING)
    }

    /// Whether denials showed that once, and the right was not seen since.
    pub(super) fn was_denied_lastingly(&self) -> bool {
        self.denials.get().have_lasted
    }

    /// Follows the server by this task instead of the one before.
    pub(super) fn run(&self, course: Task) {
        self.task.replace(Some(course));
    }

    /// Does not follow the server any more: the next course begins with a list.
    pub(super) fn halt(&self) {
        self.task.take();
        self.position.take();
        self.heard.set(None);
        self.listing.set(false);
        self.unreadable.set(0);
        self.silent.set(0);
    }

    /// Makes the course begin anew, at the latest when it awaits something.
    pub(super) fn restart(&self, with: Again) {
        self.again.set(self.again.get().max(with));
        self.wake.notify_one();
    }

    /// Whether [`Self::restart`] was called and not yet followed.
    pub(super) fn is_to_restart(&self) -> bool {
        self.again.get() != Again::No
    }

    /// Comes when the course is to begin anew.
    pub(super) async fn restarted(&self) {
        while !self.is_to_restart() {
            self.wake.notified().await;
        }
    }

    /// A round of the course begins.
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

impl Narrowed {
    pub(super) fn new(scopes: Vec<Rc<Scope>>, widening: Task) -> Self {
        Self { scopes, _widening: widening }
    }
}

impl Drop for Narrowed {
    fn drop(&mut self) {
        self.scopes.iter().for_each(|scope| scope.halt());
    }
}

impl Task {
    /// `name`: what dies if it panics.
    pub(super) fn spawn(fatal: &Fatal, name: String, work: impl Future<Output = ()> + 'static) -> Self {
        Self(fatal.spawn(name, work))
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
