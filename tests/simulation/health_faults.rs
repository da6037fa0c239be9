//! Health during other faults: the final state equals that of a run without faults, and no report is false meanwhile.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use sim::{EventFault, Fault, Seen, WatchEnd};

use crate::{
    health_objects::{
        ALL_HEALTHY, APPLIED, HEALTHY, MRS, PROGRESSING, ROLLED_OUT, condition, seconds, set_status, stands,
    },
    state,
    world::{NAMESPACE, World, config_map, world},
};

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": { "containers": [{ "name": "c", "image": "pause" }] },
    })
}

fn running(world: &World, name: &str) {
    set_status(world, "pods", name, json!({ "phase": "Running" }));
}

async fn healthy(world: &World) {
    world.start().await;
    world.bundle("one", &[pod("p"), pod("q"), config_map("a", "v")]);
    world.applied("one").await;
    running(world, "p");
    running(world, "q");
    stands(world, HEALTHY, ALL_HEALTHY).await;
    stands(world, PROGRESSING, ROLLED_OUT).await;
}

fn forbid(world: &World, resource: &'static str, verbs: &'static [&'static str]) {
    world.sim.set_faults(move |info| {
        let refused = info.user == "grm" && info.resource == resource && verbs.contains(&info.verb.as_str());
        if refused { Fault::FailBefore(Seen::forbidden(info)) } else { Fault::None }
    });
}

/// spec 20 scenario 38, decision 12.
#[test]
fn forbidden_kind_is_reported_and_blocks_no_other() {
    world(1, |world| async move {
        forbid(&world, "pods", &["list", "watch"]);
        world.start().await;
        for name in ["one", "two", "three"] {
            world.bundle(name, &[pod(name), config_map(name, "v")]);
        }
        world.bundle("four", &[config_map("four", "v")]);
        world.applied("four").await;
        seconds(1).await;
        assert_eq!(world.condition("four", HEALTHY).unwrap().1, "ResourcesHealthy");
        seconds(59).await;

        for name in ["one", "two", "three"] {
            let (status, reason, message) = world.condition(name, HEALTHY).unwrap();
            assert_eq!((status.as_str(), reason.as_str()), ("False", "HealthCheckError"), "{name}");
            let head = format!("Error executing health check for Pod \"shoot/{name}\": cannot watch v1, Kind=Pod: ");
            assert!(message.starts_with(&head) && message.contains("forbidden"), "{message}");
        }
        for name in ["one", "two", "three"] {
            running(&world, name);
        }
        world.sim.clear_faults();
        seconds(70).await;
        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
    });
}

/// A watch is refused later: cached objects then give no verdict.
#[test]
fn kind_with_a_lost_watch_is_reported_after_a_while() {
    world(1, |world| async move {
        healthy(&world).await;
        forbid(&world, "pods", &["list", "watch"]);
        world.sim.break_watches(WatchEnd::Disconnect);
        seconds(20).await;
        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY, "it may be a blip");
        seconds(60).await;
        assert_eq!(condition(&world, HEALTHY)[1], "HealthCheckError");
        world.sim.clear_faults();
        seconds(70).await;

        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
    });
}

/// spec 20 scenario 39.
#[test]
fn unreachable_target_changes_no_condition_until_it_is_reachable() {
    world(1, |world| async move {
        healthy(&world).await;
        world.bundle("two", &[config_map("b", "v")]);
        world.applied("two").await;
        seconds(5).await;
        world.sim.set_faults(|info| {
            let target = info.user == "grm" && info.resource != "managedresources";
            if target { Fault::FailBefore(Seen::Disconnect) } else { Fault::None }
        });
        world.sim.set_event_faults(|_| EventFault::Drop);
        world.sim.break_watches(WatchEnd::Disconnect);
        set_status(&world, "pods", "q", json!({ "phase": "Failed" }));
        seconds(600).await;
        let before = world.condition("two", HEALTHY);
        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
        world.sim.clear_event_faults();
        world.sim.clear_faults();
        world.sim.compact();
        world.sim.break_watches(WatchEnd::Expired);
        seconds(60).await;

        assert_eq!(condition(&world, HEALTHY)[1], "PodUnhealthy");
        assert_eq!(world.condition("two", HEALTHY), before);
    });
}

