//! References of ControllerDeployments, Seeds and Shoots to Secrets, ConfigMaps and WorkloadIdentities.

use std::time::Duration;

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{EventFault, Fault, Seen};
use tracing::Level;

use super::garden::{Garden, garden, object};
use crate::log_capture::logged;

pub(super) const PROTECTION: &str = "gardener.cloud/reference-protection";

/// The kinds of referrers, with the namespace of a referrer and the finalizer of its last user.
const REFERRERS: [(&Resource, &str, &str); 3] = [
    (&kinds::CONTROLLER_DEPLOYMENT, "", "core.gardener.cloud/controllerdeployment"),
    (&kinds::SEED, "", "gardener"),
    (&kinds::SHOOT, "garden", "gardener"),
];

pub(super) fn to(kind: &Resource, name: &str) -> Value {
    let reference = json!({ "apiVersion": kind.api_version(), "kind": &*kind.kind, "name": name });
    json!({ "name": format!("{}-{name}", kind.plural), "resourceRef": reference })
}

/// Fields with these references, for each kind of referrers.
fn fields(references: &[Value]) -> Value {
    json!({ "resources": references, "spec": { "resources": references } })
}

pub(super) fn referrer(kind: &Resource, namespace: &str, name: &str, references: &[Value]) -> Value {
    object(kind, namespace, name, fields(references))
}

pub(super) fn put_object(garden: &Garden, kind: &Resource, namespace: &str, name: &str) {
    garden.put(object(kind, namespace, name, json!({})));
}

pub(super) fn is_held(garden: &Garden, kind: &Resource, namespace: &str, name: &str) -> bool {
    garden.finalizers(kind, namespace, name).iter().any(|finalizer| finalizer == PROTECTION)
}

pub(super) async fn held(garden: &Garden, kind: &Resource, namespace: &str, name: &str) {
    garden.soon(&format!("{kind} {name} is held"), || is_held(garden, kind, namespace, name)).await;
}

pub(super) async fn released(garden: &Garden, kind: &Resource, namespace: &str, name: &str) {
    garden.soon(&format!("{kind} {name} is released"), || !is_held(garden, kind, namespace, name)).await;
}

pub(super) fn refer(garden: &Garden, kind: &Resource, namespace: &str, name: &str, references: &[Value]) {
    let resource = format!("{}.{}", kind.plural, kind.group);
    let fields = fields(references);
    let is_found = garden.sim.edit(&resource, namespace, name, |referrer| {
        referrer["resources"] = fields["resources"].clone();
        referrer["spec"] = fields["spec"].clone();
    });
    assert!(is_found, "{kind} {name}");
}

/// Deletes a referrer whose own controllers still need its objects.
pub(super) async fn delete_in_use(garden: &Garden, kind: &Resource, namespace: &str, name: &str, last_user: &str) {
    let resource = format!("{}.{}", kind.plural, kind.group);
    garden.sim.edit(&resource, namespace, name, |referrer| {
        let finalizers = referrer["metadata"]["finalizers"].as_array_mut();
        let last_user = json!(last_user);
        match finalizers {
            Some(finalizers) if finalizers.contains(&last_user) => {}
            Some(finalizers) => finalizers.push(last_user),
            None => referrer["metadata"]["finalizers"] = json!([last_user]),
        }
    });
    garden.delete(kind, namespace, name).await;
}

/// Ends the use of a deleted referrer, as gardenlet does.
pub(super) fn finish(garden: &Garden, kind: &Resource, namespace: &str, name: &str, last_user: &str) {
    let resource = format!("{}.{}", kind.plural, kind.group);
    garden.sim.edit(&resource, namespace, name, |referrer| {
        if let Some(finalizers) = referrer["metadata"]["finalizers"].as_array_mut() {
            finalizers.retain(|finalizer| finalizer != last_user);
        }
    });
}

