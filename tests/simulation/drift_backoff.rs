//! No fault makes the program loop: each test counts requests while a fault persists.

use std::time::Duration;

use serde_json::{Value, json};
use sim::{Fault, Seen};

use crate::{
    objects::{definition, widget},
    world::{NAMESPACE, World, config_map, managed_resource, namespace, world},
};

fn object_writes(world: &World) -> Vec<String> {
    world
        .writes()
        .into_iter()
        .filter(|write| !write.contains("managedresources") && !write.contains("events"))
        .collect()
}

async fn minutes(minutes: u64) {
    tokio::time::sleep(Duration::from_secs(60 * minutes)).await;
}

/// spec 00 decision 11: reported, and each writes it only in its own period: at most two writes a minute. faults row 22
#[test]
fn drift_backoff_limits_two_bundles_with_one_object() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "one")]);
        world.applied("one").await;
        world.bundle("two", &[config_map("a", "two")]);
        world.applied("two").await;
        minutes(5).await;
        world.sim.clear_requests();
        minutes(60).await;

        assert!(object_writes(&world).len() <= 2 * 60, "{} writes", object_writes(&world).len());
        let events: Vec<_> = world.sim.objects("events");
        assert!(events.iter().any(|event| event["reason"] == "ConflictingOwner"), "{events:#?}");
    });
}

#[test]
fn drift_backoff_delays_repairs_of_recurring_drift() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        minutes(2).await;
        world.sim.clear_requests();
        let edited = edit_after_each_repair(&world, Duration::from_secs(600)).await;

        // At once, after 1, 2, 4, 8, 16, 32 s, then each minute.
        let repairs = object_writes(&world).len();
        assert!((10..=18).contains(&repairs), "{repairs} repairs of {edited} edits in ten minutes");
        assert!(world.requests().len() <= 5 * repairs, "{:#?}", world.asked());
        world
            .eventually("it is repaired when the other client gives up", || world.value("a").as_deref() == Some("v"))
            .await;
    });
}

async fn edit_after_each_repair(world: &World, time: Duration) -> usize {
    let end = tokio::time::Instant::now() + time;
    let mut edits = 0;
    while tokio::time::Instant::now() < end {
        if world.value("a").as_deref() == Some("v") {
            world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
            edits += 1;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    edits
}

#[test]
fn drift_backoff_sends_nothing_if_the_drift_ends_by_itself() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        minutes(2).await;
        let set = |value: &str| {
            let value = json!(value);
            world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = value)
        };
        set("edited");
        world.eventually("the first drift is repaired", || world.value("a").as_deref() == Some("v")).await;
        set("edited");
        tokio::time::sleep(Duration::from_millis(100)).await;
        set("v");
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.sim.clear_requests();
        minutes(10).await;

        assert!(world.requests().is_empty(), "{} requests, e.g. {:?}", world.requests().len(), world.asked().first());
    });
}

#[test]
fn drift_backoff_is_not_needed_if_the_server_changes_an_object_back() {
    world(1, |world| async move {
        world.start().await;
        let mut pruned = widget(1);
        pruned["spec"]["unknown"] = json!("the schema does not know this field, so the server drops it");
        world.bundle("one", &[definition(), pruned]);
        world.applied("one").await;
        minutes(2).await;
        world.sim.clear_requests();
        minutes(30).await;

        assert_eq!(world.writes(), [""; 0]);
        assert!(world.requests().is_empty(), "{:#?}", world.asked());
    });
}

