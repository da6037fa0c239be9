//! Scenarios of spec 10 about slow deletions and dependent objects.

use serde_json::{Value, json};

use crate::{
    objects::{annotated, object, stateful_set, with, workload},
    world::{NAMESPACE, World, config_map, seconds, world},
};

const FINALIZERS: &str = "/metadata/finalizers";

fn held(object: Value) -> Value {
    with(object, FINALIZERS, json!(["a.b/c"]))
}

async fn release(world: &World, path: &str) {
    world.ask("PATCH", path, Some(json!({ "metadata": { "finalizers": null } }))).await.expect("it is patched");
}

fn replica_set(world: &World) -> Value {
    let deployment = world.sim.object("deployments.apps", NAMESPACE, "web").expect("it exists");
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": deployment["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true
    }]);
    let set = with(workload("ReplicaSet", "web"), "/metadata/name", json!("web-1"));
    with(set, "/metadata/ownerReferences", owner)
}

fn warning(days: u32, more: Value) -> Value {
    let time = format!("2029-12-{:02}T00:00:00Z", 32 - days);
    let regarding = json!({ "apiVersion": "v1", "kind": "Service", "namespace": NAMESPACE, "name": "lb" });
    let mut event = object(
        "v1",
        "Event",
        &format!("lb.{days}"),
        json!({
            "type": "Warning", "reason": "SyncFailed", "message": format!("{days} days"), "involvedObject": regarding,
            "source": { "component": "service-controller" }, "count": 1, "firstTimestamp": time, "lastTimestamp": time
        }),
    );
    event.as_object_mut().into_iter().zip(more.as_object()).for_each(|(event, more)| event.extend(more.clone()));
    event
}

/// spec 10 scenario 9.
#[test]
fn service_with_a_pending_deletion_is_reported_with_its_newest_five_warnings() {
    let spec = json!({ "type": "LoadBalancer", "ports": [{ "port": 80 }] });
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[held(object("v1", "Service", "lb", json!({ "spec": spec })))]);
        world.applied("one").await;
        for days in [20, 14, 16, 15, 18, 17] {
            world.sim.put(warning(days, json!({}))).unwrap();
        }
        let again = json!({ "count": 14, "firstTimestamp": "2029-12-01T00:00:00Z" });
        world.sim.put(warning(13, again)).unwrap();
        world.sim.put(warning(12, json!({ "type": "Normal" }))).unwrap();
        let other = json!({ "apiVersion": "v1", "kind": "Service", "namespace": NAMESPACE, "name": "other" });
        world.sim.put(warning(11, json!({ "involvedObject": other }))).unwrap();
        world.secret("one", &[]);
        seconds(12).await;

        let line = |days| format!("* service-controller reported {days}d ago: {days} days");
        let lines = [17, 16, 15, 14].map(line).join("\n");
        let message = format!(
            "Could not clean all old resources: 1 error occurred: deletion of old resource \"v1/Service/shoot/lb\" is \
             still pending\n\n-> Events:\n{lines}\n* service-controller reported 13d ago (x14 over 31d): 13 days"
        );
        let expected = ("Progressing".to_owned(), "DeletionPending".to_owned(), message);
        assert_eq!(world.condition("one", "ResourcesApplied"), Some(expected));
    });
}

/// spec 10 scenario 21, its middle: dependents of a Deployment survive its replacement, or do not.
#[test]
fn invalid_deployment_is_replaced_with_the_annotated_propagation_policy() {
    for (policy, survives) in [(Some("Orphan"), true), (Some("Background"), false), (None, false)] {
        world(1, |world| async move {
            world.start().await;
            world.bundle("one", &[workload("Deployment", "web")]);
            world.applied("one").await;
            world.sim.put(replica_set(&world)).unwrap();
            let mut renamed = annotated(workload("Deployment", "web"), "delete-on-invalid-update", "t");
            for labels in ["/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
                renamed = with(renamed, labels, json!({ "app": "new" }));
            }
            if let Some(policy) = policy {
                renamed = annotated(renamed, "deletion-propagation-on-invalid-update", policy);
            }
            world.secret("one", &[renamed]);
            seconds(5).await;

            assert!(world.is_applied("one"), "{policy:?}: {:#?}", world.mr("one"));
            let live = world.sim.object("deployments.apps", NAMESPACE, "web").unwrap();
            assert_eq!(live["spec"]["selector"]["matchLabels"]["app"], "new");
            let set = world.sim.object("replicasets.apps", NAMESPACE, "web-1");
            assert_eq!(set.is_some(), survives, "{policy:?}");
            assert_eq!(set.unwrap_or_default()["metadata"]["ownerReferences"], Value::Null, "{policy:?}");
        });
    }
}