/// spec 81 scenario 51
#[test]
fn references_of_a_controller_deployment_are_protected_while_it_has_them() {
    garden(|garden| async move {
        for (kind, name) in [(&kinds::SECRET, "a"), (&kinds::CONFIG_MAP, "b"), (&kinds::SECRET, "c")] {
            put_object(&garden, kind, "garden", name);
        }
        let registry = json!({ "ociRepository": { "ref": "r:1", "pullSecretRef": { "name": "c" } } });
        let mut deployment = object(&kinds::CONTROLLER_DEPLOYMENT, "", "d", json!({ "helm": registry }));
        deployment["resources"] = json!([to(&kinds::SECRET, "a"), to(&kinds::CONFIG_MAP, "b")]);
        garden.put(deployment);
        garden.start().await;
        held(&garden, &kinds::SECRET, "garden", "a").await;
        held(&garden, &kinds::CONFIG_MAP, "garden", "b").await;
        held(&garden, &kinds::SECRET, "garden", "c").await;
        held(&garden, &kinds::CONTROLLER_DEPLOYMENT, "", "d").await;

        let none = json!({ "resources": null, "helm": { "ociRepository": { "pullSecretRef": null } } });
        garden.patch(&kinds::CONTROLLER_DEPLOYMENT, "", "d", none).await;

        released(&garden, &kinds::SECRET, "garden", "a").await;
        released(&garden, &kinds::CONFIG_MAP, "garden", "b").await;
        released(&garden, &kinds::SECRET, "garden", "c").await;
        released(&garden, &kinds::CONTROLLER_DEPLOYMENT, "", "d").await;
        let own = garden.finalizers(&kinds::CONTROLLER_DEPLOYMENT, "", "d");
        assert_eq!(own, ["core.gardener.cloud/controllerdeployment"]);
    });
}

/// spec 81 scenario 52
#[test]
fn references_to_a_pull_secret_follow_their_change() {
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "garden", "c");
        put_object(&garden, &kinds::SECRET, "garden", "d");
        let registry = |name: &str| json!({ "helm": { "ociRepository": { "pullSecretRef": { "name": name } } } });
        garden.put(object(&kinds::CONTROLLER_DEPLOYMENT, "", "d", registry("c")));
        garden.start().await;
        held(&garden, &kinds::SECRET, "garden", "c").await;

        garden.patch(&kinds::CONTROLLER_DEPLOYMENT, "", "d", registry("d")).await;

        held(&garden, &kinds::SECRET, "garden", "d").await;
        released(&garden, &kinds::SECRET, "garden", "c").await;
    });
}

/// spec 81 scenario 53
#[test]
fn reference_of_any_kind_of_referrers_keeps_an_object() {
    for order in [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [1, 0, 2], [2, 1, 0]] {
        for deletes in [false, true] {
            garden(|garden| async move {
                put_object(&garden, &kinds::SECRET, "garden", "x");
                for (kind, namespace, _) in REFERRERS {
                    garden.put(referrer(kind, namespace, "r", &[to(&kinds::SECRET, "x")]));
                }
                garden.settled().await;
                assert!(is_held(&garden, &kinds::SECRET, "garden", "x"));

                for (number, at) in order.into_iter().enumerate() {
                    let (kind, namespace, _) = REFERRERS[at];
                    match deletes {
                        true => garden.delete(kind, namespace, "r").await,
                        false => refer(&garden, kind, namespace, "r", &[]),
                    }
                    garden.settle().await;
                    let is_last = number == 2;
                    assert_eq!(is_held(&garden, &kinds::SECRET, "garden", "x"), !is_last, "{order:?} {deletes}");
                }
                let is_there =
                    |(kind, namespace, _): (&Resource, &str, &str)| garden.find(kind, namespace, "r").is_some();
                assert_eq!(REFERRERS.map(is_there), [!deletes; 3]);
            });
        }
    }
}

/// spec 81 scenario 54
#[test]
fn reference_of_a_deleted_controller_deployment_counts_while_registrations_use_it() {
    garden(|garden| async move {
        for name in ["x", "shared"] {
            put_object(&garden, &kinds::SECRET, "garden", name);
        }
        let references = [to(&kinds::SECRET, "x"), to(&kinds::SECRET, "shared")];
        garden.put(referrer(&kinds::CONTROLLER_DEPLOYMENT, "", "d", &references));
        garden.put(referrer(&kinds::SEED, "", "s", &references[1..]));
        let registration = json!({ "spec": { "deployment": { "deploymentRefs": [{ "name": "d" }] } } });
        garden.put(object(&kinds::CONTROLLER_REGISTRATION, "", "r", registration));
        garden.settled().await;
        garden.delete(&kinds::CONTROLLER_DEPLOYMENT, "", "d").await;
        garden.settle().await;
        assert!(is_held(&garden, &kinds::SECRET, "garden", "x"));
        assert!(is_held(&garden, &kinds::CONTROLLER_DEPLOYMENT, "", "d"));

        garden.delete(&kinds::CONTROLLER_REGISTRATION, "", "r").await;

        garden.gone(&kinds::CONTROLLER_DEPLOYMENT, "", "d").await;
        assert!(!is_held(&garden, &kinds::SECRET, "garden", "x"), "objects first");
        garden.settle().await;
        assert!(is_held(&garden, &kinds::SECRET, "garden", "shared"));
    });
}

