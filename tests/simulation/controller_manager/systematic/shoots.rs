//! Shoots: conditions, hibernation, maintenance, lifetime, retries, and the status label.

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::Sim;

use super::{Scenario, is_going, look, seconds, stays};
use crate::{
    controller_manager::{
        garden::Garden,
        guards::shoot,
        shoot_conditions::{put_shoot_and_seed, tell},
        shoot_hibernation::sleeper,
        shoot_maintenance::{self, put_profile, two_versions},
        shoot_quota::{limited, put_binding},
        shoot_retry::{failed, without_jitter},
        shoot_status_label::unlabelled,
        shoots::{condition, operation, set_status},
    },
    systematic::ensure,
};

fn prepare_conditions(garden: &Garden) {
    put_shoot_and_seed(garden, &[condition("APIServerAvailable", "True")], &[]);
}

fn own_condition_stays(sim: &Sim) -> Result<(), String> {
    let shoot = look(sim, &kinds::SHOOT, "garden", "s");
    let conditions = shoot["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let has_own = conditions.iter().any(|condition| condition["type"] == "APIServerAvailable");
    ensure(has_own, "the Shoot loses a condition of its own")
}

async fn conditions(garden: &Garden) {
    tell(garden, &[condition("GardenletReady", "True")]);
    seconds(20).await;
    tell(garden, &[condition("GardenletReady", "Unknown"), condition("SeedSystemComponentsHealthy", "False")]);
    seconds(20).await;
    tell(garden, &[condition("SeedSystemComponentsHealthy", "True")]);
    seconds(20).await;
}

/// spec 84 A, scenarios 1 and 2
#[test]
fn shoot_conditions_survive_each_single_fault() {
    Scenario { prepare: prepare_conditions, invariant: own_condition_stays, ..Scenario::new("shoot-conditions") }
        .survives(conditions);
}

/// Virtual time begins at midnight.
async fn hibernation(garden: &Garden) {
    garden.put(sleeper(json!([{ "start": "5 0 * * *" }])));
    seconds(360).await;
}

fn awake_until_five_past(sim: &Sim) -> Result<(), String> {
    let shoot = look(sim, &kinds::SHOOT, "a", "s");
    let is_early = shoot["status"]["lastHibernationTriggerTime"].as_str().is_some_and(|it| it < "2030-01-01T00:05:00Z");
    ensure(!is_early, "a Shoot is hibernated before its time")
}

/// spec 84 B, scenario 10
#[test]
fn hibernation_survives_each_single_fault() {
    Scenario { invariant: awake_until_five_past, ..Scenario::new("shoot-hibernation") }.survives(hibernation);
}

fn prepare_maintenance(garden: &Garden) {
    put_profile(garden, &two_versions());
    for name in ["s", "other"] {
        garden.put(shoot_maintenance::shoot(garden, name, json!({})));
    }
}

fn only_one_is_maintained(sim: &Sim) -> Result<(), String> {
    let other = look(sim, &kinds::SHOOT, "a", "other");
    ensure(other["spec"]["kubernetes"]["version"] == "1.30.1", "a Shoot is maintained outside of its window")
}

async fn maintenance(garden: &Garden) {
    let patch = json!({ "metadata": { "annotations": { "gardener.cloud/operation": "maintain" } } });
    garden.patch(&kinds::SHOOT, "a", "s", patch).await;
    seconds(60).await;
}

/// spec 84 C.14, C.15, scenario 26
#[test]
fn shoot_maintenance_survives_each_single_fault() {
    Scenario { prepare: prepare_maintenance, invariant: only_one_is_maintained, ..Scenario::new("shoot-maintenance") }
        .survives(maintenance);
}

fn prepare_lifetime(garden: &Garden) {
    put_binding(garden, &kinds::SECRET_BINDING, &[Some(3)]);
    garden.put(shoot("a", "unlimited", json!({})));
}

fn unlimited_shoot_stays(sim: &Sim) -> Result<(), String> {
    stays(sim, &kinds::SHOOT, "a", "unlimited")?;
    let young = look(sim, &kinds::SHOOT, "a", "young");
    ensure(!is_going(&young), "a Shoot is deleted before its time")
}

async fn lifetime(garden: &Garden) {
    garden.put(shoot("a", "young", json!({ "secretBindingName": "b" })));
    seconds(30).await;
    garden.put(limited(garden, Some(60)));
    seconds(120).await;
}

/// spec 84 D, L-8, L-9, scenarios 75 and 76
#[test]
fn shoot_lifetime_survives_each_single_fault() {
    Scenario { prepare: prepare_lifetime, invariant: unlimited_shoot_stays, ..Scenario::new("shoot-lifetime") }
        .survives(lifetime);
}

async fn retries(garden: &Garden) {
    garden.put(failed(garden, "long-ago", 660));
    seconds(30).await;
    garden.put(failed(garden, "lately", 300));
    seconds(330).await;
}

/// spec 84 F, scenarios 93 and 94
#[test]
fn shoot_retries_survive_each_single_fault() {
    Scenario { prepare: without_jitter, ..Scenario::new("shoot-retries") }.survives(retries);
}

async fn label(garden: &Garden) {
    garden.put(unlabelled(json!({ "lastOperation": operation("Reconcile", "Succeeded") })));
    for state in ["Failed", "Succeeded", "Error"] {
        seconds(20).await;
        set_status(garden, "a", "s", "lastOperation", operation("Reconcile", state));
    }
    seconds(20).await;
    set_status(garden, "a", "s", "lastErrors", Value::Null);
    seconds(20).await;
}

/// spec 84 G, scenarios 98 to 101
#[test]
fn status_label_survives_each_single_fault() {
    Scenario::new("shoot-status-label").survives(label);
}
