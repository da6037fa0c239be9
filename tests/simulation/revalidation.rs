//! Idle objects are sent again if mutating admission may have changed, and are idle again (spec 10 §11.3, decision 40).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use sim::{Fault, Seen};

use crate::{
    objects::{annotated, workload},
    world::{NAMESPACE, World, config_map, seconds, world},
};

const HOUR: u64 = 3600;

/// Admission adds the key `added` to ConfigMaps while the returned flag is set and the namespace does not opt out.
fn webhook(world: &World) -> Arc<AtomicBool> {
    let is_on = Arc::new(AtomicBool::new(true));
    let seen = is_on.clone();
    world.sim.set_mutation(move |reviewed, object| {
        let marks = reviewed.namespace.map(|namespace| &namespace["metadata"]["annotations"]);
        let is_asked = marks.is_none_or(|marks| marks["webhook"] != "off");
        if reviewed.resource == "configmaps" && seen.load(Ordering::Relaxed) && is_asked {
            object["data"]["added"] = json!("x");
        }
    });
    is_on
}

fn is_mutated(world: &World, name: &str) -> bool {
    world.config_map(name).expect("it exists")["data"]["added"] == "x"
}

fn configuration(resources: &[&str]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": { "name": "hook" },
        "webhooks": [{
            "name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": { "url": "https://a.b" },
            "rules": [{ "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources }],
        }],
    })
}

/// Applies two ConfigMaps and a Deployment, and waits until they are idle. Objects are sent again in each hour.
async fn at_rest(world: &World) {
    world.managed_resource().revalidate_period = Duration::from_secs(HOUR).into();
    world.start().await;
    world.bundle("one", &[config_map("a", "v"), config_map("b", "v"), workload("Deployment", "web")]);
    world.applied("one").await;
    seconds(5).await;
    world.sim.clear_requests();
}

fn writes(world: &World) -> Vec<String> {
    let mut writes = world.writes();
    writes.sort();
    writes
}

const ALL: [&str; 3] = ["update configmaps a", "update configmaps b", "update deployments web"];

/// spec 10 §11.3 (c)
#[test]
fn revalidation_sends_each_object_once_in_a_period_and_an_unchanged_answer_costs_nothing_else() {
    world(1, |world| async move {
        at_rest(&world).await;
        seconds(HOUR / 2 - 10).await;
        let asked: Vec<_> = world.asked().into_iter().filter(|request| !request.starts_with("watch")).collect();
        assert_eq!(asked, [""; 0], "less than half a period is over");
        seconds(HOUR / 2 + 10).await;

        assert_eq!(writes(&world), ALL);
        let reads = world.asked().iter().filter(|request| request.starts_with("get")).count();
        assert!(reads <= 4, "the Secret and each object: {:#?}", world.asked());
    });
}

/// spec 10 §11.3 (c)
#[test]
fn revalidation_adds_and_removes_fields_of_admission() {
    world(1, |world| async move {
        at_rest(&world).await;
        let is_on = webhook(&world);
        seconds(HOUR + 2).await;
        assert!(is_mutated(&world, "a") && is_mutated(&world, "b"));
        assert_eq!(writes(&world), ALL, "the answer is no drift, and the status stays");

        is_on.store(false, Ordering::Relaxed);
        seconds(HOUR + 2).await;
        assert!(!is_mutated(&world, "a") && !is_mutated(&world, "b"));
        assert!(world.is_applied("one"));
    });
}

/// spec 10 §11.3 (c): counted from the start, so that a fresh fleet stays idle.
#[test]
fn revalidation_begins_half_a_period_after_a_restart() {
    world(1, |world| async move {
        at_rest(&world).await;
        seconds(20).await;
        world.stop().await;
        world.sim.clear_requests();
        world.start().await;
        seconds(HOUR / 2 - 10).await;
        assert_eq!(world.writes(), [""; 0]);

        seconds(HOUR / 2 + 20).await;
        assert_eq!(writes(&world), ALL);
    });
}

/// spec 10 §11.3 (a)
#[test]
fn revalidation_follows_a_webhook_configuration_for_the_kinds_it_matches() {
    world(1, |world| async move {
        at_rest(&world).await;
        webhook(&world);
        world.sim.put(configuration(&["configmaps"])).unwrap();
        seconds(70).await;
        assert!(is_mutated(&world, "a") && is_mutated(&world, "b"));
        assert_eq!(writes(&world), ALL[..2]);

        world.sim.clear_requests();
        let resource = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
        world.sim.edit(resource, "", "hook", |hook| hook["metadata"]["annotations"] = json!({ "a": "b" }));
        seconds(70).await;
        assert_eq!(world.writes(), [""; 0], "nothing that counts has changed");

        world.sim.remove(resource, "", "hook");
        seconds(70).await;
        assert_eq!(writes(&world), ALL[..2]);
    });
}

/// spec 10 §11.3 (a): the objects of many ManagedResources are spread over a minute.
#[test]
fn revalidation_of_many_bundles_is_spread_over_a_minute() {
    world(1, |world| async move {
        at_rest(&world).await;
        for index in 0..60 {
            world.bundle(&format!("b{index}"), &[config_map(&format!("m{index}"), "v")]);
        }
        for index in 0..60 {
            world.applied(&format!("b{index}")).await;
        }
        seconds(10).await;
        world.sim.clear_requests();
        world.sim.put(configuration(&["*"])).unwrap();
        seconds(1).await;
        assert_eq!(world.writes(), [""; 0], "the servers have to hear of it first");
        for _ in 0..4 {
            let before = world.writes().len();
            seconds(16).await;
            let sent = world.writes().len() - before;
            assert!((5..=30).contains(&sent), "{sent} of 63 in a quarter");
        }

        assert_eq!(world.writes().len(), 63);
    });
}