/// spec 81 scenario 55
#[test]
fn reference_to_a_missing_object_keeps_no_other_object_unprotected() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_object(&garden, &kinds::CONFIG_MAP, "garden", "c");
            let references = [to(&kinds::SECRET, "s"), to(&kinds::CONFIG_MAP, "c"), to(&kinds::SECRET, "t")];
            garden.put(referrer(&kinds::SEED, "", "r", &references));
            garden.start().await;
            held(&garden, &kinds::CONFIG_MAP, "garden", "c").await;
            held(&garden, &kinds::SEED, "", "r").await;
            tokio::time::sleep(Duration::from_secs(3600)).await;

            put_object(&garden, &kinds::SECRET, "garden", "s");

            held(&garden, &kinds::SECRET, "garden", "s").await;
        });
    });
    assert!(log.contains(r#"secrets "s" not found, secrets "t" not found"#), "{log}");
}

/// spec 81 scenario 56
#[test]
fn reference_that_is_named_twice_costs_one_patch() {
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "garden", "x");
        let twice = [to(&kinds::SECRET, "x"), to(&kinds::SECRET, "x")];
        garden.put(referrer(&kinds::CONTROLLER_DEPLOYMENT, "", "d", &twice));
        garden.start().await;
        garden.settle().await;

        let asked = garden.asked();
        assert_eq!(asked.iter().filter(|asked| *asked == "patch secrets x").count(), 1, "{asked:?}");
    });
}

/// spec 81 scenario 56
#[test]
fn reference_of_a_shoot_that_the_watch_does_not_report_keeps_its_object() {
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "garden", "x");
        garden.put(referrer(&kinds::SEED, "", "r", &[to(&kinds::SECRET, "x")]));
        garden.settled().await;
        garden.sim.set_event_faults(|event| match &*event.resource {
            "shoots" => EventFault::Drop,
            _ => EventFault::Deliver,
        });
        garden.put(referrer(&kinds::SHOOT, "garden", "new", &[to(&kinds::SECRET, "x")]));

        garden.delete(&kinds::SEED, "", "r").await;
        tokio::time::sleep(Duration::from_secs(600)).await;

        assert!(is_held(&garden, &kinds::SECRET, "garden", "x"));
    });
}

/// spec 81 §3.2 G-11, G-13: each change is one log record.
#[test]
fn finalizers_of_references_are_logged_once() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_object(&garden, &kinds::SECRET, "garden", "x");
            garden.put(referrer(&kinds::SEED, "", "r", &[to(&kinds::SECRET, "x")]));
            garden.settled().await;
            refer(&garden, &kinds::SEED, "", "r", &[]);
            garden.settle().await;
            assert!(!is_held(&garden, &kinds::SECRET, "garden", "x") && !is_held(&garden, &kinds::SEED, "", "r"));
        });
    });
    for text in ["Adding finalizer to object", "Removing finalizer from object"] {
        assert_eq!(log.matches(text).count(), 1, "{text}: {log}");
    }
    for text in ["Adding finalizer", "Removing finalizer"] {
        assert_eq!(log.matches(text).count(), 2, "{text}: {log}");
    }
}

/// spec 81 scenario 56
#[test]
fn reference_finalizer_that_somebody_removes_is_set_again() {
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "garden", "x");
        garden.put(referrer(&kinds::SEED, "", "r", &[to(&kinds::SECRET, "x")]));
        garden.settled().await;

        garden.patch(&kinds::SECRET, "garden", "x", json!({ "metadata": { "finalizers": null } })).await;
        garden.patch(&kinds::SEED, "", "r", json!({ "metadata": { "finalizers": null } })).await;

        held(&garden, &kinds::SECRET, "garden", "x").await;
        held(&garden, &kinds::SEED, "", "r").await;
    });
}

