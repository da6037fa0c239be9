//! Missing, lost and restored rights: the condition says what they are needed for, and everything else goes on.

use serde_json::{Value, json};
use sim::{Fault, Seen, WatchEnd};

use crate::{
    health_objects::{
        ALL_HEALTHY, HEALTHY, PROGRESSING, ROLLED_OUT, condition, pod, ready, rolled_out, set_status, stands, workload,
    },
    objects::{annotated, object, with},
    world::{NAMESPACE, World, brief, config_map, namespace, seconds, stream, world},
};

fn forbid(world: &World, resource: &'static str, verbs: &'static [&'static str], namespace: &'static str) {
    world.sim.set_faults(move |info| {
        let hit = info.user == "grm" && info.resource == resource && info.namespace == namespace;
        if hit && verbs.contains(&info.verb.as_str()) { Fault::FailBefore(Seen::forbidden(info)) } else { Fault::None }
    });
}

/// spec 20 §12: an unwatched object that must not be read.
#[test]
fn rights_to_read_an_object_affect_only_its_own_health_check() {
    world(1, |world| async move {
        let wait = json!({ "metadata": { "annotations": { "gardener.cloud/operation": "wait-for-state" } } });
        world.start().await;
        world.bundle("one", &[annotated(config_map("a", "v"), "ignore", "true"), workload("StatefulSet", "db", 2)]);
        world.applied("one").await;
        set_status(&world, "statefulsets.apps", "db", ready(2));
        stands(&world, HEALTHY, ALL_HEALTHY).await;
        world.patch_bundle("one", wait).await;
        world.stop().await;
        forbid(&world, "configmaps", &["get"], NAMESPACE);
        set_status(&world, "statefulsets.apps", "db", json!({ "observedGeneration": 9, "updatedReplicas": 1 }));
        world.start().await;
        seconds(10).await;
        assert_eq!(condition(&world, PROGRESSING)[1], "StatefulSetProgressing");
        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY, "it may be a blip");
        seconds(50).await;

        let [status, reason, message] = condition(&world, HEALTHY);
        assert_eq!((status.as_str(), reason.as_str()), ("False", "HealthCheckError"));
        let head = "Error executing health check for ConfigMap \"shoot/a\": cannot read it: ";
        assert!(message.starts_with(head) && message.contains("forbidden"), "{message}");
        world.sim.clear_faults();
        seconds(70).await;
        assert_eq!(condition(&world, HEALTHY)[1], "StatefulSetUnhealthy");
    });
}

/// spec 20 §15: with rights in some namespaces only, Pods are counted there.
#[test]
fn rights_to_some_namespaces_suffice_to_count_their_pods() {
    for configured in [false, true] {
        world(1, |world| async move {
            if configured {
                world.config.borrow_mut().target.namespaces = vec![NAMESPACE.to_owned()];
            }
            forbid(&world, "pods", &["list", "watch"], "");
            world.start().await;
            world.bundle("one", &[workload("Deployment", "web", 2)]);
            world.applied("one").await;
            for name in ["a", "b", "old"] {
                world.sim.put(pod(name, "web")).unwrap();
            }
            set_status(&world, "deployments.apps", "web", rolled_out());
            seconds(5).await;
            let text = "Deployment \"shoot/web\" is progressing: there are still non-terminated old pods";
            assert_eq!(condition(&world, PROGRESSING), ["True", "DeploymentProgressing", text]);
            world.sim.remove("pods", NAMESPACE, "old");
            seconds(1).await;

            assert_eq!(condition(&world, PROGRESSING), ROLLED_OUT);
        });
    }
}

/// spec 20 §12: a namespace without the right to its Pods delays only its own Deployments.
#[test]
fn rights_to_the_pods_of_a_namespace_affect_only_its_deployments() {
    world(1, |world| async move {
        world.sim.put(namespace("other")).unwrap();
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str(), info.namespace.as_str()) {
            ("pods", "list" | "watch", "" | "other") => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        world.start().await;
        world.bundle("one", &[workload("Deployment", "web", 0)]);
        world.bundle("two", &[with(workload("Deployment", "web", 0), "/metadata/namespace", json!("other"))]);
        world.applied("one").await;
        world.applied("two").await;
        for place in [NAMESPACE, "other"] {
            assert!(world.sim.edit("deployments.apps", place, "web", |live| live["status"] = rolled_out()));
        }
        seconds(10).await;

        assert_eq!(condition(&world, PROGRESSING), ROLLED_OUT);
        assert_ne!(world.condition("two", PROGRESSING).unwrap().1, "ResourcesRolledOut");
        world.sim.clear_faults();
        seconds(70).await;
        assert_eq!(world.condition("two", PROGRESSING).unwrap().1, "ResourcesRolledOut");
    });
}

