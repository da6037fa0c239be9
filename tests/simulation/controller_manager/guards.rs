//! Guards: CloudProfiles, NamespacedCloudProfiles, ControllerDeployments, bindings, Quotas and ExposureClasses in use.

use std::time::Duration;

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::EventFault;
use tracing::Level;

use super::garden::{Garden, garden, object};
use crate::log_capture::logged;

pub(super) const REASON: &str = "ResourceReferenced";

/// The guarded kinds, with the namespace of an object.
pub(super) const GUARDED: [(&Resource, &str); 7] = [
    (&kinds::CLOUD_PROFILE, ""),
    (&kinds::NAMESPACED_CLOUD_PROFILE, "a"),
    (&kinds::CONTROLLER_DEPLOYMENT, ""),
    (&kinds::SECRET_BINDING, "a"),
    (&kinds::CREDENTIALS_BINDING, "a"),
    (&kinds::QUOTA, "a"),
    (&kinds::EXPOSURE_CLASS, ""),
];

/// A guarded object `o` and an object `r` of a kind that refers to it, if it has these fields.
pub(super) struct Use {
    pub(super) guarded: Resource,
    pub(super) referrer: Resource,
    pub(super) fields: Value,
    /// Type, action and note of the Event.
    pub(super) event: Option<(&'static str, &'static str, &'static str)>,
}

pub(super) fn uses() -> Vec<Use> {
    let of = |guarded, referrer, fields, event| Use { guarded, referrer, fields, event };
    vec![
        of(
            kinds::CLOUD_PROFILE,
            kinds::NAMESPACED_CLOUD_PROFILE,
            json!({ "spec": { "parent": { "kind": "CloudProfile", "name": "o" } } }),
            Some((
                "Normal",
                "Delete",
                "Cannot delete CloudProfile, because the following NamespacedCloudProfiles are still referencing it: \
                 [a/r]",
            )),
        ),
        of(
            kinds::CLOUD_PROFILE,
            kinds::SHOOT,
            json!({ "spec": { "cloudProfile": { "kind": "CloudProfile", "name": "o" } } }),
            Some((
                "Normal",
                "Delete",
                "Cannot delete CloudProfile, because the following Shoots are still referencing it: [a/r]",
            )),
        ),
        of(
            kinds::NAMESPACED_CLOUD_PROFILE,
            kinds::SHOOT,
            json!({ "spec": { "cloudProfile": { "kind": "NamespacedCloudProfile", "name": "o" } } }),
            Some((
                "Normal",
                "Reconcile",
                "Cannot delete NamespacedCloudProfile, because the following Shoots are still referencing it: [a/r]",
            )),
        ),
        of(
            kinds::CONTROLLER_DEPLOYMENT,
            kinds::CONTROLLER_REGISTRATION,
            json!({ "spec": { "deployment": { "deploymentRefs": [{ "name": "o" }] } } }),
            None,
        ),
        of(
            kinds::SECRET_BINDING,
            kinds::SHOOT,
            json!({ "spec": { "secretBindingName": "o" } }),
            Some((
                "Warning",
                "Reconcile",
                "Cannot delete SecretBinding, because the following Shoots are still referencing it: [a/r]",
            )),
        ),
        of(
            kinds::CREDENTIALS_BINDING,
            kinds::SHOOT,
            json!({ "spec": { "credentialsBindingName": "o" } }),
            Some((
                "Warning",
                "Delete",
                "Cannot delete CredentialsBinding, because the following Shoots are still referencing it: [a/r]",
            )),
        ),
        of(
            kinds::QUOTA,
            kinds::SECRET_BINDING,
            json!({ "quotas": [{ "namespace": "a", "name": "o" }] }),
            Some((
                "Normal",
                "Reconcile",
                "Cannot delete Quota, because the following resources are still referencing it: \
                 SecretBindings - [a/r], CredentialsBindings - []",
            )),
        ),
        of(
            kinds::QUOTA,
            kinds::CREDENTIALS_BINDING,
            json!({ "quotas": [{ "name": "o" }] }),
            Some((
                "Normal",
                "Reconcile",
                "Cannot delete Quota, because the following resources are still referencing it: \
                 SecretBindings - [], CredentialsBindings - [a/r]",
            )),
        ),
        of(
            kinds::EXPOSURE_CLASS,
            kinds::SHOOT,
            json!({ "spec": { "exposureClassName": "o" } }),
            Some((
                "Normal",
                "Reconcile",
                "Cannot delete ExposureClass, because it is still associated by the following Shoots: [a/r]",
            )),
        ),
    ]
}

pub(super) fn finalizer_of(kind: &Resource) -> &'static str {
    if *kind == kinds::CONTROLLER_DEPLOYMENT { "core.gardener.cloud/controllerdeployment" } else { "gardener" }
}

