//! The API server refuses requests, is overloaded, or rejects our token: objects fail separately, retries are bounded.

use std::time::Duration;

use serde_json::{Value, json};
use sim::{Fault, RequestInfo, Seen};

use crate::{
    objects::{object, with},
    world::{NAMESPACE, World, config_map, namespace, world},
};

const MRS: &str = "managedresources.resources.gardener.cloud";

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn count(world: &World, beginning: &str) -> usize {
    world.asked().iter().filter(|asked| asked.starts_with(beginning)).count()
}

fn is_write_of(info: &RequestInfo, resource: &str, subresource: &str) -> bool {
    info.user == "grm"
        && info.resource == resource
        && info.subresource == subresource
        && matches!(info.verb.as_str(), "create" | "update" | "patch")
}

/// Applies objects to which admission adds fields that no update may remove; it does not add them to updates.
async fn applied_with_additions(world: &World, manifests: &[Value]) {
    world.sim.set_mutation(|reviewed, object| match (reviewed.operation, reviewed.resource) {
        ("CREATE", "configmaps") => object["data"]["added"] = json!("x"),
        ("CREATE", "pods") => object["spec"]["nodeSelector"] = json!({ "a": "b" }),
        _ => {}
    });
    world.managed_resource().revalidate_period = Duration::from_secs(3600).into();
    world.start().await;
    world.bundle("one", manifests);
    world.applied("one").await;
    seconds(5).await;
}

/// spec 10 §11.3, §11.7: a short failure is no reason to distrust the applied objects, let alone to delete them.
#[test]
fn updates_refused_after_a_failure_delete_no_right_object() {
    world(1, |world| async move {
        let immutable = with(config_map("a", "v"), "/immutable", json!(true));
        applied_with_additions(&world, std::slice::from_ref(&immutable)).await;
        let uid = world.config_map("a").unwrap()["metadata"]["uid"].clone();
        world.sim.clear_requests();
        let mut failures = 3;
        world.sim.set_faults(move |info| {
            if failures > 0 && is_write_of(info, "configmaps", "") {
                failures -= 1;
                return Fault::FailBefore(Seen::internal_error("a short failure"));
            }
            Fault::None
        });
        seconds(3 * 3600).await;

        assert!(count(&world, "update configmaps a") >= 4, "{:#?}", world.writes());
        let live = world.config_map("a").unwrap();
        assert_eq!((&live["metadata"]["uid"], &live["data"]["added"]), (&uid, &json!("x")));
        assert!(world.is_applied("one"), "{:?}", world.condition("one", "ResourcesApplied"));

        let other = with(config_map("a", "w"), "/immutable", json!(true));
        world.secret("one", &[other]);
        seconds(30).await;
        assert_ne!(world.config_map("a").unwrap()["metadata"]["uid"], uid, "the object has other content");
        assert_eq!(world.value("a").as_deref(), Some("w"));
    });
}

/// spec 10 §12.9: after the failure of another object and a restart, a field that no update may change is no failure.
#[test]
fn updates_of_pods_refused_after_a_restart_are_no_failure() {
    world(1, |world| async move {
        let containers = json!({ "containers": [{ "name": "c", "image": "i" }] });
        let pod = object("v1", "Pod", "web", json!({ "spec": containers }));
        applied_with_additions(&world, std::slice::from_ref(&pod)).await;
        let uid = |world: &World| world.sim.object("pods", NAMESPACE, "web").unwrap()["metadata"]["uid"].clone();
        let before = uid(&world);
        world.sim.set_faults(|info| match is_write_of(info, "configmaps", "") {
            true => Fault::FailBefore(Seen::forbidden(info)),
            false => Fault::None,
        });
        world.secret("one", &[pod, config_map("a", "v")]);
        seconds(20).await;
        assert_eq!(world.condition("one", "ResourcesApplied").unwrap().1, "ApplyFailed");
        world.stop().await;
        world.start().await;
        seconds(20).await;
        world.sim.clear_faults();
        seconds(120).await;

        assert!(world.is_applied("one"), "{:?}", world.condition("one", "ResourcesApplied"));
        assert_eq!(uid(&world), before);
    });
}

/// faults row 7
#[test]
fn conflict_on_an_object_causes_a_fresh_read_and_keeps_the_other_change() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        seconds(5).await;
        // Another client is faster by a moment, twice.
        let (sim, mut left) = (world.sim.clone(), 2);
        world.sim.set_faults(move |info| {
            if is_write_of(info, "configmaps", "") && left > 0 {
                left -= 1;
                let number = json!(left.to_string());
                sim.edit("configmaps", NAMESPACE, "a", |live| live["metadata"]["annotations"]["theirs"] = number);
            }
            Fault::None
        });
        world.sim.clear_requests();
        world.secret("one", &[config_map("a", "w")]);
        seconds(5).await;

        assert_eq!(world.value("a").as_deref(), Some("w"));
        assert_eq!(world.config_map("a").unwrap()["metadata"]["annotations"]["theirs"], "0");
        assert!(world.is_applied("one"));
        assert_eq!(count(&world, "update configmaps a"), 3, "{:#?}", world.asked());
        world.sim.clear_faults();
    });
}