/// spec 20 scenario 29: the lock. Another client resets the conditions while a verdict is being written.
#[test]
fn verdict_does_not_overwrite_a_concurrent_write() {
    world(1, |world| async move {
        healthy(&world).await;
        seconds(5).await;
        let sim = world.sim.clone();
        let mut left = 1;
        world.sim.set_faults(move |info| {
            let status = info.verb == "update" && info.resource == "managedresources" && info.user == "grm";
            if status && left > 0 {
                left -= 1;
                sim.edit(MRS, NAMESPACE, "one", |live| {
                    for condition in live["status"]["conditions"].as_array_mut().unwrap() {
                        let kind = condition["type"].as_str().unwrap_or_default().to_owned();
                        if kind == APPLIED {
                            condition["status"] = json!("Progressing");
                        } else {
                            (condition["status"], condition["reason"]) = (json!("Unknown"), json!("ChecksPending"));
                        }
                    }
                });
            }
            Fault::None
        });
        set_status(&world, "pods", "q", json!({ "phase": "Failed" }));
        seconds(20).await;

        assert_eq!(condition(&world, HEALTHY)[..2], ["Unknown", "ChecksPending"]);
    });
}

#[test]
fn status_writers_do_not_conflict() {
    world(1, |world| async move {
        healthy(&world).await;
        seconds(5).await;
        world.sim.clear_requests();
        for round in 0..20 {
            set_status(&world, "pods", "q", json!({ "phase": if round % 2 == 0 { "Failed" } else { "Running" } }));
            world.secret("one", &[pod("p"), pod("q"), config_map("a", &round.to_string())]);
            tokio::time::sleep(Duration::from_millis(7)).await;
        }
        seconds(10).await;

        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
        let conflicts: Vec<_> = world.requests().into_iter().filter(|request| request.code == Some(409)).collect();
        assert!(conflicts.is_empty(), "{conflicts:#?}");
    });
}

/// The life of a ManagedResource with a fault in between; all runs end in the same state.
async fn life(world: &World) -> state::State {
    healthy(world).await;
    set_status(world, "pods", "q", json!({ "phase": "Failed" }));
    seconds(5).await;
    world.secret("one", &[pod("p"), pod("q"), config_map("a", "w")]);
    seconds(5).await;
    world.sim.remove("configmaps", NAMESPACE, "a");
    seconds(5).await;
    world.sim.clear_faults();
    world.sim.clear_event_faults();
    world.sim.compact();
    world.sim.break_watches(WatchEnd::Expired);
    world.revive().await;
    seconds(400).await;
    let mut end = state::state(world);
    // The defaults of a Pod depend on how often it was written.
    end.retain(|name, _| !name.contains("Pod"));
    end
}

#[test]
fn faults_do_not_change_the_final_health() {
    let expected = world(1, |world| async move { life(&world).await });
    for kind in 0..6 {
        let found = world(1, |world| async move {
            let mut number = 0u64;
            match kind {
                // Applying fails, while health checks go on.
                0 => world.sim.set_faults(move |info| {
                    number += u64::from(info.resource == "configmaps");
                    let fails = info.resource == "configmaps" && number.is_multiple_of(3);
                    if fails { Fault::FailBefore(Seen::internal_error("no")) } else { Fault::None }
                }),
                // Every other status write is lost, or its answer is.
                1 => world.sim.set_faults(move |info| {
                    number += u64::from(info.subresource == "status");
                    match (info.subresource == "status", number % 3) {
                        (true, 1) => Fault::FailBefore(Seen::conflict(info)),
                        (true, 2) => Fault::FailAfterCommit(Seen::Disconnect),
                        _ => Fault::None,
                    }
                }),
                // Events get lost once the ManagedResource exists.
                2 => world.sim.set_event_faults(move |_| {
                    number += 1;
                    let lost = number > 40 && number.is_multiple_of(3);
                    if lost { EventFault::Drop } else { EventFault::Deliver }
                }),
                3 => world.sim.set_faults(move |info| match info.verb.as_str() {
                    "watch" => Fault::BreakWatch { after_events: 2, end: WatchEnd::Disconnect },
                    _ => Fault::None,
                }),
                // The process crashes right after it wrote a status.
                4 => world.sim.set_faults(move |info| {
                    number += u64::from(info.subresource == "status");
                    let crash = info.subresource == "status" && number.is_multiple_of(5);
                    if crash { Fault::CrashClientAfterCommit } else { Fault::None }
                }),
                _ => world.sim.set_faults(|_| Fault::Delay(Duration::from_millis(300))),
            }
            life(&world).await
        });

        assert_eq!(found, expected, "fault {kind}:\n{}", state::differences(&expected, &found));
    }
}

#[test]
fn next_leader_reports_the_same_and_writes_nothing() {
    world(1, |world| async move {
        healthy(&world).await;
        set_status(&world, "pods", "q", json!({ "phase": "Failed" }));
        seconds(5).await;
        let before = state::state(&world);
        world.stop().await;
        world.sim.clear_requests();
        world.start().await;
        seconds(100).await;

        assert_eq!(world.writes(), [""; 0]);
        assert_eq!(state::state(&world), before);
        let reads = world.asked().iter().filter(|asked| asked.starts_with("get pods")).count();
        assert_eq!(reads, 0, "{:#?}", world.asked());
        running(&world, "q");
        seconds(1).await;
        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
    });
}

