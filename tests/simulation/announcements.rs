//! A broken ManagedResource shows in the log, as an Event, in the metrics and in the status registry, each time with the
//! reason and message of its condition.

use std::rc::Rc;

use gardener_resource_manager::programs::resource_manager::ResourceManager;
use kit::{Activity, ActorState, StatusRegistry, quote::cut_after};
use process::{Program as _, metrics::Metrics};
use serde_json::{Value, json};
use sim::{Fault, Seen};
use tracing::Level;

use crate::{
    log_capture::logged,
    world::{NAMESPACE, PROGRAM, World, config_map, managed_resource, seconds, world},
};

struct Defect {
    kind: &'static str,
    reason: &'static str,
    component: &'static str,
    causes: fn(&World),
    mends: fn(&World),
}

const DEFECTS: [Defect; 3] = [
    Defect {
        kind: "ResourcesApplied",
        reason: "DecodingFailed",
        component: "managedresource",
        causes: |world| world.secret_data("one", &[("objects.yaml", b"- no map\n")]),
        mends: |world| world.secret("one", &[pod()]),
    },
    Defect {
        kind: "ResourcesApplied",
        reason: "ApplyFailed",
        component: "managedresource",
        causes: |world| {
            world.sim.set_faults(|info| {
                let is_creation = info.verb == "create" && info.resource == "configmaps";
                if is_creation { Fault::FailBefore(Seen::forbidden(info)) } else { Fault::None }
            });
            world.secret("one", &[pod(), config_map("a", "v")]);
        },
        mends: |world| world.sim.clear_faults(),
    },
    Defect {
        kind: "ResourcesHealthy",
        reason: "PodUnhealthy",
        component: "health",
        causes: |world| set_phase(world, "Failed"),
        mends: |world| set_phase(world, "Running"),
    },
];

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": NAMESPACE, "name": "p" },
        "spec": { "containers": [{ "name": "c", "image": "pause" }] },
    })
}

fn set_phase(world: &World, phase: &str) {
    assert!(world.sim.edit("pods", NAMESPACE, "p", |live| live["status"] = json!({ "phase": phase })));
}

fn is_good(world: &World) -> bool {
    let is_true = |kind| world.condition("one", kind).is_some_and(|(status, _, _)| status == "True");
    is_true("ResourcesApplied") && is_true("ResourcesHealthy")
}

fn actor(world: &World) -> ActorState {
    let path = format!("managedresource/{NAMESPACE}/one");
    world.actors_of(PROGRAM).into_iter().find(|actor| actor.path == path).expect("an actor")
}

/// Type, source, reason and message of each Event of the ManagedResource.
fn events(world: &World) -> Vec<[String; 4]> {
    let text = |event: &Value, at| event.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let events = world.sim.objects("events");
    let own = events.iter().filter(|event| text(event, "/involvedObject/name") == "one");
    own.map(|event| ["/type", "/source/component", "/reason", "/message"].map(|at| text(event, at))).collect()
}

/// The value of the series of a metric that has all these labels.
fn figure(metrics: &Metrics, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let text = metrics.render();
    let has_all = |line: &&str| labels.iter().all(|(label, value)| line.contains(&format!("{label}=\"{value}\"")));
    let name = format!("gardener_resource_manager_{name}{{");
    let line = text.lines().filter(|line| line.starts_with(&name)).find(has_all)?;
    line.rsplit(' ').next()?.parse().ok()
}

async fn good_bundle(world: &World) -> Metrics {
    let metrics = Metrics::new(ResourceManager::METRICS, &[], "v1", StatusRegistry::default());
    world.observers.replace(Rc::new(metrics.clone()));
    world.config.borrow_mut().server.metrics.per_managed_resource = true;
    world.start().await;
    world.secret("one", &[pod()]);
    world.sim.put(managed_resource("one", &["one"], json!({}))).expect("a ManagedResource");
    world.applied("one").await;
    set_phase(world, "Running");
    world.eventually("it is healthy", || is_good(world)).await;
    seconds(30).await;
    metrics
}

