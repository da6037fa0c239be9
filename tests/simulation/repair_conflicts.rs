//! Another client undoes each repair: whatever starts the reconcile, writes get ever rarer (spec 10 §5.4, decision 37).

use std::{rc::Rc, time::Duration};

use serde_json::{Value, json};

use crate::{
    health_objects::{ALL_HEALTHY, HEALTHY, MRS, condition, missing, stands, status_writes, workload},
    objects::with,
    world::{NAMESPACE, World, config_map, world},
};

const REVISION: &str = "deployment.kubernetes.io/revision";

fn object_writes(world: &World) -> Vec<String> {
    let is_of_object = |write: &String| !write.contains("managedresources") && !write.contains("events");
    world.writes().into_iter().filter(is_of_object).collect()
}

async fn again_and_again(world: &Rc<World>, every: Duration, time: Duration, mut act: impl FnMut(&World)) {
    let end = tokio::time::Instant::now() + time;
    while tokio::time::Instant::now() < end {
        act(world);
        tokio::time::sleep(every).await;
    }
}

/// Acts as kube-controller-manager: it owns the revision, and observes each generation a moment later.
fn as_deployment_controller(world: &World) {
    world.sim.edit("deployments.apps", NAMESPACE, "web", |live| {
        let is_own = live["metadata"]["annotations"][REVISION] == "1";
        if is_own {
            live["status"] = json!({
                "observedGeneration": live["metadata"]["generation"],
                "conditions": [
                    { "type": "Available", "status": "True" },
                    { "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
                ],
            });
        } else {
            live["metadata"]["annotations"][REVISION] = json!("1");
        }
    });
}

fn web() -> Value {
    with(workload("Deployment", "web", 2), "/metadata/annotations", json!({ REVISION: "7" }))
}

/// spec 10 §5.4: a controller overwrites a field of the manifest, and the condition flips with each of our writes.
#[test]
fn drift_backoff_limits_conflicts_with_the_deployment_controller() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[web()]);
        world.applied("one").await;
        world.sim.clear_requests();
        let mut history = Vec::new();
        let begin = tokio::time::Instant::now();
        again_and_again(&world, Duration::from_millis(50), Duration::from_secs(45), |world| {
            as_deployment_controller(world);
            let now = ["ResourcesApplied", HEALTHY, "ResourcesProgressing"].map(|kind| condition(world, kind));
            if history.last().is_none_or(|(_, last)| *last != now) {
                history.push((begin.elapsed(), now));
            }
        })
        .await;

        let (objects, statuses) = (object_writes(&world).len(), status_writes(&world));
        assert!((4..=8).contains(&objects), "{objects} {:#?}", world.writes());
        assert!(statuses <= 4, "{statuses} {history:#?}");
        assert!(world.requests().len() <= 12 * objects, "{} requests", world.requests().len());
    });
}

/// spec 10 §5.4: long unhealthiness is reported, and so is recovery.
#[test]
fn drift_backoff_does_not_hide_health_for_long() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[web()]);
        world.applied("one").await;
        again_and_again(&world, Duration::from_millis(50), Duration::from_secs(20), as_deployment_controller).await;
        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
        let set_available = |world: &World, available: &str| {
            world.sim.edit("deployments.apps", NAMESPACE, "web", |live| {
                live["status"]["conditions"][0]["status"] = json!(available);
            });
        };

        set_available(&world, "False");
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert_eq!(condition(&world, HEALTHY)[0], "False");
        world.sim.edit("deployments.apps", NAMESPACE, "web", |live| {
            live["status"]["observedGeneration"] = live["metadata"]["generation"].clone();
        });
        set_available(&world, "True");
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
    });
}

/// spec 10 §5.4: another client deletes the object each time, sooner or later.
#[test]
fn drift_backoff_limits_recreations_of_a_deleted_object() {
    for delay in [5, 700, 3_400] {
        world(1, |world| async move {
            world.start().await;
            world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
            stands(&world, HEALTHY, ALL_HEALTHY).await;
            tokio::time::sleep(Duration::from_secs(2)).await;
            world.sim.clear_requests();
            again_and_again(&world, Duration::from_millis(delay), Duration::from_secs(45), |world| {
                world.sim.remove("configmaps", NAMESPACE, "a");
            })
            .await;

            let (objects, statuses) = (object_writes(&world).len(), status_writes(&world));
            assert!((3..=8).contains(&objects), "{delay} {objects} {:#?}", world.writes());
            assert!(statuses <= if delay > 1_000 { 8 } else { 4 }, "{delay} {statuses} {:#?}", world.writes());
            if delay < 1_000 {
                assert_eq!(condition(&world, HEALTHY), missing("ConfigMap", "a"));
            }
            tokio::time::sleep(Duration::from_secs(95)).await;
            assert!(world.config_map("a").is_some(), "it comes back when the other client gives up");
            assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
        });
    }
}

