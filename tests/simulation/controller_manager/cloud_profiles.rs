//! The status of CloudProfiles and of NamespacedCloudProfiles.

use std::time::Duration;

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    guards::is_guarded,
};
use crate::log_capture::logged;

const NO_STATUS: &str = "the API server has no status of CloudProfiles: classifications are not published";

pub(super) fn profile(name: &str, spec: Value) -> Value {
    object(&kinds::CLOUD_PROFILE, "", name, json!({ "spec": spec }))
}

pub(super) fn child(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["parent"] = json!({ "kind": "CloudProfile", "name": "o" });
    object(&kinds::NAMESPACED_CLOUD_PROFILE, "a", name, json!({ "spec": spec }))
}

fn classes(garden: &Garden) -> Vec<String> {
    let profile = garden.find(&kinds::CLOUD_PROFILE, "", "o").unwrap_or_default();
    let versions = profile["status"]["kubernetes"]["versions"].as_array().cloned().unwrap_or_default();
    versions.iter().map(|version| version["classification"].as_str().unwrap_or_default().to_owned()).collect()
}

fn merged(garden: &Garden, name: &str) -> Value {
    let child = garden.find(&kinds::NAMESPACED_CLOUD_PROFILE, "a", name).unwrap_or_default();
    let is_observed = child["status"]["observedGeneration"] == child["metadata"]["generation"];
    if is_observed { child["status"]["cloudProfileSpec"].clone() } else { Value::Null }
}

fn line(garden: &Garden, name: &str) -> String {
    garden.row(&format!("cloudprofile/{name}")).map(|row| row.line).unwrap_or_default()
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// spec 81 scenarios 33, 34 and 36
#[test]
fn profile_status_follows_the_clock_without_any_event() {
    garden(|garden| async move {
        let expires = json!({ "version": "1.2.0", "classification": "preview", "expirationDate": garden.time(3600) });
        let spec = json!({ "kubernetes": { "versions": [{ "version": "1.1.0" }, expires] },
            "machineImages": [{ "name": "i", "versions": [{ "version": "1" }] }] });
        garden.put(profile("o", spec));
        garden.edit(&kinds::CLOUD_PROFILE, "", "o", |profile| profile["status"] = json!({ "foreign": { "field": 1 } }));
        garden.settled().await;
        assert_eq!(classes(&garden), ["supported", "preview"]);
        seconds(3580).await;
        assert_eq!(
            (classes(&garden), garden.asked()),
            (vec!["supported".to_owned(), "preview".to_owned()], Vec::new())
        );

        seconds(15).await;
        assert_eq!(classes(&garden), ["supported", "expired"]);
        garden.patch(&kinds::CLOUD_PROFILE, "", "o", json!({ "spec": { "machineImages": [] } })).await;
        garden.settle().await;

        let status = garden.find(&kinds::CLOUD_PROFILE, "", "o").unwrap()["status"].clone();
        assert_eq!((status.get("machineImages"), &status["foreign"]["field"]), (None, &json!(1)));
        assert_eq!(status["kubernetes"]["versions"][1], json!({ "version": "1.2.0", "classification": "expired" }));
        garden.sim.clear_requests();
        seconds(3600).await;
        assert_eq!(garden.asked(), Vec::<String>::new());
    });
}

/// spec 81 scenario 35
#[test]
fn profile_status_follows_the_stages_of_a_version() {
    garden(|garden| async move {
        let stage = |class: &str, start| json!({ "classification": class, "startTime": garden.time(start) });
        let stages = json!([stage("preview", -60), stage("supported", 600), stage("deprecated", 1200)]);
        garden.put(profile("o", json!({ "kubernetes": { "versions": [{ "version": "1", "lifecycle": stages }] } })));
        garden.settled().await;

        assert_eq!(classes(&garden), ["preview"]);
        seconds(600).await;
        assert_eq!(classes(&garden), ["supported"]);
        seconds(600).await;
        assert_eq!(classes(&garden), ["deprecated"]);
    });
}

/// spec 81 C.2: what a restart finds is computed again.
#[test]
fn profile_status_that_somebody_changes_is_written_again() {
    garden(|garden| async move {
        garden.put(profile("o", json!({ "kubernetes": { "versions": [{ "version": "1" }] } })));
        garden.settled().await;

        garden.edit(&kinds::CLOUD_PROFILE, "", "o", |profile| profile["status"]["kubernetes"] = json!(null));

        garden.soon("it is back", || classes(&garden) == ["supported"]).await;
    });
}

/// spec 81 scenario 37
#[test]
fn profile_is_guarded_on_a_server_without_its_status() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            garden.withdraw(&kinds::CLOUD_PROFILE);
            garden.serve_without_status(&kinds::CLOUD_PROFILE);
            garden.start().await;
            for name in ["o", "other"] {
                garden.put(profile(name, json!({ "kubernetes": { "versions": [{ "version": "1" }] } })));
            }
            garden.settle().await;
            garden.sim.clear_requests();
            seconds(3600).await;

            assert!(is_guarded(&garden, &kinds::CLOUD_PROFILE));
            assert_eq!((classes(&garden), garden.asked()), (Vec::new(), Vec::<String>::new()));
            garden.delete(&kinds::CLOUD_PROFILE, "", "o").await;
            garden.gone(&kinds::CLOUD_PROFILE, "", "o").await;
        });
    });
    assert_eq!(log.matches("classifications are not published").count(), 1, "{log}");
    assert!(!log.contains("failed to patch CloudProfile status"), "{log}");
}

