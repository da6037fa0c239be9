//! Facts that are not known are not acted on: nothing is scaled, deleted or reported on a guess.

use std::time::Duration;

use serde_json::{Value, json};
use sim::{Fault, Seen};

use crate::world::{NAMESPACE, World, config_map, mr_path, world};

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn deployment(name: &str, replicas: u64, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
        },
    })
}

fn autoscaler(name: &str) -> Value {
    json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"maxReplicas": 9, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}},
    })
}

fn set_status(world: &World, name: &str, change: impl FnOnce(&mut Value)) {
    let found =
        world.sim.edit("managedresources.resources.gardener.cloud", NAMESPACE, name, |mr| change(&mut mr["status"]));
    assert!(found, "there is a ManagedResource {name}");
}

/// spec 10 §11.2: the autoscalers are listed before the first object is applied, however long that takes.
#[test]
fn replicas_are_not_reset_while_the_autoscalers_are_being_listed() {
    world(1, |world| async move {
        world.sim.put(deployment("web", 5, "web:1")).unwrap();
        world.sim.put(autoscaler("web")).unwrap();
        world.sim.set_faults(|info| match info.resource.as_str() {
            "horizontalpodautoscalers" if info.verb == "list" => Fault::Delay(Duration::from_secs(25)),
            _ => Fault::None,
        });
        world.bundle("one", &[deployment("web", 2, "web:2")]);
        world.start().await;
        world.applied("one").await;

        let live = world.sim.object("deployments.apps", NAMESPACE, "web").unwrap();
        assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "web:2");
        assert_eq!(live["spec"]["replicas"], 5);
    });
}

/// spec 10 §9.10: the condition belongs to the program, which restores it in the next period.
#[test]
fn condition_changed_by_another_client_is_restored() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        seconds(5).await;
        set_status(&world, "one", |status| status["conditions"] = json!([]));
        assert!(!world.is_applied("one"));
        seconds(70).await;
        assert!(world.is_applied("one"), "{:?}", world.condition("one", "ResourcesApplied"));

        set_status(&world, "one", |status| {
            let conditions = status["conditions"].as_array_mut().unwrap();
            let applied = conditions.iter_mut().find(|it| it["type"] == "ResourcesApplied").unwrap();
            applied["status"] = json!("False");
        });
        seconds(70).await;

        assert!(world.is_applied("one"), "{:?}", world.condition("one", "ResourcesApplied"));
    });
}

/// decision 10: an owner that is absent from the cache may exist all the same.
#[test]
fn object_is_kept_for_an_owner_that_no_event_reported() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        seconds(5).await;
        world.sim.set_event_faults(|event| match event.resource.as_str() {
            "managedresources" => sim::EventFault::Drop,
            _ => sim::EventFault::Deliver,
        });
        world.bundle("two", &[config_map("b", "v")]);
        world.sim.edit("configmaps", NAMESPACE, "b", |live| {
            live["metadata"]["annotations"]["resources.gardener.cloud/origin"] = json!("shoot/two");
        });
        world.secret("one", &[config_map("a", "v")]);
        seconds(20).await;

        assert!(world.config_map("b").is_some());
        assert_eq!(world.refs("one"), ["a"]);
    });
}

/// decision 10: an owner that is gone keeps no object.
#[test]
fn object_of_a_deleted_owner_is_deleted() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        world.sim.edit("configmaps", NAMESPACE, "b", |live| {
            live["metadata"]["annotations"]["resources.gardener.cloud/origin"] = json!("shoot/gone");
        });
        world.secret("one", &[config_map("a", "v")]);
        seconds(20).await;

        assert_eq!(world.config_map("b"), None);
    });
}

/// spec 10 §9.3: failing discovery does not make an object look removed.
#[test]
fn cluster_scoped_object_with_a_namespace_survives_a_failing_discovery() {
    world(1, |world| async move {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "reader", "namespace": "foo"}, "rules": [],
        });
        world.start().await;
        world.bundle("one", &[role, config_map("a", "v")]);
        world.applied("one").await;
        let uid = world.sim.object("clusterroles.rbac.authorization.k8s.io", "", "reader").unwrap()["metadata"]["uid"]
            .clone();
        world.stop().await;
        let mut refused = 0;
        world.sim.set_faults(move |info| {
            let discovery = info.path == "/apis" || info.path.starts_with("/apis/rbac.authorization.k8s.io");
            if info.resource.is_empty() && discovery && refused < 6 {
                refused += 1;
                return Fault::FailBefore(Seen::unavailable());
            }
            Fault::None
        });
        world.secret(
            "one",
            &[
                json!({
                    "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                    "metadata": {"name": "reader", "namespace": "foo"}, "rules": [],
                }),
                config_map("a", "w"),
            ],
        );
        world.start().await;
        world.eventually("applied again", || world.value("a").as_deref() == Some("w") && world.is_applied("one")).await;

        assert_eq!(
            world.sim.object("clusterroles.rbac.authorization.k8s.io", "", "reader").unwrap()["metadata"]["uid"],
            uid
        );
    });
}

