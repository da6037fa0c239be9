//! What only the controllers' thread knows of an actor.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{Priority, ReconcileResult};

/// The answer to a question about one actor ([`StatusRegistry::ask`](super::StatusRegistry::ask)).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActorDetails {
    /// The last ten reconciles, the newest first.
    pub reconciles: Vec<PastReconcile>,
    /// What runs, and what runs next.
    pub pending: Vec<PendingReconcile>,
    /// What the actor waits for: caches, a permit, a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// What the controller adds ([`GeneralController::details`](super::GeneralController::details)).
    #[serde(flatten)]
    pub own: BTreeMap<&'static str, Value>,
}

/// A reconcile that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PastReconcile {
    /// Name of the reconciler.
    pub reconciler: &'static str,
    /// When it ended, cut to seconds.
    pub ended: Timestamp,
    /// How many milliseconds it took.
    pub ms: u32,
    /// How it ended.
    pub result: ReconcileResult,
    /// Names of its causes.
    pub causes: Vec<&'static str>,
    /// The error, if it is the actor's last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A reconcile that runs or will run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingReconcile {
    /// Name of the reconciler.
    pub reconciler: &'static str,
    /// Names of its causes so far.
    pub causes: Vec<&'static str>,
    /// How urgent it is so far.
    pub priority: Priority,
    /// What it waits for.
    pub state: PendingState,
    /// When it begins, if that depends on the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
}

/// What a reconcile waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PendingState {
    /// It runs.
    Running,
    /// The end of the running one.
    Next,
    /// A permit.
    Queued,
    /// Required caches that are not synced.
    Caches,
    /// A change that the last reconcile asked for.
    Waiting,
    /// The end of a back-off.
    BackingOff,
    /// The end of a timer.
    Timer,
    /// The next try after too many panics.
    Quarantined,
}