/// spec 10 §11.3 (b)
#[test]
fn revalidation_follows_labels_and_annotations_of_the_namespace() {
    for mark in ["labels", "annotations"] {
        world(1, |world| async move {
            at_rest(&world).await;
            let mut elsewhere = config_map("c", "v");
            elsewhere["metadata"]["namespace"] = json!("other");
            world.sim.put(crate::world::namespace("other")).unwrap();
            world.bundle("two", &[elsewhere]);
            world.applied("two").await;
            webhook(&world);
            seconds(5).await;
            world.sim.clear_requests();

            world.sim.edit("namespaces", "", NAMESPACE, |namespace| {
                namespace["metadata"][mark]["high-availability"] = json!("zone");
            });
            seconds(5).await;

            assert!(is_mutated(&world, "a") && is_mutated(&world, "b"), "{mark}");
            assert_eq!(writes(&world), ALL, "{mark}");
            world.sim.edit("namespaces", "", NAMESPACE, |namespace| namespace["status"]["x"] = json!("y"));
            seconds(70).await;
            assert_eq!(writes(&world), ALL, "{mark}");
        });
    }
}

/// A namespace that changes each second costs one write per object and minute.
#[test]
fn revalidation_is_bounded_however_often_a_namespace_changes() {
    world(1, |world| async move {
        at_rest(&world).await;
        for second in 0..300 {
            world.sim.edit("namespaces", "", NAMESPACE, |namespace| {
                namespace["metadata"]["annotations"]["at"] = json!(second.to_string());
            });
            seconds(1).await;
        }
        let of_a = || world.writes().iter().filter(|write| *write == ALL[0]).count();
        assert!((4..=7).contains(&of_a()), "{}", of_a());

        seconds(70).await;
        world.sim.clear_requests();
        seconds(120).await;
        assert_eq!(world.writes(), [""; 0]);
    });
}

/// spec 10 §11.3: a missing right to watch fails nothing, and the period applies.
#[test]
fn revalidation_needs_no_right_to_watch_admission_objects() {
    world(1, |world| async move {
        world.sim.set_faults(|info| match (info.group.as_str(), info.resource.as_str(), info.verb.as_str()) {
            ("admissionregistration.k8s.io", _, "list" | "watch") | ("", "namespaces", "list" | "watch") => {
                Fault::FailBefore(Seen::forbidden(info))
            }
            _ => Fault::None,
        });
        at_rest(&world).await;
        webhook(&world);
        seconds(HOUR + 2).await;

        assert!(world.is_applied("one"));
        assert!(is_mutated(&world, "a") && is_mutated(&world, "b"));
        assert_eq!(writes(&world), ALL);
    });
}

/// spec 10 §3.1: `0s` means never; changes still count.
#[test]
fn revalidation_can_be_limited_to_changes() {
    world(1, |world| async move {
        at_rest(&world).await;
        world.stop().await;
        world.managed_resource().revalidate_period = Duration::ZERO.into();
        world.start().await;
        seconds(26 * HOUR).await;
        assert_eq!(world.writes(), [""; 0]);

        world.sim.edit("namespaces", "", NAMESPACE, |namespace| {
            namespace["metadata"]["labels"]["a"] = json!("b");
        });
        seconds(5).await;
        assert_eq!(writes(&world), ALL);
    });
}

/// spec 10 §12.9: such a refusal makes no right object fail, and is no reason to delete it.
#[test]
fn revalidation_that_is_refused_as_invalid_deletes_and_reports_nothing() {
    world(1, |world| async move {
        world.managed_resource().revalidate_period = Duration::from_secs(HOUR).into();
        world.start().await;
        world.bundle("one", &[annotated(config_map("a", "v"), "delete-on-invalid-update", "true")]);
        world.applied("one").await;
        seconds(5).await;
        world.sim.clear_requests();
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("configmaps", "update") => Fault::FailBefore(Seen::status(422, "Invalid", "spec is immutable")),
            _ => Fault::None,
        });
        seconds(2 * HOUR).await;

        assert!(world.is_applied("one"));
        let updates = world.writes();
        assert!((2..=3).contains(&updates.len()) && updates.iter().all(|it| *it == ALL[0]), "{updates:?}");
    });
}

/// spec 10 §11.3 step 4: an object that is only created is not sent, and its turn still ends.
#[test]
fn revalidation_skips_objects_that_are_only_created() {
    world(1, |world| async move {
        world.managed_resource().revalidate_period = Duration::from_secs(HOUR).into();
        world.start().await;
        world.bundle("one", &[annotated(config_map("a", "v"), "ignore", "true"), config_map("b", "v")]);
        world.applied("one").await;
        seconds(5).await;
        world.sim.clear_requests();
        seconds(HOUR + 2).await;

        assert_eq!(world.writes(), [ALL[1]]);
        let of_secrets = world.asked().iter().filter(|request| request.contains("secrets")).count();
        // No watch covers such an object: it is read in each period.
        assert!(of_secrets <= 65, "{of_secrets}");
    });
}
