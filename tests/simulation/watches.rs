//! Watches that lie, lag, hang and break: the same final state, and nothing deleted because of old data.

use std::time::Duration;

use serde_json::{Value, json};
use sim::{EventFault, Fault, Seen, WatchEnd};

use crate::world::{NAMESPACE, World, config_map, seconds, world};

fn set(world: &World, name: &str, value: &str) {
    let value = json!(value);
    world.sim.edit("configmaps", NAMESPACE, name, |live| live["data"]["k"] = value);
}

fn two() -> Vec<Value> {
    vec![config_map("a", "v"), config_map("b", "v")]
}

/// faults row 5
#[test]
fn expired_watch_becomes_a_list_whose_differences_count() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &two());
        world.applied("one").await;
        seconds(5).await;
        world.sim.set_event_faults(|_| EventFault::Drop);
        set(&world, "a", "edited");
        world.sim.remove("configmaps", NAMESPACE, "b");
        seconds(5).await;
        world.sim.clear_event_faults();
        assert_eq!(world.value("a").as_deref(), Some("edited"), "no event has reported it yet");
        world.sim.clear_requests();
        world.sim.compact();
        world.sim.break_watches(WatchEnd::Expired);
        seconds(5).await;

        assert_eq!((world.value("a").as_deref(), world.value("b").as_deref()), (Some("v"), Some("v")));
        let writes = world.writes().into_iter().filter(|write| write.contains("configmaps")).collect::<Vec<_>>();
        assert_eq!(writes.len(), 2, "{writes:?}");
    });
}

/// faults row 6
#[test]
fn silent_watch_is_reopened_and_until_then_each_period_reads() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &two());
        world.applied("one").await;
        seconds(5).await;
        world.sim.break_watches(WatchEnd::Hang);
        set(&world, "a", "edited");
        seconds(300).await;

        assert_eq!(world.value("a").as_deref(), Some("v"));
    });
}

/// faults row 4
#[test]
fn duplicated_and_swapped_events_change_nothing() {
    for fault in [EventFault::Duplicate, EventFault::Swap] {
        world(1, |world| async move {
            let mut number = 0;
            world.sim.set_event_faults(move |_| {
                number += 1;
                if number % 2 == 0 { fault } else { EventFault::Deliver }
            });
            world.start().await;
            world.bundle("one", &two());
            world.applied("one").await;
            for round in 0..10 {
                set(&world, "a", &round.to_string());
                world.sim.remove("configmaps", NAMESPACE, "b");
                seconds(70).await;
            }
            world.sim.clear_event_faults();
            seconds(300).await;

            assert_eq!((world.value("a").as_deref(), world.value("b").as_deref()), (Some("v"), Some("v")));
            assert!(world.is_applied("one"));
        });
    }
}

/// faults row 3
#[test]
fn stale_lists_after_a_restart_delete_nothing() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        world.secret("one", &two());
        world.eventually("both are applied", || world.is_applied("one") && world.refs("one").len() == 2).await;
        let before = world.sim.revision();
        world.secret("one", &[config_map("a", "w"), config_map("b", "w"), config_map("c", "w")]);
        world.eventually("three are applied", || world.is_applied("one") && world.refs("one").len() == 3).await;
        world.stop().await;
        world.sim.clear_requests();
        // Lists lag; a GET of one object never does.
        world.sim.set_faults(move |info| match (info.user.as_str(), info.verb.as_str()) {
            ("grm", "list") => Fault::ReadAsOf(before),
            _ => Fault::None,
        });
        world.start().await;
        seconds(30).await;
        world.sim.clear_faults();
        world.sim.break_watches(WatchEnd::Close);
        seconds(120).await;

        let deleted: Vec<_> = world.writes().into_iter().filter(|write| write.starts_with("delete")).collect();
        assert_eq!(deleted, [""; 0]);
        for name in ["a", "b", "c"] {
            assert_eq!(world.value(name).as_deref(), Some("w"), "{name}");
        }
        assert_eq!(world.refs("one"), ["a", "b", "c"]);
    });
}

/// faults row 21
#[test]
fn secret_changed_while_its_bundle_is_applied_is_rolled_out_too() {
    world(1, |world| async move {
        let mut first = true;
        world.sim.set_faults(move |info| {
            let is_read = info.user == "grm" && info.resource == "secrets" && info.verb == "get";
            if is_read && std::mem::take(&mut first) { Fault::DelayAnswer(Duration::from_secs(3)) } else { Fault::None }
        });
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        seconds(1).await;
        world.secret("one", &[config_map("a", "w")]);
        world.eventually("the new data is applied", || world.value("a").as_deref() == Some("w")).await;
    });
}

