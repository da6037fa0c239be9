//! Scenarios of spec 10 about the conditions of a reconcile, with the exact texts of §16.

use std::time::Duration;

use serde_json::{Value, json};
use sim::{EventFault, Fault};

use crate::{
    objects::with,
    world::{NAMESPACE, World, config_map, managed_resource, seconds, stream, world},
};

const APPLIED: &str = "ResourcesApplied";
const HEALTHY: &str = "ResourcesHealthy";
const PROGRESSING: &str = "ResourcesProgressing";

fn condition(world: &World, kind: &str) -> [String; 3] {
    world.condition("one", kind).map(|(status, reason, message)| [status, reason, message]).unwrap_or_default()
}

/// spec 10 scenario 3.
#[test]
fn missing_secret_is_reported_and_its_creation_is_noticed() {
    world(1, |world| async move {
        world.start().await;
        world.secret("first", &[config_map("a", "v")]);
        world.sim.put(managed_resource("one", &["first", "second"], json!({}))).unwrap();
        seconds(30).await;

        assert_eq!(condition(&world, APPLIED), ["False", "CannotReadSecret", "Secret \"second\" not found"]);
        assert_eq!(world.config_map("a"), None);
        world.secret("second", &[config_map("b", "v")]);
        seconds(1).await;
        assert_eq!(condition(&world, APPLIED), ["True", "ApplySucceeded", "All resources are applied."]);
        assert_eq!(world.refs("one"), ["a", "b"]);

        world.secret("first", &[config_map("c", "v")]);
        world.sim.remove("secrets", NAMESPACE, "second");
        seconds(120).await;
        assert_eq!(condition(&world, APPLIED)[..2], ["False", "CannotReadSecret"]);
        assert!(world.config_map("a").is_some() && world.config_map("c").is_none(), "nothing is deleted or applied");
    });
}

/// spec 10 scenario 4, spec 00 decision 9.
#[test]
fn bad_document_is_reported_and_deletes_nothing() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v"), config_map("c", "v")]);
        world.applied("one").await;
        let text =
            format!("{}---\n- no map\n---\n{}", stream(&[config_map("a", "w")]), stream(&[config_map("c", "w")]));
        world.secret_data("one", &[("objects.yaml", text.as_bytes())]);
        seconds(5).await;

        let [status, reason, message] = condition(&world, APPLIED);
        assert_eq!((status.as_str(), reason.as_str()), ("False", "DecodingFailed"));
        let beginning = "Could not decode all new resources: [Could not decode resource at index 1 in 'objects.yaml' in \
                         secret 'shoot/one': ";
        assert!(message.starts_with(beginning) && message.ends_with(".]"), "{message}");
        let values = ["a", "b", "c"].map(|name| world.value(name).unwrap_or_default());
        assert_eq!(values, ["w", "v", "w"]);
        world.sim.clear_requests();
        seconds(50).await;
        assert_eq!(world.asked(), [""; 0], "the next reconcile comes with the period");
    });
}

/// spec 10 scenario 5.
#[test]
fn corrupt_brotli_is_one_error() {
    world(1, |world| async move {
        world.start().await;
        world.secret_data("one", &[("x.br", &[0xff, 0x13, 0x37, 0x42, 0x00, 0x99])]);
        world.sim.put(managed_resource("one", &["one"], json!({}))).unwrap();
        seconds(5).await;

        let [status, reason, message] = condition(&world, APPLIED);
        assert_eq!((status.as_str(), reason.as_str()), ("False", "DecodingFailed"));
        assert_eq!(message.matches("Could not decode resource at index").count(), 1, "{message}");
    });
}

/// spec 10 scenario 8.
#[test]
fn pruned_object_is_awaited_before_new_objects_are_applied() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("old", "v")]);
        world.applied("one").await;
        world.sim.edit("configmaps", NAMESPACE, "old", |live| live["metadata"]["finalizers"] = json!(["a.b/c"]));
        seconds(2).await;
        world.secret("one", &[config_map("new", "v")]);
        seconds(12).await;

        let pending = "Could not clean all old resources: 1 error occurred: deletion of old resource \
                       \"v1/ConfigMap/shoot/old\" is still pending";
        assert_eq!(condition(&world, APPLIED), ["Progressing", "DeletionPending", pending]);
        let health = "The health checks have not yet been executed for the current set of resources.";
        assert_eq!(condition(&world, HEALTHY), ["Unknown", "ChecksPending", health]);
        let progress = "Checks have not yet been executed for the current set of resources.";
        assert_eq!(condition(&world, PROGRESSING), ["Unknown", "ChecksPending", progress]);
        assert_eq!(world.config_map("new"), None);

        let path = "/api/v1/namespaces/shoot/configmaps/old";
        world.ask("PATCH", path, Some(json!({ "metadata": { "finalizers": null } }))).await.unwrap();
        seconds(1).await;
        assert!(world.config_map("new").is_some() && world.is_applied("one"), "{:#?}", world.mr("one"));
    });
}

