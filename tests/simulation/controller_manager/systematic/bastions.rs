//! Bastions: one expires, one goes with its Shoot, one stays.

use gardener_resource_manager::api::kinds;
use serde_json::json;
use sim::Sim;

use super::{Scenario, edit, seconds, stays};
use crate::controller_manager::{bastions::bastion, garden::Garden, guards::shoot};

fn prepare(garden: &Garden) {
    for name in ["s", "other"] {
        let mut shoot = shoot("a", name, json!({ "seedName": "x" }));
        shoot["metadata"]["finalizers"] = json!(["gardener"]);
        garden.put(shoot);
    }
    for (name, of) in [("going", "s"), ("old", "other"), ("kept", "other")] {
        garden.put(bastion(name, of, Some("x")));
    }
}

fn invariant(sim: &Sim) -> Result<(), String> {
    stays(sim, &kinds::BASTION, "a", "kept")
}

async fn life(garden: &Garden) {
    let end = garden.time(30);
    edit(garden, &kinds::BASTION, "a", "old", |bastion| bastion["status"] = json!({ "expirationTimestamp": end }));
    seconds(60).await;
    garden.delete(&kinds::SHOOT, "a", "s").await;
    seconds(30).await;
}

/// spec 81 A, scenarios 2 and 4
#[test]
fn bastions_survive_each_single_fault() {
    Scenario { prepare, invariant, ..Scenario::new("bastions") }.survives(life);
}
