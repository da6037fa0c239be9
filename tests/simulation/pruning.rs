//! Scenarios of spec 10 about pruning, kept objects, and responsibility.

use gardener_resource_manager::api::config::resource_manager::Config;
use serde_json::{Value, json};
use sim::Fault;

use crate::{
    objects::{annotated, object, with},
    world::{NAMESPACE, PROGRAM, World, config, config_map, namespace, seconds, world},
};

fn of_class(class: &str) -> Config {
    let mut config = config();
    config.controllers.resource_class = class.into();
    config
}

fn finalizers(world: &World) -> Value {
    world.mr("one").map(|mr| mr["metadata"]["finalizers"].clone()).unwrap_or_default()
}

/// spec 10 scenario 22.
#[test]
fn prune_deletes_an_ignored_object_that_was_created_unchanged() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[annotated(config_map("a", "v"), "ignore", "TRUE"), config_map("b", "v")]);
        world.applied("one").await;
        let live = world.config_map("a").unwrap();
        assert_eq!(live["metadata"]["labels"], Value::Null);
        assert_eq!(live["metadata"]["annotations"], json!({ "resources.gardener.cloud/ignore": "TRUE" }));
        world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
        world.secret("one", &[annotated(config_map("a", "w"), "ignore", "TRUE"), config_map("b", "w")]);
        seconds(130).await;
        assert_eq!((world.value("a").as_deref(), world.value("b").as_deref()), (Some("edited"), Some("w")));
        world.secret("one", &[config_map("b", "v")]);
        seconds(20).await;

        assert_eq!(world.config_map("a"), None);
    });
}

/// spec 10 scenario 23, in both orders; faults row 23
#[test]
fn prune_spares_an_object_moved_between_bundles_in_ignore_mode() {
    for new_first in [true, false] {
        world(1, |world| async move {
            world.start().await;
            world.bundle("one", &[config_map("x", "v")]);
            world.applied("one").await;
            let uid = world.config_map("x").unwrap()["metadata"]["uid"].clone();
            let give = || world.secret("one", &[annotated(config_map("x", "v"), "mode", "Ignore")]);
            let take = || world.bundle("two", &[config_map("x", "v")]);
            if new_first {
                take()
            } else {
                give()
            }
            seconds(5).await;
            let annotations = world.config_map("x").unwrap()["metadata"]["annotations"].clone();
            if new_first {
                assert_eq!(annotations["resources.gardener.cloud/origin"], "shoot/two");
            } else {
                assert!(!annotations.to_string().contains("resources.gardener.cloud"), "{annotations}");
            }
            if new_first {
                give()
            } else {
                take()
            }
            seconds(5).await;

            let live = world.config_map("x").unwrap();
            assert_eq!(live["metadata"]["uid"], uid);
            assert_eq!(live["metadata"]["annotations"]["resources.gardener.cloud/origin"], "shoot/two");
            assert_eq!((world.refs("one").len(), world.refs("two").len()), (0, 1));
        });
    }
}

/// spec 00 decision 10; faults row 23
#[test]
fn prune_spares_an_object_moved_without_ignore_mode() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("x", "v"), config_map("y", "v")]);
        world.applied("one").await;
        let uid = world.config_map("x").unwrap()["metadata"]["uid"].clone();
        world.bundle("two", &[config_map("x", "v")]);
        world.applied("two").await;
        world.secret("one", &[config_map("y", "v")]);
        seconds(20).await;
        assert!(world.is_applied("one"));
        world.delete_bundle("one").await;
        seconds(20).await;

        assert_eq!(world.config_map("x").unwrap()["metadata"]["uid"], uid);
        assert_eq!((world.mr("one"), world.config_map("y")), (None, None));
        assert!(world.sim.objects("events").iter().any(|event| event["type"] == "Warning"));
    });
}

/// spec 10 scenario 24.
#[test]
fn prune_spares_an_object_annotated_to_be_kept() {
    world(1, |world| async move {
        world.start().await;
        let kept = |name| annotated(config_map(name, "v"), "keep-object", "true");
        world.bundle("one", &[kept("a"), kept("b")]);
        world.applied("one").await;
        seconds(1).await;
        let before = (world.config_map("a"), world.config_map("b"));
        world.secret("one", &[kept("b")]);
        seconds(5).await;
        assert!(world.is_applied("one"));
        world.delete_bundle("one").await;
        seconds(5).await;

        assert_eq!(world.mr("one"), None);
        assert!(before.0.is_some() && before.1.is_some());
        assert_eq!((world.config_map("a"), world.config_map("b")), before);
    });
}