/// spec 81 §3.2: all kinds of objects, in the namespace of a Shoot and in `garden`.
#[test]
fn references_to_all_kinds_of_objects_are_protected() {
    let objects = [&kinds::SECRET, &kinds::CONFIG_MAP, &kinds::WORKLOAD_IDENTITY];
    for (kind, namespace, of_objects) in [(&kinds::SEED, "", "garden"), (&kinds::SHOOT, "a", "a")] {
        garden(|garden| async move {
            objects.iter().for_each(|object| put_object(&garden, object, of_objects, "x"));
            put_object(&garden, &kinds::CONFIG_MAP, of_objects, "s");
            let references = [objects.map(|object| to(object, "x")).to_vec(), vec![to(&kinds::SECRET, "s")]].concat();
            garden.put(referrer(kind, namespace, "r", &references));
            garden.put(referrer(kind, namespace, "idle", &[]));
            garden.settled().await;
            let held_objects = || objects.map(|object| is_held(&garden, object, of_objects, "x"));
            assert_eq!((held_objects(), is_held(&garden, kind, namespace, "r")), ([true; 3], true));
            assert!(!is_held(&garden, kind, namespace, "idle"));
            assert!(!is_held(&garden, &kinds::CONFIG_MAP, of_objects, "s"), "names count within their kind");

            refer(&garden, kind, namespace, "r", &[]);
            garden.settle().await;

            assert_eq!((held_objects(), is_held(&garden, kind, namespace, "r")), ([false; 3], false));
        });
    }
}

/// spec 81 §3.2 G-14: a deleted referrer protects until its own controllers are done; then objects go first.
#[test]
fn referrer_in_deletion_protects_its_objects_until_it_is_finished() {
    for (kind, namespace, last_user) in [REFERRERS[1], REFERRERS[2]] {
        garden(|garden| async move {
            put_object(&garden, &kinds::SECRET, "garden", "x");
            garden.put(referrer(kind, namespace, "r", &[to(&kinds::SECRET, "x")]));
            garden.settled().await;
            delete_in_use(&garden, kind, namespace, "r", last_user).await;
            garden.settle().await;
            assert!(is_held(&garden, &kinds::SECRET, "garden", "x") && is_held(&garden, kind, namespace, "r"));

            garden.sim.clear_requests();
            finish(&garden, kind, namespace, "r", last_user);

            garden.gone(kind, namespace, "r").await;
            let patches: Vec<_> = garden.asked().into_iter().filter(|asked| asked.starts_with("patch")).collect();
            assert_eq!(patches, ["patch secrets x".to_owned(), format!("patch {} r", kind.plural)]);
            assert!(!is_held(&garden, &kinds::SECRET, "garden", "x"));
        });
    }
}

/// spec 81 §3.2 G-14: an object that is being deleted goes after its referrer.
#[test]
fn object_in_deletion_is_released_after_its_finished_referrer() {
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "a", "x");
        garden.put(referrer(&kinds::SHOOT, "a", "r", &[to(&kinds::SECRET, "x")]));
        garden.settled().await;
        delete_in_use(&garden, &kinds::SHOOT, "a", "r", "gardener").await;
        garden.delete(&kinds::SECRET, "a", "x").await;
        garden.settle().await;
        assert!(is_held(&garden, &kinds::SECRET, "a", "x"));

        garden.sim.clear_requests();
        finish(&garden, &kinds::SHOOT, "a", "r", "gardener");

        garden.gone(&kinds::SECRET, "a", "x").await;
        let patches: Vec<_> = garden.asked().into_iter().filter(|asked| asked.starts_with("patch")).collect();
        assert_eq!(patches, ["patch shoots r", "patch secrets x"]);
    });
}

