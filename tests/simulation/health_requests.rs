//! Which requests health checks send, and when (spec 20 §10, §12).

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    health_objects::{
        ALL_HEALTHY, HEALTHY, MRS, PROGRESSING, ROLLED_OUT, condition, pod, rolled_out, seconds, set_status, stands,
        status_writes, workload,
    },
    objects::{annotated, object},
    world::{NAMESPACE, World, config_map, managed_resource, world},
};

/// spec 20 scenario 37: a missing `apps` group matters only to ManagedResources with objects of it.
#[test]
fn bundle_without_workloads_requests_no_pods() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        stands(&world, HEALTHY, ALL_HEALTHY).await;
        stands(&world, PROGRESSING, ROLLED_OUT).await;

        assert!(world.asked().iter().all(|asked| !asked.contains("pods")), "{:#?}", world.asked());
    });
}

/// spec 20 §6, trap: an object without label and origin is not watched, so each period reads it.
#[test]
fn unwatched_object_is_read_in_each_period() {
    let mut ignored = pod("p", "p");
    ignored["metadata"]["annotations"] = json!({ "resources.gardener.cloud/ignore": "true" });
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[ignored]);
        world.applied("one").await;
        seconds(5).await;
        assert_eq!(condition(&world, HEALTHY)[1], "PodUnhealthy");
        set_status(&world, "pods", "p", json!({ "phase": "Running" }));
        seconds(70).await;
        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
        world.sim.clear_requests();
        seconds(600).await;

        let reads = world.asked().iter().filter(|asked| *asked == "get pods p").count();
        assert!(reads <= 22, "one for health and one for drift in each period: {reads}");
    });
}

/// spec 20 §11.1, §13: the version of a reference decides whether health is checked, but does not affect roll-outs.
#[test]
fn roll_out_is_read_in_the_known_version_whatever_the_reference_says() {
    let text = "Certificate \"shoot/c\" is progressing: observed generation outdated (1/2)";
    let rolling = ["True", "CertificateProgressing", text];
    for (versions, ignored, expected) in [
        (&["v1beta1", "v1alpha1"][..], true, rolling),
        (&["v1beta1", "v1alpha1"], false, rolling),
        (&["v1beta1"], true, ROLLED_OUT),
    ] {
        let mut certificate = object("cert.gardener.cloud/v1beta1", "Certificate", "c", json!({}));
        if ignored {
            certificate = annotated(certificate, "ignore", "true");
        }
        world(1, |world| async move {
            world.sim.put(certificates(versions)).unwrap();
            world.start().await;
            world.bundle("one", &[certificate]);
            world.applied("one").await;
            let stands_at = |observed: i64| {
                world.sim.edit("certificates.cert.gardener.cloud", NAMESPACE, "c", |live| {
                    live["metadata"]["generation"] = json!(2);
                    live["status"] = json!({ "observedGeneration": observed, "state": "Pending" });
                });
            };
            stands_at(1);
            seconds(70).await;
            assert_eq!(condition(&world, PROGRESSING), expected, "{versions:?}, ignored: {ignored}");
            assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY, "{versions:?}, ignored: {ignored}");
            stands_at(2);
            seconds(70).await;

            assert_eq!(condition(&world, PROGRESSING), ROLLED_OUT, "{versions:?}, ignored: {ignored}");
        });
    }
}

fn certificates(versions: &[&str]) -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version =
        |name: &&str| json!({ "name": name, "served": true, "storage": *name == "v1beta1", "schema": schema });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "certificates.cert.gardener.cloud" },
        "spec": {
            "group": "cert.gardener.cloud", "scope": "Namespaced",
            "names": { "kind": "Certificate", "listKind": "CertificateList", "plural": "certificates",
                "singular": "certificate" },
            "versions": versions.iter().map(version).collect::<Vec<_>>(),
        },
    })
}

/// A condition that another client changed is restored, but only with the next reconcile.
#[test]
fn condition_changed_by_another_client_is_right_after_a_period() {
    world(1, |world| async move {
        world.start().await;
        world.secret("one", &[config_map("a", "v")]);
        world.sim.put(managed_resource("one", &["one"], json!({}))).unwrap();
        stands(&world, HEALTHY, ALL_HEALTHY).await;
        world.sim.edit(MRS, NAMESPACE, "one", |live| {
            for condition in live["status"]["conditions"].as_array_mut().unwrap() {
                if condition["type"] == HEALTHY {
                    condition["message"] = json!("hello");
                }
            }
        });
        seconds(70).await;

        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
    });
}

#[test]
fn pods_are_watched_while_a_bundle_has_a_deployment() {
    let watches_pods = |world: &World| {
        let actors = world.universe.env.status_registry.snapshot();
        actors.iter().any(|actor| actor.path == "watch/target/pods")
    };
    world(1, |world| async move {
        world.start().await;
        world.bundle("two", &[config_map("c", "v")]);
        world.bundle("one", &[workload("Deployment", "web", 0)]);
        world.applied("one").await;
        assert!(!watches_pods(&world), "nothing depends on Pods yet");
        set_status(&world, "deployments.apps", "web", rolled_out());
        stands(&world, PROGRESSING, ROLLED_OUT).await;
        assert!(watches_pods(&world));
        world.secret("one", &[config_map("d", "v")]);
        seconds(200).await;
        assert!(watches_pods(&world), "the next Deployment may come soon");
        seconds(300).await; // nothing happens any more, and idle ManagedResources are not reconciled

        assert!(!watches_pods(&world));
        world.secret("one", &[workload("Deployment", "web", 1)]);
        let is_there = || world.sim.object("deployments.apps", NAMESPACE, "web").is_some();
        world.eventually("it exists again", is_there).await;
        set_status(&world, "deployments.apps", "web", rolled_out());
        seconds(5).await;
        assert!(watches_pods(&world));
        assert_eq!(condition(&world, PROGRESSING)[1], "DeploymentProgressing", "it has no Pod");
    });
}

#[test]
fn large_bundle_is_not_checked_whole_for_each_change() {
    world(1, |world| async move {
        world.start().await;
        let pods: Vec<Value> = (0..200).map(|number| pod(&format!("p{number:03}"), "p")).collect();
        world.bundle("one", &pods);
        world.applied("one").await;
        seconds(5).await;
        world.sim.clear_requests();
        for number in 0..200 {
            set_status(&world, "pods", &format!("p{number:03}"), json!({ "phase": "Running" }));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;

        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
        assert!(status_writes(&world) <= 3, "{}", status_writes(&world));
    });
}
