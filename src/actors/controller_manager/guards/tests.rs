use std::{rc::Rc, time::Duration};

use cluster::object::NamespacedName;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    GuardDefinition, ReferrerNames,
    note::Note,
    waiting::{PERIOD, Tell, Told},
};
use crate::actors::controller_manager::{
    cloud_profile, controller_deployment, credentials_binding, exposure_class, namespaced_cloud_profile, quota,
    referrers::GUARDS, secret_binding,
};

fn targets(guard: &GuardDefinition, user: usize, fields: Value) -> Vec<String> {
    let mut object = fields;
    object["metadata"] = json!({ "namespace": "ns", "name": "referrer" });
    (guard.users[user].targets)(&object).iter().map(NamespacedName::to_string).collect()
}

/// spec 81 §3.1
#[test]
fn guard_targets_are_what_the_fields_name() {
    let newer = |kind: &str| json!({ "spec": { "cloudProfile": { "kind": kind, "name": "p" } } });
    let quotas =
        json!({ "quotas": [{ "name": "q" }, { "namespace": "", "name": "r" }, { "namespace": "x", "name": "q" }] });
    let references = json!({ "spec": { "deployment": { "deploymentRefs": [{ "name": "b" }, {}, { "name": "a" }] } } });
    let cases: [(&GuardDefinition, usize, Value, &[&str]); 14] = [
        (&cloud_profile::GUARD, 0, json!({ "spec": { "parent": { "kind": "Any", "name": "p" } } }), &["p"]),
        (&cloud_profile::GUARD, 1, json!({ "spec": { "cloudProfileName": "p" } }), &["p"]),
        (&cloud_profile::GUARD, 1, newer("CloudProfile"), &["p"]),
        (&cloud_profile::GUARD, 1, newer(""), &["p"]),
        (&cloud_profile::GUARD, 1, newer("NamespacedCloudProfile"), &[]),
        (&namespaced_cloud_profile::GUARD, 0, newer("NamespacedCloudProfile"), &["ns/p"]),
        (&namespaced_cloud_profile::GUARD, 0, newer(""), &[]),
        (&controller_deployment::GUARD, 0, references, &["b", "a"]),
        (&controller_deployment::GUARD, 0, json!({ "spec": {} }), &[]),
        (&secret_binding::GUARD, 0, json!({ "spec": { "secretBindingName": "b" } }), &["ns/b"]),
        (&credentials_binding::GUARD, 0, json!({ "spec": { "credentialsBindingName": "b" } }), &["ns/b"]),
        (&quota::GUARD, 0, quotas.clone(), &["ns/q", "ns/r", "x/q"]),
        (&quota::GUARD, 1, quotas, &["ns/q", "ns/r", "x/q"]),
        (&exposure_class::GUARD, 0, json!({ "spec": { "exposureClassName": "e" } }), &["e"]),
    ];
    for (guard, user, fields, expected) in cases {
        assert_eq!(targets(guard, user, fields.clone()), expected, "{} {fields}", guard.controller);
    }
}

/// spec 81 §3.1 G-4
#[test]
fn guard_targets_of_malformed_and_empty_fields_are_none() {
    let malformed = [
        json!({}),
        json!({ "spec": null, "quotas": null }),
        json!({ "spec": [], "quotas": {} }),
        json!({ "spec": { "cloudProfileName": "", "secretBindingName": "", "exposureClassName": 1 } }),
        json!({ "spec": { "deployment": null, "parent": "x", "cloudProfile": [] }, "quotas": [null, 1, {}] }),
    ];
    for guard in GUARDS {
        for (user, fields) in (0..guard.users.len()).flat_map(|user| malformed.iter().map(move |it| (user, it))) {
            assert_eq!(targets(guard, user, fields.clone()), [""; 0], "{} {fields}", guard.controller);
        }
    }
}

/// spec 81 §3.1
#[test]
fn guard_note_is_the_first_text_with_referrers() {
    let first = |guard: &GuardDefinition, referrers: &[&[&str]]| {
        Note::first(guard.notes, |user| Ok::<_, ()>(names(referrers[user]))).unwrap()
    };
    let note = |guard: &GuardDefinition, referrers: &[&[&str]]| first(guard, referrers).unwrap().bounded("o");
    assert!(first(&cloud_profile::GUARD, &[&[], &[]]).is_none());
    assert_eq!(
        note(&cloud_profile::GUARD, &[&["b/p", "a/p"], &["a/s"]]),
        "Cannot delete CloudProfile, because the following NamespacedCloudProfiles are still referencing it: [a/p b/p]"
    );
    assert_eq!(
        note(&cloud_profile::GUARD, &[&[], &["a/s"]]),
        "Cannot delete CloudProfile, because the following Shoots are still referencing it: [a/s]"
    );
    assert_eq!(
        note(&quota::GUARD, &[&[], &["a/c"]]),
        "Cannot delete Quota, because the following resources are still referencing it: SecretBindings - [], \
         CredentialsBindings - [a/c]"
    );
    assert_eq!(
        first(&controller_deployment::GUARD, &[&["r2", "r1"]]).unwrap().whole("o"),
        "cannot remove finalizer of ControllerDeployment \"o\" because still found ControllerRegistrations: [r1 r2]"
    );
}

/// spec 81 §3.1: a CloudProfile that NamespacedCloudProfiles refer to needs no look at Shoots.
#[test]
fn guard_note_does_not_ask_for_more_referrers_than_it_names() {
    let ask = |user| if user == 0 { Ok(names(&["a/p"])) } else { Err("it asks for Shoots") };

    assert!(Note::first(cloud_profile::GUARD.notes, ask).unwrap().is_some());
}

/// spec 81 §3.1 G-5
#[tokio::test(start_paused = true)]
async fn guard_tells_changes_at_once_and_repeats_its_event_after_ten_minutes() {
    let (mut told, some, more) = (Told::default(), [names(&["a/s"])], [names(&["a/s", "b/s"])]);
    let start = Instant::now();
    let later = |seconds| start + Duration::from_secs(seconds);

    assert_eq!(told.tell(&some, later(0)), Tell::Change);
    assert_eq!(told.tell(&some, later(599)), Tell::Nothing);
    assert_eq!(told.tell(&more, later(599)), Tell::Change);
    assert_eq!(told.tell(&more, later(600)), Tell::Nothing);
    assert_eq!(told.tell(&more, later(599) + PERIOD), Tell::Repetition);
    assert_eq!(told.tell(&[names(&[]), names(&["a/s", "b/s"])], later(1200)), Tell::Change);
}

fn names(names: &[&str]) -> Rc<ReferrerNames> {
    Rc::new(names.iter().map(|name| (*name).to_owned()).collect())
}
