//! ClusterRoleBindings for the ServiceAccounts of extensions.

use std::time::Duration;

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen, WatchEnd};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    shoots::seconds,
};
use crate::log_capture::logged;

const LABEL: &str = "authorization.gardener.cloud/custom-extensions-permissions";
const SELECTOR: &str = "authorization.gardener.cloud/extensions-serviceaccount-selector";

pub(super) fn put_role(garden: &Garden, selector: &str) {
    let mut role = object(&kinds::CLUSTER_ROLE, "", "x", json!({ "rules": [] }));
    role["metadata"]["labels"] = json!({ LABEL: "true" });
    role["metadata"]["annotations"] = json!({ SELECTOR: selector });
    garden.put(role);
}

pub(super) const RELEVANT: &str = r#"{"matchLabels":{"relevant":"true"}}"#;

pub(super) fn put_account(garden: &Garden, namespace: &str, name: &str) {
    if garden.find(&kinds::NAMESPACE, "", namespace).is_none() {
        garden.put(object(&kinds::NAMESPACE, "", namespace, json!({})));
    }
    let mut account = object(&kinds::SERVICE_ACCOUNT, namespace, name, json!({}));
    account["metadata"]["labels"] = json!({ "relevant": "true" });
    garden.put(account);
}

fn binding(garden: &Garden) -> Option<Value> {
    garden.find(&kinds::CLUSTER_ROLE_BINDING, "", "x")
}

fn subjects(garden: &Garden) -> Option<Vec<String>> {
    let name = |subject: &Value| {
        format!(
            "{}/{}",
            subject["namespace"].as_str().unwrap_or_default(),
            subject["name"].as_str().unwrap_or_default()
        )
    };
    Some(binding(garden)?["subjects"].as_array().map(|all| all.iter().map(name).collect()).unwrap_or_default())
}

async fn binds(garden: &Garden, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
    garden.soon(&format!("{expected:?}"), || subjects(garden).as_ref() == Some(&expected)).await;
    garden.settle().await;
    assert_eq!(subjects(garden), Some(expected));
}

/// spec 85 scenarios 54, 55 and 58
#[test]
fn extension_binding_lists_the_accounts_of_extensions() {
    garden(|garden| async move {
        put_role(&garden, RELEVANT);
        garden.settled().await;
        binds(&garden, &[]).await;
        for (namespace, name) in [
            ("seed-b", "x"),
            ("seed-a", "y"),
            ("seed-a", "x"),
            ("garden", "extension-shoot--a--b"),
            ("garden-p", "extension-shoot--a--b"),
            ("garden-p", "foo"),
            ("other", "extension-shoot--a--b"),
        ] {
            put_account(&garden, namespace, name);
        }

        let all =
            ["garden/extension-shoot--a--b", "garden-p/extension-shoot--a--b", "seed-a/x", "seed-a/y", "seed-b/x"];
        binds(&garden, &all).await;
        let binding = binding(&garden).expect("it exists");
        let role = garden.find(&kinds::CLUSTER_ROLE, "", "x").expect("it exists");
        let owner = json!([{
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "x",
            "uid": role["metadata"]["uid"], "controller": true, "blockOwnerDeletion": false,
        }]);
        assert_eq!(binding["metadata"]["ownerReferences"], owner);
        garden.sim.clear_requests();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(garden.asked(), Vec::<String>::new(), "nothing at rest");
    });
}

/// spec 85 scenarios 56 and 57, DEV-16
#[test]
fn extension_binding_follows_accounts_and_selector() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_role(&garden, RELEVANT);
            put_account(&garden, "seed-a", "one");
            put_account(&garden, "seed-a", "two");
            garden.settled().await;
            binds(&garden, &["seed-a/one", "seed-a/two"]).await;

            garden.edit(&kinds::SERVICE_ACCOUNT, "seed-a", "one", |it| it["metadata"]["labels"] = json!({ "b": "c" }));
            binds(&garden, &["seed-a/two"]).await;
            garden.delete(&kinds::SERVICE_ACCOUNT, "seed-a", "two").await;
            binds(&garden, &[]).await;
            let select = |selector: &str| {
                let annotations = json!({ SELECTOR: selector });
                garden.edit(&kinds::CLUSTER_ROLE, "", "x", |role| role["metadata"]["annotations"] = annotations);
            };
            select(r#"{"matchLabels":{"b":"c"}}"#);
            binds(&garden, &["seed-a/one"]).await;
            select("{");
            binds(&garden, &["seed-a/one"]).await;
            garden.edit(&kinds::CLUSTER_ROLE_BINDING, "", "x", |it| it["subjects"] = json!([]));
            select(r#"{"matchLabels":{"b":"c"}}"#);
            binds(&garden, &["seed-a/one"]).await;
            garden.edit(&kinds::CLUSTER_ROLE_BINDING, "", "x", |it| it["subjects"] = json!([]));
            binds(&garden, &["seed-a/one"]).await;
        });
    });
    assert!(
        log.contains("failed parsing label selector: failed unmarshalling extensions service account selector"),
        "{log}"
    );
}