/// spec 10 scenario 25.
#[test]
fn prune_leaves_collectable_objects_to_the_garbage_collector() {
    for enabled in [true, false] {
        world(1, |world| async move {
            let labelled = |mut object: Value| {
                object["metadata"]["labels"]["resources.gardener.cloud/garbage-collectable-reference"] = json!("true");
                object
            };
            let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } });
            world.config.borrow_mut().controllers.garbage_collector.enabled = enabled;
            world.start().await;
            world.bundle("one", &[labelled(config_map("a", "v")), labelled(node)]);
            world.applied("one").await;
            assert!(world.sim.object("nodes", "", "n").is_some());
            world.secret("one", &[]);
            seconds(20).await;

            assert_eq!(world.config_map("a").is_some(), enabled);
            assert_eq!(world.sim.object("nodes", "", "n"), None);
            assert!(world.is_applied("one"));
        });
    }
}

/// spec 10 scenario 26.
#[test]
fn finalizers_are_removed_after_the_grace_time() {
    let held = |object: Value| with(object, "/metadata/finalizers", json!(["a.b/c"]));
    let limited = |object: Value| annotated(object, "finalize-deletion-after", "1h");
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[limited(held(config_map("a", "v"))), limited(namespace("stuck"))]);
        world.applied("one").await;
        // Delays the deletion of the namespace: its contents are deleted, and this object stays.
        world.sim.put(with(held(config_map("inside", "v")), "/metadata/namespace", json!("stuck"))).unwrap();
        let left = || (world.config_map("a").is_some(), world.sim.object("namespaces", "", "stuck").is_some());
        seconds(2).await;
        world.delete_bundle("one").await;
        seconds(59 * 60).await;
        assert_eq!(left(), (true, true));
        assert!(world.mr("one").is_some());
        world.sim.clear_requests();
        seconds(2 * 60).await;

        assert_eq!(left(), (false, false));
        assert_eq!(world.mr("one"), None);
        let writes = world.writes();
        assert!(writes.contains(&"update namespaces/finalize stuck".to_owned()), "{writes:#?}");
    });
}

/// spec 10 §13.5: the object may be recreated between its read and the write that removes its finalizers.
#[test]
fn finalizers_of_a_recreated_object_are_not_removed() {
    let held = |object: Value| with(object, "/metadata/finalizers", json!(["a.b/c"]));
    for (resource, verb, scope, object) in [
        ("configmaps", "patch", NAMESPACE, held(config_map("a", "v"))),
        ("namespaces", "update", "", held(namespace("a"))),
    ] {
        world(1, |world| async move {
            world.start().await;
            world.bundle("one", &[annotated(object.clone(), "finalize-deletion-after", "1s")]);
            world.applied("one").await;
            let first = world.sim.object(resource, scope, "a").unwrap()["metadata"]["uid"].clone();
            let (sim, again) = (world.sim.clone(), annotated(object, "keep-object", "true"));
            world.sim.set_faults(move |info| {
                let live = |object: &Value| object["metadata"]["uid"] == first;
                let is_first = sim.look_at(resource, scope, "a", live) == Some(true);
                if is_first && info.resource == resource && info.verb == verb && info.user == PROGRAM {
                    sim.remove(resource, scope, "a");
                    sim.put(again.clone()).unwrap();
                }
                Fault::None
            });
            world.secret("one", &[]);
            seconds(20).await;

            let live = world.sim.object(resource, scope, "a").unwrap();
            assert_eq!(live["metadata"]["finalizers"], json!(["a.b/c"]), "{resource}: {:#?}", world.asked());
            assert_eq!(live["metadata"]["annotations"]["resources.gardener.cloud/keep-object"], "true");
            assert!(world.is_applied("one"), "{resource}: {:#?}", world.mr("one"));
        });
    }
}

/// spec 10 scenario 29.
#[test]
fn kept_objects_of_a_deleted_bundle_are_not_even_read() {
    world(1, |world| async move {
        world.start().await;
        world.bundle_with("one", &[config_map("a", "v")], json!({ "keepObjects": true }));
        world.applied("one").await;
        seconds(2).await;
        world.sim.clear_requests();
        world.delete_bundle("one").await;
        seconds(5).await;

        assert_eq!(world.mr("one"), None);
        assert!(world.config_map("a").is_some());
        assert!(world.asked().iter().all(|asked| asked.contains("managedresources")), "{:#?}", world.asked());
    });
}

