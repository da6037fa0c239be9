//! The garbage collector: an old object that nobody refers to goes, the object that a Pod refers to stays.

use std::time::Duration;

use gardener_resource_manager::api::config::resource_manager::GarbageCollector;
use serde_json::json;
use sim::Sim;

use super::{Scenario, ensure};
use crate::{
    garbage::{LABEL, pod, put, refers_to},
    world::{NAMESPACE, World, seconds},
};

const OLD: &str = "2029-12-31T00:00:00Z";

/// Later than the end of each run.
const YOUNG: &str = "2030-01-01T12:00:00Z";

fn prepare(world: &World) {
    let sync_period = Duration::from_secs(60);
    world.config.borrow_mut().controllers.garbage_collector =
        GarbageCollector { sync_period: sync_period.into() }.into();
    put_of(world, "Secret", "used", OLD);
    put(world, "Pod", NAMESPACE, "p", pod(&refers_to("secret", "used")));
}

/// Puts a collectable object that was created at this time. Virtual time begins in 2030.
fn put_of(world: &World, kind: &str, name: &str, created: &str) {
    let metadata = json!({ "labels": { LABEL: "true" }, "creationTimestamp": created });
    put(world, kind, NAMESPACE, name, json!({ "metadata": metadata }));
}

fn invariant(sim: &Sim) -> Result<(), String> {
    let is_kept = sim.object("secrets", NAMESPACE, "used").is_some();
    ensure(is_kept, "a Secret is collected that a Pod refers to")?;
    let is_young = sim.object("configmaps", NAMESPACE, "young").is_some();
    let was_put = sim.object("configmaps", NAMESPACE, "mark").is_some();
    ensure(is_young || !was_put, "a young ConfigMap is collected")
}

async fn life(world: &World) {
    put_of(world, "Secret", "garbage", OLD);
    put_of(world, "ConfigMap", "garbage", OLD);
    put_of(world, "ConfigMap", "young", YOUNG);
    put(world, "ConfigMap", NAMESPACE, "mark", json!({}));
    seconds(130).await;
}

/// spec 33 scenarios 2 to 4 and 6
#[test]
fn garbage_collection_survives_each_single_fault() {
    Scenario { prepare, invariant, ..Scenario::new("garbage") }.survives(life);
}
