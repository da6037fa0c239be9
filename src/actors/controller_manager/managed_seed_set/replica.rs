//! What is kept of Shoots, ManagedSeeds and Seeds, and the replicas that they make (spec 86 §5). Pure.

use cluster::object;
use serde_json::Value;

use crate::{
    actors::controller_manager::{
        fields::{list, text},
        shoot_record::{LastOperation, OperationState, OperationType},
        shoot_status_label::rules::{LABEL, ShootStatus},
    },
    api::meta::selector::{Labels, labels_in},
};

/// Protects Shoots and ManagedSeeds from this controller.
const PROTECTED: &str = "seedmanagement.gardener.cloud/protect-from-deletion";

/// Asks gardenlet for something, and its value for a retry.
pub const OPERATION: &str = "gardener.cloud/operation";
/// The value of [`OPERATION`] that asks for a retry.
pub const RETRY: &str = "retry";

/// How far a replica is, in the order in which replicas go when there are too many (§5.2, §6.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplicaStatus {
    /// Its Shoot could not be created or reconciled.
    ShootReconcileFailed,
    /// Its Shoot could not be deleted.
    ShootDeleteFailed,
    /// Its Shoot is being created or reconciled.
    ShootReconciling,
    /// Its Shoot is being deleted.
    ShootDeleting,
    /// Its Shoot is up to date.
    ShootReconciled,
    /// It has a ManagedSeed, which has not registered its Seed.
    ManagedSeedPreparing,
    /// Its ManagedSeed is being deleted.
    ManagedSeedDeleting,
    /// Its ManagedSeed has registered its Seed.
    ManagedSeedRegistered,
}

/// What is kept of a Shoot, which may be a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaShoot {
    /// Its labels as JSON: there may be ten thousand Shoots, and a map of texts is several times as large.
    labels: Box<str>,
    /// uid of the object that controls it.
    pub controller: Option<Box<str>>,
    /// How far it is, without its ManagedSeed.
    pub status: ReplicaStatus,
    /// Its health, as its label says.
    pub health: ShootStatus,
    /// It must not be deleted.
    pub is_protected: bool,
    /// It is being deleted.
    pub is_deleting: bool,
    /// A retry was asked for, and nobody has removed the annotation.
    pub is_retry_asked: bool,
}

/// What is kept of a ManagedSeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaManagedSeed {
    /// How far its replica is.
    pub status: ReplicaStatus,
    /// It must not be deleted.
    pub is_protected: bool,
}

/// A replica of a ManagedSeedSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// The name of its Shoot, its ManagedSeed and its Seed.
    pub name: Box<str>,
    /// How far it is.
    pub status: ReplicaStatus,
    /// The health of its Shoot.
    pub health: ShootStatus,
    /// Its Seed is ready.
    pub is_seed_ready: bool,
    /// A Shoot is on its Seed, or moves there.
    pub is_scheduled: bool,
    /// Its Shoot or its ManagedSeed must not be deleted.
    pub is_protected: bool,
    /// A retry of the last operation on its Shoot was asked for.
    pub is_retry_asked: bool,
}

impl ReplicaShoot {
    /// Reads a Shoot of any shape.
    pub fn of(shoot: &Value) -> Self {
        let labels = shoot.pointer("/metadata/labels").filter(|labels| labels.is_object());
        Self {
            labels: labels.map(ToString::to_string).unwrap_or_default().into(),
            controller: controller_uid(shoot).map(Box::from),
            status: status_of_shoot(shoot),
            health: health(shoot),
            is_protected: is_protected(shoot),
            is_deleting: object::deletion_timestamp(shoot).is_some(),
            is_retry_asked: object::annotation(shoot, OPERATION) == Some(RETRY),
        }
    }

    /// Returns its labels.
    pub fn labels(&self) -> Labels {
        labels_in(&serde_json::from_str(&self.labels).unwrap_or_default())
    }
}

impl ReplicaManagedSeed {
    /// Reads a ManagedSeed of any shape.
    pub fn of(managed_seed: &Value) -> Self {
        let is_registered = || is_observed(managed_seed) && condition(managed_seed, "SeedRegistered") == Some("True");
        let status = if object::deletion_timestamp(managed_seed).is_some() {
            ReplicaStatus::ManagedSeedDeleting
        } else if is_registered() {
            ReplicaStatus::ManagedSeedRegistered
        } else {
            ReplicaStatus::ManagedSeedPreparing
        };
        Self { status, is_protected: is_protected(managed_seed) }
    }
}

