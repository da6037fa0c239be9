//! The census: what every actor shows of itself, in shared cells (contract rule 11).
//!
//! Actors write their cell, HTTP threads read it; nobody ever asks an actor. A cell holds names, counts, states and short
//! texts: never the content of a Secret.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use dashmap::DashMap;
use jiff::Timestamp;
use serde::Serialize;

/// All actors of the process, by path, e.g. `managedresource/shoot--a--b/core`. Cheap to clone, readable from any thread.
#[derive(Clone, Default, Debug)]
pub struct StatusRegistry {
    cells: Arc<DashMap<String, Cell>>,
    version: Arc<AtomicU64>,
}

/// One actor's place in the census. Dropping the last clone does not remove it; [`Census::leave`] does.
#[derive(Clone, Debug)]
pub struct Cell {
    path: Arc<str>,
    state: Arc<Mutex<ActorState>>,
    status_registry: Arc<AtomicU64>,
}

/// What an actor shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActorState {
    /// Its place in the tree; segments are separated by `/`, a parent's path is a prefix.
    pub path: String,
    /// What it is.
    pub role: Role,
    /// What it does now.
    pub activity: Activity,
    /// The message or the duty at hand, e.g. `pass managedresource`.
    pub current: Option<String>,
    /// Wakes and questions that wait.
    pub mailbox: u32,
    /// The most that ever waited.
    pub mailbox_high: u32,
    /// How often it was started again after a panic.
    pub restarts: u32,
    /// Passes (or messages) it has finished.
    pub finished: u64,
    /// The last error's text, and when it was.
    pub last_error: Option<(Timestamp, String)>,
    /// When it acts by itself next.
    pub next_timer: Option<Timestamp>,
    /// One line of its own, e.g. `20 objects, applied`.
    pub line: String,
    /// Further lines, label and text, e.g. the objects that are not healthy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<(String, String)>,
    /// Of a watch: since when nothing was heard of the server, where that is longest; up to some seconds earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard: Option<Timestamp>,
    /// When the cell last changed.
    pub changed: Option<Timestamp>,
}

/// What kind of actor a cell belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Starts and stops the tree.
    Root,
    /// Looks after the actors of one controller.
    Supervisor,
    /// Looks after one object.
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
    /// Started, not yet at work.
    Starting,
    /// Nothing to do.
    Idle,
    /// Has work and waits for a permit.
    Queued,
    /// Waits for a store.
    Waiting,
    /// At work.
    Running,
    /// Waits for its back-off to end.
    BackingOff,
    /// Panicked too often; tried again rarely.
    Quarantined,
    /// Cannot do its work; its last error says why.
    Failing,
    /// Ended.
    Stopped,
}

impl StatusRegistry {
    /// A cell for the actor at `path`; one that is there already is kept and returned.
    pub fn enter(&self, path: impl Into<String>, role: Role) -> Cell {
        let path = path.into();
        let cell = self.cells.entry(path.clone()).or_insert_with(|| Cell {
            path: path.as_str().into(),
            state: Arc::new(Mutex::new(ActorState::new(path, role))),
            status_registry: self.version.clone(),
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

    /// All cells, by path.
    pub fn snapshot(&self) -> Vec<ActorState> {
        let mut states: Vec<_> = self.cells.iter().map(|cell| cell.value().read()).collect();
        states.sort_by(|a, b| a.path.cmp(&b.path));
        states
    }

    /// A number that grows with each change of any cell: readers poll it and take a snapshot when it moved.
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
        self.status_registry.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the further lines; nothing changes if they are the same.
    pub(super) fn detail(&self, now: Timestamp, details: Vec<(String, String)>) {
        let same = self.state.lock().unwrap_or_else(PoisonError::into_inner).details == details;
        if !same {
            self.update(now, |state| state.details = details);
        }
    }

    /// A copy of what it shows.
    pub fn read(&self) -> ActorState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its path.
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
            next_timer: None,
            line: String::new(),
            details: Vec::new(),
            heard: None,
            changed: None,
        }
    }
}