/// An object is deleted while it is checked, with slow answers: it is missing at first, then it exists.
#[test]
fn object_deleted_during_its_check_is_recreated_and_healthy() {
    world(1, |world| async move {
        healthy(&world).await;
        world.sim.set_faults(|info| match info.verb.as_str() {
            "get" => Fault::DelayAnswer(Duration::from_millis(400)),
            _ => Fault::None,
        });
        for _ in 0..3 {
            world.sim.remove("pods", NAMESPACE, "p");
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        world.eventually("it exists again", || world.sim.object("pods", NAMESPACE, "p").is_some()).await;
        seconds(30).await;
        running(&world, "p");
        seconds(30).await;

        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
    });
}

/// A read of an object no longer counts once a watch has reported the object.
#[test]
fn object_read_before_its_deletion_event_is_missing_afterwards() {
    let mut ignored = config_map("a", "v");
    ignored["metadata"]["annotations"] = json!({ "resources.gardener.cloud/ignore": "true" });
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[ignored]);
        stands(&world, HEALTHY, ALL_HEALTHY).await;
        // No reconcile recreates it.
        let wait = json!({ "metadata": { "annotations": { "gardener.cloud/operation": "wait-for-state" } } });
        world.patch_bundle("one", wait).await;
        seconds(5).await;
        world.sim.edit("configmaps", NAMESPACE, "a", |live| {
            live["metadata"]["labels"] = json!({ "resources.gardener.cloud/managed-by": "gardener" });
        });
        seconds(5).await;
        world.sim.remove("configmaps", NAMESPACE, "a");
        seconds(5).await;

        assert_eq!(condition(&world, HEALTHY)[1], "ConfigMapMissing");
    });
}

/// spec 20, the Events before §1.
#[test]
fn event_is_sent_when_a_bundle_becomes_unhealthy_and_healthy_again() {
    let shown = |event: &Value| {
        let text = |pointer| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        ["/source/component", "/involvedObject/name", "/type", "/reason", "/message"].map(text)
    };
    // Refused: no request; the creation of the object; that and the first report.
    for (is_refused, mut is_silenced) in [(false, false), (true, false), (true, true)] {
        world(1, |world| async move {
            healthy(&world).await;
            seconds(5).await;
            world.sim.set_faults(move |info| {
                let is_creation = info.verb == "create" && info.resource == "configmaps";
                let is_report = info.resource == "managedresources" && info.subresource == "status";
                let fails = is_creation && is_refused || is_report && std::mem::take(&mut is_silenced);
                if fails { Fault::FailBefore(Seen::forbidden(info)) } else { Fault::None }
            });
            world.sim.remove("configmaps", NAMESPACE, "a");
            seconds(5).await;
            assert_eq!(condition(&world, HEALTHY)[0], if is_refused { "False" } else { "True" });
            world.sim.clear_faults();
            seconds(70).await;
            assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);

            let text = "Required ConfigMap \"a\" in namespace \"shoot\" is missing";
            let gone = ["health", "one", "Warning", "ConfigMapMissing", text];
            let back = ["health", "one", "Normal", ALL_HEALTHY[1], ALL_HEALTHY[2]];
            let text = "Pod \"shoot/p\" is unhealthy: pod is in invalid phase \"Pending\" (expected one of [\"Running\" \
                        \"Succeeded\"])";
            let starting = ["health", "one", "Warning", "PodUnhealthy", text];
            let events = world.sim.objects("events");
            let events: BTreeSet<_> = events.iter().map(shown).filter(|event| event[0] == "health").collect();
            assert_eq!(events, BTreeSet::from([starting, gone, back].map(|event| event.map(str::to_owned))));
        });
    }
}

/// spec 20 scenario 23: an absence is reported even if the first write of it fails and the object exists again.
#[test]
fn absence_whose_report_failed_is_reported_later() {
    world(1, |world| async move {
        healthy(&world).await;
        seconds(5).await;
        world.sim.remove("configmaps", NAMESPACE, "a");
        let (sim, mut failed) = (world.sim.clone(), false);
        world.sim.set_faults(move |info| {
            let status = info.user == "grm" && info.resource == "managedresources" && info.subresource == "status";
            if status && !failed {
                failed = sim.object("configmaps", NAMESPACE, "a").is_some();
                return Fault::FailBefore(Seen::forbidden(info));
            }
            Fault::None
        });
        let mut seen = Vec::new();
        for _ in 0..10_000 {
            tokio::time::sleep(Duration::from_micros(100)).await;
            seen.push(condition(&world, HEALTHY)[1].clone());
            seen.dedup();
        }

        assert_eq!(seen, ["ResourcesHealthy", "ConfigMapMissing", "ResourcesHealthy"]);
    });
}