async fn no_failure_is_shown(world: &World) {
    for _ in 0..2_000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let applied = world.condition("one", "ResourcesApplied").expect("it was applied before");
        assert_ne!(applied.1, "ApplyFailed", "{applied:?}");
    }
}

/// spec 10, "Better than upstream" 11: a user deletes the object and creates it again (`kubectl replace --force`).
#[test]
fn recreated_object_is_merged() {
    // Whether it is deleted before the program reads it, or between read and update.
    for goes_first in [true, false] {
        world(1, |world| async move {
            world.start().await;
            world.bundle("one", &[config_map("a", "v")]);
            world.applied("one").await;
            seconds(5).await;
            let (sim, mut replaced) = (world.sim.clone(), false);
            world.sim.set_faults(move |info| {
                let is_first = is_write_of(info, "configmaps", "") && !replaced;
                match info.verb.as_str() {
                    "update" if is_first => drop(sim.remove("configmaps", NAMESPACE, "a")),
                    "create" if is_first => {
                        replaced = true;
                        sim.put(config_map("a", "theirs")).expect("it is gone");
                    }
                    _ => {}
                }
                Fault::None
            });
            world.sim.clear_requests();
            if goes_first {
                world.sim.remove("configmaps", NAMESPACE, "a");
            } else {
                world.secret("one", &[config_map("a", "w")]);
            }
            no_failure_is_shown(&world).await;

            assert_eq!(world.value("a").as_deref(), Some(if goes_first { "v" } else { "w" }));
            assert_eq!(count(&world, "create configmaps"), 1, "{:#?}", world.asked());
            world.sim.clear_faults();
        });
    }
}

/// spec 10, "Better than upstream" 11
#[test]
fn flapping_object_is_retried_before_its_failure_is_reported() {
    for times in [2, usize::MAX] {
        world(1, |world| async move {
            let (sim, mut left) = (world.sim.clone(), times);
            world.sim.set_faults(move |info| {
                match info.verb.as_str() {
                    _ if info.user != "grm" || info.resource != "configmaps" => {}
                    "create" if left > 0 => {
                        left -= 1;
                        sim.put(config_map("a", "theirs")).expect("it is gone");
                    }
                    "get" => drop(sim.remove("configmaps", NAMESPACE, "a")),
                    _ => {}
                }
                Fault::None
            });
            world.start().await;
            world.bundle("one", &[config_map("a", "v")]);
            let reason = || world.condition("one", "ResourcesApplied").map(|(_, reason, _)| reason);
            let is_over = || matches!(reason().as_deref(), Some("ApplySucceeded" | "ApplyFailed"));
            world.eventually("it is applied, or not", is_over).await;

            let (_, reason, message) = world.condition("one", "ResourcesApplied").expect("it is reported");
            let creations = count(&world, "create configmaps");
            if times == 2 {
                assert_eq!((reason.as_str(), creations), ("ApplySucceeded", 3), "{message}");
            } else {
                assert!(reason == "ApplyFailed" && message.contains("already exists"), "{message}");
                assert!(creations < 20, "{creations}");
            }
            world.sim.clear_faults();
        });
    }
}

/// faults row 7
#[test]
fn conflicts_without_end_are_reported_and_retried_ever_more_rarely() {
    for (resource, subresource) in [("configmaps", ""), ("managedresources", "status")] {
        world(1, |world| async move {
            world.start().await;
            world.bundle("one", &[config_map("a", "v")]);
            world.applied("one").await;
            seconds(5).await;
            world.sim.set_faults(move |info| {
                if is_write_of(info, resource, subresource) {
                    Fault::FailBefore(Seen::conflict(info))
                } else {
                    Fault::None
                }
            });
            world.sim.clear_requests();
            world.secret("one", &[config_map("a", "w")]);
            seconds(300).await;
            let writes = count(&world, &format!("update {resource}"));
            assert!((2..100).contains(&writes), "{writes} writes in five minutes");

            world.sim.clear_faults();
            world.eventually("it is rolled out", || world.value("a").as_deref() == Some("w")).await;
            world.applied("one").await;
        });
    }
}

/// faults row 8
#[test]
fn retry_after_of_the_server_is_respected() {
    world(1, |world| async move {
        world.start().await;
        world.sim.set_faults(|info| match (info.user.as_str(), info.resource.as_str(), info.verb.as_str()) {
            ("grm", "configmaps", "create") => Fault::FailBefore(Seen::too_many_requests()),
            _ => Fault::None,
        });
        world.bundle("one", &[config_map("a", "v")]);
        seconds(20).await;

        // It answers `Retry-After: 1`.
        let created = count(&world, "create configmaps");
        assert!((2..=21).contains(&created), "{created} in 20 s");
        world.sim.clear_faults();
        world.applied("one").await;
    });
}