/// spec 85 DEV-16: another program undoes each repair.
#[test]
fn extension_binding_that_drifts_again_and_again_is_repaired_ever_more_rarely() {
    garden(|garden| async move {
        put_role(&garden, RELEVANT);
        put_account(&garden, "seed-a", "x");
        garden.settled().await;
        binds(&garden, &["seed-a/x"]).await;
        garden.sim.clear_requests();

        garden
            .minute_beside(|| {
                if subjects(&garden).is_none_or(|subjects| !subjects.is_empty()) {
                    garden.edit(&kinds::CLUSTER_ROLE_BINDING, "", "x", |it| it["subjects"] = json!([]));
                }
            })
            .await;

        let asked = garden.asked_for("clusterrolebindings");
        assert!((2..10).contains(&asked.len()), "{asked:?}");
        seconds(200).await;
        assert_eq!(subjects(&garden), Some(vec!["seed-a/x".to_owned()]));
    });
}

/// spec 85 scenario 59, DEV-15
#[test]
fn extension_binding_goes_with_the_label_unless_it_is_foreign() {
    for is_foreign in [false, true] {
        garden(|garden| async move {
            put_role(&garden, RELEVANT);
            garden.settled().await;
            binds(&garden, &[]).await;
            garden.sim.clear_requests();
            if is_foreign {
                // In the same moment, so that nobody repairs it.
                garden.edit(&kinds::CLUSTER_ROLE, "", "x", |role| role["metadata"]["labels"] = json!({}));
                garden.edit(&kinds::CLUSTER_ROLE_BINDING, "", "x", |it| it["metadata"]["ownerReferences"] = json!([]));
            } else {
                garden.edit(&kinds::CLUSTER_ROLE, "", "x", |role| role["metadata"]["labels"] = json!({}));
            }
            garden.settle().await;

            assert_eq!(binding(&garden).is_some(), is_foreign);
        });
    }
}

/// spec 85 scenario 59, DEV-15: the label goes while no process runs.
#[test]
fn extension_binding_goes_with_a_label_that_was_removed_during_a_pause() {
    garden(|garden| async move {
        put_role(&garden, RELEVANT);
        put_account(&garden, "seed-a", "x");
        garden.settled().await;
        binds(&garden, &["seed-a/x"]).await;
        garden.stop().await;
        garden.edit(&kinds::CLUSTER_ROLE, "", "x", |role| role["metadata"]["labels"] = json!({}));

        garden.start().await;

        garden.gone(&kinds::CLUSTER_ROLE_BINDING, "", "x").await;
    });
}

/// spec 85 scenario 59, DEV-15: the answer to the creation of the binding is lost, and the label goes.
#[test]
fn extension_binding_that_turns_up_after_its_label_is_gone_is_deleted() {
    garden(|garden| async move {
        garden.settled().await;
        let sim = garden.sim.clone();
        garden.sim.set_faults(move |info| {
            if info.verb == "create" && info.resource == "clusterrolebindings" && info.user == "gcm" {
                sim.edit("clusterroles.rbac.authorization.k8s.io", "", "x", |role| {
                    role["metadata"]["labels"] = json!({});
                });
                return Fault::FailAfterCommit(Seen::Disconnect);
            }
            Fault::None
        });

        put_role(&garden, RELEVANT);
        garden.settle().await;

        assert_eq!(binding(&garden), None);
        assert!(garden.asked_for("clusterrolebindings").len() >= 2, "it was created and deleted");
    });
}

