//! A status that does not fit into the database stops no reconcile (spec 10 §9.7, decision 36).

use serde_json::{Value, json};
use sim::{Fault, Seen};

use crate::{
    health_objects::status_writes,
    objects::with,
    world::{NAMESPACE, World, config_map, managed_resource, seconds, world},
};

fn annotated(name: &str, size: usize) -> Value {
    with(config_map(name, "v"), "/metadata/annotations", json!({ "big": "x".repeat(size * 1024) }))
}

/// Puts each object into its own Secret, because Secrets have a size limit as well.
fn secrets(world: &World, objects: &[Value]) -> Vec<String> {
    let name = |index| format!("part-{index}");
    objects.chunks(3).enumerate().for_each(|(index, object)| world.secret(&name(index), object));
    (0..objects.len().div_ceil(3)).map(name).collect()
}

fn bundle(world: &World, objects: &[Value]) {
    let names = secrets(world, objects);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    world.sim.put(managed_resource("one", &names, json!({}))).expect("it is valid");
}

fn message(world: &World) -> String {
    world.condition("one", "ResourcesApplied").expect("it exists").2
}

/// spec 10 §9.7 (a): upstream creates all objects, and fails only at the final status.
#[test]
fn large_status_leaves_out_annotations() {
    world(1, |world| async move {
        world.start().await;
        let objects: Vec<Value> = (0..8).map(|index| annotated(&format!("big-{index}"), 200)).collect();
        bundle(&world, &objects);
        world.applied("one").await;

        assert_eq!(world.sim.objects("configmaps").len(), 8);
        assert_eq!(world.refs("one").len(), 8);
        let said = message(&world);
        assert!(
            said.starts_with("All resources are applied. The status is too large to be stored (etcdserver: request is too large): it leaves out the annotations of"),
            "{said}"
        );
        seconds(5).await;
        world.sim.clear_requests();
        seconds(300).await;
        assert_eq!(status_writes(&world), 0, "{:#?}", world.asked());
        world
            .patch_bundle("one", json!({ "metadata": { "annotations": { "gardener.cloud/operation": "reconcile" } } }))
            .await;
        seconds(10).await;
        assert_eq!(status_writes(&world), 0, "neither an announcement nor another attempt: {:#?}", world.asked());

        world.secret("part-0", &[annotated("big-0", 1)]);
        world.secret("part-1", &[annotated("big-3", 1)]);
        seconds(30).await;
        assert_eq!(world.sim.objects("configmaps").len(), 4);
        assert_eq!(message(&world), "All resources are applied.");
        world.delete_bundle("one").await;
        world.eventually("it is gone", || world.mr("one").is_none()).await;
        assert!(world.sim.objects("configmaps").is_empty());
    });
}

/// spec 10 §9.7 (a): the union of old and new references is larger than each of them.
#[test]
fn large_status_does_not_block_renamed_objects() {
    world(1, |world| async move {
        world.start().await;
        let objects = |prefix: &str| -> Vec<Value> {
            (0..30).map(|index| annotated(&format!("{prefix}-{index:02}"), 30)).collect()
        };
        bundle(&world, &objects("old"));
        world.applied("one").await;
        assert_eq!(message(&world), "All resources are applied.");
        seconds(5).await;

        secrets(&world, &objects("new"));
        world.eventually("the new objects exist", || world.config_map("new-29").is_some()).await;
        world.applied("one").await;
        world.eventually("the old objects are gone", || world.sim.objects("configmaps").len() == 30).await;
        seconds(5).await;
        assert_eq!(message(&world), "All resources are applied.");
        assert_eq!(world.refs("one").len(), 30);
    });
}

/// spec 10 §9.7 (c): no part of the status can be stored.
#[test]
fn large_status_that_cannot_be_stored_blocks_no_object() {
    world(1, |world| async move {
        world.sim.set_faults(|info| match (info.resource.as_str(), info.subresource.as_str(), info.verb.as_str()) {
            ("managedresources", "status", "update") => {
                Fault::FailBefore(Seen::internal_error("etcdserver: request is too large"))
            }
            _ => Fault::None,
        });
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        seconds(2).await;
        assert_eq!(world.value("a").as_deref(), Some("v"));
        world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
        seconds(1).await;
        assert_eq!(world.value("a").as_deref(), Some("v"));
        world.sim.clear_requests();
        seconds(300).await;

        assert!(world.requests().len() < 60, "{:#?}", world.asked());
    });
}
