//! The periods of a bundle that nothing happens to end with a look instead of a pass: each test counts passes.

use std::time::Duration;

use crate::world::{NAMESPACE, PROGRAM, World, config_map, world};

/// Passes over bundle `one` that have ended, of all duties.
fn passes(world: &World) -> u64 {
    let actors = world.actors_of(PROGRAM);
    let actor = actors.iter().find(|actor| actor.path == format!("managedresource/{NAMESPACE}/one"));
    actor.expect("the bundle has an actor").finished
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Ten periods go by without a pass.
async fn rests(world: &World) {
    let before = passes(world);
    seconds(600).await;

    assert_eq!(passes(world), before);
}

/// Seconds after which the events of a bundle's own writes have come.
const SETTLED: u64 = 5;

#[test]
fn a_bundle_rests_from_its_first_application_on() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        seconds(SETTLED).await;

        rests(&world).await;
    });
}

#[test]
fn a_bundle_that_stands_as_described_rests_from_the_start_on() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        world.crash().await;
        world.start().await;
        seconds(SETTLED).await;

        rests(&world).await;
    });
}

/// The period that finds a repair to forget is a pass, and the last one: the object was left alone for a period after its pause.
#[test]
fn a_bundle_whose_objects_were_repaired_rests_again_after_two_periods() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        seconds(SETTLED).await;
        world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = "edited".into());
        world.eventually("it is repaired", || world.value("a").as_deref() == Some("v")).await;
        seconds(SETTLED + 122).await;

        rests(&world).await;
    });
}

/// The look of a first period sees what no wake tells of.
#[test]
fn a_rest_ends_when_the_own_finalizer_is_gone() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        for _ in 0..2 {
            seconds(SETTLED).await;
            world.patch_bundle("one", serde_json::json!({ "metadata": { "finalizers": null } })).await;
            seconds(62).await;

            assert_eq!(world.mr("one").unwrap()["metadata"]["finalizers"].as_array().map(Vec::len), Some(1));
        }
    });
}