/// spec 10 scenario 30.
#[test]
fn class_handover_begins_when_the_first_class_has_finished() {
    world(1, |world| async move {
        world.start_as("a", of_class("a")).await;
        world.start_as("b", of_class("b")).await;
        world.bundle_with("one", &[config_map("x", "v")], json!({ "class": "a" }));
        world.applied("one").await;
        assert_eq!(finalizers(&world), json!(["resources.gardener.cloud/gardener-resource-manager-a"]));
        let uid = world.config_map("x").unwrap()["metadata"]["uid"].clone();
        world.sim.edit("configmaps", NAMESPACE, "x", |live| live["metadata"]["finalizers"] = json!(["a.b/c"]));
        seconds(2).await;
        world.patch_bundle("one", json!({ "spec": { "class": "b" } })).await;
        seconds(20).await;
        let writes_of_b = || {
            let requests = world.sim.requests();
            let is_write = |verb: &str| !matches!(verb, "get" | "list" | "watch");
            requests.iter().filter(|request| request.info.user == "b" && is_write(&request.info.verb)).count()
        };
        assert_eq!(writes_of_b(), 0);
        let path = "/api/v1/namespaces/shoot/configmaps/x";
        world.ask("PATCH", path, Some(json!({ "metadata": { "finalizers": null } }))).await.unwrap();
        seconds(2).await;

        assert_eq!(finalizers(&world), json!(["resources.gardener.cloud/gardener-resource-manager-b"]));
        assert!(world.is_applied("one"));
        assert_ne!(world.config_map("x").unwrap()["metadata"]["uid"], uid);
        assert!(writes_of_b() > 0);
    });
}

/// spec 10 §7, DEV: the old class ends at once and must not begin again.
#[test]
fn class_handover_that_ends_at_once_leaves_one_finalizer() {
    for keep in [true, false] {
        world(1, |world| async move {
            world.start_as("a", of_class("a")).await;
            world.start_as("b", of_class("b")).await;
            let objects = if keep { vec![config_map("x", "v")] } else { vec![] };
            world.bundle_with("one", &objects, json!({ "class": "a", "keepObjects": keep }));
            world.applied("one").await;
            // As the health controller writes it.
            world.sim.edit("managedresources.resources.gardener.cloud", NAMESPACE, "one", |live| {
                for condition in live["status"]["conditions"].as_array_mut().unwrap() {
                    if condition["type"] == "ResourcesHealthy" {
                        condition["status"] = json!("True");
                    }
                }
            });
            seconds(2).await;
            world.patch_bundle("one", json!({ "spec": { "class": "b" } })).await;
            seconds(180).await;

            assert_eq!(finalizers(&world), json!(["resources.gardener.cloud/gardener-resource-manager-b"]));
            assert_eq!(world.config_map("x").is_some(), keep);
            assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
        });
    }
}

/// spec 10 scenario 31.
#[test]
fn class_of_another_program_is_not_touched() {
    world(1, |world| async move {
        world.start().await;
        world.start_as("y", of_class("y")).await;
        world.bundle_with("one", &[config_map("a", "v")], json!({ "class": "x" }));
        seconds(120).await;

        let mr = world.mr("one").unwrap();
        assert_eq!((&mr["metadata"]["finalizers"], &mr["status"]), (&Value::Null, &Value::Null));
        assert_eq!(world.config_map("a"), None);
    });
}

/// spec 10 scenario 34.
#[test]
fn unhealthy_bundle_is_reconciled_at_once() {
    for (from, reconciles) in [("True", 1), ("Unknown", 0)] {
        world(1, |world| async move {
            let set = |status: &str| {
                let status = json!(status);
                world.sim.edit("managedresources.resources.gardener.cloud", NAMESPACE, "one", |live| {
                    for condition in live["status"]["conditions"].as_array_mut().unwrap() {
                        if condition["type"] == "ResourcesHealthy" {
                            condition["status"] = status.clone();
                        }
                    }
                })
            };
            world.start().await;
            world.bundle("one", &[config_map("a", "v")]);
            world.applied("one").await;
            set(from);
            seconds(3).await;
            world.sim.clear_requests();
            set("False");
            seconds(3).await;

            let reads = world.asked().iter().filter(|asked| *asked == "get secrets one").count();
            assert_eq!(reads, reconciles, "from {from}: {:#?}", world.asked());
        });
    }
}

