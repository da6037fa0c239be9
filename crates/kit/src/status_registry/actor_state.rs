//! What an actor shows of itself.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::ObjectSummary;

/// The status of one actor.
#[derive(Debug, Clone, PartialEq)]
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
    pub problem: Option<String>,
    /// When the actor's next timer ends.
    pub next_timer: Option<Timestamp>,
    /// One free line, e.g. `20 objects, applied`.
    pub line: String,
    /// Further lines, label and text, e.g. the objects that are not healthy.
    pub details: Vec<(String, String)>,
    /// Of a watch: the last contact with the server, in its most silent part; up to some seconds too early.
    pub heard: Option<Timestamp>,
    /// When the cell last changed.
    pub changed: Option<Timestamp>,
    /// The actor's object, if it has conditions.
    pub object: Option<Arc<ObjectSummary>>,
}

/// Kind of actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
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

impl ActorState {
    pub(super) fn new(role: Role) -> Self {
        Self {
            path: String::new(),
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
