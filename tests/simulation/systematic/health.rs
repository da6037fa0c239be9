//! The health of a ManagedResource while its workload gets better and worse.

use serde_json::Value;
use sim::Sim;

use super::{Scenario, ensure};
use crate::{
    health_objects::{HEALTHY, MRS, ready, set_status, workload},
    world::{NAMESPACE, World, config_map, seconds},
};

fn prepare(world: &World) {
    world.bundle("one", &[workload("StatefulSet", "db", 2), config_map("a", "v")]);
}

/// It is never called healthy while it is not, apart from the moment that a report takes.
fn invariant(sim: &Sim) -> Result<(), String> {
    let bundle = sim.object(MRS, NAMESPACE, "one").unwrap_or_default();
    let is_healthy = |condition: &Value| condition["type"] == HEALTHY && condition["status"] == "True";
    let is_called_healthy = bundle["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(is_healthy));
    let set = sim.object("statefulsets.apps", NAMESPACE, "db").unwrap_or_default();
    ensure(!is_called_healthy || !set["status"].is_null(), "a workload without a status is called healthy")
}

async fn life(world: &World) {
    for replicas in [2, 1, 2, 1] {
        set_status(world, "statefulsets.apps", "db", ready(replicas));
        seconds(40).await;
    }
}

/// spec 20 scenario 38; faults rows 1, 4, 7 and 8
#[test]
fn health_reports_survive_each_single_fault() {
    Scenario { prepare, invariant, ..Scenario::new("health") }.survives(life);
}
