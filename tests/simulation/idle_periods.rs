//! Periods of an unchanged ManagedResource end with an idle check instead of a reconcile: each test counts reconciles.

use std::time::Duration;

use crate::world::{NAMESPACE, PROGRAM, World, config_map, world};

fn reconciles(world: &World) -> u64 {
    let actors = world.actors_of(PROGRAM);
    let actor = actors.iter().find(|actor| actor.path == format!("managedresource/{NAMESPACE}/one"));
    actor.expect("the ManagedResource has an actor").finished
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

async fn assert_idle(world: &World) {
    let before = reconciles(world);
    seconds(600).await;

    assert_eq!(reconciles(world), before);
}

/// Seconds after which the events of the program's own writes have arrived.
const SETTLED: u64 = 5;

#[test]
fn idle_bundle_is_not_reconciled_after_its_first_application() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        seconds(SETTLED).await;

        assert_idle(&world).await;
    });
}

#[test]
fn idle_bundle_is_not_reconciled_after_a_restart() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        world.crash().await;
        world.start().await;
        seconds(SETTLED).await;

        assert_idle(&world).await;
    });
}

/// The period that forgets a repair is the last reconcile: the object was unchanged for a period after its pause.
#[test]
fn idle_period_begins_two_periods_after_a_repair() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        seconds(SETTLED).await;
        world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = "edited".into());
        world.eventually("it is repaired", || world.value("a").as_deref() == Some("v")).await;
        seconds(SETTLED + 122).await;

        assert_idle(&world).await;
    });
}

/// The idle check of the first period notices a change without an event.
#[test]
fn idle_period_ends_when_the_own_finalizer_is_gone() {
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
