//! Workloads are reviewed when the cluster gets or loses its second node (spec 41, part C). The tests play the webhook.

use std::{rc::Rc, time::Duration};

use gardener_resource_manager::api::config::resource_manager::HighAvailabilityConfig;
use serde_json::{Value, json};
use sim::{Fault, Seen};

use super::{begin, put};
use crate::world::{World, seconds, world};

const PREFIX: &str = "high-availability-config.resources.gardener.cloud/";
const HOST: &str = "kubernetes.io/hostname";
pub(crate) const SOFT: &str = "ScheduleAnyway";
pub(crate) const HARD: &str = "DoNotSchedule";

pub(crate) const SETTINGS: HighAvailabilityConfig =
    HighAvailabilityConfig { default_not_ready_toleration_seconds: None, default_unreachable_toleration_seconds: None };

async fn start(world: &World) {
    world.config.borrow_mut().webhooks.high_availability_config = SETTINGS.into();
    begin(world).await;
}

pub(crate) fn namespace(world: &World, name: &str, annotations: Value) {
    let labels = json!({format!("{PREFIX}consider"): "true"});
    put(
        world,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels, "annotations": annotations}}),
    );
}

pub(crate) fn join(world: &World, name: &str) {
    put(world, json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}));
}

fn leave(world: &World, name: &str) {
    world.sim.remove("nodes", "", name).expect("it exists");
}

fn workload(kind: &str, namespace: &str, name: &str, key: &str, when: &str) -> Value {
    let constraint = json!({"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": when});
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "topologySpreadConstraints": [constraint]});
    let template = json!({"metadata": {"labels": {"app": name}}, "spec": spec});
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"namespace": namespace, "name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "serviceName": "s", "template": template},
    })
}

pub(crate) fn deployment(world: &World, name: &str, when: &str) {
    put(world, workload("Deployment", "x", name, HOST, when));
}

/// Waits for the run one second after a change. A workload that is still wrong is patched again another second later.
async fn run() {
    tokio::time::sleep(Duration::from_millis(1_500)).await;
}

fn turn(world: &World, name: &str, when: &str) {
    world.sim.edit("deployments.apps", "x", name, |live| {
        live["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] = json!(when);
    });
}

fn patched(world: &Rc<World>) -> Vec<String> {
    let requests = world.requests();
    world.sim.clear_requests();
    let patches = requests.iter().filter(|it| it.info.verb == "patch" && it.info.group == "apps");
    patches.map(|it| format!("{} {}", it.info.resource, it.info.name)).collect()
}

/// spec 41 scenarios 31, 32, 33, 35
#[test]
fn second_node_and_its_removal_patch_each_wrong_workload_once() {
    world(1, |world| async move {
        namespace(&world, "x", json!({}));
        join(&world, "one");
        deployment(&world, "web", SOFT);
        put(&world, workload("StatefulSet", "x", "db", HOST, SOFT));
        start(&world).await;
        seconds(3).await;
        assert_eq!(patched(&world), [""; 0]);

        join(&world, "two");
        seconds(3).await;
        assert_eq!(patched(&world), ["deployments web", "statefulsets db"]);
        turn(&world, "web", HARD);
        join(&world, "three");
        seconds(60).await;
        leave(&world, "three");
        seconds(60).await;
        assert_eq!(patched(&world), [""; 0], "the threshold is between one and two");

        leave(&world, "two");
        run().await;
        assert_eq!(patched(&world), ["deployments web"]);
    });
}

/// spec 41 scenarios 34, 38; spec 41 C.4
#[test]
fn workloads_out_of_scope_are_not_patched() {
    world(1, |world| async move {
        namespace(&world, "x", json!({}));
        put(&world, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "y"}}));
        join(&world, "one");
        join(&world, "two");
        deployment(&world, "hard", HARD);
        put(&world, workload("Deployment", "x", "zone", "topology.kubernetes.io/zone", SOFT));
        put(&world, workload("Deployment", "y", "elsewhere", HOST, SOFT));
        let mut skipped = workload("Deployment", "x", "skipped", HOST, SOFT);
        skipped["metadata"]["labels"] = json!({format!("{PREFIX}skip"): ""});
        put(&world, skipped);
        start(&world).await;
        seconds(60).await;

        assert_eq!(patched(&world), [""; 0], "scenario 38: all is right");
    });
}

/// spec 41 scenarios 36, 37; spec 41 C-T1
#[test]
fn failed_patches_are_retried_until_all_workloads_are_right() {
    world(1, |world| async move {
        namespace(&world, "x", json!({}));
        join(&world, "one");
        ["a", "b", "c"].iter().for_each(|name| deployment(&world, name, SOFT));
        start(&world).await;
        seconds(3).await;
        let mut refused = false;
        world.sim.set_faults(move |request| match (request.verb.as_str(), request.name.as_str()) {
            ("patch", "b") if !std::mem::replace(&mut refused, true) => Fault::FailBefore(Seen::unavailable()),
            ("patch", "c") => Fault::Delay(Duration::from_secs(1)),
            _ => Fault::None,
        });
        join(&world, "two");
        run().await;
        world.sim.remove("deployments.apps", "x", "c");
        seconds(3).await;

        let patched = patched(&world);
        let count = |name: &str| patched.iter().filter(|it| it.ends_with(name)).count();
        assert!(count("a") >= 1 && count("b") == 2 && count("c") == 1, "{patched:?}");
        seconds(600).await;
        assert_eq!(self::patched(&world), [""; 0], "the retries have ended");
    });
}