pub(super) fn namespace_of(kind: &Resource) -> &'static str {
    if kind.namespaced { "a" } else { "" }
}

pub(super) fn shoot(namespace: &str, name: &str, spec: Value) -> Value {
    object(&kinds::SHOOT, namespace, name, json!({ "spec": spec }))
}

/// A garden with a guarded object `o` that `r` refers to. `o` was just deleted, and told why it stays.
pub(super) async fn in_use(garden: &Garden, case: &Use) {
    let namespace = namespace_of(&case.guarded);
    garden.put(object(&case.guarded, namespace, "o", json!({})));
    garden.put(object(&case.referrer, "a", "r", case.fields.clone()));
    garden.settled().await;
    garden.delete(&case.guarded, namespace, "o").await;
    garden.settle().await;
}

pub(super) fn is_guarded(garden: &Garden, kind: &Resource) -> bool {
    garden.finalizers(kind, namespace_of(kind), "o").iter().any(|finalizer| finalizer == finalizer_of(kind))
}

/// spec 81 scenario 21
#[test]
fn guard_finalizer_is_added_to_new_objects_of_each_kind() {
    garden(|garden| async move {
        garden.start().await;
        for (kind, namespace) in GUARDED {
            garden.put(object(kind, namespace, "o", json!({})));

            garden.soon("the finalizer is there", || !garden.finalizers(kind, namespace, "o").is_empty()).await;

            assert_eq!(garden.finalizers(kind, namespace, "o"), [finalizer_of(kind)], "{kind}");
        }
    });
}

/// spec 81 §3.1 G-1
#[test]
fn guard_finalizer_that_somebody_removes_is_added_again() {
    garden(|garden| async move {
        garden.put(object(&kinds::QUOTA, "a", "o", json!({})));
        garden.settled().await;

        garden.patch(&kinds::QUOTA, "a", "o", json!({ "metadata": { "finalizers": null } })).await;

        garden.soon("it is back", || is_guarded(&garden, &kinds::QUOTA)).await;
    });
}

/// spec 81 scenario 22
#[test]
fn guard_releases_objects_without_referrers_at_once() {
    garden(|garden| async move {
        garden.settled().await;
        for (kind, namespace) in GUARDED {
            garden.put(object(kind, namespace, "o", json!({})));
            garden.soon("the finalizer is there", || is_guarded(&garden, kind)).await;

            garden.delete(kind, namespace, "o").await;

            garden.gone(kind, namespace, "o").await;
            assert!(garden.events(kind, "o", REASON).is_empty());
        }
    });
}

/// spec 81 scenario 23
#[test]
fn guard_keeps_objects_in_use_and_tells_why_until_the_referrer_is_gone() {
    for case in uses() {
        garden(|garden| async move {
            in_use(&garden, &case).await;

            assert!(is_guarded(&garden, &case.guarded));
            let told = garden.events(&case.guarded, "o", REASON);
            let told: Vec<_> = told.iter().map(|(kind, action, note)| (&**kind, &**action, &**note)).collect();
            assert_eq!(told, case.event.into_iter().collect::<Vec<_>>());

            garden.delete(&case.referrer, if case.referrer.namespaced { "a" } else { "" }, "r").await;
            if case.referrer.namespaced && case.referrer != kinds::SHOOT {
                garden.soon("the guarded referrer goes", || garden.find(&case.referrer, "a", "r").is_none()).await;
            }

            garden.gone(&case.guarded, namespace_of(&case.guarded), "o").await;
        });
    }
}

/// spec 81 scenario 24
#[test]
fn guard_releases_an_object_when_its_referrer_turns_to_another_one() {
    for case in uses() {
        garden(|garden| async move {
            in_use(&garden, &case).await;
            let namespace = if case.referrer.namespaced { "a" } else { "" };
            let text = case.fields.to_string().replace("\"o\"", "\"other\"");
            let other: Value = serde_json::from_str(&text).unwrap();

            garden.patch(&case.referrer, namespace, "r", other).await;

            garden.gone(&case.guarded, namespace_of(&case.guarded), "o").await;
        });
    }
}

