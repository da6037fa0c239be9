//! Answers that come late or never.

use std::time::Duration;

use serde_json::{Value, json};
use sim::{EventFault, Fault, WatchEnd};

use crate::world::{NAMESPACE, config_map, world};

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// A relist already misses the deleted object when the answer to its creation arrives. No event reports the deletion.
#[test]
fn late_answer_to_a_creation_does_not_hide_the_deletion_before_it() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        let mut first = true;
        world.sim.set_faults(move |info| {
            let hit = info.resource == "configmaps" && info.verb == "create";
            if hit && std::mem::take(&mut first) { Fault::DelayAnswer(Duration::from_secs(5)) } else { Fault::None }
        });
        world.sim.set_event_faults(|event| match event.resource.as_str() {
            "configmaps" => EventFault::Drop,
            _ => EventFault::Deliver,
        });
        world.secret("one", &[config_map("a", "v"), config_map("b", "v")]);
        seconds(1).await;
        assert!(world.config_map("b").is_some(), "the object is created, but the answer is still under way");
        world.sim.remove("configmaps", NAMESPACE, "b");
        seconds(1).await;
        world.sim.clear_event_faults();
        world.sim.compact();
        world.sim.break_watches(WatchEnd::Expired);
        seconds(10).await;
        assert!(world.is_applied("one"));
        seconds(60).await;

        assert_eq!(world.value("b").as_deref(), Some("v"));
    });
}

fn role(name: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "namespace": NAMESPACE, "name": name }, "rules": []
    })
}

#[test]
fn start_with_a_hanging_list_delays_only_the_bundles_of_that_kind() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.bundle("two", &[config_map("b", "v"), role("r")]);
        world.applied("one").await;
        world.applied("two").await;
        world.stop().await;
        world.sim.remove("configmaps", NAMESPACE, "a");
        world.sim.remove("configmaps", NAMESPACE, "b");
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("roles", "list" | "watch") => Fault::Hang,
            _ => Fault::None,
        });
        world.start().await;
        seconds(8).await;
        assert_eq!((world.value("a").as_deref(), world.value("b")), (Some("v"), None));
        seconds(62).await;

        assert_eq!(world.value("b").as_deref(), Some("v"));
    });
}
