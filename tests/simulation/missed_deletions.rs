//! Watches miss changes and deletions of ManagedResources: before it writes to the target, the program asks the server.

use serde_json::json;
use sim::{EventFault, Fault, Seen, WatchEnd};

use crate::{
    health_objects::{ALL_HEALTHY, HEALTHY, MRS, ready, set_status, stands, workload},
    world::{NAMESPACE, World, config_map, seconds, world},
};

const ORIGIN: &str = "resources.gardener.cloud/origin";

fn refuse(world: &World, verbs: &'static [&'static str]) {
    world.sim.set_faults(move |info| {
        let is_refused =
            info.user == "grm" && info.resource == "managedresources" && verbs.contains(&info.verb.as_str());
        if is_refused { Fault::FailBefore(Seen::forbidden(info)) } else { Fault::None }
    });
}

async fn nobody_tells_of_bundles(world: &World) {
    refuse(world, &["list", "watch"]);
    world.sim.break_watches(WatchEnd::Disconnect);
    seconds(5).await;
}

fn writes_of_config_maps(world: &World) -> Vec<String> {
    world.writes().into_iter().filter(|write| write.contains(" configmaps ")).collect()
}

/// architecture §5: only a fresh cache is evidence.
#[test]
fn bundle_whose_deletion_was_missed_causes_no_creation_or_deletion() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        seconds(5).await;
        nobody_tells_of_bundles(&world).await;
        world.sim.remove(MRS, NAMESPACE, "one");
        world.sim.clear_requests();
        world.sim.remove("configmaps", NAMESPACE, "a");
        seconds(5).await;
        world.secret("one", &[config_map("c", "v")]);
        seconds(1_000).await;

        assert_eq!(writes_of_config_maps(&world), [""; 0]);
        assert_eq!((world.value("a"), world.value("b").as_deref()), (None, Some("v")));
        let reads = world.asked().iter().filter(|asked| *asked == "get managedresources one").count();
        assert!(reads <= 5, "a deleted ManagedResource is not read again: {reads}");
    });
}

/// architecture §5: an answer of the server counts as news, too.
#[test]
fn bundle_whose_status_is_not_found_causes_no_creation() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), workload("StatefulSet", "db", 2)]);
        world.applied("one").await;
        set_status(&world, "statefulsets.apps", "db", ready(2));
        stands(&world, HEALTHY, ALL_HEALTHY).await;
        seconds(5).await;
        world.sim.set_event_faults(|event| match event.resource.as_str() {
            "managedresources" => EventFault::Drop,
            _ => EventFault::Deliver,
        });
        world.sim.remove(MRS, NAMESPACE, "one");
        set_status(&world, "statefulsets.apps", "db", ready(1));
        seconds(10).await;
        world.sim.clear_requests();
        world.sim.remove("configmaps", NAMESPACE, "a");
        seconds(200).await;

        assert_eq!((writes_of_config_maps(&world), world.value("a")), (vec![], None));
    });
}

/// architecture §5: what the server answers about a ManagedResource counts like an event, only later.
#[test]
fn bundle_without_a_watch_is_followed_by_live_reads() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        seconds(5).await;
        nobody_tells_of_bundles(&world).await;
        world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
        seconds(1).await;
        assert_eq!(world.value("a").as_deref(), Some("v"));
        world.patch_bundle("one", json!({ "spec": { "injectLabels": { "x": "y" } } })).await;
        seconds(70).await;
        assert_eq!(world.config_map("b").unwrap()["metadata"]["labels"]["x"], "y");
        assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
        world.delete_bundle("one").await;
        seconds(70).await;

        assert_eq!((world.mr("one"), world.value("a"), world.value("b")), (None, None, None));
    });
}

/// architecture §5: nothing is written for a ManagedResource that cannot be read.
#[test]
fn bundle_that_is_unreadable_is_untouched_until_it_is_readable() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        seconds(5).await;
        refuse(&world, &["get", "list", "watch"]);
        world.sim.break_watches(WatchEnd::Disconnect);
        seconds(5).await;
        world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
        seconds(200).await;
        assert_eq!(world.value("a").as_deref(), Some("edited"));
        world.sim.clear_faults();
        seconds(70).await;

        assert_eq!(world.value("a").as_deref(), Some("v"));
    });
}

/// decision 10: only an owner that currently exists keeps an object from its deletion.
#[test]
fn owner_whose_deletion_was_missed_keeps_no_object() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        world.bundle("two", &[config_map("a", "w")]);
        world.applied("two").await;
        assert_eq!(world.config_map("a").unwrap()["metadata"]["annotations"][ORIGIN], "shoot/two");
        nobody_tells_of_bundles(&world).await;
        world.sim.remove(MRS, NAMESPACE, "two");
        world.delete_bundle("one").await;
        // The reconcile that this causes learns of the deletion.
        world.secret("one", &[config_map("a", "v")]);
        seconds(10).await;

        assert_eq!((world.mr("one"), world.config_map("a")), (None, None));
    });
}

/// decision 10: nothing is deleted while the existence of its owner is unknown.
#[test]
fn owner_that_is_unreadable_keeps_its_object() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        world.bundle("two", &[config_map("a", "w")]);
        world.applied("two").await;
        world.sim.set_faults(|info| {
            let is_refused = info.user == "grm"
                && info.resource == "managedresources"
                && (info.verb != "get" || info.name == "two")
                && ["get", "list", "watch"].contains(&info.verb.as_str());
            if is_refused { Fault::FailBefore(Seen::forbidden(info)) } else { Fault::None }
        });
        world.sim.break_watches(WatchEnd::Disconnect);
        seconds(5).await;
        world.delete_bundle("one").await;
        world.secret("one", &[config_map("a", "v")]);
        seconds(10).await;

        assert_eq!((world.mr("one").is_some(), world.config_map("a").is_some()), (true, true));
        let (_, _, message) = world.condition("one", "ResourcesApplied").unwrap();
        assert!(message.contains("shoot/two") && message.contains("cannot be told"), "{message}");
        world.sim.clear_faults();
        seconds(90).await;

        assert_eq!((world.mr("one"), world.config_map("a").is_some()), (None, true), "its owner exists");
    });
}

/// decision 11: a ManagedResource that no longer exists is not a second owner.
#[test]
fn owner_whose_deletion_was_missed_delays_no_repair() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        seconds(5).await;
        world.bundle("two", &[config_map("b", "w")]);
        world.applied("two").await;
        nobody_tells_of_bundles(&world).await;
        world.sim.remove(MRS, NAMESPACE, "two");
        world.sim.edit("configmaps", NAMESPACE, "a", |live| {
            live["data"]["k"] = json!("edited");
            live["metadata"]["annotations"][ORIGIN] = json!("shoot/two");
        });
        seconds(3).await;

        assert_eq!(world.value("a").as_deref(), Some("v"));
        let reasons: Vec<_> = world.sim.look_at_all("events", |event| event["reason"].clone());
        assert!(!reasons.iter().any(|reason| reason == "ConflictingOwner"), "{reasons:?}");
    });
}
