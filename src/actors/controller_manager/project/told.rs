//! What the Events about a Project say, and when they are repeated (spec 82 A.11, "better" 5). Pure.

use std::{collections::BTreeMap, time::Duration};

use cluster::EventType;
use kit::hash_of;
use serde_json::Value;
use tokio::time::Instant;

use crate::actors::controller_manager::fields::{list, text};

/// An Event without news is recorded again after this time.
pub const REPETITION: Duration = Duration::from_secs(3600);

/// Reason of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The Project has its Namespace.
    ReconcileSuccessful,
    /// The Project could not be reconciled.
    ReconcileFailed,
    /// A deleted Project has Shoots.
    NotEmpty,
    /// The Namespace of a deleted Project could not be released.
    DeletionFailed,
    /// The Namespace of a deleted Project is being deleted.
    MarkedForDeletion,
}

/// What was recorded about one Project, by reason.
#[derive(Debug, Default)]
pub struct Told(BTreeMap<Reason, Recorded>);

#[derive(Debug, Clone, Copy)]
struct Recorded {
    generation: i64,
    note: u64,
    at: Instant,
}

/// Whether an Event is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tell {
    /// The note or the generation of the Project is new.
    News,
    /// They were recorded an hour ago.
    Repetition,
    /// They were recorded lately.
    Nothing,
}

impl Reason {
    /// Returns type, action and reason.
    pub fn parts(self) -> (EventType, &'static str, &'static str) {
        match self {
            Self::ReconcileSuccessful => (EventType::Normal, "Reconcile", "NamespaceReconcileSuccessful"),
            Self::ReconcileFailed => (EventType::Warning, "Reconcile", "NamespaceReconcileFailed"),
            Self::NotEmpty => (EventType::Warning, "Delete", "NamespaceNotEmpty"),
            Self::DeletionFailed => (EventType::Warning, "Delete", "NamespaceDeletionFailed"),
            Self::MarkedForDeletion => (EventType::Normal, "Delete", "NamespaceMarkedForDeletion"),
        }
    }
}

impl Told {
    /// Returns whether to record an Event, and remembers it as recorded then.
    pub fn tell(&mut self, reason: Reason, note: &str, generation: i64, now: Instant) -> Tell {
        let note = hash_of(note);
        let tell = match self.0.get(&reason) {
            Some(told) if told.note != note || told.generation != generation => Tell::News,
            Some(told) if now.duration_since(told.at) >= REPETITION => Tell::Repetition,
            Some(_) => return Tell::Nothing,
            None => Tell::News,
        };
        self.0.insert(reason, Recorded { generation, note, at: now });
        tell
    }

    /// Returns true if such an Event was not recorded, or not with this note and generation.
    pub fn is_news(&self, reason: Reason, note: &str, generation: i64) -> bool {
        let is_told = |told: &Recorded| told.note == hash_of(note) && told.generation == generation;
        !self.0.get(&reason).is_some_and(is_told)
    }

    /// An own write gave the Project another generation: that is no news.
    pub fn move_to(&mut self, generation: i64) {
        self.0.values_mut().for_each(|told| told.generation = generation);
    }

    /// Remembers an Event that was recorded before this process knew the Project.
    pub fn assume(&mut self, reason: Reason, note: &str, generation: i64, now: Instant) {
        self.0.entry(reason).or_insert(Recorded { generation, note: hash_of(note), at: now });
    }
}

/// The note about a Namespace that a Project has.
pub fn reconciled(namespace: &str) -> String {
    format!("Successfully reconciled namespace \"{namespace}\" for project")
}

/// The note about Shoots of a deleted Project.
pub fn not_empty(namespace: &str) -> String {
    format!("Cannot release namespace \"{namespace}\" because it still contains Shoots")
}

/// The note about a Namespace that cannot be released.
pub fn not_released(namespace: &str, error: &str) -> String {
    format!("Failed to release project namespace \"{namespace}\": {error}")
}

/// The note about a Namespace in deletion.
pub fn marked(namespace: &str) -> String {
    format!("Successfully marked project namespace \"{namespace}\" for deletion")
}

/// Returns a note with what keeps a Namespace from ending, as its conditions say.
pub fn with_obstacles(note: &str, namespace: &Value) -> String {
    let obstacles = list(namespace, "/status/conditions").filter(|condition| {
        let kind = text(condition, "/type");
        text(condition, "/status") == "True"
            && ["NamespaceContentRemaining", "NamespaceFinalizersRemaining"].contains(&kind)
    });
    let texts = obstacles.map(|condition| format!("; {}", text(condition, "/message")));
    std::iter::once(note.to_owned()).chain(texts).collect()
}