/// spec 10 scenario 21; faults row 13
#[test]
fn invalid_update_is_reported_or_replaces_the_object_as_annotated() {
    let binding = |role: &str, annotations: Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": { "namespace": NAMESPACE, "name": "r", "annotations": annotations },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role },
        })
    };
    let delete = "resources.gardener.cloud/delete-on-invalid-update";
    let policy = "resources.gardener.cloud/deletion-propagation-on-invalid-update";
    world(1, |world| async move {
        let live = || world.sim.object("rolebindings.rbac.authorization.k8s.io", NAMESPACE, "r").unwrap();
        world.start().await;
        world.bundle("one", &[binding("first", json!({}))]);
        world.applied("one").await;
        world.secret("one", &[binding("second", json!({}))]);
        seconds(10).await;
        let [status, reason, message] = condition(&world, APPLIED);
        assert_eq!((status.as_str(), reason.as_str()), ("False", "ApplyFailed"));
        let display = "rbac.authorization.k8s.io/v1/RoleBinding/shoot/r";
        assert!(message.starts_with(&format!("error during apply of object \"{display}\": ")), "{message}");
        assert_eq!(live()["roleRef"]["name"], "first");

        world.secret("one", &[binding("second", json!({ delete: "t", policy: "orphan" }))]);
        seconds(10).await;
        let message = &condition(&world, APPLIED)[2];
        let invalid = format!(
            "invalid deletion propagation policy on object {display}: \"orphan\" is invalid, supported values: \
             [Background Foreground Orphan]"
        );
        assert_eq!(*message, invalid);
        assert_eq!(live()["roleRef"]["name"], "first");

        world.secret("one", &[binding("second", json!({ delete: "t" }))]);
        world.eventually("it is replaced", || world.is_applied("one")).await;
        assert_eq!(live()["roleRef"]["name"], "second");
    });
}

/// spec 10 scenario 20.
#[test]
fn immutable_config_map_replaced_by_a_user_is_replaced_again() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[with(config_map("a", "v"), "/immutable", json!(true))]);
        world.applied("one").await;
        seconds(5).await;
        world.sim.remove("configmaps", NAMESPACE, "a");
        world.sim.put(with(config_map("a", "other"), "/immutable", json!(true))).unwrap();
        world.eventually("the object matches its manifest", || world.value("a").as_deref() == Some("v")).await;
        world.applied("one").await;
    });
}

/// spec 10 scenario 32.
#[test]
fn ignored_bundle_is_untouched_until_it_is_unignored_or_deleted() {
    let ignore = |value: Value| json!({ "metadata": { "annotations": { "resources.gardener.cloud/ignore": value } } });
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        world.patch_bundle("one", ignore(json!("T"))).await;
        seconds(2).await;
        let message = "ManagedResource is marked to be ignored.";
        for (kind, status) in [(APPLIED, "True"), (HEALTHY, "True"), (PROGRESSING, "False")] {
            assert_eq!(condition(&world, kind), [status, "ManagedResourceIgnored", message], "{kind}");
        }
        world.sim.clear_requests();
        world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
        world.secret("one", &[config_map("a", "w")]);
        seconds(200).await;
        assert_eq!(world.asked(), [""; 0]);

        world.patch_bundle("one", ignore(Value::Null)).await;
        seconds(1).await;
        assert_eq!(world.value("a").as_deref(), Some("w"));
        world.patch_bundle("one", ignore(json!("true"))).await;
        world.delete_bundle("one").await;
        seconds(10).await;
        assert_eq!((world.mr("one"), world.config_map("a")), (None, None));
    });
}

/// spec 10 scenario 33.
#[test]
fn operation_annotations_are_executed_or_awaited() {
    let operation = |value: &str| json!({ "metadata": { "annotations": { "gardener.cloud/operation": value } } });
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        seconds(2).await;
        world.sim.clear_requests();
        world.patch_bundle("one", operation("reconcile")).await;
        seconds(2).await;
        assert_eq!(world.mr("one").unwrap()["metadata"]["annotations"]["gardener.cloud/operation"], Value::Null);
        let reads = world.asked().iter().filter(|asked| *asked == "get secrets one").count();
        assert_eq!(reads, 1, "{:#?}", world.asked());

        world.patch_bundle("one", operation("wait-for-state")).await;
        world.delete_bundle("one").await;
        seconds(300).await;
        assert!(world.mr("one").is_some() && world.config_map("a").is_some());
        world.patch_bundle("one", operation("restore")).await;
        seconds(10).await;
        assert_eq!(world.mr("one"), None);
    });
}

