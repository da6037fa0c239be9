//! Kinds that are not served, or seem not to be (spec 33 §4.2, T5).

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use serde_json::Value;
use sim::{Failure, Fault, Seen};

use super::{
    OLD, collectable, complete, is_there, last_error, line, pod, prometheuses, put, refers_to, start, workload,
};
use crate::world::{NAMESPACE, seconds, world};

fn not_served() -> Fault {
    Fault::FailBefore(Seen::status(404, "NotFound", "the server could not find the requested resource"))
}

/// spec 33 scenario 18
#[test]
fn managed_resources_and_prometheuses_without_definitions_refer_to_nothing() {
    world(1, |world| async move {
        let definition = "managedresources.resources.gardener.cloud";
        world.sim.remove("customresourcedefinitions.apiextensions.k8s.io", "", definition).expect("the definition");
        collectable(&world, "ConfigMap", NAMESPACE, "a");
        seconds(OLD).await;
        start(&world).await;

        assert!(!is_there(&world, "ConfigMap", NAMESPACE, "a"));
        assert_eq!(last_error(&world), "");
    });
}

/// spec 33 scenario 19
#[test]
fn workerless_cluster_counts_the_remaining_kinds() {
    world(1, |world| async move {
        for name in ["unused", "used"] {
            collectable(&world, "ConfigMap", NAMESPACE, name);
        }
        put(&world, "Pod", NAMESPACE, "p", pod(&refers_to("configmap", "used")));
        seconds(OLD).await;
        let mut groups = world.ask("GET", "/apis", None).await.expect("the groups");
        let of_workers = |group: &Value| group["name"] == "apps" || group["name"] == "batch";
        groups["groups"].as_array_mut().expect("a list").retain(|group| !of_workers(group));
        let document = groups.to_string();
        world.sim.set_faults(move |info| match (info.path.as_str(), info.group.as_str()) {
            ("/apis", _) => {
                let (body, content_type) = (document.clone().into(), "application/json");
                Fault::FailBefore(Seen::Answer(Failure { code: 200, body, content_type, retry_after: None }))
            }
            (_, "apps" | "batch") => not_served(),
            (path, _) if ["/apis/apps", "/apis/batch"].iter().any(|group| path.starts_with(group)) => not_served(),
            _ => Fault::None,
        });
        start(&world).await;

        let left = ["unused", "used"].map(|name| is_there(&world, "ConfigMap", NAMESPACE, name));
        assert_eq!((left, last_error(&world).as_str()), ([false, true], ""));
        let asked = world.requests().into_iter().filter(|request| request.info.group == "apps");
        assert_ne!(asked.count(), 0, "each kind is tried");
    });
}

/// spec 33 T5; spec 33, better 2: the answer of discovery before the list failed is no evidence, however recent.
#[test]
fn kind_that_appears_while_its_list_is_refused_ends_the_run() {
    world(1, |world| async move {
        collectable(&world, "ConfigMap", NAMESPACE, "a");
        seconds(OLD).await;
        let (lists, sim) = (AtomicUsize::new(0), world.sim.clone());
        world.sim.set_faults(move |info| match (info.verb.as_str(), info.resource.as_str()) {
            // It is absent in the survey, and exists at the check before the deletion.
            ("list", "prometheuses") if lists.fetch_add(1, Relaxed) > 0 => {
                sim.put(prometheuses()).expect("a definition");
                let holder = workload("Prometheus", &refers_to("configmap", "a"));
                sim.put(complete("Prometheus", NAMESPACE, "p", holder)).expect("a Prometheus");
                Fault::FailBefore(Seen::forbidden(info))
            }
            _ => Fault::None,
        });
        start(&world).await;
        seconds(60).await;

        assert!(is_there(&world, "ConfigMap", NAMESPACE, "a"));
        let expected = "failed listing objects of gvk monitoring.coreos.com/v1, Kind=PrometheusList: ";
        assert!(last_error(&world).starts_with(expected), "{}", last_error(&world));
    });
}

