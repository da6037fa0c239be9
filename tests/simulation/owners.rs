//! Objects that several bundles hold, or that hold their own bundle.

use std::time::Duration;

use gardener_resource_manager::sim::Fault;
use serde_json::{Value, json};

use crate::world::{World, config_map, world};

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn ignored(mut object: Value) -> Value {
    object["metadata"]["annotations"]["resources.gardener.cloud/mode"] = json!("Ignore");
    object
}

/// Reasons of the Events so far.
fn events(world: &World) -> Vec<String> {
    let events = world.sim.objects("events");
    events.iter().map(|event| event["reason"].as_str().unwrap_or_default().to_owned()).collect()
}

/// spec 10 scenario 23, decision 11: the new owner is faster than the old one, who has not seen its new Secret yet.
#[test]
fn a_bundle_that_gives_an_object_away_is_no_conflicting_owner() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("x", "v")]);
        world.applied("one").await;
        let uid = world.config_map("x").unwrap()["metadata"]["uid"].clone();
        let mut first = true;
        world.sim.set_faults(move |info| {
            let hit = info.resource == "secrets" && info.verb == "get" && info.name == "one";
            if hit && std::mem::take(&mut first) { Fault::Delay(Duration::from_secs(3)) } else { Fault::None }
        });
        world.secret("one", &[ignored(config_map("x", "v"))]);
        world.bundle("two", &[config_map("x", "w")]);
        seconds(2).await;
        assert_eq!((world.is_applied("two"), world.refs("one").len()), (true, 1), "two is first");
        seconds(20).await;

        let live = world.config_map("x").unwrap();
        assert_eq!(live["metadata"]["uid"], uid);
        assert_eq!(live["metadata"]["annotations"]["resources.gardener.cloud/origin"], "shoot/two");
        assert_eq!((world.refs("one").len(), world.refs("two").len()), (0, 1));
        assert_eq!(events(&world), [""; 0]);
    });
}

/// decision 11
#[test]
fn two_bundles_that_both_want_an_object_are_told() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("x", "v")]);
        world.applied("one").await;
        world.bundle("two", &[config_map("x", "w")]);
        seconds(20).await;

        assert!(events(&world).iter().any(|reason| reason == "ConflictingOwner"));
    });
}