/// spec 10 scenario 27.
#[test]
fn claims_of_a_stateful_set_are_deleted_on_request_and_no_others() {
    let expression = json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": ["db"] }] });
    let table = [
        (true, json!({ "matchLabels": { "app": "db" } }), vec!["free-0", "other-0"]),
        (true, expression, vec!["free-0", "other-0"]),
        (false, json!({ "matchLabels": { "app": "db" } }), vec!["db-0", "db-1", "free-0", "other-0"]),
    ];

    for (wanted, selector, left) in table {
        world(1, |world| async move {
            let claim = |name: &str, labels: Value| {
                let spec =
                    json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
                let claim = object("v1", "PersistentVolumeClaim", name, json!({ "spec": spec }));
                world.sim.put(with(claim, "/metadata/labels", labels)).unwrap();
            };
            world.start().await;
            let set = with(stateful_set("db", "1Gi"), "/spec/selector", selector.clone());
            world.bundle_with("one", &[set], json!({ "deletePersistentVolumeClaims": wanted }));
            world.applied("one").await;
            claim("db-0", json!({ "app": "db" }));
            claim("db-1", json!({ "app": "db", "more": "x" }));
            claim("other-0", json!({ "app": "other" }));
            claim("free-0", json!({}));
            world.secret("one", &[]);
            seconds(15).await;

            assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
            assert_eq!(world.sim.object("statefulsets.apps", NAMESPACE, "db"), None);
            let claims = world.sim.objects("persistentvolumeclaims");
            let names: Vec<_> = claims.iter().map(|claim| claim["metadata"]["name"].as_str().unwrap()).collect();
            assert_eq!(names, left, "{wanted} {selector}");
        });
    }
}

/// spec 10 scenario 27: a selector that selects everything.
#[test]
fn empty_selector_deletes_no_claims() {
    world(1, |world| async move {
        world.start().await;
        world.bundle_with("one", &[stateful_set("db", "1Gi")], json!({ "deletePersistentVolumeClaims": true }));
        world.applied("one").await;
        let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
        world.sim.put(object("v1", "PersistentVolumeClaim", "free-0", json!({ "spec": spec }))).unwrap();
        // API servers refuse such a StatefulSet now, but old ones may be stored.
        world.sim.edit("statefulsets.apps", NAMESPACE, "db", |live| live["spec"]["selector"] = json!({}));
        world.secret("one", &[]);
        seconds(30).await;

        assert!(world.sim.object("persistentvolumeclaims", NAMESPACE, "free-0").is_some());
        let (_, reason, message) = world.condition("one", "ResourcesApplied").unwrap();
        let cause =
            "failed cleaning up PersistentVolumeClaims of StatefulSet: the selector of the StatefulSet is empty";
        assert!(reason == "DeletionPending" && message.ends_with(cause), "{message}");
    });
}

/// spec 10 scenario 28.
#[test]
fn deleted_bundle_reports_and_awaits_all_of_its_objects() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[workload("Deployment", "web"), held(config_map("a", "v")), config_map("b", "v")]);
        world.applied("one").await;
        world.sim.put(held(replica_set(&world))).unwrap();
        world.sim.remove("secrets", NAMESPACE, "one");
        world.delete_bundle("one").await;
        seconds(20).await;

        let condition = |kind| world.condition("one", kind).unwrap();
        let deleting = |status: &str| {
            let message = "The resources are currently being deleted.";
            (status.to_owned(), "DeletionPending".to_owned(), message.to_owned())
        };
        assert_eq!(condition("ResourcesHealthy"), deleting("False"));
        assert_eq!(condition("ResourcesProgressing"), deleting("True"));
        let pending = |display| format!("deletion of old resource \"{display}\" is still pending");
        let items = ["apps/v1/Deployment/shoot/web", "v1/ConfigMap/shoot/a"].map(pending).join(", ");
        let message = format!("Could not clean all old resources: 2 errors occurred: [{items}]");
        assert_eq!(condition("ResourcesApplied"), ("Progressing".into(), "DeletionPending".into(), message));
        assert_eq!(world.config_map("b"), None);
        let live = world.sim.object("deployments.apps", NAMESPACE, "web").unwrap();
        assert_eq!(live["metadata"]["finalizers"], json!(["foregroundDeletion"]));

        release(&world, "/api/v1/namespaces/shoot/configmaps/a").await;
        seconds(20).await;
        assert_eq!(world.config_map("a"), None);
        let finalizers = json!(["resources.gardener.cloud/gardener-resource-manager"]);
        assert_eq!(world.mr("one").unwrap()["metadata"]["finalizers"], finalizers, "one object is left");
        release(&world, "/apis/apps/v1/namespaces/shoot/replicasets/web-1").await;
        seconds(2).await;
        assert_eq!((world.sim.object("deployments.apps", NAMESPACE, "web"), world.mr("one")), (None, None));
    });
}