/// A manifest without a name may stand for an existing object: no object is deleted, the others are applied.
#[test]
fn manifest_without_its_name_deletes_nothing() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        let mut nameless = config_map("b", "w");
        nameless["metadata"].as_object_mut().unwrap().remove("name");
        world.secret("one", &[config_map("a", "w"), nameless]);
        world.eventually("a is changed", || world.value("a").as_deref() == Some("w")).await;
        seconds(20).await;

        assert_eq!(world.value("b").as_deref(), Some("v"));
        let (status, reason, message) = world.condition("one", "ResourcesApplied").unwrap();
        assert_eq!((status.as_str(), reason.as_str()), ("False", "ApplyFailed"));
        assert!(message.contains("resource name may not be empty"), "{message}");
    });
}

/// spec 10 §9.7: readers must not take the conditions of *ignored* for those of the manifests being applied.
#[test]
fn conditions_announce_the_set_again_after_the_bundle_was_ignored() {
    world(1, |world| async move {
        world.sim.set_faults(|info| match (info.verb.as_str(), info.resource.as_str()) {
            ("create", "configmaps") => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        let reason = |world: &World, kind: &str| world.condition("one", kind).map(|(_, reason, _)| reason);
        world.eventually("it fails", || reason(&world, "ResourcesApplied").as_deref() == Some("ApplyFailed")).await;
        let ignore = |value: Value| json!({"metadata": {"annotations": {"resources.gardener.cloud/ignore": value}}});
        world.patch_bundle("one", ignore(json!("true"))).await;
        world
            .eventually("it is ignored", || {
                reason(&world, "ResourcesHealthy").as_deref() == Some("ManagedResourceIgnored")
            })
            .await;
        world.patch_bundle("one", ignore(Value::Null)).await;
        world
            .eventually("it fails again", || reason(&world, "ResourcesApplied").as_deref() == Some("ApplyFailed"))
            .await;

        assert_eq!(reason(&world, "ResourcesHealthy").as_deref(), Some("ChecksPending"));
    });
}

/// spec 10 §5.2, §5.4, decision 37: a requested run starts at once, but a just repaired object waits for its turn.
#[test]
fn operation_runs_at_once_but_respects_the_drift_backoff() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        let edit = || world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
        for _ in 0..40 {
            edit();
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        edit();
        set_status(&world, "one", |status| status["conditions"] = json!([]));
        world
            .patch_bundle("one", json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}}))
            .await;
        tokio::time::sleep(Duration::from_millis(500)).await;

        let annotations = world.ask("GET", &mr_path("one"), None).await.unwrap()["metadata"]["annotations"].clone();
        assert_eq!(annotations.get("gardener.cloud/operation"), None);
        assert!(world.is_applied("one"), "the run restored the condition: {:?}", world.mr("one"));
        assert_eq!(world.value("a").as_deref(), Some("edited"), "its last repair was 5 s ago, its pause is of 16 s");
        seconds(11).await;
        assert_eq!(world.value("a").as_deref(), Some("v"));
    });
}

/// spec 10 §11.7: a conflict is reported unchanged, also as the answer to a creation.
#[test]
fn conflict_of_a_creation_is_reported_in_the_servers_words() {
    world(1, |world| async move {
        world.sim.set_faults(|info| match (info.verb.as_str(), info.resource.as_str()) {
            ("create", "configmaps") => Fault::FailBefore(Seen::conflict(info)),
            _ => Fault::None,
        });
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world
            .eventually("it fails", || {
                world.condition("one", "ResourcesApplied").is_some_and(|(_, reason, _)| reason == "ApplyFailed")
            })
            .await;

        let (_, _, message) = world.condition("one", "ResourcesApplied").unwrap();
        assert!(message.starts_with("Operation cannot be fulfilled on configmaps"), "{message}");
    });
}

/// spec 10 §13.5.1: in the reconcile that deletes it.
#[test]
fn unreadable_grace_time_is_reported_with_the_deletion() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        world.sim.edit("configmaps", NAMESPACE, "b", |live| {
            live["metadata"]["finalizers"] = json!(["example.com/stuck"]);
            live["metadata"]["annotations"]["resources.gardener.cloud/finalize-deletion-after"] = json!("soon");
        });
        seconds(5).await;
        world.secret("one", &[config_map("a", "v")]);
        world
            .eventually("it is pending", || {
                world.condition("one", "ResourcesApplied").is_some_and(|(_, reason, _)| reason == "DeletionPending")
            })
            .await;

        let (_, _, message) = world.condition("one", "ResourcesApplied").unwrap();
        assert!(message.contains("failed parsing duration of"), "{message}");
    });
}
