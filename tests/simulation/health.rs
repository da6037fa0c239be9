//! Scenarios of spec 20: health reports about the objects of a ManagedResource, and faults meanwhile.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    health_objects::{
        ALL_HEALTHY, APPLIED, HEALTHY, MRS, PROGRESSING, ROLLED_OUT, SKIP, condition, healthy_stateful_set, missing,
        pod, ready, rolled_out, seconds, set_status, stands, status_writes, unhealthy, workload,
    },
    world::{NAMESPACE, World, config_map, namespace, world},
};

/// spec 20 scenario 1.
#[test]
fn bundle_without_objects_is_healthy_and_rolled_out() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[]);
        stands(&world, HEALTHY, ALL_HEALTHY).await;

        assert_eq!(condition(&world, PROGRESSING), ROLLED_OUT);
    });
}

/// spec 20 scenario 2.
#[test]
fn health_checks_wait_until_the_objects_are_applied() {
    world(1, |world| async move {
        healthy_stateful_set(&world).await;
        world.secret_data("one", &[("objects.yaml", b"- no map\n")]);
        seconds(5).await;
        assert_eq!(condition(&world, APPLIED)[..2], ["False", "DecodingFailed"]);
        let before = condition(&world, HEALTHY);

        set_status(&world, "statefulsets.apps", "db", ready(0));
        seconds(200).await;
        assert_eq!(condition(&world, HEALTHY), before);
        world.secret("one", &[workload("StatefulSet", "db", 2)]);
        seconds(1).await;

        assert_eq!(condition(&world, HEALTHY), unhealthy("StatefulSet", "db", "not enough ready replicas (0/2)"));
    });
}

/// spec 20 scenarios 3 and 6.
#[test]
fn unserved_kind_is_missing_until_it_is_served() {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "foos.example.org" },
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": { "kind": "Foo", "listKind": "FooList", "plural": "foos", "singular": "foo" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    });
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[]);
        stands(&world, HEALTHY, ALL_HEALTHY).await;
        world.sim.edit(MRS, NAMESPACE, "one", |live| {
            live["status"]["resources"] =
                json!([{ "apiVersion": "example.org/v1", "kind": "Foo", "namespace": NAMESPACE, "name": "f" }]);
            for condition in live["status"]["conditions"].as_array_mut().unwrap() {
                condition["status"] = json!("Unknown");
            }
        });
        seconds(2).await;

        let [status, reason, message] = missing("Foo", "f");
        let text = format!("{message}: no matches for kind \"Foo\" in version \"example.org/v1\"");
        assert_eq!(condition(&world, HEALTHY), [status, reason, text]);
        assert_eq!(condition(&world, PROGRESSING), ROLLED_OUT);
        assert_eq!(condition(&world, APPLIED)[0], "Unknown");
        world.sim.put(definition).unwrap();
        seconds(1).await;
        world
            .sim
            .put(json!({ "apiVersion": "example.org/v1", "kind": "Foo",
                "metadata": { "namespace": NAMESPACE, "name": "f",
                    "labels": { "resources.gardener.cloud/managed-by": "gardener" } } }))
            .unwrap();
        seconds(12).await;
        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
    });
}

/// spec 20 scenarios 4 and 23; the object is recreated at once, so its absence is short.
#[test]
fn deleted_object_is_reported_and_recreated() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        stands(&world, HEALTHY, ALL_HEALTHY).await;
        seconds(2).await;
        world.sim.clear_requests();
        world.sim.remove("configmaps", NAMESPACE, "a");
        let mut seen = Vec::new();
        for _ in 0..10_000 {
            tokio::time::sleep(Duration::from_micros(100)).await;
            seen.push(condition(&world, HEALTHY));
            seen.dedup();
        }

        assert_eq!(seen, [ALL_HEALTHY.map(str::to_owned), missing("ConfigMap", "a"), ALL_HEALTHY.map(str::to_owned)]);
        assert!(world.config_map("a").is_some());
        assert_eq!(status_writes(&world), 2, "{:#?}", world.asked());
    });
}

