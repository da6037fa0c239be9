//! Objects of several ManagedResources, and ManagedResources that contain themselves.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use sim::Fault;

use crate::{
    objects::{annotated, with},
    world::{NAMESPACE, World, config_map, managed_resource, namespace, stream, world},
};

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn ignored(mut object: Value) -> Value {
    object["metadata"]["annotations"]["resources.gardener.cloud/mode"] = json!("Ignore");
    object
}

fn events(world: &World) -> Vec<String> {
    let events = world.sim.objects("events");
    events.iter().map(|event| event["reason"].as_str().unwrap_or_default().to_owned()).collect()
}

/// spec 10 scenario 23, decision 11: the new owner is faster than the old one, which has not seen its new Secret yet.
#[test]
fn bundle_that_gives_an_object_away_is_no_conflicting_owner() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("x", "v")]);
        world.applied("one").await;
        let uid = world.config_map("x").unwrap()["metadata"]["uid"].clone();
        let mut first = true;
        world.sim.set_faults(move |info| {
            let hit = info.resource == "secrets" && info.verb == "get" && info.name == "one";
            if hit && std::mem::take(&mut first) { Fault::Delay(Duration::from_secs(3)) } else { Fault::None }
        });
        world.secret("one", &[ignored(config_map("x", "v"))]);
        world.bundle("two", &[config_map("x", "w")]);
        seconds(2).await;
        assert_eq!((world.is_applied("two"), world.refs("one").len()), (true, 1), "two is first");
        seconds(20).await;

        let live = world.config_map("x").unwrap();
        assert_eq!(live["metadata"]["uid"], uid);
        assert_eq!(live["metadata"]["annotations"]["resources.gardener.cloud/origin"], "shoot/two");
        assert_eq!((world.refs("one").len(), world.refs("two").len()), (0, 1));
        assert_eq!(events(&world), [""; 0]);
    });
}

/// decision 11
#[test]
fn conflicting_owners_of_an_object_get_an_event() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("x", "v")]);
        world.applied("one").await;
        world.bundle("two", &[config_map("x", "w")]);
        seconds(20).await;

        assert!(events(&world).iter().any(|reason| reason == "ConflictingOwner"));
    });
}

/// spec 10 §15: a ManagedResource would wait for itself.
#[test]
fn bundle_that_contains_itself_can_be_deleted() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), managed_resource("one", &["one"], json!({}))]);
        world.applied("one").await;
        seconds(5).await;
        world.sim.clear_requests();
        seconds(120).await;
        assert_eq!(world.asked(), [""; 0]);
        world.delete_bundle("one").await;
        seconds(5).await;

        assert_eq!((world.mr("one"), world.config_map("a")), (None, None));
    });
}

/// A ManagedResource that leaves its own manifests is not pruned: that would delete all its objects.
#[test]
fn bundle_that_no_longer_contains_itself_stays() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), managed_resource("one", &["one"], json!({}))]);
        world.applied("one").await;
        world.secret("one", &[config_map("a", "w")]);
        seconds(20).await;

        assert_eq!((world.is_applied("one"), world.refs("one")), (true, vec!["a".to_owned()]));
        assert_eq!(world.value("a").as_deref(), Some("w"));
    });
}

/// Each waits for the end of the next.
#[test]
fn bundles_that_contain_each_other_can_be_deleted() {
    for count in [2, 3] {
        world(1, |world| async move {
            let name = |index: usize| format!("b{}", index % count);
            world.start().await;
            for index in 0..count {
                let next = name(index + 1);
                world.bundle(
                    &name(index),
                    &[config_map(&name(index), "v"), managed_resource(&next, &[&next], json!({}))],
                );
            }
            for index in 0..count {
                world.applied(&name(index)).await;
            }
            seconds(5).await;
            world.delete_bundle("b0").await;
            seconds(30).await;

            let left: Vec<_> = (0..count).filter(|index| world.mr(&name(*index)).is_some()).collect();
            assert_eq!(left, [0; 0]);
            assert_eq!(world.sim.objects("configmaps").len(), 0);
        });
    }
}

