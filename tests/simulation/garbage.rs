//! The garbage collector (spec 33) in the whole program: source and target are one simulated cluster.

mod during_deletions;
mod unserved_kinds;

use std::time::Duration;

use gardener_resource_manager::api::config::resource_manager::GarbageCollector;
use kit::ActorState;
use serde_json::{Value, json};
use sim::{Fault, RequestInfo, Seen};

use crate::world::{NAMESPACE, PROGRAM, World, seconds, world};

pub(super) const LABEL: &str = "resources.gardener.cloud/garbage-collectable-reference";
const REFERENCE: &str = "reference.resources.gardener.cloud/";
const PERIOD: u64 = 3600;
const OLD: u64 = 601;

fn configure(world: &World) {
    let sync_period = Duration::from_secs(PERIOD);
    world.config.borrow_mut().controllers.garbage_collector =
        GarbageCollector { sync_period: sync_period.into() }.into();
}

async fn start(world: &World) {
    configure(world);
    world.sim.clear_requests();
    world.start().await;
    seconds(5).await;
}

pub(super) fn put(world: &World, kind: &str, namespace: &str, name: &str, object: Value) {
    world.sim.put(complete(kind, namespace, name, object)).expect("it is valid");
}

fn complete(kind: &str, namespace: &str, name: &str, mut object: Value) -> Value {
    let version = match kind {
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" => "apps/v1",
        "Job" | "CronJob" => "batch/v1",
        "ManagedResource" => "resources.gardener.cloud/v1alpha1",
        "Prometheus" => "monitoring.coreos.com/v1",
        _ => "v1",
    };
    (object["apiVersion"], object["kind"]) = (json!(version), json!(kind));
    (object["metadata"]["namespace"], object["metadata"]["name"]) = (json!(namespace), json!(name));
    object
}

fn prometheuses() -> Value {
    let names = json!({ "kind": "Prometheus", "plural": "prometheuses", "singular": "prometheus" });
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "prometheuses.monitoring.coreos.com" },
        "spec": { "group": "monitoring.coreos.com", "scope": "Namespaced", "names": names, "versions": [version] },
    })
}

fn collectable(world: &World, kind: &str, namespace: &str, name: &str) {
    put(world, kind, namespace, name, json!({ "metadata": { "labels": { LABEL: "true" } } }));
}

pub(super) fn pod(annotations: &Value) -> Value {
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
    json!({ "metadata": { "annotations": annotations }, "spec": spec })
}

pub(super) fn refers_to(kind: &str, name: &str) -> Value {
    json!({ format!("{REFERENCE}{kind}-x"): name })
}

fn workload(kind: &str, annotations: &Value) -> Value {
    let template = json!({ "metadata": { "labels": { "app": "a" } }, "spec": { "containers": [{ "name": "c", "image": "i" }], "restartPolicy": if kind.ends_with("Job") { "Never" } else { "Always" } } });
    let selector = json!({ "matchLabels": { "app": "a" } });
    let spec = match kind {
        "Pod" => return pod(annotations),
        "ManagedResource" => json!({ "class": "another", "secretRefs": [{ "name": "none" }] }),
        "Prometheus" => json!({}),
        "Job" => json!({ "template": template }),
        "CronJob" => json!({ "schedule": "0 0 1 1 *", "jobTemplate": { "spec": { "template": template } } }),
        "StatefulSet" => json!({ "selector": selector, "template": template, "serviceName": "s" }),
        _ => json!({ "selector": selector, "template": template }),
    };
    json!({ "metadata": { "annotations": annotations }, "spec": spec })
}

fn is_there(world: &World, kind: &str, namespace: &str, name: &str) -> bool {
    world.sim.object(if kind == "Secret" { "secrets" } else { "configmaps" }, namespace, name).is_some()
}

fn lists(world: &World) -> Vec<String> {
    let requests = world.requests().into_iter().map(|request| request.info);
    let of_collector = |info: &RequestInfo| {
        info.verb == "list" && ["deployments", "pods", "cronjobs", "configmaps"].contains(&info.resource.as_str())
    };
    requests.filter(of_collector).map(|info| info.resource).collect()
}

fn deletions(world: &World) -> usize {
    let requests = world.requests().into_iter();
    requests.filter(|request| request.info.verb == "delete" && request.info.user == PROGRAM).count()
}