/// decision 10: if the existence of the owner is unknown, the object stays, and the condition names the remedy.
#[test]
fn rights_to_read_an_owner_are_reported_with_a_remedy_and_resume_the_deletion() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        forbid(&world, "managedresources", &["get"], "garden");
        world.sim.edit("configmaps", NAMESPACE, "b", |live| {
            live["metadata"]["annotations"]["resources.gardener.cloud/origin"] = json!("garden/other");
        });
        world.secret("one", &[config_map("a", "v")]);
        seconds(20).await;
        let (status, reason, message) = world.condition("one", "ResourcesApplied").unwrap();
        assert_eq!((status.as_str(), reason.as_str()), ("Progressing", "DeletionPending"));
        let item = "deletion of old resource \"v1/ConfigMap/shoot/b\" is still pending: it names the ManagedResource \
                    garden/other as its owner, and whether that exists cannot be told: ";
        assert!(message.contains(item) && message.contains("forbidden"), "{message}");
        let remedy = "(grant get on managedresources in namespace \"garden\", or remove the annotation \
                      resources.gardener.cloud/origin from the object)";
        assert!(message.contains(remedy), "{message}");
        assert!(world.config_map("b").is_some());
        world.sim.clear_faults();
        seconds(10).await;

        assert_eq!(world.config_map("b"), None);
        assert!(world.is_applied("one"));
    });
}

/// spec 10 §11.2: an autoscaler counted by the old watch is counted by the new one, too.
#[test]
fn rights_that_narrow_a_watch_count_an_autoscaler_once() {
    let web = |image: &str| {
        let web = with(workload("Deployment", "web", 2), "/spec/template/spec/containers/0/image", json!(image));
        [web]
    };
    world(1, |world| async move {
        let replicas = || world.sim.object("deployments.apps", NAMESPACE, "web").unwrap()["spec"]["replicas"].clone();
        world.config.borrow_mut().target.namespaces = vec![NAMESPACE.to_owned()];
        world.sim.put(autoscaler(NAMESPACE)).unwrap();
        world.start().await;
        world.bundle("one", &web("i:1"));
        world.applied("one").await;
        world.sim.edit("deployments.apps", NAMESPACE, "web", |live| live["spec"]["replicas"] = json!(5));
        seconds(70).await;
        forbid(&world, "horizontalpodautoscalers", &["list", "watch"], "");
        world.sim.break_watches(WatchEnd::Disconnect);
        seconds(20).await;
        world.secret("one", &web("i:2"));
        seconds(70).await;
        assert!(world.is_applied("one"), "{:?}", world.condition("one", "ResourcesApplied"));
        assert_eq!(replicas(), 5);
        world.sim.remove("horizontalpodautoscalers.autoscaling", NAMESPACE, "web");
        seconds(70).await;

        assert_eq!(replicas(), 2);
    });
}

/// spec 10 §17: a period's reconcile that waits for a starting watch continues once it has started.
#[test]
fn reconcile_of_a_period_is_not_lost_while_it_waits_for_a_watch() {
    world(1, |world| async move {
        let elsewhere = |name: &str| with(config_map(name, "v"), "/metadata/namespace", json!("other"));
        let value = || world.sim.object("configmaps", "other", "a").unwrap()["data"]["k"].clone();
        world.config.borrow_mut().target.namespaces = vec![NAMESPACE.to_owned()];
        world.sim.put(namespace("other")).unwrap();
        world.start().await;
        world.bundle("one", &[elsewhere("a"), workload("Deployment", "web", 0)]);
        world.applied("one").await;
        seconds(30).await;
        forbid(&world, "horizontalpodautoscalers", &["list", "watch"], "");
        world.sim.break_watches(WatchEnd::Disconnect);
        world.sim.edit("configmaps", "other", "a", |live| live["data"]["k"] = json!("edited"));
        seconds(25).await;
        assert_eq!(value(), "edited", "no event reports it");
        seconds(10).await;

        assert_eq!(value(), "v");
    });
}

