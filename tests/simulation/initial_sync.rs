//! The initial sync over many ManagedResources reads little, writes nothing that is right, and delays none of them.

use std::time::Duration;

use serde_json::json;
use sim::{Fault, Seen};

use crate::{
    health_objects::{ALL_HEALTHY, HEALTHY, ready, set_status, workload},
    world::{NAMESPACE, World, config_map, managed_resource, world},
};

async fn stopped(world: &World, bundles: usize) {
    world.start().await;
    for index in 0..bundles {
        let name = format!("b{index}");
        world.bundle(&name, &[config_map(&format!("{name}-x"), "v"), config_map(&format!("{name}-y"), "v")]);
    }
    for index in 0..bundles {
        world.applied(&format!("b{index}")).await;
    }
    world.stop().await;
    world.sim.clear_requests();
}

async fn restarted(world: &World) {
    world.start().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
}

#[test]
fn initial_sync_of_more_than_64_secrets_uses_one_list() {
    world(1, |world| async move {
        stopped(&world, 100).await;
        restarted(&world).await;

        assert_eq!(world.writes(), [""; 0]);
        assert!(world.requests().len() <= 30, "{:#?}", world.asked());
        assert!((0..100).all(|index| world.is_applied(&format!("b{index}"))));
    });
}

#[test]
fn initial_sync_repairs_changes_made_while_the_program_was_down() {
    world(1, |world| async move {
        stopped(&world, 10).await;
        world.sim.edit("configmaps", NAMESPACE, "b1-x", |live| live["data"]["k"] = json!("edited"));
        world.sim.remove("configmaps", NAMESPACE, "b2-x");
        world.secret("b3", &[config_map("b3-x", "w"), config_map("b3-y", "v")]);
        world.secret("b4", &[config_map("b4-x", "v")]);
        world.sim.edit("configmaps", NAMESPACE, "b5-x", |live| {
            live["metadata"]["labels"].as_object_mut().unwrap().clear();
        });
        restarted(&world).await;

        for (name, value) in [("b1-x", "v"), ("b2-x", "v"), ("b3-x", "w"), ("b5-x", "v")] {
            assert_eq!(world.value(name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(world.config_map("b4-y"), None);
        let label = &world.config_map("b5-x").unwrap()["metadata"]["labels"]["resources.gardener.cloud/managed-by"];
        assert_eq!(label, "gardener");
        let others: Vec<_> =
            world.writes().into_iter().filter(|write| write.contains("b6") || write.contains("b7")).collect();
        assert_eq!(others, [""; 0]);
        assert!((0..10).all(|index| world.is_applied(&format!("b{index}"))));
    });
}

#[test]
fn initial_sync_repairs_changes_made_meanwhile() {
    world(1, |world| async move {
        stopped(&world, 20).await;
        world.start().await;
        for index in 0..20 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let name = format!("b{index}-x");
            world.sim.edit("configmaps", NAMESPACE, &name, |live| live["data"]["k"] = json!("edited"));
        }
        world
            .eventually("all are repaired", || (0..20).all(|i| world.value(&format!("b{i}-x")).as_deref() == Some("v")))
            .await;
    });
}

/// An answer given before the deletion is no evidence that the object exists.
#[test]
fn initial_sync_recreates_objects_deleted_after_the_list_was_answered() {
    world(1, |world| async move {
        stopped(&world, 3).await;
        let mut lists = 0;
        world.sim.set_faults(move |info| {
            let hit = info.resource == "configmaps" && info.verb == "list";
            lists += u32::from(hit);
            // The first list only asks for the version to watch from.
            if hit && lists == 2 { Fault::DelayAnswer(Duration::from_secs(3)) } else { Fault::None }
        });
        world.start().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        world.sim.remove("configmaps", NAMESPACE, "b1-x");
        tokio::time::sleep(Duration::from_secs(30)).await;

        assert_eq!(world.value("b1-x").as_deref(), Some("v"));
        assert!((0..3).all(|index| world.is_applied(&format!("b{index}"))));
    });
}

#[test]
fn initial_sync_completes_half_applied_bundles() {
    world(1, |world| async move {
        world.start().await;
        let mut created = 0;
        world.sim.set_faults(move |info| {
            created += u32::from(info.verb == "create" && info.resource == "configmaps");
            if created == 7 { Fault::CrashClientAfterCommit } else { Fault::None }
        });
        for index in 0..5 {
            let name = format!("b{index}");
            let objects: Vec<_> = (0..4).map(|object| config_map(&format!("{name}-{object}"), "v")).collect();
            world.bundle(&name, &objects);
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(world.is_crashed());
        world.sim.clear_faults();
        world.crash().await;
        world.secret("b0", &[config_map("b0-3", "v")]);
        world.start().await;
        for index in 0..5 {
            world.applied(&format!("b{index}")).await;
        }

        assert_eq!(world.sim.objects("configmaps").len(), 4 * 4 + 1);
    });
}

/// The initial sync waits for a ManagedResource for five seconds at most; a later one reads its objects itself.
#[test]
fn initial_sync_does_not_wait_for_a_late_bundle() {
    for seconds in [4, 6, 20, 50] {
        world(1, |world| async move {
            stopped(&world, 3).await;
            world.sim.remove("configmaps", NAMESPACE, "b1-x");
            world.sim.remove("configmaps", NAMESPACE, "b2-x");
            let mut first = true;
            world.sim.set_faults(move |info| {
                let hit = info.resource == "secrets" && info.verb == "get" && info.name == "b1";
                if hit && std::mem::take(&mut first) { Fault::Delay(Duration::from_secs(seconds)) } else { Fault::None }
            });
            world.start().await;
            tokio::time::sleep(Duration::from_secs(8)).await;
            assert!(world.value("b2-x").is_some(), "the others go on, with {seconds} s");
            tokio::time::sleep(Duration::from_secs(120)).await;

            assert!(world.value("b1-x").is_some(), "with {seconds} s");
        });
    }
}

/// faults row 10
#[test]
fn initial_sync_is_not_delayed_by_an_unreadable_secret_or_an_unlistable_kind() {
    world(1, |world| async move {
        stopped(&world, 10).await;
        world.sim.edit("configmaps", NAMESPACE, "b2-x", |live| live["data"]["k"] = json!("edited"));
        world.sim.edit("configmaps", NAMESPACE, "b3-x", |live| live["data"]["k"] = json!("edited"));
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str(), info.name.as_str()) {
            ("secrets", "get", "b3") | ("configmaps", "list" | "watch", _) => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        restarted(&world).await;

        assert_eq!(world.value("b2-x").as_deref(), Some("v"));
        assert_eq!(world.condition("b3", "ResourcesApplied").unwrap().1, "CannotReadSecret");
        world.sim.clear_faults();
        world.applied("b3").await;
        assert_eq!(world.value("b3-x").as_deref(), Some("v"));
    });
}

/// A list that is never answered delays only the ManagedResources that need it, and those for a minute at most.
#[test]
fn initial_sync_is_delayed_by_a_silent_list_for_a_minute_at_most() {
    for resource in ["configmaps", "secrets"] {
        world(1, |world| async move {
            stopped(&world, 70).await;
            world.sim.remove("configmaps", NAMESPACE, "b1-x");
            // No reconcile begins before the watch of Secrets, which asks for a version first (spec 70 §7.1).
            let mut is_version = resource == "secrets";
            world.sim.set_faults(move |info| match (info.resource.as_str(), info.verb.as_str()) {
                ("secrets", "list") if std::mem::take(&mut is_version) => Fault::None,
                (hung, "list") if hung == resource => Fault::Hang,
                _ => Fault::None,
            });
            world.start().await;
            tokio::time::sleep(Duration::from_secs(70)).await;

            assert!(world.value("b1-x").is_some(), "without a list of {resource}");
        });
    }
}

/// spec 20 §12: no worker waits, whatever kind cannot be listed.
#[test]
fn initial_sync_with_a_silent_list_does_not_delay_other_health_checks() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.bundle("two", &[workload("StatefulSet", "db", 2)]);
        world.applied("one").await;
        world.applied("two").await;
        set_status(&world, "statefulsets.apps", "db", ready(2));
        let health = |name: &str| world.condition(name, HEALTHY).map(|(_, reason, _)| reason).unwrap_or_default();
        world.eventually("two is healthy", || health("two") == ALL_HEALTHY[1]).await;
        world.stop().await;
        set_status(&world, "statefulsets.apps", "db", ready(0));
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("configmaps", "list") => Fault::Hang,
            _ => Fault::None,
        });
        world.start().await;
        tokio::time::sleep(Duration::from_secs(20)).await;

        assert_eq!(health("two"), "StatefulSetUnhealthy");
    });
}