/// spec 41 C-T2
#[test]
fn unchanged_workload_is_patched_again_three_times() {
    world(1, |world| async move {
        namespace(&world, "x", json!({format!("{PREFIX}failure-tolerance-type"): "node"}));
        join(&world, "one");
        deployment(&world, "web", SOFT);
        start(&world).await;
        seconds(3).await;
        join(&world, "two");
        for (wait, expected) in [(1_500, 1), (1_000, 1), (5_000, 1), (15_000, 1), (600_000, 0)] {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            assert_eq!(patched(&world).len(), expected, "after {wait} ms more");
        }

        leave(&world, "two");
        seconds(3).await;
        join(&world, "two");
        seconds(2).await;
        turn(&world, "web", HARD);
        seconds(600).await;
        assert_eq!(patched(&world).len(), 2, "the second patch finds it changed");
    });
}

/// spec 41 C-T2: further nodes neither use up nor delay the attempts.
#[test]
fn nodes_that_join_do_not_affect_the_attempts() {
    world(1, |world| async move {
        namespace(&world, "x", json!({format!("{PREFIX}failure-tolerance-type"): "node"}));
        join(&world, "one");
        deployment(&world, "web", SOFT);
        start(&world).await;
        seconds(3).await;
        join(&world, "two");
        run().await;
        assert_eq!(patched(&world).len(), 1);
        let mut patches = Vec::new();
        for number in 0..30 {
            join(&world, &format!("n{number}"));
            seconds(1).await;
            patches.push(patched(&world).len());
        }

        assert_eq!(patches.iter().sum::<usize>(), 3, "{patches:?}");
        assert!(patches[..10].iter().sum::<usize>() < 3, "the last one is 21 s after the first: {patches:?}");
    });
}

/// spec 41 C-T2
#[test]
fn workload_whose_patches_fail_does_not_block_the_others() {
    world(1, |world| async move {
        namespace(&world, "x", json!({format!("{PREFIX}failure-tolerance-type"): "node"}));
        join(&world, "one");
        ["a", "b"].iter().for_each(|name| deployment(&world, name, SOFT));
        start(&world).await;
        seconds(3).await;
        join(&world, "two");
        run().await;
        assert_eq!(patched(&world).len(), 2);
        world.sim.set_faults(|request| match (request.verb.as_str(), request.name.as_str()) {
            ("patch", "b") => Fault::FailBefore(Seen::forbidden(request)),
            _ => Fault::None,
        });
        seconds(600).await;

        let patched = patched(&world);
        assert_eq!(patched.len(), 6, "three times each, and no more: {patched:?}");
    });
}

/// spec 41 scenario 39
#[test]
fn disabled_webhook_patches_nothing() {
    world(1, |world| async move {
        namespace(&world, "x", json!({}));
        join(&world, "one");
        join(&world, "two");
        deployment(&world, "web", SOFT);
        begin(&world).await;
        seconds(60).await;

        assert_eq!(patched(&world), [""; 0]);
    });
}

/// spec 41 scenario 40; spec 41 C-T5
#[test]
fn burst_of_nodes_causes_one_patch_of_each_workload() {
    world(1, |world| async move {
        namespace(&world, "x", json!({}));
        deployment(&world, "web", SOFT);
        start(&world).await;
        for number in 0..50 {
            join(&world, &format!("n{number:02}"));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        seconds(30).await;

        assert_eq!(patched(&world), ["deployments web"]);
    });
}

/// spec 41 scenario 41; spec 41 C.3 step 1a
#[test]
fn first_nodes_of_a_cluster_cause_a_review() {
    world(1, |world| async move {
        namespace(&world, "x", json!({}));
        join(&world, "one");
        deployment(&world, "web", SOFT);
        start(&world).await;
        seconds(3).await;
        leave(&world, "one");
        seconds(3).await;
        assert_eq!(patched(&world), [""; 0], "without nodes nothing is patched");
        // Without a node the webhook makes the spread hard (decision 4).
        deployment(&world, "new", HARD);
        join(&world, "two");
        run().await;
        assert_eq!(patched(&world), ["deployments new"]);

        turn(&world, "new", SOFT);
        join(&world, "three");
        seconds(3).await;
        let mut both = patched(&world);
        both.sort();
        assert_eq!(both, ["deployments new", "deployments web"]);
    });
}

/// spec 41 scenario 41: also within one burst.
#[test]
fn moment_without_nodes_is_noticed() {
    world(1, |world| async move {
        namespace(&world, "x", json!({}));
        join(&world, "one");
        start(&world).await;
        seconds(3).await;
        leave(&world, "one");
        deployment(&world, "new", HARD);
        join(&world, "two");
        run().await;

        assert_eq!(patched(&world), ["deployments new"]);
    });
}

/// spec 41 scenario 42; spec 41 C-T4
#[test]
fn namespaces_outside_of_the_target_are_skipped() {
    world(1, |world| async move {
        namespace(&world, "x", json!({}));
        namespace(&world, "y", json!({}));
        join(&world, "one");
        deployment(&world, "web", SOFT);
        put(&world, workload("Deployment", "y", "web", HOST, SOFT));
        world.config.borrow_mut().target.namespaces = vec!["x".to_owned(), crate::world::NAMESPACE.to_owned()];
        start(&world).await;
        seconds(3).await;
        join(&world, "two");
        seconds(3).await;

        let requests = world.requests();
        let patches: Vec<_> =
            requests.iter().filter(|it| it.info.verb == "patch").map(|it| it.info.namespace.clone()).collect();
        assert_eq!(patches, ["x"]);
    });
}
