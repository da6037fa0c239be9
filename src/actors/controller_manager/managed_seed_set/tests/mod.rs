//! Tests of the pure parts: `objects`: what is read and written; `steps`: what is done next.

mod objects;
mod steps;

use jiff::Timestamp;

use super::{
    replica::{Replica, ReplicaManagedSeed, ReplicaShoot, ReplicaStatus},
    status::{PendingReason, PendingReplica},
};
use crate::actors::controller_manager::shoot_status_label::rules::ShootStatus;

fn now() -> Timestamp {
    "2026-08-21T17:55:55.9Z".parse().expect("a time")
}

/// Returns a replica of the ManagedSeedSet `m` that lacks nothing but is this far.
fn replica(ordinal: u32, status: ReplicaStatus) -> Replica {
    let shoot = ReplicaShoot::of(&serde_json::json!({}));
    let managed_seed = None::<ReplicaManagedSeed>;
    Replica {
        status,
        health: ShootStatus::Healthy,
        ..Replica::new(&format!("m-{ordinal}"), &shoot, managed_seed, true, false)
    }
}

fn pending(name: &str, reason: PendingReason, retries: Option<i64>) -> PendingReplica {
    PendingReplica { name: name.into(), reason: Some(reason), since: "2026-08-21T17:00:00Z".into(), retries }
}