/// spec 33 T5: a proxy that answers unknown requests with 404 proves nothing.
#[test]
fn discovery_that_is_not_found_does_not_prove_absence() {
    world(1, |world| async move {
        collectable(&world, "ConfigMap", NAMESPACE, "a");
        seconds(OLD).await;
        let lists = AtomicUsize::new(0);
        world.sim.set_faults(move |info| {
            let is_list = info.verb == "list" && info.resource == "prometheuses";
            let is_down = lists.fetch_add(usize::from(is_list), Relaxed) > 0;
            if is_down && info.resource.is_empty() { not_served() } else { Fault::None }
        });
        start(&world).await;
        seconds(60).await;

        assert!(is_there(&world, "ConfigMap", NAMESPACE, "a"));
        let expected = "failed listing objects of gvk monitoring.coreos.com/v1, Kind=PrometheusList: \
                        unable to retrieve the complete list of server APIs: monitoring.coreos.com/v1: the API server";
        assert!(last_error(&world).starts_with(expected), "{}", last_error(&world));
        world.sim.clear_faults();
        seconds(300).await;
        assert!(!is_there(&world, "ConfigMap", NAMESPACE, "a"));
    });
}

/// decision 38; spec 33 T5: an API server that is starting lists no custom objects, and denies that their kind exists.
#[test]
fn reference_of_a_custom_resource_counts_while_the_api_server_starts() {
    let usual = sim::Start::default();
    let (long, short) = (std::time::Duration::from_secs(60), std::time::Duration::from_millis(1));
    // No request is retried for that long: a run fails, and the next run collects.
    let failed = "failed listing objects of gvk resources.gardener.cloud/v1alpha1, Kind=ManagedResourceList: the request has \
                  been made before all known HTTP paths have been installed, please try again";
    let starts = [
        (usual, ""),
        (sim::Start { installing: long, ..usual }, failed),
        (sim::Start { installing: short, discovering: long, unready: long }, ""),
    ];
    for (api_server, error) in starts {
        world(1, |world| async move {
            world.sim.put(prometheuses()).expect("a definition");
            seconds(1).await;
            for name in ["used", "unused"] {
                collectable(&world, "ConfigMap", NAMESPACE, name);
            }
            put(&world, "Prometheus", NAMESPACE, "p", workload("Prometheus", &refers_to("configmap", "used")));
            seconds(OLD).await;
            world.sim.restart(api_server);
            start(&world).await;
            seconds(600).await;

            let left = ["used", "unused"].map(|name| is_there(&world, "ConfigMap", NAMESPACE, name));
            assert_eq!((left, last_error(&world).as_str()), ([true, false], error));
            let last = "2 candidates, 1 deleted, 1 in use, 0 changed meanwhile, 0 failed; 0 too young, 0 terminating";
            assert_eq!(line(&world), last, "the last run succeeded");
        });
    }
}

/// spec 33 scenario 18; spec 33, better 2: roles often cover served kinds only, and the server checks rights first.
#[test]
fn forbidden_kind_that_is_proven_unserved_refers_to_nothing() {
    world(1, |world| async move {
        collectable(&world, "ConfigMap", NAMESPACE, "a");
        seconds(OLD).await;
        world.sim.set_faults(|info| match (info.verb.as_str(), info.resource.as_str()) {
            ("list", "prometheuses") => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        start(&world).await;

        assert_eq!((is_there(&world, "ConfigMap", NAMESPACE, "a"), last_error(&world).as_str()), (false, ""));
    });
}

/// spec 33 §4.2, T5; spec 33, better 2
#[test]
fn kind_whose_list_is_not_found_although_discovered_ends_the_run() {
    world(1, |world| async move {
        collectable(&world, "ConfigMap", NAMESPACE, "a");
        seconds(OLD).await;
        world.sim.set_faults(|info| match (info.verb.as_str(), info.resource.as_str()) {
            ("list", "deployments") => not_served(),
            _ => Fault::None,
        });
        start(&world).await;
        seconds(120).await;

        assert!(is_there(&world, "ConfigMap", NAMESPACE, "a"));
        assert!(
            last_error(&world).starts_with("failed listing objects of gvk apps/v1, Kind=DeploymentList: "),
            "{}",
            last_error(&world)
        );
        world.sim.clear_faults();
        seconds(300).await;
        assert!(!is_there(&world, "ConfigMap", NAMESPACE, "a"));
    });
}