#[test]
fn initial_sync_is_not_delayed_by_bundles_without_objects() {
    let annotated = |name: &str, key: &str, value: &str| {
        let mut mr = managed_resource(name, &["one"], json!({}));
        mr["metadata"]["annotations"] = json!({ key: value });
        mr
    };
    world(1, |world| async move {
        world.sim.put(annotated("ignored", "resources.gardener.cloud/ignore", "true")).unwrap();
        world.sim.put(annotated("waiting", "gardener.cloud/operation", "wait-for-state")).unwrap();
        world.sim.put(managed_resource("foreign", &["one"], json!({ "class": "x" }))).unwrap();
        let mut deleted = managed_resource("deleted", &["one"], json!({}));
        deleted["metadata"]["finalizers"] = json!(["a.b/c"]);
        world.sim.put(deleted).unwrap();
        world.delete_bundle("deleted").await;
        world.bundle("one", &[config_map("a", "v")]);
        world.start().await;
        tokio::time::sleep(Duration::from_secs(1)).await;

        assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
    });
}

/// A reconcile that waits for a first list is enqueued when the watches end, and must not begin new ones.
#[test]
fn initial_sync_that_is_stopped_leaves_no_watch_behind() {
    for milliseconds in 0..80 {
        world(1, |world| async move {
            world.start().await;
            world.bundle("one", &crate::faults::first());
            world.applied("one").await;
            world.crash().await;
            world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
                ("horizontalpodautoscalers" | "deployments", "list") => Fault::Delay(Duration::from_millis(20)),
                _ => Fault::None,
            });
            world.start().await;
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            world.crash().await;
            world.sim.clear_faults();
            tokio::time::sleep(Duration::from_secs(60)).await;

            let left: Vec<_> =
                world.universe.env.status_registry.snapshot().into_iter().map(|actor| actor.path).collect();
            assert_eq!(left, [""; 0], "after {milliseconds} ms");
        });
    }
}
