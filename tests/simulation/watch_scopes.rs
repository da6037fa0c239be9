//! Namespaces and versions in which the kinds of objects are watched.

use std::time::Duration;

use serde_json::{Value, json};
use sim::{Fault, Seen};

use crate::world::{NAMESPACE, World, config_map, namespace, world};

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn elsewhere(name: &str) -> Value {
    let mut object = config_map(name, "v");
    object["metadata"]["namespace"] = json!("other");
    object
}

fn edit(world: &World, namespace: &str, name: &str) {
    assert!(world.sim.edit("configmaps", namespace, name, |live| live["data"]["k"] = json!("edited")));
}

fn value(world: &World, namespace: &str, name: &str) -> Value {
    world.sim.object("configmaps", namespace, name).expect("a ConfigMap")["data"]["k"].clone()
}

fn asked_everywhere(world: &World, resource: &str) -> bool {
    let requests = world.requests();
    let mut infos = requests.iter().map(|request| &request.info);
    infos.any(|info| info.resource == resource && info.namespace.is_empty())
}

/// spec 10 §18, 19; spec 70 §8.4
#[test]
fn watches_cover_the_configured_namespaces_and_other_objects_are_read_each_period() {
    for restarted in [false, true] {
        world(1, |world| async move {
            world.sim.put(namespace("other")).unwrap();
            world.config.borrow_mut().target.namespaces = vec![NAMESPACE.to_owned()];
            world.start().await;
            world.bundle("one", &[config_map("a", "v"), elsewhere("b")]);
            world.applied("one").await;
            if restarted {
                world.stop().await;
                world.start().await;
            }
            seconds(90).await;
            edit(&world, NAMESPACE, "a");
            edit(&world, "other", "b");
            seconds(2).await;
            assert_eq!((value(&world, NAMESPACE, "a"), value(&world, "other", "b")), (json!("v"), json!("edited")));
            seconds(60).await;

            assert_eq!(value(&world, "other", "b"), "v");
            assert!(!asked_everywhere(&world, "configmaps"), "{:#?}", world.asked());
        });
    }
}

/// architecture §5
#[test]
fn watches_cover_the_namespaces_of_the_objects_without_the_right_to_all() {
    for restarted in [false, true] {
        world(1, |world| async move {
            world.sim.put(namespace("other")).unwrap();
            world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str(), info.namespace.as_str()) {
                ("configmaps", "list" | "watch", "") => Fault::FailBefore(Seen::forbidden(info)),
                _ => Fault::None,
            });
            world.start().await;
            world.bundle("one", &[config_map("a", "v")]);
            world.applied("one").await;
            seconds(90).await;
            world.secret("one", &[config_map("a", "v"), elsewhere("b")]);
            world.eventually("both are applied", || world.is_applied("one") && world.refs("one").len() == 2).await;
            if restarted {
                world.stop().await;
                world.start().await;
            }
            seconds(130).await;
            world.sim.clear_requests();
            seconds(130).await;
            assert_eq!(world.asked(), [""; 0], "no request is sent while idle");
            edit(&world, NAMESPACE, "a");
            edit(&world, "other", "b");
            seconds(2).await;

            assert_eq!((value(&world, NAMESPACE, "a"), value(&world, "other", "b")), (json!("v"), json!("v")));
        });
    }
}

/// The watch reports autoscalers in the server's preferred version, which differs.
#[test]
fn idle_object_in_another_version_than_the_preferred_is_not_read() {
    for restarted in [false, true] {
        world(1, |world| async move {
            let autoscaler = json!({
                "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
                "metadata": { "namespace": NAMESPACE, "name": "a" },
                "spec": {
                    "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "a" },
                    "maxReplicas": 3, "targetCPUUtilizationPercentage": 80
                }
            });
            world.start().await;
            world.bundle("one", &[autoscaler]);
            world.applied("one").await;
            if restarted {
                world.stop().await;
                world.start().await;
            }
            seconds(130).await;
            world.sim.clear_requests();
            seconds(130).await;
            assert_eq!(world.asked(), [""; 0]);
            let autoscalers = "horizontalpodautoscalers.autoscaling";
            assert!(world.sim.edit(autoscalers, NAMESPACE, "a", |live| live["spec"]["maxReplicas"] = json!(5)));
            seconds(2).await;

            let live = world.sim.object(autoscalers, NAMESPACE, "a").unwrap();
            assert_eq!(live["spec"]["maxReplicas"], 3);
        });
    }
}

/// spec 10 §6: a ManagedResource that is taken from this class with its finalizer keeps no watch open.
#[test]
fn watches_end_when_a_bundle_changes_its_class() {
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": NAMESPACE, "name": "s" },
        "spec": { "ports": [{ "port": 80 }] } });
    world(1, |world| async move {
        let watches = || {
            let actors = world.actors_of("grm");
            actors.iter().any(|actor| actor.path == "watch/target/services.v1")
        };
        world.start().await;
        world.bundle("one", &[service]);
        world.bundle("two", &[config_map("a", "v")]);
        world.applied("one").await;
        world.applied("two").await;
        seconds(5).await;
        assert!(watches());
        world.sim.edit("managedresources.resources.gardener.cloud", NAMESPACE, "one", |live| {
            live["metadata"]["finalizers"] = json!([]);
            live["spec"]["class"] = json!("other");
        });
        seconds(200).await;
        // Idle watches are searched whenever a ManagedResource changes.
        for value in ["w", "v"] {
            world.secret("two", &[config_map("a", value)]);
            seconds(305).await;
        }

        let left: Vec<String> = world.actors_of("grm").into_iter().map(|actor| actor.path).collect();
        assert!(!watches(), "{left:?}");
    });
}
