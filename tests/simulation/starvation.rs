//! Large ManagedResources make progress and do not starve others.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use gardener_resource_manager::api::config::resource_manager::Workers;
use serde_json::{Value, json};
use sim::{Fault, Seen};

use crate::{
    objects::{with, workload},
    world::{NAMESPACE, World, config_map, managed_resource, namespace, world_with},
};

fn many(count: usize) -> Vec<Value> {
    (0..count).map(|index| config_map(&format!("big-{index:04}"), "v")).collect()
}

fn writes_of_big(world: &World) -> BTreeMap<String, usize> {
    let mut writes = BTreeMap::new();
    for write in world.requests().into_iter().filter(|request| request.info.resource == "configmaps") {
        if matches!(write.info.verb.as_str(), "create" | "update") && write.code.is_some_and(|code| code < 300) {
            *writes.entry(format!("{} {}", write.info.verb, write.info.name)).or_default() += 1;
        }
    }
    writes
}

/// fault 30: one worker is busy, and other keys stay responsive.
#[test]
fn large_bundle_delays_the_repair_of_another_by_less_than_three_seconds() {
    world_with(1, Duration::from_millis(40), |world| async move {
        world.managed_resource().concurrent_syncs = Workers::new(1);
        world.start().await;
        // One object for each edit: the repairs of one object become ever rarer.
        let small: Vec<String> = (0..40).map(|index| format!("small-{index}")).collect();
        world.bundle("small", &small.iter().map(|name| config_map(name, "v")).collect::<Vec<_>>());
        world.applied("small").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.sim.clear_requests();
        world.bundle("big", &many(2000));

        let mut longest = Duration::ZERO;
        let mut edits = 0;
        while !world.is_applied("big") {
            tokio::time::sleep(Duration::from_millis(700)).await;
            let name = &small[edits % small.len()];
            world.sim.edit("configmaps", NAMESPACE, name, |live| live["data"]["k"] = json!("edited"));
            edits += 1;
            let begin = tokio::time::Instant::now();
            world.eventually("it is repaired", || world.value(name).as_deref() == Some("v")).await;
            longest = longest.max(begin.elapsed());
        }

        assert!(edits >= 1 && longest < Duration::from_secs(3), "{longest:?} in {edits} edits");
        let written = writes_of_big(&world);
        let creations = written.get("create ").copied().unwrap_or_default();
        assert_eq!(creations, 2000, "each object is created once");
        let status = world.writes().iter().filter(|write| *write == "update managedresources/status big").count();
        assert!(status <= 3, "{status} writes of the status");
    });
}

/// Reading the Secrets alone takes longer than a time slice.
#[test]
fn large_bundle_of_many_secrets_makes_progress() {
    world_with(1, Duration::from_millis(50), |world| async move {
        world.start().await;
        let names: Vec<String> = (0..60).map(|index| format!("part-{index}")).collect();
        for name in &names {
            world.secret(name, &[config_map(&format!("{name}-a"), "v"), config_map(&format!("{name}-b"), "v")]);
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        world.sim.put(managed_resource("one", &names, json!({}))).unwrap();
        world.applied("one").await;

        let written = writes_of_big(&world);
        assert_eq!(written.get("create "), Some(&120));
    });
}

/// The objects of an unwatched kind are unknown, so each reconcile begins again: it must begin with other objects.
#[test]
fn large_bundle_of_an_unwatchable_kind_makes_progress() {
    world_with(1, Duration::from_millis(100), |world| async move {
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("configmaps", "list" | "watch") => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        world.start().await;
        world.bundle("big", &many(500));
        world.applied("big").await;

        let created = writes_of_big(&world).get("create ").copied();
        assert_eq!(created, Some(500));
    });
}

#[test]
fn always_update_reaches_each_object_of_a_large_bundle_each_period() {
    world_with(1, Duration::from_millis(50), |world| async move {
        world.managed_resource().always_update = true;
        world.start().await;
        world.bundle("big", &many(500));
        world.applied("big").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.sim.clear_requests();
        tokio::time::sleep(Duration::from_secs(85)).await;

        let updated: BTreeSet<_> = writes_of_big(&world).into_keys().collect();
        assert_eq!(updated.len(), 500);
    });
}

#[test]
fn large_bundle_deletion_delays_others_by_less_than_three_seconds() {
    world_with(1, Duration::from_millis(80), |world| async move {
        world.managed_resource().concurrent_syncs = Workers::new(1);
        world.start().await;
        world.bundle("small", &[config_map("small", "v")]);
        world.bundle("big", &many(1000));
        world.applied("big").await;
        world.applied("small").await;
        world.delete_bundle("big").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.sim.edit("configmaps", NAMESPACE, "small", |live| live["data"]["k"] = json!("edited"));
        let begin = tokio::time::Instant::now();
        world.eventually("it is repaired", || world.value("small").as_deref() == Some("v")).await;

        assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
        world.eventually("it is gone", || world.mr("big").is_none()).await;
        assert_eq!(world.sim.objects("configmaps").len(), 1);
    });
}

/// Writes of ConfigMaps in the namespace `hangs` call a webhook that does not answer in time.
fn hang(world: &World) {
    world.sim.put(namespace("hangs")).expect("it is valid");
    world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
        ("configmaps", "create" | "update") if info.namespace == "hangs" => Fault::FailLate(
            Duration::from_secs(10),
            Seen::internal_error("failed calling webhook: context deadline exceeded"),
        ),
        _ => Fault::None,
    });
}

fn hanging(name: &str) -> Value {
    with(config_map(name, "v"), "/metadata/namespace", json!("hangs"))
}

/// spec 10 §11.1: after a second of slow failures the rest of the rank is applied, and all later ranks.
#[test]
fn slow_failures_do_not_block_later_objects() {
    world_with(1, Duration::from_millis(1), |world| async move {
        hang(&world);
        world.start().await;
        world.bundle("one", &[hanging("a"), config_map("b", "v"), workload("Deployment", "web")]);
        tokio::time::sleep(Duration::from_secs(25)).await;

        assert!(world.value("b").is_some(), "{:#?}", world.asked());
        assert!(world.sim.object("deployments.apps", NAMESPACE, "web").is_some(), "{:#?}", world.asked());
        let (status, reason, message) = world.condition("one", "ResourcesApplied").unwrap();
        assert_eq!((status.as_str(), reason.as_str()), ("False", "ApplyFailed"), "{message}");
        assert!(message.contains("failed calling webhook") && message.contains("hangs/a"), "{message}");
        world.sim.clear_faults();
        world.applied("one").await;
    });
}

/// spec 10 §11.1: each is tried once before the first is retried.
#[test]
fn slow_failures_of_many_objects_end() {
    world_with(1, Duration::from_millis(1), |world| async move {
        hang(&world);
        world.start().await;
        let mut objects: Vec<Value> = (0..12).map(|index| hanging(&format!("a-{index:02}"))).collect();
        objects.extend([config_map("z", "v"), workload("Deployment", "web")]);
        world.bundle("one", &objects);
        let is_behind = || world.sim.object("deployments.apps", NAMESPACE, "web").is_some();
        world.eventually("the later objects exist", || world.value("z").is_some() && is_behind()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;

        let message = world.condition("one", "ResourcesApplied").unwrap().2;
        assert!(message.contains("12 errors occurred"), "{message}");
        world.sim.clear_faults();
        world.applied("one").await;
    });
}