/// A change between the read of a Secret and the reopening of its watch must not get lost.
#[test]
fn secret_changed_before_its_watch_is_reopened_is_rolled_out() {
    world(1, |world| async move {
        world.start().await;
        seconds(1).await;
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("secrets", "list" | "watch") => Fault::FailBefore(Seen::unavailable()),
            _ => Fault::None,
        });
        world.sim.compact();
        world.sim.break_watches(WatchEnd::Expired);
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        world.secret("one", &[config_map("a", "w")]);
        world.sim.clear_faults();
        seconds(240).await;

        assert_eq!(world.value("a").as_deref(), Some("w"));
    });
}

/// A read from before the watch of a kind is no evidence later.
#[test]
fn object_changed_before_its_watch_begins_is_repaired() {
    world(1, |world| async move {
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("configmaps", "list" | "watch") => Fault::FailBefore(Seen::unavailable()),
            _ => Fault::None,
        });
        world.start().await;
        world.bundle("one", &two());
        world.applied("one").await;
        set(&world, "a", "edited");
        world.sim.remove("configmaps", NAMESPACE, "b");
        world.sim.clear_faults();
        seconds(240).await;

        assert_eq!((world.value("a").as_deref(), world.value("b").as_deref()), (Some("v"), Some("v")));
    });
}

#[test]
fn missing_watches_leave_repairs_to_each_period() {
    world(1, |world| async move {
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("configmaps", "watch") => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        world.start().await;
        world.bundle("one", &two());
        world.applied("one").await;
        seconds(300).await;
        set(&world, "a", "edited");
        world.sim.remove("configmaps", NAMESPACE, "b");
        seconds(62).await;

        assert_eq!((world.value("a").as_deref(), world.value("b").as_deref()), (Some("v"), Some("v")));
    });
}

/// spec 70 §8.5
#[test]
fn disabled_target_cache_leaves_repairs_and_health_checks_to_each_period() {
    world(1, |world| async move {
        world.config.borrow_mut().target.disable_cached_client = true;
        world.start().await;
        world.bundle("one", &two());
        world.applied("one").await;
        seconds(125).await;
        let bundle = world.mr("one").unwrap();
        let healthy = json!({ "type": "ResourcesHealthy", "status": "True" });
        let conditions = bundle["status"]["conditions"].as_array().unwrap();
        let is = |condition: &&Value| ["type", "status"].iter().all(|field| condition[field] == healthy[field]);
        assert_eq!(conditions.iter().filter(is).count(), 1, "{conditions:?}");
        set(&world, "a", "edited");
        world.sim.remove("configmaps", NAMESPACE, "b");
        seconds(62).await;

        assert_eq!((world.value("a").as_deref(), world.value("b").as_deref()), (Some("v"), Some("v")));
        let watched = world.sim.requests().into_iter().filter(|request| request.info.verb == "watch");
        let kinds: Vec<String> = watched.map(|request| request.info.resource).collect();
        assert!(!kinds.contains(&"configmaps".to_owned()), "watched: {kinds:?}");
    });
}

#[test]
fn finalizer_removed_by_a_user_is_restored_within_a_period() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &two());
        world.applied("one").await;
        seconds(5).await;
        world.patch_bundle("one", json!({ "metadata": { "finalizers": null } })).await;
        seconds(62).await;

        assert_eq!(world.mr("one").unwrap()["metadata"]["finalizers"].as_array().map(Vec::len), Some(1));
    });
}

/// spec 10 §11.3: never updated, but created again.
#[test]
fn object_that_is_only_created_is_recreated_within_a_period() {
    world(1, |world| async move {
        world.start().await;
        let mut object = config_map("a", "v");
        object["metadata"]["annotations"] = json!({ "resources.gardener.cloud/ignore": "true" });
        world.bundle("one", &[object]);
        world.applied("one").await;
        set(&world, "a", "edited");
        seconds(120).await;
        assert_eq!(world.value("a").as_deref(), Some("edited"));
        world.sim.remove("configmaps", NAMESPACE, "a");
        seconds(62).await;

        assert_eq!(world.value("a").as_deref(), Some("v"));
    });
}