/// spec 10 §5.1 C, §5.5: even if a reconcile for an older reason comes.
#[test]
fn operation_annotation_stays_while_the_bundle_is_ignored() {
    let annotation = |key: &str, value: Value| json!({ "metadata": { "annotations": { key: value } } });
    let operation =
        |world: &World| world.mr("one").unwrap()["metadata"]["annotations"]["gardener.cloud/operation"].clone();
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
        world.patch_bundle("one", annotation("resources.gardener.cloud/ignore", json!("true"))).await;
        world.patch_bundle("one", annotation("gardener.cloud/operation", json!("reconcile"))).await;
        seconds(130).await;
        assert_eq!((operation(&world), world.value("a").as_deref()), (json!("reconcile"), Some("edited")));
        world.patch_bundle("one", annotation("resources.gardener.cloud/ignore", Value::Null)).await;
        seconds(2).await;

        assert_eq!((operation(&world), world.value("a").as_deref()), (Value::Null, Some("v")));
    });
}

/// spec 10 scenario 35.
#[test]
fn health_is_unknown_after_a_changed_secret_even_if_no_reference_changed() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        world.sim.edit("managedresources.resources.gardener.cloud", NAMESPACE, "one", |live| {
            for condition in live["status"]["conditions"].as_array_mut().unwrap() {
                if condition["type"] == HEALTHY {
                    (condition["status"], condition["reason"]) = (json!("True"), json!("ResourcesHealthy"));
                }
            }
        });
        world.sim.set_faults(|info| match (info.verb.as_str(), info.resource.as_str()) {
            ("update", "configmaps") => Fault::Delay(Duration::from_millis(500)),
            _ => Fault::None,
        });
        world.secret("one", &[config_map("a", "w")]);
        tokio::time::sleep(Duration::from_millis(300)).await;

        assert_eq!(condition(&world, HEALTHY)[..2], ["Unknown", "ChecksPending"]);
        seconds(1).await;
        assert_eq!(world.value("a").as_deref(), Some("w"));
        assert_eq!(condition(&world, HEALTHY)[..2], ["True", "ResourcesHealthy"]);
    });
}

/// spec 10 scenario 37.
#[test]
fn status_written_meanwhile_by_the_health_controller_is_not_lost() {
    world(1, |world| async move {
        let sim = world.sim.clone();
        let mut left = 1;
        world.sim.set_faults(move |info| {
            if info.verb == "create" && info.resource == "configmaps" && left > 0 {
                left -= 1;
                sim.edit("managedresources.resources.gardener.cloud", NAMESPACE, "one", |live| {
                    live["status"]["conditions"].as_array_mut().unwrap().push(json!({
                        "type": "Foreign", "status": "True", "reason": "R", "message": "m",
                        "lastTransitionTime": "2030-01-01T00:00:00Z", "lastUpdateTime": "2030-01-01T00:00:00Z"
                    }));
                });
            }
            Fault::None
        });
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;

        assert_eq!(condition(&world, "Foreign")[..2], ["True", "R"]);
        let creations = world.writes().iter().filter(|write| write.starts_with("create configmaps")).count();
        assert_eq!(creations, 1);
    });
}

/// spec 10 scenario 39.
#[test]
fn always_update_sends_each_object_each_period() {
    world(1, |world| async move {
        world.managed_resource().always_update = true;
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        seconds(1).await;
        world.sim.clear_requests();
        seconds(300).await;

        let updates = world.writes().iter().filter(|write| write.starts_with("update configmaps")).count();
        assert_eq!(updates, 10, "{:#?}", world.writes());
    });
}

async fn within_a_period(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..630 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not within a period: {what}");
}

fn edit(world: &World) {
    world.sim.edit("configmaps", NAMESPACE, "a", |live| live["data"]["k"] = json!("edited"));
}

/// spec 10 §3.1: an update that changes nothing is not a repair.
#[test]
fn always_update_repairs_an_edit_at_once_after_any_number_of_quiet_periods() {
    for quiet in [1, 3, 8] {
        world(1, |world| async move {
            world.managed_resource().always_update = true;
            world.start().await;
            world.bundle("one", &[config_map("a", "v")]);
            world.applied("one").await;
            seconds(1).await;
            for _ in 0..quiet {
                world.sim.clear_requests();
                within_a_period("it is sent", || world.writes().contains(&"update configmaps a".to_owned())).await;
            }
            edit(&world);
            tokio::time::sleep(Duration::from_millis(250)).await;

            assert_eq!(world.value("a").as_deref(), Some("v"), "after {quiet} quiet periods");
        });
    }
}

/// spec 10 §3.1: old repairs do not delay new ones, whatever detects the drift.
#[test]
fn always_update_resets_the_drift_backoff_after_quiet_periods() {
    world(1, |world| async move {
        world.managed_resource().always_update = true;
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        seconds(1).await;
        let is_repaired = || world.value("a").as_deref() == Some("v");
        for _ in 0..5 {
            edit(&world);
            within_a_period("it is repaired", is_repaired).await;
        }
        seconds(300).await;
        world.sim.set_event_faults(|_| EventFault::Drop);
        edit(&world);
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.sim.clear_event_faults();
        within_a_period("the next update repairs it", is_repaired).await;
        edit(&world);
        tokio::time::sleep(Duration::from_millis(1_300)).await;

        assert!(is_repaired(), "{:?}", world.value("a"));
    });
}