/// faults row 8
#[test]
fn write_with_a_lost_answer_is_verified_before_it_is_repeated() {
    for seen in [Seen::timeout(), Seen::Disconnect] {
        world(1, |world| async move {
            let mut first = true;
            world.sim.set_faults(move |info| {
                if is_write_of(info, "configmaps", "") && std::mem::take(&mut first) {
                    Fault::FailAfterCommit(seen.clone())
                } else {
                    Fault::None
                }
            });
            world.start().await;
            world.bundle("one", &[config_map("a", "v")]);
            world.applied("one").await;
            seconds(5).await;

            let metadata = &world.config_map("a").unwrap()["metadata"];
            let other_writes = count(&world, "update configmaps") + count(&world, "delete configmaps");
            assert_eq!((metadata["generation"].clone(), other_writes), (json!(null), 0), "{:#?}", world.asked());
        });
    }
}

/// faults row 9
#[test]
fn rejected_token_is_reported_in_the_condition_and_does_not_end_the_program() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        let unauthorized = |info: &RequestInfo| match (info.user.as_str(), info.resource.as_str()) {
            ("grm", "configmaps") => Fault::FailBefore(Seen::unauthorized()),
            _ => Fault::None,
        };
        world.sim.set_faults(unauthorized);
        world.sim.clear_requests();
        world.secret("one", &[config_map("a", "w"), config_map("b", "w")]);
        seconds(60).await;
        let (status, reason, message) = world.condition("one", "ResourcesApplied").unwrap();
        assert_eq!((status.as_str(), reason.as_str()), ("False", "ApplyFailed"));
        assert!(message.contains("Unauthorized"), "{message}");
        assert!(world.requests().len() < 200, "{} requests in a minute", world.requests().len());

        // For a while every request is rejected.
        world.sim.set_faults(|info| match info.user.as_str() {
            "grm" => Fault::FailBefore(Seen::unauthorized()),
            _ => Fault::None,
        });
        seconds(120).await;
        world.sim.clear_faults();
        world.eventually("it is rolled out", || world.value("b").as_deref() == Some("w")).await;
        world.applied("one").await;
    });
}

/// faults rows 10 and 12: objects after it are applied too, once it has failed for a second (decision 0003).
#[test]
fn refused_object_fails_and_the_others_are_applied() {
    let denied = "admission webhook \"deny.example.org\" denied the request: not today";
    let late = "Internal error occurred: failed calling webhook \"slow.example.org\": context deadline exceeded";
    let table = [
        (Seen::status(403, "Forbidden", "roles is forbidden: no right"), "no right"),
        (Seen::status(403, "Forbidden", denied), "denied the request: not today"),
        (Seen::status(500, "InternalError", late), "context deadline exceeded"),
    ];
    for (seen, expected) in table {
        world(1, |world| async move {
            world.sim.set_faults(move |info| {
                let is_refused = info.user == "grm" && info.resource == "secrets" && info.verb == "create";
                if is_refused { Fault::FailBefore(seen.clone()) } else { Fault::None }
            });
            world.start().await;
            let refused = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": NAMESPACE, "name": "refused" }
            });
            // A Secret comes before the ConfigMaps.
            world.bundle("one", &[config_map("a", "v"), config_map("b", "v"), refused, namespace("extra")]);
            world.bundle("two", &[config_map("c", "v")]);
            seconds(60).await;

            let values = ["a", "b", "c"].map(|name| world.value(name));
            assert!(values.iter().all(|value| value.as_deref() == Some("v")), "{expected}: {values:?}");
            assert!(world.is_applied("two"));
            let (_, reason, message) = world.condition("one", "ResourcesApplied").unwrap();
            assert_eq!(reason, "ApplyFailed");
            assert!(message.contains(expected) && message.contains("v1/Secret/shoot/refused"), "{message}");
            world.sim.clear_faults();
            world.applied("one").await;
        });
    }
}

/// faults row 15: the condition names it, and other ManagedResources go on.
#[test]
fn stuck_finalizer_is_reported_and_delays_only_its_bundle() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.bundle("two", &[config_map("c", "v")]);
        world.applied("one").await;
        world.applied("two").await;
        world.sim.edit("configmaps", NAMESPACE, "a", |live| live["metadata"]["finalizers"] = json!(["a.b/c"]));
        seconds(2).await;
        world.delete_bundle("one").await;
        world.secret("two", &[config_map("c", "w")]);
        seconds(60).await;

        let (_, reason, message) = world.condition("one", "ResourcesApplied").unwrap();
        assert_eq!(reason, "DeletionPending");
        assert!(message.contains("v1/ConfigMap/shoot/a") && !message.contains("ConfigMap/shoot/b"), "{message}");
        assert_eq!((world.config_map("b"), world.value("c").as_deref()), (None, Some("w")));
        world.sim.edit(MRS, NAMESPACE, "two", |_| ());
        let path = "/api/v1/namespaces/shoot/configmaps/a";
        world.ask("PATCH", path, Some(json!({ "metadata": { "finalizers": null } }))).await.unwrap();
        world.eventually("it is gone", || world.mr("one").is_none()).await;
    });
}