/// spec 81 §3.2 G-15: what went while the program was down.
#[test]
fn objects_of_referrers_that_went_unseen_are_released_at_the_start() {
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "a", "of-shoot");
        put_object(&garden, &kinds::SECRET, "garden", "of-seed");
        garden.put(referrer(&kinds::SHOOT, "a", "r", &[to(&kinds::SECRET, "of-shoot")]));
        garden.put(referrer(&kinds::SEED, "", "s", &[to(&kinds::SECRET, "of-seed")]));
        garden.settled().await;
        delete_in_use(&garden, &kinds::SEED, "", "s", "gardener").await;
        garden.stop().await;
        assert!(garden.sim.remove("shoots.core.gardener.cloud", "a", "r").is_some());
        finish(&garden, &kinds::SEED, "", "s", "gardener");

        garden.start().await;

        released(&garden, &kinds::SECRET, "a", "of-shoot").await;
        released(&garden, &kinds::SECRET, "garden", "of-seed").await;
        garden.gone(&kinds::SEED, "", "s").await;
    });
}

/// spec 81 §3.2 G-11: one warning, and the object counts as missing.
#[test]
fn object_that_is_deleted_before_it_is_protected_is_reported_and_left_alone() {
    let ((), log) = logged(Level::WARN, || {
        garden(|garden| async move {
            let mut secret = object(&kinds::SECRET, "garden", "x", json!({}));
            secret["metadata"]["finalizers"] = json!(["example.com/x"]);
            garden.put(secret);
            garden.delete(&kinds::SECRET, "garden", "x").await;
            garden.put(referrer(&kinds::SEED, "", "r", &[to(&kinds::SECRET, "x")]));
            garden.start().await;
            tokio::time::sleep(Duration::from_secs(600)).await;

            assert!(!garden.asked().iter().any(|asked| asked.starts_with("patch")), "{:?}", garden.asked());
        });
    });
    assert_eq!(log.matches("is being deleted without the finalizer").count(), 1, "{log}");
}

/// spec 81 §3.2 G-12: a failed list proves nothing.
#[test]
fn object_stays_protected_while_the_live_list_fails() {
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "a", "x");
        garden.put(referrer(&kinds::SHOOT, "a", "r", &[to(&kinds::SECRET, "x")]));
        garden.settled().await;
        garden.sim.set_faults(|info| match (&*info.verb, &*info.resource) {
            ("list", "shoots") => Fault::FailBefore(Seen::status(500, "InternalError", "no")),
            _ => Fault::None,
        });
        refer(&garden, &kinds::SHOOT, "a", "r", &[]);
        garden.settle().await;
        assert!(is_held(&garden, &kinds::SECRET, "a", "x"));
        garden.sim.clear_faults();

        tokio::time::sleep(Duration::from_secs(60)).await;

        assert!(!is_held(&garden, &kinds::SECRET, "a", "x"));
    });
}

/// spec 81 §3.2 G-12: one list serves all releases decided before it began.
#[test]
fn objects_that_are_released_together_share_their_live_lists() {
    garden(|garden| async move {
        let names: Vec<_> = (0..50).map(|number| format!("x{number}")).collect();
        names.iter().for_each(|name| put_object(&garden, &kinds::SECRET, "a", name));
        let references: Vec<_> = names.iter().map(|name| to(&kinds::SECRET, name)).collect();
        garden.put(referrer(&kinds::SHOOT, "a", "r", &references));
        garden.settled().await;

        refer(&garden, &kinds::SHOOT, "a", "r", &[]);
        garden.settle().await;

        assert!(names.iter().all(|name| !is_held(&garden, &kinds::SECRET, "a", name)));
        let lists = garden.asked().iter().filter(|asked| asked.starts_with("list")).count();
        assert!((1..=15).contains(&lists), "{lists}");
    });
}

/// spec 81 §3.2 G-15: other changes of referrers and objects cause no request.
#[test]
fn references_cause_no_request_while_they_do_not_change() {
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "a", "x");
        put_object(&garden, &kinds::SECRET, "a", "foreign");
        garden.put(referrer(&kinds::SHOOT, "a", "r", &[to(&kinds::SECRET, "x")]));
        garden.settled().await;

        let label = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "region": "q" } });
        garden.patch(&kinds::SHOOT, "a", "r", label.clone()).await;
        for name in ["x", "foreign"] {
            garden.patch(&kinds::SECRET, "a", name, json!({ "metadata": { "labels": { "a": "b" } } })).await;
        }
        tokio::time::sleep(Duration::from_secs(3600)).await;

        assert_eq!(garden.asked(), Vec::<String>::new());
    });
}