/// spec 20, the Events before §1.
#[test]
fn broken_bundle_shows_in_log_events_metrics_and_status_registry() {
    for Defect { kind, reason, component, causes, mends } in DEFECTS {
        let (message, log) = logged(Level::INFO, || {
            world(1, |world| async move {
                let metrics = good_bundle(&world).await;
                let (before, state) = (events(&world), actor(&world));
                assert!(
                    before.iter().all(|[.., reason, _]| reason != "ApplySucceeded"),
                    "a first success: {before:#?}"
                );
                assert_eq!((state.activity, state.problem), (Activity::Idle, None));

                causes(&world);
                let is_bad = || world.condition("one", kind).is_some_and(|(status, _, _)| status == "False");
                world.eventually("it is broken", is_bad).await;
                seconds(15).await;
                let (status, found, message) = world.condition("one", kind).expect("a condition");
                assert_eq!((status.as_str(), found.as_str()), ("False", reason));
                let warning = ["Warning", component, reason, &message].map(str::to_owned);
                assert!(events(&world).contains(&warning), "{:#?}", events(&world));
                let labels = [("condition", kind), ("status", "False"), ("reason", reason)];
                assert_eq!(figure(&metrics, "managedresource_status", &labels), Some(1.0), "{}", metrics.render());
                let own = [("namespace", NAMESPACE), ("name", "one"), ("condition", kind), ("status", "False")];
                assert_eq!(figure(&metrics, "managedresource_condition", &own), Some(1.0));
                let problem = format!("{kind} {reason}: {}", cut_after(256, &message));
                let shows_problem = || {
                    let state = actor(&world);
                    assert_eq!(state.activity, Activity::Failing, "{state:#?}");
                    assert!(state.problem.as_deref().is_some_and(|shown| shown.contains(&problem)), "{state:#?}");
                };
                shows_problem();

                world.restart_as(PROGRAM).await;
                seconds(15).await;
                shows_problem();

                mends(&world);
                world.eventually("it is good again", || is_good(&world)).await;
                seconds(15).await;
                let is_over = |[kind, source, ..]: &[String; 4]| kind == "Normal" && source == component;
                assert!(events(&world).iter().any(is_over), "{:#?}", events(&world));
                assert_eq!(figure(&metrics, "managedresource_status", &labels), None);
                assert_eq!(figure(&metrics, "managedresource_condition", &own), None);
                let state = actor(&world);
                assert_eq!((state.activity, state.problem), (Activity::Idle, None));
                message
            })
        });

        let record = format!("condition={kind} status=\"False\" reason={reason} detail={}", cut_after(1024, &message));
        let of_bundle = |line: &&str| line.contains(&record) && line.contains("name=\"one\"");
        let records: Vec<&str> = log.lines().filter(of_bundle).collect();
        // A new leader attempts a set again that could not be applied.
        assert!((1..=2).contains(&records.len()), "{reason}: {log}");
        assert!(records.iter().all(|line| line.contains("ERROR")), "{records:#?}");
    }
}

