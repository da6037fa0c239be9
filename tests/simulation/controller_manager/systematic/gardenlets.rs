//! A gardenlet falls silent, and another one does not.

use gardener_resource_manager::api::kinds;
use serde_json::json;
use sim::Sim;

use super::{Scenario, look, seconds};
use crate::{
    controller_manager::{
        garden::Garden,
        gardenlets::{LEASES, beat, put_seed, put_shoot},
    },
    systematic::ensure,
};

/// The gardenlet of `silent` renews its Lease no more. That of `alive` was renewed for a day ahead.
fn prepare(garden: &Garden) {
    for (name, age) in [("silent", 0), ("alive", -24 * 3600)] {
        put_seed(garden, name);
        beat(garden, LEASES, name, age);
    }
    put_shoot(garden, "s", "silent", json!([{ "name": "w" }]));
    put_shoot(garden, "other", "alive", json!([{ "name": "w" }]));
}

fn invariant(sim: &Sim) -> Result<(), String> {
    for (kind, namespace, name) in [(&kinds::SEED, "", "alive"), (&kinds::SHOOT, "a", "other")] {
        let object = look(sim, kind, namespace, name);
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_marked = conditions.iter().any(|condition| condition["status"] == "Unknown");
        ensure(!is_marked, format!("{kind} {name} of a gardenlet that is alive is marked"))?;
    }
    Ok(())
}

async fn life(_: &Garden) {
    seconds(330).await;
}

/// spec 81 K, scenarios 77, 78 and 79
#[test]
fn gardenlets_survive_each_single_fault_when_one_falls_silent() {
    Scenario { prepare, invariant, ..Scenario::new("gardenlets") }.survives(life);
}
