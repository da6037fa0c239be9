//! The API server starts: kinds that it does not serve yet are not gone (spec 10 §13.1, decision 38; facts §7).

use std::time::Duration;

use serde_json::{Value, json};
use sim::{Failure, Fault, Seen, Start};

use crate::{
    objects::{definition, widget},
    world::{NAMESPACE, World, config_map, seconds, world},
};

const APPLIED: &str = "ResourcesApplied";

fn starts() -> [Start; 3] {
    let usual = Start::default();
    [
        usual,
        Start { installing: Duration::from_secs(20), ..usual },
        Start { discovering: Duration::from_secs(20), unready: Duration::from_secs(20), ..usual },
    ]
}

fn has_widget(world: &World) -> bool {
    world.sim.object("widgets.example.org", NAMESPACE, "kept").is_some()
}

async fn with_widget(world: &World) {
    world.sim.put(definition()).expect("the definition is valid");
    seconds(1).await;
    world.start().await;
    world.bundle("one", &[config_map("a", "v"), widget(1)]);
    world.applied("one").await;
    seconds(5).await;
}

async fn always(count: u64, what: &str, holds: impl Fn() -> bool) {
    for _ in 0..count * 10 {
        assert!(holds(), "{what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A ManagedResource of a kind that does not exist: discovery is repeated again and again.
fn ask_for_more(world: &World) {
    let other = json!({
        "apiVersion": "example.org/v1", "kind": "Other", "metadata": { "namespace": NAMESPACE, "name": "other" }
    });
    world.bundle("asking", &[other]);
}

/// spec 10 §13.1, §15: a ManagedResource keeps its finalizer until its custom resources are gone.
#[test]
fn api_server_start_during_a_deletion_orphans_nothing() {
    for start in starts() {
        for is_program_started_too in [false, true] {
            world(1, |world| async move {
                with_widget(&world).await;
                ask_for_more(&world);
                seconds(15).await;
                if is_program_started_too {
                    world.stop().await;
                }
                world.delete_bundle("one").await;
                world.sim.restart(start);
                if is_program_started_too {
                    world.start().await;
                }
                always(100, "the widget is deleted before its ManagedResource", || {
                    world.mr("one").is_some() || !has_widget(&world)
                })
                .await;

                assert!(world.mr("one").is_none(), "{:?}", world.condition("one", APPLIED));
                assert!(!has_widget(&world));
            });
        }
    }
}

/// spec 10 §9.3, §13.1: pruned objects are not forgotten, and the condition says so until they are gone.
#[test]
fn api_server_start_during_pruning_orphans_nothing() {
    for start in starts() {
        for is_program_started_too in [false, true] {
            world(1, |world| async move {
                with_widget(&world).await;
                ask_for_more(&world);
                seconds(15).await;
                if is_program_started_too {
                    world.stop().await;
                }
                world.sim.restart(start);
                world.secret("one", &[config_map("a", "w")]);
                if is_program_started_too {
                    world.start().await;
                }
                let is_applied = || world.is_applied("one") && world.value("a").as_deref() == Some("w");
                always(150, "ApplySucceeded beside the widget", || !is_applied() || !has_widget(&world)).await;

                assert!(is_applied(), "{:?}", world.condition("one", APPLIED));
                assert!(!has_widget(&world));
                assert_eq!(world.refs("one"), ["a"]);
            });
        }
    }
}

/// spec 10 §11, fault 11: existing objects stay, whatever the server does not serve yet.
#[test]
fn api_server_start_deletes_nothing_and_all_is_applied_after_it() {
    for start in starts() {
        world(1, |world| async move {
            with_widget(&world).await;
            world.stop().await;
            world.sim.clear_requests();
            world.sim.restart(start);
            world.secret("one", &[config_map("a", "w"), widget(2)]);
            world.start().await;
            world.bundle("two", &[config_map("b", "v")]);
            world.applied("two").await;
            world
                .eventually("the widget is changed", || {
                    let widget =
                        world.sim.object("widgets.example.org", NAMESPACE, "kept").expect("it is never deleted");
                    widget["spec"]["size"] == 2 && world.is_applied("one")
                })
                .await;

            assert!(!world.writes().iter().any(|write| write.starts_with("delete")), "{:?}", world.writes());
        });
    }
}

/// spec 10 §13.1: an object is looked up, and deleted, in a version that is served.
#[test]
fn references_of_a_version_that_is_no_longer_served_are_deleted_in_another_one() {
    let versions = |served: bool| {
        let mut definition = definition();
        let mut old = definition["spec"]["versions"][0].clone();
        (old["name"], old["storage"], old["served"]) = (json!("v1beta1"), json!(false), json!(served));
        definition["spec"]["versions"].as_array_mut().unwrap().push(old);
        definition
    };
    for is_bundle_deleted in [false, true] {
        world(1, |world| async move {
            world.sim.put(versions(true)).unwrap();
            seconds(1).await;
            world.start().await;
            let mut old = widget(1);
            old["apiVersion"] = json!("example.org/v1beta1");
            world.bundle("one", &[config_map("a", "v"), old]);
            world.applied("one").await;
            world.sim.put(versions(false)).unwrap();
            seconds(20).await;
            match is_bundle_deleted {
                true => world.delete_bundle("one").await,
                false => world.secret("one", &[config_map("a", "v")]),
            }
            world.eventually("the widget is gone", || !has_widget(&world)).await;
            seconds(20).await;

            assert_eq!(world.mr("one").is_none(), is_bundle_deleted);
            assert!(is_bundle_deleted || (world.is_applied("one") && world.refs("one") == ["a"]));
        });
    }
}

/// spec 10 §13.1: if no version of the kind exists, no object is left to delete.
#[test]
fn references_of_a_proven_absent_kind_delay_nothing() {
    world(1, |world| async move {
        with_widget(&world).await;
        world.sim.remove("customresourcedefinitions.apiextensions.k8s.io", "", "widgets.example.org");
        seconds(20).await;
        world.delete_bundle("one").await;
        world.eventually("the ManagedResource is gone", || world.mr("one").is_none()).await;
    });
}

/// spec 10 §13.1; facts §2: only an answer that names the object proves that it is gone.
#[test]
fn finalizer_stays_after_a_404_of_a_proxy() {
    let html = Failure {
        code: 404,
        body: "<html><h1>Not Found</h1></html>".into(),
        content_type: "text/html",
        retry_after: None,
    };
    let other = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": "secrets \"else\" not found", "details": {"kind": "secrets", "name": "else"},
    });
    let other =
        Failure { code: 404, body: other.to_string().into(), content_type: "application/json", retry_after: None };
    let unnamed = Seen::status(404, "NotFound", "the server could not find the requested resource");
    for seen in [Seen::Answer(html), Seen::Answer(other), unnamed] {
        for (verb, resource) in
            [("get", "widgets"), ("delete", "widgets"), ("get", "configmaps"), ("delete", "configmaps")]
        {
            let seen = seen.clone();
            world(1, |world| async move {
                with_widget(&world).await;
                world.stop().await;
                world.sim.set_faults(move |info| match info.verb == verb && info.resource == resource {
                    true => Fault::FailBefore(seen.clone()),
                    false => Fault::None,
                });
                world.delete_bundle("one").await;
                world.start().await;
                let is_left = || has_widget(&world) || world.config_map("a").is_some();
                always(30, "the ManagedResource outlives its objects", || world.mr("one").is_some() || !is_left())
                    .await;
                world.sim.clear_faults();
                world.eventually("the ManagedResource is gone", || world.mr("one").is_none()).await;
                assert!(!is_left());
            });
        }
    }
}

/// spec 70, trap 6: without the right to list definitions and APIServices the program still works.
#[test]
fn rights_to_definitions_are_optional() {
    world(1, |world| async move {
        world.sim.put(definition()).unwrap();
        seconds(1).await;
        world.sim.set_faults(|info| match info.resource.as_str() {
            "customresourcedefinitions" | "apiservices" => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), widget(1)]);
        world.applied("one").await;
        world.secret("one", &[config_map("a", "w"), widget(2)]);
        let size =
            || world.sim.object("widgets.example.org", NAMESPACE, "kept").map(|it: Value| it["spec"]["size"].clone());
        world.eventually("the widget is changed", || size() == Some(json!(2))).await;
        assert_eq!(world.synced(), Ok(()));
    });
}
