//! Malformed answers, as a proxy between program and API server may give: they are errors of their requests.

use std::time::Duration;

use gardener_resource_manager::api::config::resource_manager::{self as config, Config};
use serde_json::{Value, json};
use sim::{Fault, NONSENSE, Seen};

use crate::world::{NAMESPACE, World, config_map, seconds, world};

const PROGRAM: &str = "grm";

fn everything() -> Config {
    let text = "
leaderElection: {leaderElect: false}
controllers:
  managedResource: {syncPeriod: 15s}
  health: {syncPeriod: 15s}
  garbageCollector: {enabled: true, syncPeriod: 20s}
  csrApprover: {enabled: true, machineNamespace: shoot}
  istioClusterConfiguration: {enabled: true}
  networkPolicy: {enabled: true}
  nodeCriticalComponents: {enabled: true}
  nodeAgentReconciliationDelay: {enabled: true}
  tokenRequestor: {enabled: true}
  tokenInvalidator: {enabled: true}
webhooks:
  highAvailabilityConfig: {enabled: true}
  systemComponentsConfig: {enabled: true}
  tokenInvalidator: {enabled: true}
";
    config::load(text.as_bytes()).expect("it is valid").config
}

fn objects() -> Vec<Value> {
    let requested = json!({
        "labels": {"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"},
        "annotations": {"serviceaccount.resources.gardener.cloud/name": "one",
            "serviceaccount.resources.gardener.cloud/namespace": NAMESPACE},
        "namespace": NAMESPACE, "name": "requested",
    });
    vec![
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": requested}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": NAMESPACE, "name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "protocol": "TCP"}]}}),
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"},
            "spec": {"taints": [{"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}]}}),
    ]
}

fn disturb(world: &World, number: usize) {
    let mut count = 0;
    world.sim.set_faults(move |info| {
        count += 1;
        match (info.user.as_str(), count % 3) {
            // A claimed success cannot be distinguished from a real one.
            (PROGRAM, 0) if info.verb != "delete" => Fault::FailBefore(Seen::nonsense(number)),
            (PROGRAM, 0 | 1) => Fault::FailAfterCommit(Seen::nonsense(number)),
            _ => Fault::None,
        }
    });
}

fn panicked(world: &World) -> Vec<String> {
    world.actors_of(PROGRAM).into_iter().filter(|actor| actor.restarts > 0).map(|actor| actor.path).collect()
}

/// faults row 31
#[test]
fn malformed_answer_ends_no_actor_and_deletes_nothing() {
    for (number, answer) in NONSENSE.iter().enumerate() {
        world(1, |world| async move {
            *world.config.borrow_mut() = everything();
            for object in objects() {
                world.sim.put(object).expect("it is valid");
            }
            world.start().await;
            world.bundle("one", &[config_map("a", "1"), config_map("b", "1")]);
            world.applied("one").await;
            let uids = || ["a", "b"].map(|name| world.config_map(name).map(|map| map["metadata"]["uid"].clone()));
            let before = uids();

            disturb(&world, number);
            seconds(60).await;
            assert_eq!((uids(), panicked(&world)), (before.clone(), Vec::new()), "{answer}");
            world.secret("one", &[config_map("a", "2"), config_map("b", "2")]);
            seconds(60).await;
            assert_eq!((uids(), panicked(&world)), (before.clone(), Vec::new()), "{answer}");
            world.stop().await;
            world.start().await; // the first lists are disturbed as well
            seconds(60).await;
            assert_eq!((uids(), panicked(&world)), (before.clone(), Vec::new()), "{answer}");

            world.sim.clear_faults();
            tokio::time::sleep(Duration::from_secs(300)).await;
            assert!(world.is_applied("one"), "{answer}");
            assert_eq!(["a", "b"].map(|name| world.value(name)), ["2", "2"].map(|value| Some(value.to_owned())));
            assert_eq!((uids(), panicked(&world)), (before, Vec::new()), "{answer}");
        });
    }
}