/// faults row 14
#[test]
fn hot_loop_is_not_caused_by_a_terminating_namespace() {
    world(1, |world| async move {
        world.start().await;
        world.sim.put(namespace("ending")).unwrap();
        let mut object = config_map("a", "v");
        object["metadata"]["namespace"] = json!("ending");
        world.bundle("one", &[object]);
        world.applied("one").await;
        world.sim.edit("configmaps", "ending", "a", |live| live["metadata"]["finalizers"] = json!(["a.b/c"]));
        world.ask("DELETE", "/api/v1/namespaces/ending", None).await.unwrap();
        minutes(1).await;
        world.sim.edit("configmaps", "ending", "a", |live| live["metadata"]["finalizers"] = json!([]));
        world.ask("POST", "/api/v1/namespaces/ending/pods", None).await.unwrap_err();
        minutes(1).await;
        world.sim.clear_requests();
        minutes(10).await;

        assert!(world.requests().len() <= 10 * 12, "{} requests in ten minutes", world.requests().len());
    });
}

#[test]
fn hot_loop_is_not_caused_by_refused_writes() {
    world(1, |world| async move {
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("configmaps", "create" | "update") => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        minutes(5).await;
        world.sim.clear_requests();
        minutes(10).await;

        assert_eq!(world.condition("one", "ResourcesApplied").unwrap().1, "ApplyFailed");
        assert!(world.requests().len() <= 10 * 5, "{} requests in ten minutes", world.requests().len());
        world.sim.clear_faults();
        world.applied("one").await;
    });
}

/// faults row 11
#[test]
fn hot_loop_is_not_caused_by_an_unknown_kind_whose_definition_enqueues_the_bundle() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[widget(1), config_map("a", "v")]);
        minutes(5).await;
        world.sim.clear_requests();
        minutes(10).await;
        let asked = world.requests().len();
        assert!(asked <= 10 * 6, "{asked} requests in ten minutes: {:#?}", &world.asked()[..20]);
        let (_, reason, message) = world.condition("one", "ResourcesApplied").unwrap();
        assert_eq!(reason, "ApplyFailed", "{message}");

        tokio::time::sleep(Duration::from_secs(7)).await;
        world.sim.put(definition()).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;

        assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
    });
}

/// faults row 11
#[test]
fn hot_loop_is_not_caused_by_a_definition_that_is_deleted_and_restored() {
    world(1, |world| async move {
        world.start().await;
        world.sim.put(definition()).unwrap();
        world.bundle("one", &[widget(1)]);
        world.applied("one").await;
        minutes(1).await;
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.org";
        world.ask("DELETE", path, None).await.unwrap();
        minutes(5).await;
        world.sim.clear_requests();
        minutes(10).await;
        let asked = world.requests().len();
        // Each attempt requests a proof that the kind is not served, which takes three requests (decision 38).
        let proofs = world.requests().iter().filter(|request| request.info.path == "/readyz").count();
        assert!(proofs <= 10, "{proofs} proofs");
        assert!(asked <= 10 * 8 + 3 * proofs, "{asked} requests, {:#?}", &world.asked()[..20]);

        world.sim.put(definition()).unwrap();
        tokio::time::sleep(Duration::from_secs(61)).await;

        assert!(world.sim.object("widgets.example.org", NAMESPACE, "kept").is_some());
        assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
    });
}

#[test]
fn hot_loop_is_not_caused_by_a_missing_secret() {
    world(1, |world| async move {
        world.start().await;
        world.sim.put(managed_resource("one", &["missing"], json!({}))).unwrap();
        minutes(5).await;
        world.sim.clear_requests();
        minutes(10).await;

        assert!(world.requests().len() <= 10 * 3, "{:#?}", world.asked());
        assert_eq!(world.writes(), [""; 0], "the condition says it already");
    });
}

#[test]
fn drift_backoff_delays_the_repair_of_a_label_that_a_user_keeps_removing() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        minutes(2).await;
        world.sim.clear_requests();
        for _ in 0..(600 * 50) {
            world.sim.edit("configmaps", NAMESPACE, "a", |live| live["metadata"]["labels"] = Value::Null);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }

        assert!((10..=18).contains(&object_writes(&world).len()), "{}", object_writes(&world).len());
        assert!(world.requests().len() <= 18 * 6, "{} requests", world.requests().len());
    });
}