fn actor(world: &World) -> Option<ActorState> {
    world.actors_of(PROGRAM).into_iter().find(|actor| actor.path.starts_with("garbage-collector/"))
}

fn last_error(world: &World) -> String {
    actor(world).and_then(|actor| actor.last_error).map(|(_, text)| text).unwrap_or_default()
}

fn line(world: &World) -> String {
    actor(world).map(|actor| actor.line).unwrap_or_default()
}

/// spec 33 scenario 1
#[test]
fn disabled_collector_sends_no_request() {
    world(1, |world| async move {
        collectable(&world, "ConfigMap", NAMESPACE, "a");
        seconds(OLD).await;
        world.start().await;
        seconds(2 * PERIOD).await;

        assert!(is_there(&world, "ConfigMap", NAMESPACE, "a"));
        assert_eq!(lists(&world), [""; 0]);
    });
}

/// spec 33 scenarios 2, 3 and 4
#[test]
fn first_run_is_at_once_and_the_next_after_the_period() {
    world(1, |world| async move {
        put(&world, "ConfigMap", NAMESPACE, "unlabelled", json!({}));
        collectable(&world, "ConfigMap", NAMESPACE, "old");
        seconds(OLD).await;
        collectable(&world, "ConfigMap", NAMESPACE, "young");
        start(&world).await;

        assert!(!is_there(&world, "ConfigMap", NAMESPACE, "old"));
        seconds(PERIOD * 89 / 100).await;
        assert!(is_there(&world, "ConfigMap", NAMESPACE, "young"), "ten percent of jitter at most");
        seconds(PERIOD * 22 / 100).await;
        assert!(!is_there(&world, "ConfigMap", NAMESPACE, "young"));
        assert!(is_there(&world, "ConfigMap", NAMESPACE, "unlabelled"));
    });
}

/// spec 33 §4.2, scenarios 6, 7, 15, 16 and 17
#[test]
fn objects_that_a_workload_refers_to_stay_and_replica_sets_do_not_count() {
    for kind in [
        "Deployment",
        "StatefulSet",
        "DaemonSet",
        "Job",
        "CronJob",
        "Pod",
        "ManagedResource",
        "Prometheus",
        "ReplicaSet",
    ] {
        world(1, |world| async move {
            world.sim.put(prometheuses()).expect("a definition");
            for of in ["Secret", "ConfigMap"] {
                collectable(&world, of, NAMESPACE, "a");
                let annotations = refers_to(&of.to_lowercase(), "a");
                put(&world, kind, NAMESPACE, &format!("w-{}", of.to_lowercase()), workload(kind, &annotations));
            }
            seconds(OLD).await;
            start(&world).await;

            let stays = kind != "ReplicaSet";
            for of in ["Secret", "ConfigMap"] {
                assert_eq!(is_there(&world, of, NAMESPACE, "a"), stays, "{of} of a {kind}");
            }
        });
    }
}

/// spec 33 scenarios 13 and 14
#[test]
fn reference_counts_only_for_its_own_namespace_and_kind() {
    world(1, |world| async move {
        world.sim.put(crate::world::namespace("there")).expect("a Namespace");
        for namespace in [NAMESPACE, "there"] {
            collectable(&world, "Secret", namespace, "a");
            collectable(&world, "ConfigMap", namespace, "a");
        }
        put(&world, "Pod", NAMESPACE, "p", pod(&refers_to("secret", "a")));
        seconds(OLD).await;
        start(&world).await;

        assert!(is_there(&world, "Secret", NAMESPACE, "a"));
        assert!(!is_there(&world, "ConfigMap", NAMESPACE, "a"));
        assert!(!is_there(&world, "Secret", "there", "a"));
    });
}

/// spec 33 §4.1; spec 33, better 3: without candidates no further request is needed.
#[test]
fn run_without_candidates_lists_nothing_else() {
    world(1, |world| async move {
        put(&world, "Pod", NAMESPACE, "p", pod(&json!({})));
        start(&world).await;

        assert_eq!(lists(&world), ["configmaps"]);
    });
}