/// spec 20, before §1: the server stores a status write, and its answer does not come. Each change is announced once, also
/// after a restart.
#[test]
fn condition_is_announced_once_if_the_answer_of_its_write_does_not_come() {
    let faults = [|| Fault::FailAfterCommit(Seen::Disconnect), || Fault::HangAfterCommit];
    for (Defect { kind, reason, component, causes, mends }, fault) in
        [&DEFECTS[0], &DEFECTS[2]].into_iter().flat_map(|defect| faults.map(|fault| (defect, fault)))
    {
        // Only the first write that changes the condition loses its answer.
        let lose_one = |world: &World| {
            let mut is_over = false;
            world.sim.set_faults(move |info| {
                let is_write = info.resource == "managedresources" && info.subresource == "status";
                if is_write && !std::mem::replace(&mut is_over, true) { fault() } else { Fault::None }
            });
        };
        let ((), log) = logged(Level::INFO, || {
            world(1, |world| async move {
                good_bundle(&world).await;
                let count = |event: &str| {
                    let all = events(&world);
                    all.iter().filter(|[kind, source, ..]| kind == event && source == *component).count()
                };
                // A new object may be unhealthy at first.
                let before = (count("Warning"), count("Normal"));
                let since = || (count("Warning") - before.0, count("Normal") - before.1);

                lose_one(&world);
                causes(&world);
                let is_bad = || world.condition("one", kind).is_some_and(|(status, _, _)| status == "False");
                world.eventually("it is broken", is_bad).await;
                seconds(120).await;
                assert_eq!(since(), (1, 0), "{:#?}", events(&world));
                // A new leader attempts a set again that could not be applied, and reports how that ends.
                if *kind == "ResourcesHealthy" {
                    world.restart_as(PROGRAM).await;
                    seconds(120).await;
                    assert_eq!(since(), (1, 0), "{:#?}", events(&world));
                }

                lose_one(&world);
                mends(&world);
                world.eventually("it is good again", || is_good(&world)).await;
                seconds(120).await;
                assert_eq!(since(), (1, 1), "{:#?}", events(&world));
            });
        });

        let records: Vec<&str> = log
            .lines()
            .filter(|line| line.contains(&format!("condition={kind} status=\"False\" reason={reason}")))
            .filter(|line| !line.contains("invalid phase \"Pending\"")) // of the new Pod, before the fault
            .collect();
        assert_eq!(records.len(), 1, "{log}");
    }
}

/// spec 20, before §1: what another client writes while an own write has no answer is not announced.
#[test]
fn condition_of_another_client_is_not_announced_after_a_lost_write() {
    world(1, |world| async move {
        good_bundle(&world).await;
        let mut is_over = false;
        world.sim.set_faults(move |info| {
            let is_write = info.resource == "managedresources" && info.subresource == "status";
            let is_first = is_write && !std::mem::replace(&mut is_over, true);
            if is_first { Fault::FailBefore(Seen::Disconnect) } else { Fault::None }
        });
        set_phase(&world, "Failed");
        world.sim.edit("managedresources.resources.gardener.cloud", NAMESPACE, "one", |object| {
            object["status"]["conditions"][0]["reason"] = json!("Foreign");
        });
        seconds(30).await;

        let events = events(&world);
        assert!(events.iter().any(|[.., reason, _]| reason == "PodUnhealthy"), "{events:#?}");
        assert!(events.iter().all(|[.., reason, _]| reason != "Foreign"), "{events:#?}");
    });
}

/// spec 20, the Events before §1: deletion and ignoring are no news.
#[test]
fn deleted_and_ignored_bundles_are_not_broken() {
    let ((), log) = logged(Level::INFO, || {
        world(1, |world| async move {
            good_bundle(&world).await;
            let before = events(&world);
            let ignore = json!({ "metadata": { "annotations": { "resources.gardener.cloud/ignore": "true" } } });
            world.patch_bundle("one", ignore).await;
            seconds(15).await;
            let ignore = json!({ "metadata": { "annotations": { "resources.gardener.cloud/ignore": null } } });
            world.patch_bundle("one", ignore).await;
            seconds(15).await;
            world.sim.edit("pods", NAMESPACE, "p", |live| live["metadata"]["finalizers"] = json!(["a.b/c"]));
            world.delete_bundle("one").await;
            seconds(15).await;

            let state = actor(&world);
            assert_eq!((state.activity == Activity::Failing, state.problem), (false, None));
            assert_eq!(events(&world), before);
            world.sim.edit("pods", NAMESPACE, "p", |live| live["metadata"]["finalizers"] = json!([]));
        });
    });

    let is_error = |reason: &str| log.lines().any(|line| line.contains("ERROR") && line.contains(reason));
    assert!(!is_error("DeletionPending") && !is_error("ManagedResourceIgnored"), "{log}");
}

