//! An old Event, an Event that becomes old, and an Event of a Shoot.

use gardener_resource_manager::api::kinds;
use serde_json::json;
use sim::Sim;

use super::{Scenario, exists, seconds};
use crate::{
    controller_manager::{
        events::{HOUR, configure, event, seen},
        garden::Garden,
    },
    systematic::ensure,
};

fn prepare(garden: &Garden) {
    configure(garden);
    let time = json!({ "eventTime": garden.time(-2 * HOUR) });
    garden.put(event("shoot", "core.gardener.cloud/v1beta1", "Shoot", time));
    garden.put(seen(garden, "young", 0));
}

fn invariant(sim: &Sim) -> Result<(), String> {
    for name in ["shoot", "young"] {
        ensure(exists(sim, &kinds::EVENT, "a", name), format!("the Event {name} is deleted"))?;
    }
    Ok(())
}

async fn life(garden: &Garden) {
    garden.put(seen(garden, "old", -2 * HOUR));
    garden.put(seen(garden, "becomes-old", 60 - HOUR));
    seconds(90).await;
}

/// spec 81 J, scenario 70
#[test]
fn events_survive_each_single_fault() {
    Scenario { prepare, invariant, with_events: true, ..Scenario::new("events") }.survives(life);
}
