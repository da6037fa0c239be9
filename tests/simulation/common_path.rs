//! Scenarios of spec 10 on the common path.

use std::time::Duration;

use serde_json::json;
use sim::Fault;

use crate::world::{config_map, world};

/// spec 10 scenario 1.
#[test]
fn bundle_is_applied() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("b", "v"), config_map("a", "v")]);
        world.applied("one").await;

        let mr = world.mr("one").unwrap();
        assert_eq!(mr["metadata"]["finalizers"], json!(["resources.gardener.cloud/gardener-resource-manager"]));
        assert_eq!(world.refs("one"), ["a", "b"]);
        assert_eq!(mr["status"]["observedGeneration"], mr["metadata"]["generation"]);
        let (status, reason, _) = world.condition("one", "ResourcesApplied").unwrap();
        assert_eq!((status.as_str(), reason.as_str()), ("True", "ApplySucceeded"));
        let description = "DO NOT EDIT - This resource is managed by gardener-resource-manager.\nAny modifications are \
                           discarded and the resource is returned to the original state.";
        for name in ["a", "b"] {
            let live = world.config_map(name).unwrap();
            let annotations = json!({
                "resources.gardener.cloud/origin": "shoot/one", "resources.gardener.cloud/description": description
            });
            assert_eq!(live["metadata"]["annotations"], annotations);
            assert_eq!(live["metadata"]["labels"], json!({ "resources.gardener.cloud/managed-by": "gardener" }));
        }
    });
}

/// spec 10 §9.1: the watches of its kinds begin meanwhile.
#[test]
fn bundle_of_new_kinds_is_read_once() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;

        assert_eq!(world.asked().iter().filter(|asked| asked.starts_with("get secrets")).count(), 1);
    });
}

/// A slow list takes no permit, and no memory for manifests.
#[test]
fn bundle_is_read_again_after_a_slow_first_list_of_its_kinds() {
    world(1, |world| async move {
        world.start().await;
        world.sim.set_faults(|info| match (info.verb.as_str(), info.resource.as_str()) {
            ("list", "configmaps") => Fault::Delay(Duration::from_secs(1)),
            _ => Fault::None,
        });
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;

        assert_eq!(world.asked().iter().filter(|asked| asked.starts_with("get secrets")).count(), 2);
    });
}

#[test]
fn idle_program_sends_no_request() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        tokio::time::sleep(Duration::from_secs(120)).await;
        world.sim.clear_requests();
        tokio::time::sleep(Duration::from_secs(600)).await;

        let requests: Vec<_> = world.requests().iter().map(crate::world::brief).collect();
        assert!(requests.is_empty(), "{requests:#?}");
    });
}

#[test]
fn changed_object_is_repaired_at_once() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.sim.edit("configmaps", "shoot", "a", |live| live["data"]["k"] = json!("edited"));
        tokio::time::sleep(Duration::from_millis(250)).await;

        assert_eq!(world.value("a").as_deref(), Some("v"));
    });
}

/// Each edit alone would cause a repair; three within a moment cause one.
#[test]
fn burst_of_edits_costs_one_write() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.sim.clear_requests();
        for edit in ["x", "y", "z"] {
            world.sim.edit("configmaps", "shoot", "a", |live| live["data"]["k"] = json!(edit));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;

        assert_eq!(world.value("a").as_deref(), Some("v"));
        assert_eq!(world.writes(), ["update configmaps a"]);
    });
}

/// spec 10 scenario 10: a label that a user changes at the moment it leaves the manifest keeps the user's value.
#[test]
fn label_changed_while_it_leaves_the_manifest_stays() {
    world(1, |world| async move {
        let labelled = |labels: serde_json::Value| {
            let mut object = config_map("a", "v");
            object["metadata"]["labels"] = labels;
            object
        };
        world.start().await;
        world.bundle("one", &[labelled(json!({"taken": "1", "dropped": "1"}))]);
        world.applied("one").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.sim.edit("configmaps", "shoot", "a", |live| live["metadata"]["labels"]["taken"] = json!("user"));
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.secret("one", &[labelled(json!({}))]);
        tokio::time::sleep(Duration::from_secs(5)).await;

        let labels = &world.config_map("a").unwrap()["metadata"]["labels"];
        assert_eq!(labels["taken"], "user");
        assert_eq!(labels.get("dropped"), None);
    });
}

#[test]
fn deleted_object_is_recreated_at_once() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.sim.remove("configmaps", "shoot", "a");
        tokio::time::sleep(Duration::from_millis(250)).await;

        assert_eq!(world.value("a").as_deref(), Some("v"));
    });
}

/// spec 10 scenario 35.
#[test]
fn changed_secret_is_rolled_out() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        world.secret("one", &[config_map("a", "w"), config_map("c", "v")]);
        world.eventually("the new set is applied", || world.is_applied("one") && world.refs("one") == ["a", "c"]).await;

        assert_eq!(world.value("a").as_deref(), Some("w"));
        assert_eq!(world.config_map("b"), None);
    });
}

#[test]
fn deleted_bundle_deletes_its_objects() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        world.sim.remove("secrets", "shoot", "one");
        world.delete_bundle("one").await;
        world.eventually("it is gone", || world.mr("one").is_none()).await;

        assert_eq!((world.config_map("a"), world.config_map("b")), (None, None));
    });
}

#[test]
fn restart_over_applied_bundles_writes_nothing() {
    world(1, |world| async move {
        world.start().await;
        for index in 0..20 {
            let name = format!("b{index}");
            world.bundle(&name, &[config_map(&format!("{name}-x"), "v"), config_map(&format!("{name}-y"), "v")]);
        }
        for index in 0..20 {
            world.applied(&format!("b{index}")).await;
        }
        world.stop().await;
        world.sim.clear_requests();
        world.start().await;
        tokio::time::sleep(Duration::from_secs(120)).await;

        assert_eq!(world.writes(), [""; 0]);
        assert!(
            world.requests().len() <= 50,
            "{:#?}",
            world.requests().iter().map(crate::world::brief).collect::<Vec<_>>()
        );
    });
}
