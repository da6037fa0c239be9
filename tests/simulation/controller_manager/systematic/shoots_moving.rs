//! Shoots that move to another Seed: their constraint, and the finalizer of their ShootState.

use gardener_resource_manager::api::kinds;
use serde_json::json;
use sim::Sim;

use super::{Scenario, look, seconds};
use crate::{
    controller_manager::{
        garden::Garden,
        shoot_migration::{moving, put_seeds, set_version},
        shoot_state_finalizer::{go_on, put_shoot, state},
        shoots::operation,
    },
    systematic::ensure,
};

fn prepare_seeds(garden: &Garden) {
    put_seeds(garden, "v1");
}

async fn migration(garden: &Garden) {
    garden.put(moving());
    seconds(20).await;
    set_version(garden, "dst", "v2");
    seconds(20).await;
    set_version(garden, "dst", "v1");
    seconds(20).await;
}

/// spec 84 H, scenarios 102 and 103
#[test]
fn migration_constraint_survives_each_single_fault() {
    Scenario { prepare: prepare_seeds, ..Scenario::new("shoot-migration") }.survives(migration);
}

const OTHER: &str = "example.com/x";

fn prepare_state(garden: &Garden) {
    put_shoot(garden, operation("Create", "Succeeded"));
    garden.put(state(&[OTHER]));
}

fn foreign_finalizer_stays(sim: &Sim) -> Result<(), String> {
    let state = look(sim, &kinds::SHOOT_STATE, "a", "s");
    let finalizers = state["metadata"]["finalizers"].as_array();
    ensure(finalizers.is_some_and(|all| all.contains(&json!(OTHER))), "a ShootState loses a foreign finalizer")
}

async fn moves(garden: &Garden) {
    for (kind, step) in [("Migrate", "Processing"), ("Restore", "Processing"), ("Restore", "Succeeded")] {
        go_on(garden, kind, step);
        seconds(20).await;
    }
    go_on(garden, "Migrate", "Processing");
    seconds(20).await;
}

/// spec 84 I, scenarios 108 and 109
#[test]
fn shoot_state_finalizer_survives_each_single_fault() {
    Scenario { prepare: prepare_state, invariant: foreign_finalizer_stays, ..Scenario::new("shoot-states") }
        .survives(moves);
}
