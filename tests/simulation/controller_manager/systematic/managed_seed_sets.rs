//! A ManagedSeedSet grows by two replicas, and another one shrinks by one. gardenlet acts meanwhile.

use cluster::object;
use gardener_resource_manager::api::kinds;
use serde_json::Value;
use sim::Sim;

use super::{Scenario, is_going, let_go, look, seconds};
use crate::{
    controller_manager::{
        garden::Garden,
        managed_seed_sets::{NAMESPACE, READY, name, put_replica, registered, scale, seed_reports, set, worked},
    },
    systematic::ensure,
};

const REPLICAS: u32 = 2;

/// gardenlet works on new Shoots and ManagedSeeds, and lets those go that are deleted.
fn gardenlet(garden: &Garden) {
    for ordinal in 0..=REPLICAS {
        let find = |kind| look(&garden.sim, kind, NAMESPACE, &name(ordinal));
        let (shoot, managed_seed) = (find(&kinds::SHOOT), find(&kinds::MANAGED_SEED));
        if is_going(&managed_seed) {
            garden.sim.remove("seeds.core.gardener.cloud", "", &name(ordinal));
            let_go(garden, &kinds::MANAGED_SEED, NAMESPACE, &name(ordinal), &["gardener"]);
        } else if !managed_seed.is_null() && managed_seed["status"]["conditions"].is_null() {
            registered(garden, ordinal);
            seed_reports(garden, ordinal, &READY);
        }
        if is_going(&shoot) {
            let_go(garden, &kinds::SHOOT, NAMESPACE, &name(ordinal), &["gardener"]);
        } else if !shoot.is_null() && shoot["status"]["lastOperation"].is_null() {
            worked(garden, ordinal, "Create", "Succeeded");
        }
    }
}

/// Never more than it shall have.
fn not_too_many(sim: &Sim) -> Result<(), String> {
    let is_replica = |shoot: &Value| object::namespace(shoot) == NAMESPACE;
    let shoots = sim.look_at_all("shoots.core.gardener.cloud", is_replica);
    let count = shoots.into_iter().filter(|is_replica| *is_replica).count();
    ensure(count <= REPLICAS as usize, format!("there are {count} Shoots"))
}

/// After a create whose answer is lost, `nextReplicaNumber` may lag behind the ordinals in use. The next ordinal is the same:
/// it follows the highest one in use (spec 86 §6.3, §6.7). A larger number would skip an ordinal, and stays as it is.
fn blur(object: &mut Value) {
    if object["kind"] == "ManagedSeedSet" {
        let next = object["status"]["nextReplicaNumber"].as_i64().unwrap_or_default();
        object["status"]["nextReplicaNumber"] = next.max(REPLICAS.into()).into();
    }
}

async fn grow(garden: &Garden) {
    garden.put(set(REPLICAS));
    seconds(240).await;
}

/// spec 86 §6, scenario 1
#[test]
fn managed_seed_sets_that_grow_survive_each_single_fault() {
    Scenario { others: gardenlet, invariant: not_too_many, blur, ..Scenario::new("managed-seed-sets-grow") }
        .survives(grow);
}

fn prepare(garden: &Garden) {
    (0..REPLICAS).for_each(|ordinal| put_replica(garden, ordinal));
    garden.put(set(REPLICAS));
}

/// One of both stays untouched.
fn one_stays(sim: &Sim) -> Result<(), String> {
    let is_whole = |ordinal: u32| {
        let objects = [&kinds::SHOOT, &kinds::MANAGED_SEED].map(|kind| look(sim, kind, NAMESPACE, &name(ordinal)));
        objects.iter().all(|object| !object.is_null() && !is_going(object))
    };
    ensure((0..REPLICAS).any(is_whole), "both replicas are deleted")
}

async fn shrink(garden: &Garden) {
    scale(garden, REPLICAS - 1).await;
    seconds(240).await;
}

/// spec 86 §6, scenarios 20 and 21
#[test]
fn managed_seed_sets_that_shrink_survive_each_single_fault() {
    Scenario { prepare, others: gardenlet, invariant: one_stays, ..Scenario::new("managed-seed-sets-shrink") }
        .survives(shrink);
}