/// spec 20 scenarios 4 and 34: in a terminating namespace nothing can be created again.
#[test]
fn object_that_cannot_be_recreated_stays_missing() {
    let with_namespace = |mut object: Value| {
        object["metadata"]["namespace"] = json!("other");
        object
    };
    world(1, |world| async move {
        world.start().await;
        world.sim.put(namespace("other")).unwrap();
        world.bundle("one", &[with_namespace(workload("Deployment", "web", 0))]);
        world.applied("one").await;
        world.sim.edit("deployments.apps", "other", "web", |live| live["status"] = rolled_out());
        stands(&world, HEALTHY, ALL_HEALTHY).await;
        world.sim.set_faults(|info| {
            let refused = info.verb == "create" && info.resource == "deployments";
            let forbidden = sim::Seen::forbidden(info);
            if refused { sim::Fault::FailBefore(forbidden) } else { Default::default() }
        });
        world.sim.remove("deployments.apps", "other", "web");
        seconds(2).await;

        let text = "Required Deployment \"web\" in namespace \"other\" is missing";
        assert_eq!(condition(&world, HEALTHY), ["False", "DeploymentMissing", text]);
        assert_eq!(condition(&world, PROGRESSING), ROLLED_OUT);
        assert_eq!(condition(&world, APPLIED)[..2], ["False", "ApplyFailed"]);
    });
}

/// spec 20 scenario 7.
#[test]
fn unhealthy_objects_are_reported_by_the_first_and_all_shown_on_the_dashboard() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[workload("Deployment", "web", 1), pod("p", "p"), config_map("a", "v")]);
        world.applied("one").await;
        set_status(&world, "pods", "p", json!({ "phase": "Failed" }));
        seconds(5).await;

        let text = "pod is in invalid phase \"Failed\" (expected one of [\"Running\" \"Succeeded\"])";
        assert_eq!(condition(&world, HEALTHY), unhealthy("Pod", "p", text));
        let actors = world.universe.env.status_registry.snapshot();
        let actor = actors.iter().find(|actor| actor.path == "managedresource/shoot/one").unwrap();
        let details: Vec<String> = actor.details.iter().map(|(name, text)| format!("{name}: {text}")).collect();
        assert_eq!(details[0], "Health: 3 objects: 2 not healthy, 1 in a roll-out", "{details:#?}");
        assert_eq!(details[1], "Kinds: ConfigMap 1 healthy; Pod 1 unhealthy; Deployment.apps 1 unhealthy");
        let web = "apps/v1/Deployment/shoot/web: unhealthy: ";
        assert!(details.iter().any(|line| line.starts_with(web)), "{details:#?}");
    });
}

/// spec 20 scenarios 10, 11, 12.
#[test]
fn skipped_object_is_healthy_while_it_exists() {
    let skipped = |mut object: Value, value: &str| {
        object["metadata"]["annotations"] = json!({ SKIP: value });
        object
    };
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[skipped(pod("p", "p"), "true"), skipped(workload("Deployment", "web", 3), "true")]);
        stands(&world, HEALTHY, ALL_HEALTHY).await;
        stands(&world, PROGRESSING, ROLLED_OUT).await;
        world.secret("one", &[skipped(pod("p", "p"), "True")]);
        seconds(5).await;

        let text = "pod is in invalid phase \"Pending\" (expected one of [\"Running\" \"Succeeded\"])";
        assert_eq!(condition(&world, HEALTHY), unhealthy("Pod", "p", text));
    });
}

/// spec 20 scenario 22.
#[test]
fn lost_readiness_and_its_recovery_are_reported_at_once() {
    world(1, |world| async move {
        healthy_stateful_set(&world).await;
        seconds(5).await;
        world.sim.clear_requests();
        for (replicas, expected) in [(1, "False"), (2, "True"), (0, "False"), (2, "True")] {
            set_status(&world, "statefulsets.apps", "db", ready(replicas));
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert_eq!(condition(&world, HEALTHY)[0], expected);
        }

        assert_eq!(status_writes(&world), 4, "{:#?}", world.asked());
    });
}

