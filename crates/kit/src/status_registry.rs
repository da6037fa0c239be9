//! The status registry: what every actor shows of itself, in shared cells (contract rule 11). Actors write their cell,
//! HTTP threads read it, and no actor is asked, except for [details](StatusRegistry::ask). A cell holds names, counts,
//! states and short texts: never the content of a Secret. `actor_state.rs` is the content of a cell; `follower.rs` finds
//! changed cells; `questions.rs` asks a supervisor.

mod actor_state;
mod follower;
mod questions;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use dashmap::DashMap;
use jiff::Timestamp;

pub(super) use self::questions::Question;
pub use self::{
    actor_state::{Activity, ActorState, Role},
    follower::{Follower, RegistryChanges},
    questions::Unanswered,
};
use self::{follower::Followers, questions::Questions};
use super::ObjectSummary;

/// All actors of the process, by path, e.g. `managedresource/shoot--a--b/core`. Cheap to clone, for any thread.
#[derive(Clone, Default, Debug)]
pub struct StatusRegistry {
    cells: Arc<DashMap<Arc<str>, Cell>>,
    shared: Arc<SharedRegistry>,
    questions: Questions,
}

/// What the registry and each of its cells know.
#[derive(Default, Debug)]
struct SharedRegistry {
    /// Grows with each change.
    version: AtomicU64,
    followers: Followers,
}

/// The cell of one actor. [`StatusRegistry::leave`] removes it; dropping clones does not.
#[derive(Clone, Debug)]
pub struct Cell(Arc<SharedCell>);

#[derive(Debug)]
struct SharedCell {
    path: Arc<str>,
    /// Its path is empty, because it would cost as much again.
    state: Mutex<ActorState>,
    registry: Arc<SharedRegistry>,
}

impl StatusRegistry {
    /// Returns the cell of the actor at `path`, and creates it if there is none.
    pub fn enter(&self, path: impl Into<String>, role: Role) -> Cell {
        let path: Arc<str> = path.into().into();
        let cell = self.cells.entry(path.clone()).or_insert_with(|| {
            Cell(Arc::new(SharedCell { path, state: Mutex::new(ActorState::new(role)), registry: self.shared.clone() }))
        });
        let cell = cell.clone();
        cell.change(|_| {});
        cell
    }

    /// Removes the cell at `path`.
    pub fn leave(&self, path: &str) {
        if let Some((path, _)) = self.cells.remove(path) {
            self.shared.note(&path);
        }
    }

    /// Returns the state of the actor at `path`, if there is one.
    pub fn actor(&self, path: &str) -> Option<ActorState> {
        let cell = self.cells.get(path).map(|cell| cell.value().clone());
        cell.map(|cell| cell.read())
    }

    /// Calls `look` with the state of the actor at `path`, without its path. Returns `None` if there is none.
    fn look<T>(&self, path: &str, look: impl FnOnce(&ActorState) -> T) -> Option<T> {
        let cell = self.cells.get(path).map(|cell| cell.value().clone());
        cell.map(|cell| cell.look(look))
    }

    /// Returns the paths of all cells, sorted.
    pub fn paths(&self) -> Vec<Arc<str>> {
        let mut paths: Vec<_> = self.cells.iter().map(|cell| cell.key().clone()).collect();
        paths.sort_unstable();
        paths
    }

    /// Returns the states of all cells, sorted by path.
    pub fn snapshot(&self) -> Vec<ActorState> {
        let mut states: Vec<_> = self.cells.iter().map(|cell| cell.value().read()).collect();
        states.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        states
    }

    /// Counts the actors by role and activity. Cheaper than a snapshot.
    pub fn count(&self) -> HashMap<(Role, Activity), usize> {
        let mut counts = HashMap::new();
        for cell in self.cells.iter() {
            let what = cell.value().look(|state| (state.role, state.activity));
            *counts.entry(what).or_default() += 1;
        }
        counts
    }

    /// Returns a number that grows with each change of any cell.
    pub fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }
}

impl SharedRegistry {
    fn note(&self, path: &Arc<str>) {
        self.version.fetch_add(1, Ordering::AcqRel);
        self.followers.note(path);
    }
}

impl Cell {
    /// Changes the cell. `change` finds an empty path.
    pub fn update(&self, now: Timestamp, change: impl FnOnce(&mut ActorState)) {
        self.change(|state| {
            change(state);
            state.mailbox_high = state.mailbox_high.max(state.mailbox);
            state.changed = Some(now);
        });
    }

    fn change(&self, change: impl FnOnce(&mut ActorState)) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        self.0.registry.note(&self.0.path);
    }

    pub(super) fn detail(&self, now: Timestamp, details: Vec<(String, String)>) {
        if !self.look(|state| state.details == details) {
            self.update(now, |state| state.details = details);
        }
    }

    /// Sets what is wrong with the actor's object. Returns false if it was set before.
    pub(super) fn set_problem(&self, now: Timestamp, problem: Option<String>) -> bool {
        let is_changed = !self.look(|state| state.problem == problem);
        if is_changed {
            self.update(now, |state| state.problem = problem);
        }
        is_changed
    }

    /// Sets the actor's object and what is wrong with it. Returns false if both were set before.
    pub(super) fn set_object(&self, now: Timestamp, object: Option<ObjectSummary>, problem: Option<String>) -> bool {
        let object = object.map(ObjectSummary::bounded);
        let is_changed = !self.look(|state| state.problem == problem && state.object.as_deref() == object.as_ref());
        if is_changed {
            self.update(now, |state| {
                state.object = object.map(Arc::new);
                state.problem = problem;
            });
        }
        is_changed
    }

    fn look<T>(&self, look: impl FnOnce(&ActorState) -> T) -> T {
        look(&self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a copy of the state.
    pub fn read(&self) -> ActorState {
        self.look(|state| ActorState { path: self.path().to_owned(), ..state.clone() })
    }

    /// Returns the path.
    pub fn path(&self) -> &str {
        &self.0.path
    }
}