/// spec 81 scenario 25
#[test]
fn guard_of_cloud_profiles_knows_all_fields_of_shoots() {
    let cases = [
        (json!({ "cloudProfileName": "o" }), true),
        (json!({ "cloudProfile": { "kind": "CloudProfile", "name": "o" } }), true),
        (json!({ "cloudProfile": { "name": "o" } }), true),
        (json!({ "cloudProfile": { "kind": "NamespacedCloudProfile", "name": "o" } }), false),
        (json!({ "cloudProfile": null, "cloudProfileName": "" }), false),
    ];
    for (spec, blocks) in cases {
        garden(|garden| async move {
            garden.put(object(&kinds::CLOUD_PROFILE, "", "o", json!({})));
            garden.put(shoot("a", "r", spec.clone()));
            garden.settled().await;

            garden.delete(&kinds::CLOUD_PROFILE, "", "o").await;
            garden.settle().await;

            assert_eq!(garden.find(&kinds::CLOUD_PROFILE, "", "o").is_some(), blocks, "{spec}");
        });
    }
}

/// spec 81 scenario 26
#[test]
fn guard_of_cloud_profiles_names_namespaced_cloud_profiles_first_and_alone() {
    garden(|garden| async move {
        garden.put(object(&kinds::CLOUD_PROFILE, "", "o", json!({})));
        garden.put(object(
            &kinds::NAMESPACED_CLOUD_PROFILE,
            "a",
            "p",
            json!({ "spec": { "parent": { "name": "o" } } }),
        ));
        garden.put(shoot("a", "r", json!({ "cloudProfileName": "o" })));
        garden.settled().await;
        garden.delete(&kinds::CLOUD_PROFILE, "", "o").await;
        garden.settle().await;
        let notes = || -> Vec<String> {
            garden.events(&kinds::CLOUD_PROFILE, "o", REASON).into_iter().map(|(_, _, note)| note).collect()
        };
        let begin = "Cannot delete CloudProfile, because the following";
        let of_profiles = format!("{begin} NamespacedCloudProfiles are still referencing it: [a/p]");
        assert_eq!(notes(), std::slice::from_ref(&of_profiles));

        garden.delete(&kinds::NAMESPACED_CLOUD_PROFILE, "a", "p").await;
        garden.settle().await;

        assert_eq!(notes().last(), Some(&format!("{begin} Shoots are still referencing it: [a/r]")));
    });
}

/// spec 81 scenario 27
#[test]
fn guard_of_namespaced_cloud_profiles_ignores_shoots_of_other_namespaces() {
    garden(|garden| async move {
        garden.put(object(&kinds::NAMESPACED_CLOUD_PROFILE, "a", "o", json!({})));
        garden.put(shoot("b", "r", json!({ "cloudProfile": { "kind": "NamespacedCloudProfile", "name": "o" } })));
        garden.settled().await;

        garden.delete(&kinds::NAMESPACED_CLOUD_PROFILE, "a", "o").await;

        garden.gone(&kinds::NAMESPACED_CLOUD_PROFILE, "a", "o").await;
    });
}

/// spec 81 scenario 28
#[test]
fn guard_sees_a_referrer_that_its_watch_does_not_report() {
    for case in uses() {
        garden(|garden| async move {
            let namespace = namespace_of(&case.guarded);
            garden.put(object(&case.guarded, namespace, "o", json!({})));
            garden.settled().await;
            let hidden = case.referrer.plural.to_string();
            garden.sim.set_event_faults(move |event| match event.resource == hidden {
                true => EventFault::Drop,
                false => EventFault::Deliver,
            });
            garden.put(object(&case.referrer, "a", "r", case.fields.clone()));

            garden.delete(&case.guarded, namespace, "o").await;
            garden.settle().await;

            assert!(is_guarded(&garden, &case.guarded), "{}", case.guarded);
        });
    }
}

/// spec 81 scenario 29
#[test]
fn guard_counts_a_deleted_referrer_until_it_is_gone() {
    garden(|garden| async move {
        garden.put(object(&kinds::EXPOSURE_CLASS, "", "o", json!({})));
        let mut referrer = shoot("a", "r", json!({ "exposureClassName": "o" }));
        referrer["metadata"]["finalizers"] = json!(["gardener"]);
        garden.put(referrer);
        garden.settled().await;
        garden.delete(&kinds::SHOOT, "a", "r").await;
        garden.delete(&kinds::EXPOSURE_CLASS, "", "o").await;
        garden.settle().await;
        assert!(is_guarded(&garden, &kinds::EXPOSURE_CLASS));

        garden.patch(&kinds::SHOOT, "a", "r", json!({ "metadata": { "finalizers": null } })).await;

        garden.gone(&kinds::EXPOSURE_CLASS, "", "o").await;
    });
}