/// spec 20 scenario 22, "Better than upstream" 10.
#[test]
fn changing_text_is_written_every_two_seconds() {
    world(1, |world| async move {
        healthy_stateful_set(&world).await;
        seconds(5).await;
        set_status(&world, "statefulsets.apps", "db", json!({ "observedGeneration": 9, "updatedReplicas": 2 }));
        seconds(5).await;
        world.sim.clear_requests();
        for generation in 0..100 {
            let status = json!({ "observedGeneration": -generation, "updatedReplicas": 2 });
            set_status(&world, "statefulsets.apps", "db", status);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let writes = status_writes(&world);
        seconds(3).await;

        // The first text also changes the reason of the roll-out.
        assert!((4..=7).contains(&writes), "{writes}");
        let text = "observed generation outdated (-99/1)";
        assert_eq!(condition(&world, HEALTHY), unhealthy("StatefulSet", "db", text));
    });
}

/// spec 20 scenarios 24 and 25: the ManagedResource that lists the object gets the report, whatever its origin says.
#[test]
fn health_is_reported_to_the_bundle_that_lists_the_object() {
    world(1, |world| async move {
        healthy_stateful_set(&world).await;
        world.bundle("two", &[config_map("c", "v")]);
        world.applied("two").await;
        seconds(5).await;
        world.sim.clear_requests();
        set_status(&world, "statefulsets.apps", "db", ready(0));
        seconds(1).await;

        assert_eq!(world.writes(), ["update managedresources/status one", "create events"]);
    });
}

/// spec 20 scenario 26.
#[test]
fn ignored_bundle_gets_no_health_checks_until_it_is_unignored() {
    let ignore = |value: Value| json!({ "metadata": { "annotations": { "resources.gardener.cloud/ignore": value } } });
    world(1, |world| async move {
        healthy_stateful_set(&world).await;
        world.patch_bundle("one", ignore(json!("T"))).await;
        seconds(1).await;
        let ignored = condition(&world, HEALTHY);
        assert_eq!(ignored[1], "ManagedResourceIgnored");
        world.sim.clear_requests();
        set_status(&world, "statefulsets.apps", "db", ready(0));
        seconds(300).await;
        assert_eq!((condition(&world, HEALTHY), world.asked()), (ignored, Vec::new()));
        world.patch_bundle("one", ignore(Value::Null)).await;
        seconds(1).await;

        assert_eq!(condition(&world, HEALTHY), unhealthy("StatefulSet", "db", "not enough ready replicas (0/2)"));
        assert_eq!(condition(&world, PROGRESSING), ROLLED_OUT);
    });
}

/// spec 20 scenarios 27 and 28.
#[test]
fn bundle_that_is_handed_over_or_deleted_keeps_its_conditions() {
    for deleted in [false, true] {
        world(1, |world| async move {
            healthy_stateful_set(&world).await;
            world.sim.edit("statefulsets.apps", NAMESPACE, "db", |live| {
                live["metadata"]["finalizers"] = json!(["example.org/hold"]);
            });
            if deleted {
                world.delete_bundle("one").await;
            } else {
                world.patch_bundle("one", json!({ "spec": { "class": "other" } })).await;
            }
            seconds(10).await;
            let pending = "The resources are currently being deleted.";
            assert_eq!(condition(&world, HEALTHY), ["False", "DeletionPending", pending]);
            set_status(&world, "statefulsets.apps", "db", ready(0));
            seconds(200).await;

            assert_eq!(condition(&world, HEALTHY), ["False", "DeletionPending", pending]);
            assert_eq!(condition(&world, PROGRESSING), ["True", "DeletionPending", pending]);
            world.sim.edit("statefulsets.apps", NAMESPACE, "db", |live| live["metadata"]["finalizers"] = json!([]));
        });
    }
}

/// spec 20 scenarios 30 and 32.
#[test]
fn deployment_progresses_until_it_has_exactly_its_wanted_pods() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[workload("Deployment", "web", 2)]);
        world.applied("one").await;
        for name in ["a", "b", "old"] {
            world.sim.put(pod(name, "web")).unwrap();
        }
        world.sim.put(pod("else", "else")).unwrap();
        // The first report delays no text any more ("Better than upstream" 10).
        seconds(2).await;
        set_status(&world, "deployments.apps", "web", rolled_out());
        seconds(2).await;
        let text = "Deployment \"shoot/web\" is progressing: there are still non-terminated old pods";
        assert_eq!(condition(&world, PROGRESSING), ["True", "DeploymentProgressing", text]);
        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);

        set_status(&world, "pods", "old", json!({ "phase": "Failed" }));
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(condition(&world, PROGRESSING), ROLLED_OUT, "a Pod that has ended does not count");
        world.sim.remove("pods", NAMESPACE, "b");
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(condition(&world, PROGRESSING), ["True", "DeploymentProgressing", text]);
        world.sim.put(pod("c", "web")).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(condition(&world, PROGRESSING), ROLLED_OUT);
    });
}

/// spec 20 scenarios 33 and 35.
#[test]
fn first_roll_out_is_reported_and_the_transition_time_stays() {
    let times = |world: &World| {
        let conditions = world.mr("one").unwrap()["status"]["conditions"].as_array().unwrap().clone();
        let found = conditions.into_iter().find(|condition| condition["type"] == PROGRESSING).unwrap();
        (found["lastTransitionTime"].clone(), found["lastUpdateTime"].clone())
    };
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[workload("Deployment", "a", 0), workload("DaemonSet", "z", 0)]);
        world.applied("one").await;
        let status = |updated: i64| {
            json!({ "observedGeneration": 9, "desiredNumberScheduled": 1, "currentNumberScheduled": 1,
                "numberReady": 1, "updatedNumberScheduled": updated, "numberMisscheduled": 0 })
        };
        set_status(&world, "daemonsets.apps", "z", status(0));
        seconds(3).await;
        let text = "DaemonSet \"shoot/z\" is progressing: 0 of 1 replica(s) have been updated";
        assert_eq!(condition(&world, PROGRESSING), ["True", "DaemonSetProgressing", text]);
        let first = times(&world);
        seconds(300).await;
        set_status(&world, "daemonsets.apps", "z", status(1));
        seconds(1).await;

        assert_eq!(condition(&world, PROGRESSING)[1], "DeploymentProgressing");
        let second = times(&world);
        assert_eq!(second.0, first.0);
        assert!(second.1.as_str() > first.1.as_str(), "{second:?} {first:?}");
    });
}

