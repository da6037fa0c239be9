//! The status registry: what every actor shows of itself, in shared cells (contract rule 11). Actors write their cell,
//! HTTP threads read it, and no actor is ever asked. A cell holds names, counts, states and short texts: never the
//! content of a Secret.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use dashmap::DashMap;
use jiff::Timestamp;
use serde::Serialize;

use super::ObjectSummary;

/// All actors of the process, by path, e.g. `managedresource/shoot--a--b/core`. Cheap to clone, for any thread.
#[derive(Clone, Default, Debug)]
pub struct StatusRegistry {
    cells: Arc<DashMap<String, Cell>>,
    version: Arc<AtomicU64>,
}

/// The cell of one actor. [`StatusRegistry::leave`] removes it; dropping clones does not.
#[derive(Clone, Debug)]
pub struct Cell {
    path: Arc<str>,
    state: Arc<Mutex<ActorState>>,
    version: Arc<AtomicU64>,
}

/// The status of one actor.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActorState {
    /// Path in the tree; segments are separated by `/`, a parent's path is a prefix.
    pub path: String,
    /// Kind of actor.
    pub role: Role,
    /// What the actor does now.
    pub activity: Activity,
    /// The message or the reconciler at hand, e.g. `reconcile managedresource`.
    pub current: Option<String>,
    /// Wakes and questions that wait.
    pub mailbox: u32,
    /// High-water mark of `mailbox`.
    pub mailbox_high: u32,
    /// How often the actor was restarted after a panic.
    pub restarts: u32,
    /// Number of finished reconciles (or messages).
    pub finished: u64,
    /// Time and text of the last error.
    pub last_error: Option<(Timestamp, String)>,
    /// What is wrong with the actor's object, whatever the actor does. While such an actor does not run, it is failing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// When the actor's next timer ends.
    pub next_timer: Option<Timestamp>,
    /// One free line, e.g. `20 objects, applied`.
    pub line: String,
    /// Further lines, label and text, e.g. the objects that are not healthy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<(String, String)>,
    /// Of a watch: the last contact with the server, in its most silent part; up to some seconds too early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard: Option<Timestamp>,
    /// When the cell last changed.
    pub changed: Option<Timestamp>,
    /// The actor's object, if it has conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Arc<ObjectSummary>>,
}

/// Kind of actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Starts and stops the tree.
    Root,
    /// Supervises the actors of one controller.
    Supervisor,
    /// Reconciles one object.
    Object,
    /// Turns the stream of a kind into stores and wakes.
    Watch,
    /// Anything else that lives as long as the process: leader election, event recorder, …
    Service,
}

/// What an actor does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Activity {
    /// Started, not yet working.
    Starting,
    /// Nothing to do.
    Idle,
    /// Waits for a permit.
    Queued,
    /// Waits for a store.
    Waiting,
    /// Working.
    Running,
    /// Waits for its back-off to end.
    BackingOff,
    /// Panicked too often; tried again rarely.
    Quarantined,
    /// Cannot do its work, or its object has a problem; the last error, or the problem, says why.
    Failing,
    /// Ended.
    Stopped,
}

impl StatusRegistry {
    /// Returns the cell of the actor at `path`, and creates it if there is none.
    pub fn enter(&self, path: impl Into<String>, role: Role) -> Cell {
        let path = path.into();
        let cell = self.cells.entry(path.clone()).or_insert_with(|| Cell {
            path: path.as_str().into(),
            state: Arc::new(Mutex::new(ActorState::new(path, role))),
            version: self.version.clone(),
        });
        self.version.fetch_add(1, Ordering::Relaxed);
        cell.clone()
    }

    /// Removes the cell at `path`.
    pub fn leave(&self, path: &str) {
        if self.cells.remove(path).is_some() {
            self.version.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the states of all cells, sorted by path.
    pub fn snapshot(&self) -> Vec<ActorState> {
        let mut states: Vec<_> = self.cells.iter().map(|cell| cell.value().read()).collect();
        states.sort_by(|a, b| a.path.cmp(&b.path));
        states
    }

    /// Returns a number that grows with each change of any cell. Poll it, and take a snapshot when it has changed.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }
}

impl Cell {
    /// Changes the cell.
    pub fn update(&self, now: Timestamp, change: impl FnOnce(&mut ActorState)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        state.mailbox_high = state.mailbox_high.max(state.mailbox);
        state.changed = Some(now);
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn detail(&self, now: Timestamp, details: Vec<(String, String)>) {
        let same = self.state.lock().unwrap_or_else(PoisonError::into_inner).details == details;
        if !same {
            self.update(now, |state| state.details = details);
        }
    }

    /// Sets what is wrong with the actor's object. Returns false if it was set before.
    pub(super) fn set_problem(&self, now: Timestamp, problem: Option<String>) -> bool {
        let same = self.state.lock().unwrap_or_else(PoisonError::into_inner).problem == problem;
        if !same {
            self.update(now, |state| state.problem = problem);
        }
        !same
    }

    /// Sets the actor's object and what is wrong with it. Returns false if both were set before.
    pub(super) fn set_object(&self, now: Timestamp, object: Option<ObjectSummary>, problem: Option<String>) -> bool {
        let same = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.problem == problem && state.object.as_deref() == object.as_ref()
        };
        if !same {
            self.update(now, |state| {
                state.object = object.map(Arc::new);
                state.problem = problem;
            });
        }
        !same
    }

    /// Returns a copy of the state.
    pub fn read(&self) -> ActorState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the path.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl ActorState {
    fn new(path: String, role: Role) -> Self {
        Self {
            path,
            role,
            activity: Activity::Starting,
            current: None,
            mailbox: 0,
            mailbox_high: 0,
            restarts: 0,
            finished: 0,
            last_error: None,
            problem: None,
            next_timer: None,
            line: String::new(),
            details: Vec::new(),
            heard: None,
            changed: None,
            object: None,
        }
    }
}