/// spec 10 §5.4, scenario 20: each repair is a deletion and a creation.
#[test]
fn drift_backoff_limits_replacements_of_an_immutable_object() {
    let immutable = |value: &str| with(config_map("a", value), "/immutable", json!(true));
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[immutable("v")]);
        world.applied("one").await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        world.sim.clear_requests();
        again_and_again(&world, Duration::from_millis(5), Duration::from_secs(45), |world| {
            if world.value("a").as_deref() == Some("v") {
                let labels = world.config_map("a").unwrap()["metadata"]["labels"].clone();
                world.sim.remove("configmaps", NAMESPACE, "a");
                world.sim.put(with(immutable("other"), "/metadata/labels", labels)).unwrap();
            }
        })
        .await;

        let deletions = object_writes(&world).iter().filter(|write| write.starts_with("delete")).count();
        assert!((3..=8).contains(&deletions), "{deletions} {:#?}", world.writes());
    });
}

/// spec 10 §5.4: a Secret rewritten with the same manifests, a health condition or a requested run makes no difference.
#[test]
fn drift_backoff_applies_whatever_starts_the_reconcile() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        world.sim.clear_requests();
        let mut round = 0;
        again_and_again(&world, Duration::from_millis(100), Duration::from_secs(45), |world| {
            round += 1;
            world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
            world.sim.edit("secrets", NAMESPACE, "one", |live| {
                live["metadata"]["labels"] = json!({ "r": round.to_string() })
            });
            world.sim.edit(MRS, NAMESPACE, "one", |live| {
                live["metadata"]["annotations"] = json!({ "gardener.cloud/operation": "reconcile" });
                let conditions = live["status"]["conditions"].as_array_mut().unwrap();
                for condition in conditions.iter_mut().filter(|condition| condition["type"] == HEALTHY) {
                    condition["status"] = json!(if round % 2 == 0 { "True" } else { "False" });
                }
            });
        })
        .await;

        let objects = object_writes(&world);
        assert!((4..=8).contains(&objects.len()), "{objects:#?}");
    });
}

/// spec 10 §5.4: applying another manifest is not a repair, and happens at once.
#[test]
fn drift_backoff_does_not_delay_another_manifest() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        again_and_again(&world, Duration::from_millis(5), Duration::from_secs(20), |world| {
            world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
        })
        .await;
        world.secret("one", &[config_map("a", "w")]);
        tokio::time::sleep(Duration::from_millis(300)).await;

        assert_eq!(world.value("a").as_deref(), Some("w"));
    });
}

/// spec 10 §5.4: changes of fields that no manifest names are not drift and enqueue nothing.
#[test]
fn drift_backoff_ignores_labels_and_annotations_that_no_manifest_names() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), web()]);
        world.applied("one").await;
        tokio::time::sleep(Duration::from_secs(130)).await;
        world.sim.clear_requests();
        let mut round = 0;
        again_and_again(&world, Duration::from_millis(100), Duration::from_secs(120), |world| {
            round += 1;
            for (resource, name) in [("configmaps", "a"), ("deployments.apps", "web")] {
                world.sim.edit(resource, NAMESPACE, name, |live| {
                    live["metadata"]["annotations"]["tenant/a"] = json!(round.to_string());
                    live["metadata"]["labels"]["tenant-l"] = json!(round.to_string());
                    live["metadata"]["finalizers"] = json!([format!("tenant/f{round}")]);
                });
            }
        })
        .await;
        let of_apply: Vec<String> =
            world.asked().into_iter().filter(|asked| !asked.contains("managedresources")).collect();
        assert!(of_apply.is_empty(), "{of_apply:#?}");

        world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
        tokio::time::sleep(Duration::from_millis(250)).await;
        assert_eq!(world.value("a").as_deref(), Some("v"), "it is repaired as ever");
        assert_eq!(world.config_map("a").unwrap()["metadata"]["labels"]["tenant-l"], "1200");
    });
}

/// spec 10 §5.4: checks that find nothing to repair are delayed like repairs.
#[test]
fn drift_backoff_delays_checks_that_find_nothing_to_repair() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        tokio::time::sleep(Duration::from_secs(130)).await;
        world.sim.clear_requests();
        let mut round = 0;
        again_and_again(&world, Duration::from_millis(100), Duration::from_secs(45), |world| {
            round += 1;
            // A key of this program counts, although the merge keeps it.
            world.sim.edit("configmaps", NAMESPACE, "a", |live| {
                live["metadata"]["annotations"]["resources.gardener.cloud/tenant"] = json!(round.to_string());
            });
        })
        .await;

        let looks = world.asked().iter().filter(|asked| *asked == "get configmaps a").count();
        assert!((3..=8).contains(&looks), "{looks} {:#?}", world.asked());
        assert!(world.asked().len() <= 4 * looks, "{:#?}", world.asked());
    });
}