/// spec 33 T6, scenarios 20 and 21; spec 33, better 5
#[test]
fn failed_list_ends_the_run_without_a_deletion_and_is_not_retried_at_once() {
    for (resource, expected) in
        [("pods", "failed listing objects of gvk /v1, Kind=PodList: "), ("configmaps", "failed listing configmaps: ")]
    {
        world(1, |world| async move {
            collectable(&world, "Secret", NAMESPACE, "a");
            seconds(OLD).await;
            world.sim.set_faults(move |info| {
                let fails = info.verb == "list" && info.resource == resource;
                if fails { Fault::FailBefore(Seen::forbidden(info)) } else { Fault::None }
            });
            start(&world).await;
            seconds(60).await;

            assert!(is_there(&world, "Secret", NAMESPACE, "a"));
            assert!(last_error(&world).starts_with(expected), "{}", last_error(&world));
            let tries = lists(&world).into_iter().filter(|listed| listed == "configmaps").count();
            assert!((2..=4).contains(&tries), "{tries} runs in 65 s");
            world.sim.clear_faults();
            seconds(200).await;
            assert!(!is_there(&world, "Secret", NAMESPACE, "a"));
        });
    }
}

/// spec 33 §4.3, scenario 22
#[test]
fn failed_deletion_does_not_prevent_the_others() {
    world(1, |world| async move {
        for name in ["a", "b", "c"] {
            collectable(&world, "ConfigMap", NAMESPACE, name);
        }
        seconds(OLD).await;
        world.sim.set_faults(|info| match (info.verb.as_str(), info.name.as_str()) {
            ("delete", "b") => Fault::FailBefore(Seen::status(500, "InternalError", "no")),
            _ => Fault::None,
        });
        start(&world).await;

        let left: Vec<_> =
            ["a", "b", "c"].into_iter().filter(|name| is_there(&world, "ConfigMap", NAMESPACE, name)).collect();
        assert_eq!(left, ["b"]);
        let expected = "Could not delete all unused resources: 1 error occurred: ";
        assert!(last_error(&world).starts_with(expected), "{}", last_error(&world));
    });
}

/// spec 33 T9, scenario 23; spec 33, better 1
#[test]
fn objects_changed_or_deleted_since_the_list_are_not_deleted() {
    world(1, |world| async move {
        for name in ["changed", "gone", "same"] {
            collectable(&world, "ConfigMap", NAMESPACE, name);
        }
        seconds(OLD).await;
        world.sim.set_faults(|info| match (info.verb.as_str(), info.resource.as_str()) {
            ("list", "cronjobs") => Fault::Delay(Duration::from_secs(10)),
            _ => Fault::None,
        });
        start(&world).await;
        world.sim.edit("configmaps", NAMESPACE, "changed", |map| map["data"] = json!({ "a": "b" }));
        world.sim.remove("configmaps", NAMESPACE, "gone");
        seconds(60).await;

        assert!(is_there(&world, "ConfigMap", NAMESPACE, "changed"));
        assert!(!is_there(&world, "ConfigMap", NAMESPACE, "same"));
        assert_eq!(last_error(&world), "");
        let line = line(&world);
        assert!(line.starts_with("3 candidates, 1 deleted, 0 in use, 2 changed meanwhile,"), "{line}");
    });
}

/// spec 33 scenario 25
#[test]
fn namespaces_of_the_target_alone_are_collected() {
    world(1, |world| async move {
        world.sim.put(crate::world::namespace("there")).expect("a Namespace");
        for namespace in [NAMESPACE, "there"] {
            collectable(&world, "Secret", namespace, "a");
        }
        seconds(OLD).await;
        world.config.borrow_mut().target.namespaces = vec![NAMESPACE.to_owned()];
        start(&world).await;

        assert!(!is_there(&world, "Secret", NAMESPACE, "a"));
        assert!(is_there(&world, "Secret", "there", "a"));
    });
}

/// spec 33 §5, scenario 24
#[test]
fn pruned_collectable_object_is_collected_by_a_later_run() {
    world(1, |world| async move {
        configure(&world);
        world.start().await;
        let mut map = crate::world::config_map("a", "v");
        map["metadata"]["labels"][LABEL] = json!("true");
        world.bundle("one", &[map, crate::world::config_map("b", "v")]);
        world.applied("one").await;
        world.secret("one", &[crate::world::config_map("b", "v")]);
        seconds(60).await;
        assert!(is_there(&world, "ConfigMap", NAMESPACE, "a"), "it is left to the collector");

        seconds(PERIOD * 111 / 100).await;

        assert!(!is_there(&world, "ConfigMap", NAMESPACE, "a"));
        assert!(is_there(&world, "ConfigMap", NAMESPACE, "b"));
    });
}