#[test]
fn condition_that_another_client_wrote_twice_is_no_news() {
    world(1, |world| async move {
        good_bundle(&world).await;
        let time = "2026-01-01T00:00:00Z";
        let second = json!({
            "type": "ResourcesApplied", "status": "False", "reason": "Foreign", "message": "m",
            "lastTransitionTime": time, "lastUpdateTime": time,
        });
        world.sim.edit("managedresources.resources.gardener.cloud", NAMESPACE, "one", |object| {
            object["status"]["conditions"].as_array_mut().expect("conditions").push(second);
        });
        set_phase(&world, "Failed");
        world.eventually("it is unhealthy", || !is_good(&world)).await;
        seconds(15).await;

        let events = events(&world);
        assert!(events.iter().any(|[.., reason, _]| reason == "PodUnhealthy"), "{events:#?}");
        assert!(events.iter().all(|[.., reason, _]| reason != "Foreign"), "{events:#?}");
    });
}

/// Each write to the target is one record.
#[test]
fn writes_to_objects_are_logged_without_values() {
    let ((), log) = logged(Level::INFO, || {
        world(1, |world| async move {
            let secret = |key: &str, value: &str| {
                let metadata = json!({ "namespace": NAMESPACE, "name": "s" });
                json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": { key: value } })
            };
            world.start().await;
            world.bundle("one", &[secret("hidden", "old"), config_map("a", "v"), config_map("b", "v")]);
            world.applied("one").await;
            seconds(5).await;
            world.secret("one", &[secret("concealed", "new"), config_map("a", "w")]);
            world.eventually("it is updated", || world.value("a").as_deref() == Some("w")).await;
            world.applied("one").await;
        });
    });

    let lines = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!(lines("an object was created"), 3, "{log}");
    assert_eq!(lines("an object was updated object=v1/ConfigMap/shoot/a changed=data.k"), 1, "{log}");
    assert_eq!(lines("an object was deleted object=v1/ConfigMap/shoot/b"), 1, "{log}");
    assert_eq!(lines("data[…]"), 1, "{log}");
    assert!(!log.contains("hidden") && !log.contains("concealed"), "{log}");
}

/// spec 10 §4: an update that repeats has the level debug, so that it does not fill the log.
#[test]
fn update_that_repeats_is_logged_once() {
    for always_update in [false, true] {
        let ((), log) = logged(Level::INFO, || {
            world(1, |world| async move {
                world.managed_resource().always_update = always_update;
                world.start().await;
                let data = json!({ "k": "v", "other": "v" });
                let metadata = json!({ "namespace": NAMESPACE, "name": "a" });
                let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data });
                world.bundle("one", &[manifest]);
                world.applied("one").await;
                let repaired = async |key: &str| {
                    world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"][key] = json!("foreign"));
                    let is_right = || world.config_map("a").is_some_and(|live| live["data"] == data);
                    world.eventually("it is repaired", is_right).await;
                };
                // Too slow for the drift back-off.
                for _ in 0..4 {
                    seconds(90).await;
                    repaired("k").await;
                }
                seconds(90).await;
                repaired("other").await;
                seconds(600).await;
                repaired("other").await;
                seconds(5).await;
            });
        });

        let updates = |paths: &str| {
            let record = format!("an object was updated object=v1/ConfigMap/shoot/a changed={paths}");
            log.lines().filter(|line| line.contains(&record)).count()
        };
        assert_eq!((updates("data.k"), updates("data.other")), (1, 2), "{always_update}: {log}");
    }
}

/// spec 10 §4: at other levels than info, the program logs the same or less, and works.
#[test]
fn updates_are_not_logged_at_level_error() {
    let ((), log) = logged(Level::ERROR, || {
        world(1, |world| async move {
            world.start().await;
            world.bundle("one", &[config_map("a", "v")]);
            world.applied("one").await;
            world.secret("one", &[config_map("a", "w")]);
            world.eventually("it is updated", || world.value("a").as_deref() == Some("w")).await;
        });
    });

    assert_eq!(log, "");
}