/// spec 81 scenario 30
#[test]
fn guard_writes_nothing_to_a_deleted_object_without_its_finalizer() {
    garden(|garden| async move {
        let mut profile = object(&kinds::CLOUD_PROFILE, "", "o", json!({}));
        profile["metadata"]["finalizers"] = json!(["example.com/x"]);
        garden.put(profile);
        garden.delete(&kinds::CLOUD_PROFILE, "", "o").await;
        garden.start().await;
        garden.settle().await;

        assert!(!garden.asked().iter().any(|asked| asked.starts_with("patch")), "{:?}", garden.asked());
        assert_eq!(garden.finalizers(&kinds::CLOUD_PROFILE, "", "o"), ["example.com/x"]);
    });
}

/// spec 81 scenario 31
#[test]
fn guard_of_controller_deployments_logs_all_registrations_once() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            garden.put(object(&kinds::CONTROLLER_DEPLOYMENT, "", "o", json!({})));
            for name in ["r2", "r1"] {
                let references = json!([{ "name": "o" }, { "name": "o" }]);
                let fields = json!({ "spec": { "deployment": { "deploymentRefs": references } } });
                garden.put(object(&kinds::CONTROLLER_REGISTRATION, "", name, fields));
            }
            garden.settled().await;
            garden.delete(&kinds::CONTROLLER_DEPLOYMENT, "", "o").await;
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert!(garden.events(&kinds::CONTROLLER_DEPLOYMENT, "o", REASON).is_empty());
        });
    });
    let text =
        "cannot remove finalizer of ControllerDeployment \"o\" because still found ControllerRegistrations: [r1 r2]";
    assert_eq!(log.matches(text).count(), 1, "{log}");
}

/// spec 81 scenario 32
#[test]
fn guard_of_quotas_names_bindings_of_all_namespaces() {
    garden(|garden| async move {
        for namespace in ["a", "b"] {
            garden.put(object(&kinds::QUOTA, namespace, "o", json!({})));
        }
        garden.put(object(&kinds::SECRET_BINDING, "a", "s", json!({ "quotas": [{ "name": "o" }] })));
        let quotas = json!({ "quotas": [{ "namespace": "a", "name": "o" }] });
        garden.put(object(&kinds::CREDENTIALS_BINDING, "b", "c", quotas));
        garden.settled().await;

        garden.delete(&kinds::QUOTA, "a", "o").await;
        garden.delete(&kinds::QUOTA, "b", "o").await;

        garden.gone(&kinds::QUOTA, "b", "o").await;
        garden.settle().await;
        assert!(is_guarded(&garden, &kinds::QUOTA));
        let told = garden.events(&kinds::QUOTA, "o", REASON);
        let note = "SecretBindings - [a/s], CredentialsBindings - [b/c]";
        assert!(matches!(&*told, [(_, _, text)] if text.ends_with(note)), "{told:?}");
    });
}

/// spec 81 §3.1 G-5: the Event is repeated every ten minutes, the log record is not.
#[test]
fn guard_repeats_its_event_every_ten_minutes_and_lists_nothing() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            in_use(&garden, &uses().remove(4)).await;
            let events = || garden.requests().iter().filter(|it| it.info.resource == "events").count();
            assert_eq!(events(), 1);

            tokio::time::sleep(Duration::from_secs(3 * 600)).await;

            assert!((2..=8).contains(&events()), "{}", events());
            assert_eq!(garden.asked(), Vec::<String>::new(), "waiting costs no request");
        });
    });
    assert_eq!(log.matches("Cannot delete SecretBinding").count(), 1, "{log}");
}

/// spec 81 §3.1 G-5: a changed set of referrers is told at once.
#[test]
fn guard_tells_a_changed_set_of_referrers() {
    garden(|garden| async move {
        in_use(&garden, &uses().remove(8)).await;

        garden.put(shoot("b", "s", json!({ "exposureClassName": "o" })));
        garden.settle().await;

        let told = garden.events(&kinds::EXPOSURE_CLASS, "o", REASON);
        assert!(told.iter().any(|(_, _, note)| note.ends_with(": [a/r b/s]")), "{told:?}");
    });
}

/// spec 80 scenario 33
#[test]
fn guard_names_as_many_referrers_as_an_event_may_name() {
    garden(|garden| async move {
        garden.put(object(&kinds::EXPOSURE_CLASS, "", "o", json!({})));
        for number in 0..200 {
            let name = format!("shoot-with-a-long-name-{number:03}");
            garden.put(shoot("a", &name, json!({ "exposureClassName": "o" })));
        }
        garden.settled().await;

        garden.delete(&kinds::EXPOSURE_CLASS, "", "o").await;
        garden.settle().await;

        let told = garden.events(&kinds::EXPOSURE_CLASS, "o", REASON);
        let [(_, _, note)] = &*told else { panic!("{told:?}") };
        assert!(note.len() <= 1024 && note.ends_with(" more]") && note.contains(" … and "), "{note}");
    });
}