/// spec 85 scenario 57: an operator narrows the selector, which the cache has not seen.
#[test]
fn extension_accounts_are_not_bound_by_a_stale_selector() {
    garden(|garden| async move {
        put_role(&garden, RELEVANT);
        put_account(&garden, "seed-a", "x");
        garden.settled().await;
        binds(&garden, &["seed-a/x"]).await;
        garden.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("clusterroles", "list" | "watch") => Fault::FailBefore(Seen::unavailable()),
            _ => Fault::None,
        });
        garden.sim.break_watches(WatchEnd::Disconnect);
        seconds(200).await;
        let narrow = json!({ SELECTOR: r#"{"matchLabels":{"none":"true"}}"# });
        garden.edit(&kinds::CLUSTER_ROLE, "", "x", |role| role["metadata"]["annotations"] = narrow);

        put_account(&garden, "seed-a", "y");
        garden.settle().await;
        assert_eq!(subjects(&garden), Some(vec!["seed-a/x".to_owned()]));
        garden.sim.clear_faults();
        seconds(300).await;

        assert_eq!(subjects(&garden), Some(Vec::new()));
    });
}

/// spec 85 scenario 61, decision 28
#[test]
fn extension_accounts_of_projects_need_a_shoot_and_an_installation_in_strict_mode() {
    for is_strict in [false, true] {
        garden(|garden| async move {
            garden.config.borrow_mut().controllers.controller_registration.strict_extension_service_accounts =
                is_strict;
            put_role(&garden, RELEVANT);
            put_account(&garden, "garden-p", "extension-shoot--h--ci1");
            put_account(&garden, "garden-p", "extension-shoot--h");
            put_account(&garden, "seed-a", "x");
            garden.settled().await;
            let all = ["garden-p/extension-shoot--h", "garden-p/extension-shoot--h--ci1", "seed-a/x"];
            if !is_strict {
                binds(&garden, &all).await;
                return;
            }
            binds(&garden, &["seed-a/x"]).await;

            let spec = json!({ "provider": { "type": "h", "workers": [{ "controlPlane": {} }] } });
            garden.put(object(&kinds::SHOOT, "garden-p", "h", json!({ "spec": spec })));
            binds(&garden, &["seed-a/x"]).await;
            let spec =
                json!({ "registrationRef": { "name": "none" }, "shootRef": { "namespace": "garden-p", "name": "h" } });
            garden.put(object(&kinds::CONTROLLER_INSTALLATION, "", "ci1", json!({ "spec": spec })));
            binds(&garden, &["seed-a/x"]).await;
            garden.edit(&kinds::CONTROLLER_INSTALLATION, "", "ci1", |it| {
                it["status"]["conditions"] = json!([{ "type": "Valid", "status": "True" }]);
            });
            binds(&garden, &["garden-p/extension-shoot--h--ci1", "seed-a/x"]).await;
            garden.delete(&kinds::CONTROLLER_INSTALLATION, "", "ci1").await;
            binds(&garden, &["seed-a/x"]).await;
        });
    }
}

/// spec 85 scenario 64, DEV-21: a member of a Project creates more ServiceAccounts than a binding can have.
#[test]
fn extension_accounts_of_a_project_leave_room_for_others_and_cost_a_patch_a_second() {
    garden(|garden| async move {
        put_role(&garden, RELEVANT);
        garden.settled().await;
        binds(&garden, &[]).await;
        garden.sim.clear_requests();
        for number in 0..600 {
            put_account(&garden, "garden-p", &format!("extension-shoot--{number:04}"));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        put_account(&garden, "garden-q", "extension-shoot--a");
        put_account(&garden, "seed-a", "x");
        garden.settle().await;

        let bound = subjects(&garden).unwrap_or_default();
        assert_eq!(bound.len(), 501);
        assert!(["garden-q/extension-shoot--a", "seed-a/x"].iter().all(|other| bound.iter().any(|it| it == other)));
        let patches = garden.asked_for("clusterrolebindings");
        assert!(patches.len() < 12, "{} patches", patches.len());
        assert_eq!(garden.events(&kinds::CLUSTER_ROLE, "x", "TooManyServiceAccounts").len(), 1);
        garden.delete(&kinds::SERVICE_ACCOUNT, "garden-q", "extension-shoot--a").await;
        garden.settle().await;
        assert!(!subjects(&garden).unwrap_or_default().contains(&"garden-q/extension-shoot--a".to_owned()));
    });
}