/// A ManagedResource never prunes the Secret that it reads its manifests from.
#[test]
fn bundle_whose_own_secret_left_its_manifests_keeps_the_secret() {
    world(1, |world| async move {
        let inner = stream(&[config_map("b", "v")]);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": NAMESPACE, "name": "one" },
            "data": { "objects.yaml": BASE64_STANDARD.encode(inner) }
        });
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), secret]);
        seconds(20).await;
        assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
        assert_eq!((world.value("a"), world.value("b").as_deref()), (None, Some("v")));
        seconds(120).await;
        assert!(world.is_applied("one") && world.sim.object("secrets", NAMESPACE, "one").is_some());
        world.delete_bundle("one").await;
        seconds(5).await;

        assert_eq!((world.mr("one"), world.config_map("b")), (None, None));
    });
}

/// spec 10 §13.7, decision 41: its own Namespace cannot end before the ManagedResource does.
#[test]
fn bundle_that_contains_its_own_namespace_deletes_it_last() {
    for separate in [false, true] {
        world(1, |world| async move {
            world.separate.set(separate);
            world.start().await;
            let held = with(config_map("a", "v"), "/metadata/finalizers", json!(["a.b/c"]));
            world.bundle("one", &[namespace(NAMESPACE), held, config_map("b", "v"), namespace("other")]);
            world.applied("one").await;
            world.delete_bundle("one").await;
            seconds(30).await;
            let live = world.sim.object("namespaces", "", NAMESPACE).expect("it exists");
            assert_eq!(live["metadata"].get("deletionTimestamp"), None, "an object remains");
            assert!(world.mr("one").is_some());

            let release = json!({ "metadata": { "finalizers": null } });
            world.ask("PATCH", "/api/v1/namespaces/shoot/configmaps/a", Some(release)).await.unwrap();
            seconds(30).await;

            assert_eq!(world.mr("one"), None);
            assert_eq!(world.sim.object("namespaces", "", NAMESPACE), None);
            assert_eq!(world.sim.object("namespaces", "", "other"), None);
        });
    }
}

/// spec 10 §13.7: a target without ManagedResources does not contain this one, so a Namespace of that name is ordinary.
#[test]
fn bundle_with_a_namespace_of_that_name_in_a_separate_target_can_be_deleted() {
    world(1, |world| async move {
        let target = world.other_target();
        world.start().await;
        world.bundle("one", &[namespace(NAMESPACE), config_map("a", "v")]);
        world.applied("one").await;
        assert!(target.object("configmaps", NAMESPACE, "a").is_some());
        world.delete_bundle("one").await;
        seconds(60).await;

        assert_eq!(world.mr("one"), None);
        assert_eq!(target.object("namespaces", "", NAMESPACE), None);
        assert!(world.sim.object("namespaces", "", NAMESPACE).is_some(), "the source has another Namespace");
    });
}

/// spec 10 §13.7: the deletion of the Namespace deletes the ManagedResource.
#[test]
fn bundle_that_contains_its_own_namespace_ends_with_the_namespace() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[namespace(NAMESPACE), config_map("a", "v"), role_of_cluster()]);
        world.applied("one").await;
        world.ask("DELETE", "/api/v1/namespaces/shoot", None).await.unwrap();
        seconds(60).await;

        assert_eq!(world.mr("one"), None);
        assert_eq!(world.sim.object("namespaces", "", NAMESPACE), None);
        assert_eq!(world.sim.object("clusterroles.rbac.authorization.k8s.io", "", "r"), None);
    });
}

/// spec 10 §13.2 applies to it, too.
#[test]
fn bundle_that_contains_its_own_namespace_keeps_it_if_annotated() {
    world(1, |world| async move {
        world.start().await;
        let kept = annotated(namespace(NAMESPACE), "keep-object", "true");
        world.bundle("one", &[kept, config_map("a", "v")]);
        world.applied("one").await;
        world.delete_bundle("one").await;
        seconds(20).await;

        assert_eq!((world.mr("one"), world.config_map("a")), (None, None));
        let live = world.sim.object("namespaces", "", NAMESPACE).expect("it exists");
        assert_eq!(live["metadata"].get("deletionTimestamp"), None);
    });
}

fn role_of_cluster() -> Value {
    json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "r" }, "rules": [] })
}