/// spec 10 scenario 38.
#[test]
fn owner_references_are_those_of_the_manifest() {
    let owner = |name: &str| json!([{ "apiVersion": "v1", "kind": "Node", "name": name, "uid": "11111111-1111-1111-1111-111111111111" }]);
    world(1, |world| async move {
        world.sim.put(json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "ours", "uid": "11111111-1111-1111-1111-111111111111" } })).unwrap();
        world.start().await;
        let mut object = config_map("a", "v");
        object["metadata"]["ownerReferences"] = owner("ours");
        world.bundle("one", &[object]);
        world.applied("one").await;
        seconds(2).await;
        world.sim.edit("configmaps", NAMESPACE, "a", |live| {
            let mut foreign = owner("ours")[0].clone();
            foreign["name"] = json!("theirs");
            live["metadata"]["ownerReferences"].as_array_mut().unwrap().push(foreign);
        });
        seconds(2).await;

        assert_eq!(world.config_map("a").unwrap()["metadata"]["ownerReferences"], owner("ours"));
    });
}

/// spec 10 scenario 36.
#[test]
fn equivalent_kind_is_the_same_object_with_its_old_labels() {
    world(1, |world| async move {
        let spec = json!({ "defaultBackend": { "service": { "name": "s", "port": { "number": 80 } } } });
        let ingress = object("networking.k8s.io/v1", "Ingress", "a", json!({ "spec": spec }));
        let labels = |labels| with(ingress.clone(), "/metadata/labels", labels);
        world.bundle("one", &[labels(json!({ "kept": "1", "dropped": "1" }))]);
        world.start().await;
        world.applied("one").await;
        world.stop().await;
        let uid = world.sim.object("ingresses.networking.k8s.io", NAMESPACE, "a").unwrap()["metadata"]["uid"].clone();
        world.sim.edit("managedresources.resources.gardener.cloud", NAMESPACE, "one", |live| {
            live["status"]["resources"][0]["apiVersion"] = json!("extensions/v1beta1");
        });
        world.secret("one", &[labels(json!({ "kept": "1" }))]);
        world.sim.clear_requests();
        world.start().await;
        world
            .eventually("the ref is new", || {
                world.mr("one").unwrap()["status"]["resources"][0]["apiVersion"] == "networking.k8s.io/v1"
                    && world.is_applied("one")
            })
            .await;

        assert!(world.writes().iter().all(|write| !write.starts_with("delete")), "{:#?}", world.writes());
        let live = world.sim.object("ingresses.networking.k8s.io", NAMESPACE, "a").unwrap();
        assert_eq!(live["metadata"]["uid"], uid);
        let labels = json!({ "kept": "1", "resources.gardener.cloud/managed-by": "gardener" });
        assert_eq!(live["metadata"]["labels"], labels);
    });
}

/// spec 10 §10.2: a kind that is declared together with two others is equivalent to both.
#[test]
fn equivalent_kind_among_two_equivalents_is_not_pruned() {
    let kind = |group: &str, kind: &str| json!({ "group": group, "kind": kind });
    let lists = json!([[kind("", "Secret"), kind("", "ConfigMap")], [kind("apps", "Deployment"), kind("", "Secret")]]);
    world(1, |world| async move {
        world.start().await;
        world.bundle_with("one", &[config_map("a", "v")], json!({ "equivalences": lists }));
        world.applied("one").await;
        world.sim.clear_requests();
        world.secret("one", &[object("v1", "Secret", "a", json!({ "data": { "k": "djE=" } }))]);
        world
            .eventually("the ref is new", || world.mr("one").unwrap()["status"]["resources"][0]["kind"] == "Secret")
            .await;
        seconds(5).await;

        assert!(world.is_applied("one") && world.config_map("a").is_some());
        assert!(world.writes().iter().all(|write| !write.starts_with("delete")), "{:#?}", world.writes());
    });
}

/// No event reports the end of a ManagedResource that belongs to another class by then.
#[test]
fn class_handover_leaves_no_actor_behind() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        seconds(5).await;
        world.patch_bundle("one", json!({"spec": {"class": "other"}})).await;
        seconds(200).await;
        world.delete_bundle("one").await;
        seconds(200).await;

        assert!(world.mr("one").is_none());
        let actors = world.universe.env.status_registry.snapshot().into_iter().map(|actor| actor.path);
        let left: Vec<_> = actors.filter(|path| path.ends_with("/one")).collect();
        assert_eq!(left, [""; 0]);
    });
}