impl Replica {
    /// Puts a replica together. An absent Seed is not ready.
    pub fn new(
        name: &str,
        shoot: &ReplicaShoot,
        managed_seed: Option<ReplicaManagedSeed>,
        is_seed_ready: bool,
        is_scheduled: bool,
    ) -> Self {
        Self {
            name: name.into(),
            status: managed_seed.map_or(shoot.status, |managed_seed| managed_seed.status),
            health: shoot.health,
            is_seed_ready,
            is_scheduled,
            is_protected: shoot.is_protected || managed_seed.is_some_and(|managed_seed| managed_seed.is_protected),
            is_retry_asked: shoot.is_retry_asked,
        }
    }

    /// Returns the number at the end of its name; `None` comes first (§5.1 rules 5 and 6).
    pub fn ordinal(&self) -> Option<i64> {
        ordinal_of(&self.name)
    }

    /// Returns true if nothing is missing (§5.5).
    pub fn is_ready(&self) -> bool {
        self.status == ReplicaStatus::ManagedSeedRegistered && self.is_seed_ready && self.health == ShootStatus::Healthy
    }

    /// Returns true if it may be deleted (§5.5).
    pub fn is_deletable(&self) -> bool {
        !self.is_scheduled && !self.is_protected
    }
}

/// Returns the number after the last hyphen of a name, if it fits 32 bits (§5.1 rule 5).
pub fn ordinal_of(name: &str) -> Option<i64> {
    let (_, digits) = name.rsplit_once('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse::<i32>().ok()).flatten().map(i64::from)
}

/// Returns the uid of the object that controls another one.
pub fn controller_uid(object: &Value) -> Option<&str> {
    let owner = list(object, "/metadata/ownerReferences").find(|owner| owner["controller"] == true)?;
    Some(text(owner, "/uid"))
}

/// Returns true if a Shoot or ManagedSeed must not be deleted: in doubt nothing is (D-2).
pub fn is_protected(object: &Value) -> bool {
    object.pointer("/metadata/annotations").and_then(|it| it.get(PROTECTED)).is_some_and(|value| *value != "false")
}

/// Returns true if a Seed is ready (§5.3).
pub fn is_ready_seed(seed: &Value) -> bool {
    is_observed(seed)
        && object::deletion_timestamp(seed).is_none()
        && ["GardenletReady", "SeedSystemComponentsHealthy"].iter().all(|kind| condition(seed, kind) == Some("True"))
        && matches!(condition(seed, "BackupBucketsReady"), None | Some("True"))
}

fn status_of_shoot(shoot: &Value) -> ReplicaStatus {
    let operation = LastOperation::of(shoot).filter(|_| is_observed(shoot));
    let operation = operation.map(|operation| (operation.kind, operation.state));
    let is_deleting = object::deletion_timestamp(shoot).is_some();
    match (operation, is_deleting) {
        (Some((OperationType::Create | OperationType::Reconcile, OperationState::Succeeded)), false) => {
            ReplicaStatus::ShootReconciled
        }
        (Some((OperationType::Create | OperationType::Reconcile, OperationState::Failed)), false) => {
            ReplicaStatus::ShootReconcileFailed
        }
        (Some((OperationType::Delete, OperationState::Failed)), true) => ReplicaStatus::ShootDeleteFailed,
        (_, false) => ReplicaStatus::ShootReconciling,
        (_, true) => ReplicaStatus::ShootDeleting,
    }
}

/// Returns the health of a Shoot, as its label says (§5.4). A value that nobody knows counts as unknown (DEV-9).
fn health(shoot: &Value) -> ShootStatus {
    let Some(label) = object::label(shoot, LABEL) else { return ShootStatus::Progressing };
    let all = [ShootStatus::Healthy, ShootStatus::Progressing, ShootStatus::Unhealthy];
    all.into_iter().find(|status| status.as_str() == label).unwrap_or(ShootStatus::Unknown)
}

/// Returns true if the status of an object is about its present generation. Absent numbers are 0.
fn is_observed(object: &Value) -> bool {
    let observed = object.pointer("/status/observedGeneration").and_then(Value::as_i64).unwrap_or_default();
    observed == object::generation(object)
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let condition = list(object, "/status/conditions").find(|condition| text(condition, "/type") == kind)?;
    Some(text(condition, "/status"))
}