/// spec 81 C.2: the row of a profile tells of its own write, and the next write corrects it.
#[test]
fn profile_tells_whether_its_own_classifications_are_published() {
    garden(|garden| async move {
        garden.settled().await;
        garden.sim.set_faults(|request| match request.subresource == "status" && request.name == "other" {
            true => Fault::FailBefore(Seen::status(405, "MethodNotAllowed", "no status")),
            false => Fault::None,
        });
        let version = json!({ "version": "1", "classification": "preview", "expirationDate": garden.time(3600) });
        for name in ["other", "o"] {
            garden.put(profile(name, json!({ "kubernetes": { "versions": [version] } })));
        }
        garden.settle().await;
        let is_published = |name| line(&garden, name).starts_with("classifications are published; ");
        assert!(line(&garden, "other").starts_with(NO_STATUS), "{}", line(&garden, "other"));
        assert!(is_published("o"), "{}", line(&garden, "o"));

        garden.sim.clear_faults();
        let image = json!({ "name": "i", "versions": [{ "version": "1" }] });
        garden.patch(&kinds::CLOUD_PROFILE, "", "other", json!({ "spec": { "machineImages": [image] } })).await;
        garden.settle().await;

        assert!(is_published("other"), "{}", line(&garden, "other"));
    });
}

/// spec 81 C.2
#[test]
fn profile_status_that_cannot_be_written_is_an_error_and_is_tried_again() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            garden.settled().await;
            garden.sim.set_faults(|request| match request.subresource == "status" {
                true => Fault::FailBefore(Seen::Disconnect),
                false => Fault::None,
            });
            garden.put(profile("o", json!({ "kubernetes": { "versions": [{ "version": "1" }] } })));
            garden.settle().await;
            assert!(is_guarded(&garden, &kinds::CLOUD_PROFILE) && classes(&garden).is_empty());

            garden.sim.clear_faults();
            seconds(30).await;

            assert_eq!(classes(&garden), ["supported"]);
        });
    });
    assert!(log.contains("failed to patch CloudProfile status versions: "), "{log}");
}

/// spec 81 scenarios 38, 47, 48 and 50
#[test]
fn child_profile_follows_the_spec_of_its_parent_and_nothing_else() {
    garden(|garden| async move {
        let spec = json!({ "type": "t", "regions": [{ "name": "r" }], "machineTypes": [{ "name": "m" }],
            "providerConfig": { "kind": "C", "old": { "field": 1 } } });
        garden.put(profile("o", spec));
        for name in ["n", "m"] {
            garden.put(child(name, json!({ "providerConfig": { "kind": "own" } })));
        }
        garden.settled().await;
        let expected = json!({ "type": "t", "regions": [{ "name": "r" }], "providerConfig": { "kind": "C", "old": { "field": 1 } },
            "machineTypes": [{ "name": "m", "architecture": "amd64" }] });
        assert_eq!((merged(&garden, "n"), merged(&garden, "m")), (expected.clone(), expected));

        garden.edit(&kinds::CLOUD_PROFILE, "", "o", |profile| {
            profile["metadata"]["labels"] = json!({ "a": "b" });
            profile["status"] = json!({ "foreign": 1 });
        });
        seconds(3600).await;
        assert_eq!(garden.asked(), Vec::<String>::new());
        let change = json!({ "spec": { "regions": [{ "name": "r2" }], "providerConfig": { "old": null } } });
        garden.patch(&kinds::CLOUD_PROFILE, "", "o", change).await;
        garden.settle().await;

        for name in ["n", "m"] {
            assert_eq!(merged(&garden, name)["regions"], json!([{ "name": "r2" }]));
            assert_eq!(merged(&garden, name)["providerConfig"], json!({ "kind": "C" }));
        }
        let writes = garden.asked().into_iter().filter(|asked| asked.starts_with("patch")).count();
        assert_eq!(writes, 2, "{:?}", garden.asked());
    });
}

/// spec 81 scenario 49
#[test]
fn child_profile_waits_for_its_parent() {
    garden(|garden| async move {
        garden.put(child("n", json!({ "limits": { "maxNodesTotal": 5 } })));
        garden.settled().await;
        seconds(3600).await;
        assert_eq!(garden.asked(), Vec::<String>::new());
        assert_eq!(garden.find(&kinds::NAMESPACED_CLOUD_PROFILE, "a", "n").unwrap().get("status"), None);

        garden.put(profile("o", json!({ "type": "t" })));

        let expected = json!({ "type": "t", "limits": { "maxNodesTotal": 5 } });
        garden.soon("it is merged", || merged(&garden, "n") == expected).await;
        garden.patch(&kinds::NAMESPACED_CLOUD_PROFILE, "a", "n", json!({ "spec": { "limits": null } })).await;
        garden.soon("it follows its own spec", || merged(&garden, "n") == json!({ "type": "t" })).await;
    });
}

/// spec 81 D.3 no. 9: a webhook that changes what is written causes no endless writes.
#[test]
fn child_profile_that_a_webhook_changes_is_not_written_again_and_again() {
    garden(|garden| async move {
        garden.put(profile("o", json!({ "type": "t", "providerConfig": { "kind": "C" } })));
        garden.sim.set_mutation(|reviewed, object| {
            if reviewed.resource == "namespacedcloudprofiles" && object["status"]["cloudProfileSpec"].is_object() {
                object["status"]["cloudProfileSpec"]["providerConfig"]["added"] = json!(true);
            }
        });
        garden.put(child("n", json!({})));
        garden.settled().await;
        seconds(3600).await;

        assert_eq!(garden.asked(), Vec::<String>::new());
        assert_eq!(merged(&garden, "n")["type"], "t");
    });
}