#[test]
fn rights_to_watch_secrets_are_not_needed_to_keep_the_own_secret() {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let inner = BASE64_STANDARD.encode(stream(&[config_map("b", "v")]));
    let secret: Value = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": NAMESPACE, "name": "one" },
        "data": { "objects.yaml": inner }
    });
    world(1, |world| async move {
        world.start().await;
        seconds(1).await;
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("secrets", "list" | "watch") => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        world.sim.compact();
        world.sim.break_watches(WatchEnd::Expired);
        seconds(1).await;
        world.bundle("one", &[config_map("a", "v"), secret]);
        seconds(200).await;

        assert!(world.sim.object("secrets", NAMESPACE, "one").is_some());
        assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
        assert_eq!((world.value("a"), world.value("b").as_deref()), (None, Some("v")));
    });
}

/// More namespaces than a kind is watched in one by one.
fn many_namespaces(world: &World) -> Vec<String> {
    let places: Vec<String> = (0..66).map(|number| format!("n{number:02}")).collect();
    for place in &places {
        world.sim.put(namespace(place)).expect("the namespace is valid");
    }
    places
}

fn in_each(places: &[String], object: &Value) -> Vec<Value> {
    places.iter().map(|place| with(object.clone(), "/metadata/namespace", json!(place))).collect()
}

fn asked_but_watches(world: &World) -> Vec<String> {
    world.asked().into_iter().filter(|asked| !asked.starts_with("watch ")).collect()
}

fn asked_everywhere(world: &World, resource: &str) -> Vec<String> {
    let requests = world.requests();
    let everywhere = requests.iter().filter(|it| it.info.resource == resource && it.info.namespace.is_empty());
    everywhere.map(brief).collect()
}

/// architecture §5: an API server that has not yet read its roles denies requests for a moment only.
#[test]
fn rights_to_all_namespaces_restore_the_watch_of_a_kind() {
    world(1, |world| async move {
        let value = |place: &str| world.sim.object("configmaps", place, "a").unwrap()["data"]["k"].clone();
        let edit = |place: &str| {
            world.sim.edit("configmaps", place, "a", |live| live["data"]["k"] = json!("edited"));
        };
        let places = many_namespaces(&world);
        forbid(&world, "configmaps", &["list", "watch"], "");
        world.start().await;
        world.bundle("one", &in_each(&places, &config_map("a", "v")));
        world.applied("one").await;
        seconds(130).await;
        world.sim.clear_faults();
        seconds(700).await;
        world.sim.clear_requests();
        seconds(130).await;
        assert_eq!(asked_but_watches(&world), [""; 0], "no request is sent while idle");
        edit("n00");
        edit("n65");
        seconds(2).await;

        assert_eq!(["n00", "n65"].map(value), ["v", "v"]);
        let watches: Vec<String> = world.actors_of("grm").into_iter().map(|actor| actor.path).collect();
        let watches: Vec<&String> = watches.iter().filter(|path| path.contains("/configmaps")).collect();
        assert_eq!(watches, ["watch/target/configmaps.v1"]);
    });
}

/// architecture §5: the watches of the namespaces go on while the right to all of them is tried.
#[test]
fn rights_to_all_namespaces_are_tried_every_ten_minutes_while_idle() {
    for verbs in [&["list", "watch"][..], &["watch"]] {
        world(1, |world| async move {
            forbid(&world, "configmaps", verbs, "");
            world.start().await;
            world.bundle("one", &[config_map("a", "v")]);
            world.applied("one").await;
            seconds(200).await;
            world.sim.clear_requests();
            seconds(3600).await;

            let tried = asked_everywhere(&world, "configmaps");
            let lists = tried.iter().filter(|it| *it == "list configmaps").count();
            assert!((5..=6).contains(&lists) && tried.len() <= 2 * lists, "{tried:?}");
            assert_eq!(asked_but_watches(&world).len(), lists, "{:#?}", world.asked());
            world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
            seconds(2).await;
            assert_eq!(world.value("a").as_deref(), Some("v"));
        });
    }
}

