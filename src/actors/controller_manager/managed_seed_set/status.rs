//! The status of a ManagedSeedSet (spec 86 §6.7). Pure.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::replica::ordinal_of;
use crate::actors::controller_manager::fields::{text, whole_seconds};

/// The part of the status that this controller writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetStatus {
    /// `observedGeneration`.
    pub observed_generation: i64,
    /// `replicas`; `None` if there is none yet.
    pub replicas: Option<i64>,
    /// `readyReplicas`.
    pub ready_replicas: i64,
    /// `nextReplicaNumber`: the lowest ordinal that no replica has had.
    pub next_replica_number: i64,
    /// `pendingReplica`.
    pub pending: Option<PendingReplica>,
}

/// The replica that a ManagedSeedSet waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingReplica {
    /// Its name.
    pub name: Box<str>,
    /// Why it is waited for; `None` if that is no reason of this controller.
    pub reason: Option<PendingReason>,
    /// Since when, as text (RFC 3339).
    pub since: Box<str>,
    /// How often the operation on its Shoot was retried; `None` is written as absent.
    pub retries: Option<i64>,
}

/// Why a replica is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PendingReason {
    /// Its Shoot is being created or reconciled.
    ShootReconciling,
    /// Its Shoot is being deleted.
    ShootDeleting,
    /// Its Shoot failed, and is retried no more.
    ShootReconcileFailed,
    /// The deletion of its Shoot failed, and is retried no more.
    ShootDeleteFailed,
    /// Its ManagedSeed has not registered yet.
    ManagedSeedPreparing,
    /// Its ManagedSeed is being deleted.
    ManagedSeedDeleting,
    /// Its Seed is not ready.
    SeedNotReady,
    /// Its Shoot is not healthy.
    ShootNotHealthy,
}

impl PendingReason {
    /// All reasons.
    pub const ALL: [Self; 8] = [
        Self::ShootReconciling,
        Self::ShootDeleting,
        Self::ShootReconcileFailed,
        Self::ShootDeleteFailed,
        Self::ManagedSeedPreparing,
        Self::ManagedSeedDeleting,
        Self::SeedNotReady,
        Self::ShootNotHealthy,
    ];

    /// As in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ShootReconciling => "ShootReconciling",
            Self::ShootDeleting => "ShootDeleting",
            Self::ShootReconcileFailed => "ShootReconcileFailed",
            Self::ShootDeleteFailed => "ShootDeleteFailed",
            Self::ManagedSeedPreparing => "ManagedSeedPreparing",
            Self::ManagedSeedDeleting => "ManagedSeedDeleting",
            Self::SeedNotReady => "SeedNotReady",
            Self::ShootNotHealthy => "ShootNotHealthy",
        }
    }

    fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

impl PendingReplica {
    /// Returns a replica that is waited for from now on.
    pub fn new(name: &str, reason: PendingReason, retries: Option<i64>, now: Timestamp) -> Self {
        let since = whole_seconds(now).to_string().into();
        Self { name: name.into(), reason: Some(reason), since, retries }
    }

    /// Returns true if both wait for the same, whenever that began.
    pub fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.reason == other.reason && self.retries == other.retries
    }

    /// Returns true if API servers accept the name in the status of this ManagedSeedSet: `<set>-<ordinal>` (DEV-13).
    pub fn is_of(&self, set: &str) -> bool {
        let ordinal = self.name.strip_prefix(set).and_then(|rest| rest.strip_prefix('-'));
        ordinal.is_some_and(|ordinal| !ordinal.contains('-')) && ordinal_of(&self.name).is_some()
    }
}

impl SetStatus {
    /// Reads the status of a ManagedSeedSet of any shape.
    pub fn of(set: &Value) -> Self {
        let number = |field: &str| set.pointer(field).and_then(Value::as_i64);
        let pending = set.pointer("/status/pendingReplica").filter(|pending| pending.is_object());
        Self {
            observed_generation: number("/status/observedGeneration").unwrap_or_default(),
            replicas: number("/status/replicas"),
            ready_replicas: number("/status/readyReplicas").unwrap_or_default(),
            next_replica_number: number("/status/nextReplicaNumber").unwrap_or_default(),
            pending: pending.map(|pending| PendingReplica {
                name: text(pending, "/name").into(),
                reason: PendingReason::of(text(pending, "/reason")),
                since: text(pending, "/since").into(),
                retries: pending.pointer("/retries").and_then(Value::as_i64),
            }),
        }
    }

    /// Sets the replica that is waited for. The same replica keeps the time since when (trap T-14).
    pub fn wait_for(&mut self, pending: PendingReplica) {
        if !self.pending.as_ref().is_some_and(|old| old.is_same(&pending)) {
            self.pending = Some(pending);
        }
    }

    /// Returns the merge patch that turns the stored status of the ManagedSeedSet with this name into this one; `None` if
    /// nothing differs. The number of the next replica never shrinks. A replica with a foreign name is left out (DEV-13).
    pub fn patch(&self, set: &str, stored: &Self) -> Option<Value> {
        let number = |value: i64| if value == 0 { Value::Null } else { value.into() };
        let next = self.next_replica_number.max(stored.next_replica_number);
        let pending = self.pending.as_ref().filter(|pending| pending.is_of(set));
        let fields = [
            ("observedGeneration", number(self.observed_generation), number(stored.observed_generation)),
            ("replicas", self.replicas.unwrap_or_default().into(), json!(stored.replicas)),
            ("readyReplicas", number(self.ready_replicas), number(stored.ready_replicas)),
            ("nextReplicaNumber", number(next), number(stored.next_replica_number)),
            ("pendingReplica", to_json(pending), to_json(stored.pending.as_ref())),
        ];
        let changes = fields.into_iter().filter(|(_, wanted, stored)| wanted != stored);
        let changes: Map<String, Value> = changes.map(|(field, wanted, _)| (field.to_owned(), wanted)).collect();
        (!changes.is_empty()).then(|| json!({ "status": changes }))
    }
}

fn to_json(pending: Option<&PendingReplica>) -> Value {
    pending.map_or(Value::Null, |PendingReplica { name, reason, since, retries }| {
        json!({ "name": name, "reason": reason.map(PendingReason::as_str), "since": since, "retries": retries })
    })
}
