//! A group whose kinds cannot be discovered: known facts stay, nothing is concluded, and all other objects are handled.

use std::time::Duration;

use serde_json::{Value, json};
use sim::{Fault, RequestInfo, Seen};

use crate::{
    health_objects::{
        ALL_HEALTHY, HEALTHY, PROGRESSING, ROLLED_OUT, condition, ready, set_status, stands, unhealthy, workload,
    },
    objects::{definition, widget},
    world::{NAMESPACE, World, config_map, seconds, world},
};

/// Answers like a server without aggregated discovery whose aggregated API is broken. `None` for other requests.
fn is_broken(info: &RequestInfo, plain: &mut bool) -> Option<Seen> {
    if info.path == "/apis" {
        // The aggregated document is requested first, then the plain one.
        *plain = !*plain;
        return plain.then(|| Seen::status(406, "NotAcceptable", "only the plain document is served"));
    }
    (info.resource.is_empty() && info.path.starts_with("/apis/example.org")).then(Seen::unavailable)
}

fn break_group(world: &World) {
    let mut plain = false;
    world.sim.set_faults(move |info| is_broken(info, &mut plain).map_or(Fault::None, Fault::FailBefore));
}

async fn stopped_with_a_broken_group(world: &World, others: &[Value]) {
    world.sim.put(definition()).expect("the definition is valid");
    seconds(1).await;
    world.start().await;
    world.bundle("one", &[others, &[widget(1)]].concat());
    world.applied("one").await;
    seconds(5).await;
    world.stop().await;
    break_group(world);
}

fn has_widget(world: &World) -> bool {
    world.sim.object("widgets.example.org", NAMESPACE, "kept").is_some()
}

/// spec 20 §12, decision 12.
#[test]
fn undiscoverable_kind_is_reported_and_the_other_objects_get_health_checks() {
    world(1, |world| async move {
        let wait = json!({ "metadata": { "annotations": { "gardener.cloud/operation": "wait-for-state" } } });
        world.sim.put(definition()).unwrap();
        seconds(1).await;
        world.start().await;
        world.bundle("one", &[workload("StatefulSet", "db", 2), widget(1)]);
        world.applied("one").await;
        set_status(&world, "statefulsets.apps", "db", ready(2));
        stands(&world, HEALTHY, ALL_HEALTHY).await;
        world.patch_bundle("one", wait).await;
        world.stop().await;
        break_group(&world);
        set_status(&world, "statefulsets.apps", "db", json!({ "observedGeneration": 9, "updatedReplicas": 1 }));
        world.start().await;
        seconds(10).await;

        assert_eq!(condition(&world, HEALTHY), unhealthy("StatefulSet", "db", "not enough ready replicas (0/2)"));
        assert_eq!(condition(&world, PROGRESSING)[1], "StatefulSetProgressing");
        set_status(&world, "statefulsets.apps", "db", ready(2));
        seconds(2).await;
        assert_eq!(condition(&world, PROGRESSING), ROLLED_OUT);
        seconds(40).await;
        let [status, reason, message] = condition(&world, HEALTHY);
        assert_eq!((status.as_str(), reason.as_str()), ("False", "HealthCheckError"));
        let head =
            "Error executing health check for Widget \"shoot/kept\": cannot discover example.org/v1, Kind=Widget: ";
        assert!(message.starts_with(head), "{message}");
        world.sim.clear_faults();
        seconds(70).await;
        assert_eq!(condition(&world, HEALTHY), ALL_HEALTHY);
    });
}

/// spec 10 scenario 39: one update per object and period, not one per attempt to discover the group.
#[test]
fn always_update_sends_each_object_once_a_period_while_a_group_is_broken() {
    world(1, |world| async move {
        world.managed_resource().always_update = true;
        stopped_with_a_broken_group(&world, &[config_map("a", "v")]).await;
        world.secret("one", &[config_map("a", "v")]);
        world.start().await;
        world.sim.clear_requests();
        seconds(50).await;
        let updates = || world.writes().iter().filter(|write| *write == "update configmaps a").count();
        assert_eq!(updates(), 1);
        seconds(130).await;

        assert!((3..=4).contains(&updates()), "{} in three minutes", updates());
        assert!(has_widget(&world), "nothing is deleted on a guess");
    });
}

/// spec 10 §9.3: the next start knows no more, and finishes once it does.
#[test]
fn prune_is_not_forgotten_by_a_start_beside_a_broken_group() {
    world(1, |world| async move {
        stopped_with_a_broken_group(&world, &[config_map("a", "v")]).await;
        world.secret("one", &[config_map("a", "w")]);
        world.start().await;
        world.eventually("a is changed", || world.value("a").as_deref() == Some("w")).await;
        seconds(5).await;
        let (status, reason, message) = world.condition("one", "ResourcesApplied").unwrap();
        assert_eq!((status.as_str(), reason.as_str()), ("Progressing", "DeletionPending"));
        let head = "Could not clean all old resources: 1 error occurred: deletion of old resource \
                    \"example.org/v1/Widget/shoot/kept\" is still pending: unable to retrieve";
        assert!(message.starts_with(head), "{message}");
        world.stop().await;
        break_group(&world);
        world.start().await;
        seconds(30).await;
        assert!(has_widget(&world) && !world.is_applied("one"));
        world.sim.clear_faults();
        seconds(130).await;

        assert!(!has_widget(&world));
        assert_eq!(world.refs("one"), ["a"]);
    });
}

/// spec 10 §11.8: the definition appears while the ManagedResource is being applied.
#[test]
fn reference_of_a_cluster_scoped_object_loses_its_namespace_once_its_kind_is_served() {
    world(1, |world| async move {
        let mut definition = definition();
        definition["spec"]["scope"] = json!("Cluster");
        let mut widget = widget(1);
        widget["metadata"].as_object_mut().unwrap().remove("namespace");
        // The kind is unknown when the reconcile begins, and served when the object's turn comes.
        let (sim, mut first) = (world.sim.clone(), true);
        world.sim.set_faults(move |info| {
            let hit = info.verb == "create" && info.resource == "configmaps";
            if hit && std::mem::take(&mut first) {
                sim.put(definition.clone()).unwrap();
                return Fault::Delay(Duration::from_millis(1500));
            }
            Fault::None
        });
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), widget]);
        world.applied("one").await;
        seconds(70).await;

        let refs = world.mr("one").unwrap()["status"]["resources"].clone();
        let widget = refs.as_array().unwrap().iter().find(|reference| reference["kind"] == "Widget").unwrap();
        assert_eq!(widget.get("namespace"), None, "{refs:#}");
        assert!(world.is_applied("one"));
    });
}