/// spec 20 §15: beyond that number of namespaces Pods are not counted, until the right to all of them is back.
#[test]
fn rights_to_all_namespaces_restore_the_count_of_pods() {
    world(1, |world| async move {
        let places = many_namespaces(&world);
        forbid(&world, "pods", &["list", "watch"], "");
        world.start().await;
        world.bundle("one", &in_each(&places, &workload("Deployment", "web", 0)));
        world.applied("one").await;
        for place in &places {
            assert!(world.sim.edit("deployments.apps", place, "web", |live| live["status"] = rolled_out()));
        }
        seconds(130).await;
        assert_ne!(condition(&world, PROGRESSING), ROLLED_OUT);
        let reconciles = || world.actors_of("grm").iter().map(|actor| actor.finished).max();
        let before = reconciles();
        seconds(60).await;
        assert!(reconciles() <= before.map(|before| before + 10), "it retries after ever longer pauses");
        world.sim.clear_faults();
        seconds(700).await;
        assert_eq!(condition(&world, PROGRESSING), ROLLED_OUT);
        world.sim.clear_requests();
        seconds(130).await;
        assert_eq!(asked_but_watches(&world), [""; 0], "no request is sent while idle");

        for place in ["n00", "n65"] {
            let text = format!("Deployment \"{place}/web\" is progressing: there are still non-terminated old pods");
            world.sim.put(with(pod("old", "web"), "/metadata/namespace", json!(place))).unwrap();
            seconds(5).await;
            assert_eq!(condition(&world, PROGRESSING), ["True", "DeploymentProgressing", &text]);
            world.sim.remove("pods", place, "old");
            seconds(5).await;
            assert_eq!(condition(&world, PROGRESSING), ROLLED_OUT);
        }
        let watches: Vec<String> = world.actors_of("grm").into_iter().map(|actor| actor.path).collect();
        assert!(!watches.iter().any(|path| path.starts_with("watch/target/pods/")), "{watches:?}");
    });
}

fn autoscaler(namespace: &str) -> Value {
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" });
    let spec = json!({ "scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9 });
    let autoscaler = object("autoscaling/v2", "HorizontalPodAutoscaler", "web", json!({ "spec": spec }));
    with(autoscaler, "/metadata/namespace", json!(namespace))
}

/// spec 10 §11.2: autoscalers outside of the configured namespaces count too, as soon as they are readable again.
#[test]
fn rights_to_all_namespaces_restore_the_watch_of_autoscalers() {
    world(1, |world| async move {
        let replicas = || world.sim.object("deployments.apps", "other", "web").unwrap()["spec"]["replicas"].clone();
        let scale = |count: u32| {
            world.sim.edit("deployments.apps", "other", "web", |live| live["spec"]["replicas"] = json!(count));
        };
        world.config.borrow_mut().target.namespaces = vec![NAMESPACE.to_owned()];
        world.sim.put(namespace("other")).unwrap();
        forbid(&world, "horizontalpodautoscalers", &["list", "watch"], "");
        world.start().await;
        world.bundle("one", &[with(workload("Deployment", "web", 2), "/metadata/namespace", json!("other"))]);
        world.applied("one").await;
        world.sim.put(autoscaler("other")).unwrap();
        seconds(70).await;
        scale(5);
        seconds(70).await;
        assert_eq!(replicas(), 2, "no event reports the autoscaler");
        world.sim.clear_faults();
        seconds(700).await;
        scale(5);
        seconds(70).await;
        assert_eq!(replicas(), 5);
        world.sim.remove("horizontalpodautoscalers.autoscaling", "other", "web");
        seconds(70).await;

        assert_eq!(replicas(), 2);
    });
}

/// spec 10 §11.2: idle ManagedResources notice the deletion of an autoscaler, although they are not reconciled.
#[test]
fn rights_to_some_namespaces_do_not_hide_the_deletion_of_an_autoscaler() {
    world(1, |world| async move {
        let replicas = || world.sim.object("deployments.apps", NAMESPACE, "web").unwrap()["spec"]["replicas"].clone();
        world.config.borrow_mut().target.namespaces = vec![NAMESPACE.to_owned()];
        world.sim.put(autoscaler(NAMESPACE)).unwrap();
        world.start().await;
        world.bundle("one", &[workload("Deployment", "web", 2)]);
        world.applied("one").await;
        world.sim.edit("deployments.apps", NAMESPACE, "web", |live| live["spec"]["replicas"] = json!(5));
        seconds(200).await;
        forbid(&world, "horizontalpodautoscalers", &["list", "watch"], "");
        world.sim.break_watches(WatchEnd::Disconnect);
        seconds(200).await;
        assert_eq!(replicas(), 5);
        world.sim.remove("horizontalpodautoscalers.autoscaling", NAMESPACE, "web");
        // It counts for another minute (decision 37): after that the ManagedResource must be enqueued.
        seconds(65).await;

        assert_eq!(replicas(), 2);
    });
}
