//! What guards differ in: a table entry per guarded kind.

use cluster::{EventType, Resource, object::NamespacedName};
use serde_json::Value;

use super::note::NoteText;

/// How a kind is guarded.
pub struct GuardDefinition {
    /// Name of the controller (spec 80 §15).
    pub controller: &'static str,
    /// The guarded kind.
    pub kind: Resource,
    /// The finalizer that keeps its objects.
    pub finalizer: &'static str,
    /// Begin of the error text if the finalizer cannot be added.
    pub add_error: &'static str,
    /// The Event that tells why an object stays; `None` if there is only a log record.
    pub event: Option<GuardEvent>,
    /// The kinds that refer to it.
    pub users: &'static [ReferringKind],
    /// Log records when nobody refers to a deleted object.
    pub accepted: &'static [&'static str],
    /// Texts that say why an object stays. A guard takes the first text that names a referrer.
    pub notes: &'static [NoteText],
}

/// Type and action of a guard's Events.
#[derive(Debug, Clone, Copy)]
pub struct GuardEvent {
    /// Their type.
    pub event_type: EventType,
    /// Their action.
    pub action: &'static str,
}

/// A kind whose objects refer to guarded objects.
pub struct ReferringKind {
    /// The kind.
    pub kind: Resource,
    /// Where the referrers of an object can be.
    pub scope: ReferrerScope,
    /// Returns the guarded objects to which an object of the kind refers. Empty names are no references.
    pub targets: fn(&Value) -> Vec<NamespacedName>,
}

/// Where the referrers of an object can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferrerScope {
    /// In all namespaces, or in none.
    Anywhere,
    /// In the namespace of the object.
    SameNamespace,
}

impl ReferrerScope {
    /// Returns the namespace to list for the referrers of an object; `None` for all.
    pub fn namespace(self, object: &NamespacedName) -> Option<String> {
        match self {
            Self::Anywhere => None,
            Self::SameNamespace => Some(object.namespace.clone()),
        }
    }
}
