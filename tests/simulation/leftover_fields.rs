//! The next set removes the fields that a failed set left in objects, at no extra cost (spec 10 §11.3, decision 40).

use serde_json::{Value, json};
use sim::{EventFault, Fault};

use crate::{
    objects::{with, workload},
    world::{NAMESPACE, World, config_map, seconds, world},
};

fn first() -> Vec<Value> {
    vec![config_map("a", "v"), workload("Deployment", "web")]
}

fn more() -> Vec<Value> {
    let mut map = config_map("a", "v");
    map["data"]["more"] = json!("x");
    let web = with(workload("Deployment", "web"), "/spec/template/spec/nodeSelector", json!({ "disk": "ssd" }));
    vec![map, with(web, "/spec/template/spec/hostNetwork", json!(true))]
}

fn broken() -> Vec<Value> {
    let mut objects = more();
    objects.push(config_map("Not_A_Name", "v"));
    objects
}

fn leftovers(world: &World) -> Vec<String> {
    let map = world.config_map("a").expect("the ConfigMap");
    let web = world.sim.object("deployments.apps", NAMESPACE, "web").expect("the Deployment");
    let found = [
        ("more", map["data"]["more"] == "x"),
        ("nodeSelector", web.pointer("/spec/template/spec/nodeSelector").is_some()),
        ("hostNetwork", web.pointer("/spec/template/spec/hostNetwork") == Some(&json!(true))),
    ];
    found.into_iter().filter(|(_, there)| *there).map(|(what, _)| what.to_owned()).collect()
}

fn reason(world: &World) -> String {
    world.condition("one", "ResourcesApplied").map(|(_, reason, _)| reason).unwrap_or_default()
}

async fn failed(world: &World) {
    world.start().await;
    world.bundle("one", &first());
    world.applied("one").await;
    seconds(2).await;
    world.secret("one", &broken());
    // The objects after the failing one are applied once that has failed for a second.
    let is_there = || reason(world) == "ApplyFailed" && leftovers(world) == ["more", "nodeSelector", "hostNetwork"];
    world.eventually("the other set fails", is_there).await;
}

/// spec 10 §11.3, decision 40
#[test]
fn leftovers_of_a_failed_set_are_removed_when_the_former_set_returns() {
    world(1, |world| async move {
        failed(&world).await;
        world.secret("one", &first());
        world.applied("one").await;

        assert_eq!(leftovers(&world), [""; 0]);
    });
}

/// spec 10 §11.3: even if the program restarts before it learns that the former set is back, or before it applies it.
#[test]
fn leftovers_of_a_failed_set_are_removed_after_a_restart() {
    world(1, |world| async move {
        failed(&world).await;
        world.stop().await;
        world.secret("one", &first());
        world.start().await;
        world.applied("one").await;

        assert_eq!(leftovers(&world), [""; 0]);
    });
}

/// spec 10 §11.3, §9.7: a set is announced in the status before anything of it is sent, so that a crash leaves a trace.
#[test]
fn leftovers_of_a_set_that_a_crash_interrupted_are_removed() {
    for crash in 1..=2 {
        world(1, |world| async move {
            world.start().await;
            world.bundle("one", &first());
            world.applied("one").await;
            seconds(2).await;
            let mut updates = 0;
            world.sim.set_faults(move |info| {
                updates += u32::from(info.verb == "update" && ["configmaps", "deployments"].contains(&&*info.resource));
                if updates == crash { Fault::CrashClientAfterCommit } else { Fault::None }
            });
            world.secret("one", &more());
            while !world.is_crashed() {
                seconds(1).await;
            }
            world.sim.clear_faults();
            assert!(!leftovers(&world).is_empty(), "after {crash} updates");
            world.secret("one", &first());
            world.revive().await;
            seconds(30).await;

            assert!(world.is_applied("one"));
            assert_eq!(leftovers(&world), [""; 0], "after {crash} updates");
        });
    }
}

/// spec 10 §9.7: a reconcile for one object that finds another set announces it before it sends anything.
#[test]
fn leftovers_are_announced_by_a_repair_that_finds_another_set() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &first());
        world.applied("one").await;
        seconds(2).await;
        // The program does not learn of the other set before the repair.
        world.sim.set_event_faults(|event| match event.resource.as_str() {
            "secrets" => EventFault::Drop,
            _ => EventFault::Deliver,
        });
        let mut updates = 0;
        world.sim.set_faults(move |info| {
            updates += u32::from(info.verb == "update" && info.resource == "configmaps");
            if updates == 1 { Fault::CrashClientAfterCommit } else { Fault::None }
        });
        world.secret("one", &more());
        world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
        while !world.is_crashed() {
            seconds(1).await;
        }
        world.sim.clear_faults();
        world.sim.clear_event_faults();
        world.secret("one", &first());
        world.revive().await;
        seconds(30).await;

        assert!(world.is_applied("one"));
        assert_eq!(leftovers(&world), [""; 0]);
    });
}

/// spec 10 §11.3: a second program, or a restored backup, writes under the same manager name.
#[test]
fn leftovers_of_another_writer_with_the_same_manager_name_cost_one_write() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &first());
        world.applied("one").await;
        seconds(2).await;
        world.sim.clear_requests();
        let client = world.sim.client_as("other", "gardener-resource-manager/v1");
        let patch = json!({ "spec": { "template": { "spec": { "nodeSelector": { "disk": "ssd" } } } } }).to_string();
        let request = http::Request::builder()
            .method("PATCH")
            .uri("/apis/apps/v1/namespaces/shoot/deployments/web")
            .header("content-type", "application/merge-patch+json")
            .body(patch.into_bytes())
            .unwrap();
        client.request::<Value>(request).await.unwrap();
        seconds(300).await;

        assert_eq!(leftovers(&world), [""; 0]);
        let writes: Vec<_> = world.writes().into_iter().filter(|write| write.contains("deployments")).collect();
        assert_eq!(writes, ["update deployments web"]);
    });
}

/// spec 10 §11.3: fields of the API server are no leftovers, even with an undecodable document in the set (decision 9).
#[test]
fn leftovers_are_not_searched_after_a_restart_if_the_set_was_applied() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &first());
        world.secret_data("two", &[("a.yaml", config_map("b", "v").to_string().as_bytes()), ("b.yaml", b"- no map")]);
        world.sim.put(crate::world::managed_resource("two", &["two"], json!({}))).unwrap();
        world.applied("one").await;
        seconds(30).await;
        world.stop().await;
        world.sim.clear_requests();
        world.start().await;
        seconds(200).await;

        assert_eq!(world.writes(), [""; 0]);
    });
}