/// spec 20 scenario 36.
#[test]
fn idle_health_checks_send_no_request() {
    world(1, |world| async move {
        healthy_stateful_set(&world).await;
        seconds(70).await;
        world.sim.clear_requests();
        seconds(600).await;

        let asked: Vec<String> = world.asked().into_iter().filter(|asked| !asked.starts_with("watch")).collect();
        assert_eq!(asked, [""; 0]);
    });
}

/// spec 20 scenario 17.
#[test]
fn warnings_about_a_service_are_quoted_and_their_age_is_no_change() {
    world(1, |world| async move {
        world.start().await;
        for number in 0..7 {
            let time = format!("2020-01-01T00:00:0{number}Z");
            world
                .sim
                .put(json!({
                    "apiVersion": "v1", "kind": "Event", "metadata": { "namespace": NAMESPACE, "name": format!("lb.{number}") },
                    "type": "Warning", "message": format!("quota {number}"), "source": { "component": "cloud" }, "count": 1,
                    "involvedObject": { "apiVersion": "v1", "kind": "Service", "namespace": NAMESPACE, "name": "lb" },
                    "firstTimestamp": time, "lastTimestamp": time,
                }))
                .unwrap();
        }
        let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": NAMESPACE, "name": "lb" },
            "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }], "selector": { "app": "web" } } });
        world.bundle("one", &[service]);
        world.applied("one").await;
        seconds(5).await;
        let message = condition(&world, HEALTHY)[2].clone();
        world.sim.clear_requests();
        seconds(400).await;

        let lines: Vec<&str> = message.lines().collect();
        let head = "Service \"shoot/lb\" is unhealthy: service is missing ingress status";
        assert_eq!(lines[..3], [head, "", "-> Events:"]);
        assert_eq!(lines.len(), 8);
        assert!(lines[3].ends_with(": quota 2") && lines[7].ends_with(": quota 6"), "{message}");
        assert_eq!(status_writes(&world), 0);
        set_status(&world, "services", "lb", json!({ "loadBalancer": { "ingress": [{ "hostname": "x" }] } }));
        seconds(1).await;
        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
    });
}

/// spec 20 scenario 40.
#[test]
fn unreadable_object_is_reported_and_the_others_are_checked() {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "prometheuses.monitoring.coreos.com" },
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced",
            "names": { "kind": "Prometheus", "listKind": "PrometheusList", "plural": "prometheuses", "singular": "prometheus" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    });
    let prometheus = |name: &str| {
        json!({ "apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus",
        "metadata": { "namespace": NAMESPACE, "name": name }, "spec": {} })
    };
    world(1, |world| async move {
        world.sim.put(definition).unwrap();
        seconds(1).await;
        world.start().await;
        world.bundle("one", &[prometheus("bad")]);
        world.bundle("two", &[prometheus("good")]);
        world.applied("one").await;
        world.applied("two").await;
        set_status(&world, "prometheuses.monitoring.coreos.com", "bad", json!({ "conditions": "none" }));
        let condition_of = |kind: &str| json!({ "type": kind, "status": "True", "observedGeneration": 9 });
        let status = json!({ "availableReplicas": 1, "updatedReplicas": 1,
            "conditions": [condition_of("Available"), condition_of("Reconciled")] });
        set_status(&world, "prometheuses.monitoring.coreos.com", "good", status);
        seconds(5).await;

        let text = "Error executing health check for Prometheus \"shoot/bad\": status.conditions: expected a list, found a string";
        assert_eq!(condition(&world, HEALTHY), ["False", "HealthCheckError", text]);
        let good = world.condition("two", HEALTHY).map(|(status, _, _)| status);
        assert_eq!(good.as_deref(), Some("True"));
        let progressing = world.condition("two", PROGRESSING).map(|(_, reason, _)| reason);
        assert_eq!(progressing.as_deref(), Some("ResourcesRolledOut"));
    });
}
