//! The time of the last activity in a Project.

use std::time::Duration;

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    guards::shoot,
    project_resource_quotas::put_dev,
};
use crate::log_capture::logged;

const NAMESPACE: &str = "garden-dev";
const LONG_AGO: &str = "2020-01-01T00:00:00Z";

/// The kinds whose objects count if they have a reference label.
const LABELLED: [&Resource; 4] = [&kinds::SECRET, &kinds::QUOTA, &kinds::INTERNAL_SECRET, &kinds::WORKLOAD_IDENTITY];

fn activity_of(garden: &Garden, project: &str) -> Option<String> {
    let project = garden.find(&kinds::PROJECT, "", project).expect("the Project exists");
    project["status"]["lastActivityTimestamp"].as_str().map(str::to_owned)
}

/// The last activity of `dev` was long ago, and the program knows.
async fn rest(garden: &Garden) {
    garden.settle().await; // the program's own writes to the objects are over
    garden.edit(&kinds::PROJECT, "", "dev", |project| project["status"]["lastActivityTimestamp"] = json!(LONG_AGO));
    garden.settle().await;
    is_quiet(garden, "a moment before").await;
    garden.sim.clear_requests();
}

/// There is activity now.
async fn is_active(garden: &Garden, what: &str) {
    garden.soon(what, || activity_of(garden, "dev").is_some_and(|time| time != LONG_AGO)).await;
    let recorded: jiff::Timestamp = activity_of(garden, "dev").expect("activity").parse().expect("a time");
    let now: jiff::Timestamp = garden.time(0).parse().expect("a time");
    assert!((0..5).contains(&now.duration_since(recorded).as_secs()), "{what}: {recorded}");
    assert_eq!(recorded.subsec_nanosecond(), 0, "{what}: whole seconds");
    rest(garden).await;
}

async fn is_quiet(garden: &Garden, what: &str) {
    garden.settle().await;
    assert_eq!(activity_of(garden, "dev").as_deref(), Some(LONG_AGO), "{what}");
}

/// spec 82 scenario 36
#[test]
fn project_activity_is_what_happens_to_shoots() {
    garden(|garden| async move {
        put_dev(&garden);
        garden.settled().await;
        assert_eq!(activity_of(&garden, "dev"), None);

        let mut created = shoot(NAMESPACE, "s", json!({}));
        created["metadata"]["finalizers"] = json!(["example.com/x"]);
        garden.put(created);
        garden.soon("the first activity", || activity_of(&garden, "dev").is_some()).await;
        assert_eq!(garden.asked().iter().filter(|asked| asked.contains("projects")).count(), 2, "a read and a write");
        rest(&garden).await;

        garden.patch(&kinds::SHOOT, NAMESPACE, "s", json!({ "metadata": { "labels": { "a": "b" } } })).await;
        garden.edit(&kinds::SHOOT, NAMESPACE, "s", |shoot| shoot["status"] = json!({ "hibernated": true }));
        is_quiet(&garden, "labels and status").await;
        assert_eq!(garden.asked(), Vec::<String>::new());

        garden.patch(&kinds::SHOOT, NAMESPACE, "s", json!({ "spec": { "purpose": "testing" } })).await;
        is_active(&garden, "a change of the spec").await;
        garden.delete(&kinds::SHOOT, NAMESPACE, "s").await;
        is_active(&garden, "a deletion").await;
        garden.patch(&kinds::SHOOT, NAMESPACE, "s", json!({ "metadata": { "finalizers": null } })).await;
        is_active(&garden, "the removal").await;
    });
}

/// spec 82 C.2
#[test]
fn project_activity_is_what_happens_to_backup_entries() {
    garden(|garden| async move {
        put_dev(&garden);
        garden.settled().await;
        garden.put(object(&kinds::BACKUP_ENTRY, NAMESPACE, "b", json!({ "spec": { "bucketName": "x" } })));
        is_active(&garden, "a creation").await;
        garden.patch(&kinds::BACKUP_ENTRY, NAMESPACE, "b", json!({ "spec": { "seedName": "x" } })).await;
        is_active(&garden, "a change").await;
        garden.delete(&kinds::BACKUP_ENTRY, NAMESPACE, "b").await;
        is_active(&garden, "a deletion").await;
    });
}

/// spec 82 C.2, D-2, scenario 37
#[test]
fn project_activity_is_what_happens_to_credentials_and_quotas_with_a_reference_label() {
    for kind in LABELLED {
        garden(|garden| async move {
            put_dev(&garden);
            garden.settled().await;
            let annotate = |value: &str| json!({ "metadata": { "annotations": { "a": value } } });
            rest(&garden).await;

            garden.put(object(kind, NAMESPACE, "x", json!({})));
            garden.settle().await;
            garden.patch(kind, NAMESPACE, "x", annotate("1")).await;
            garden.settle().await;
            garden.delete(kind, NAMESPACE, "x").await;
            is_quiet(&garden, "an object without the label").await;

            let label = "reference.gardener.cloud/credentialsbinding";
            garden.put(object(kind, NAMESPACE, "x", json!({ "metadata": { "labels": { label: "any" } } })));
            is_active(&garden, "a creation").await;
            garden.patch(kind, NAMESPACE, "x", annotate("2")).await;
            is_active(&garden, "a change").await;
            garden.patch(kind, NAMESPACE, "x", json!({ "metadata": { "labels": { label: null } } })).await;
            is_active(&garden, "the loss of the label").await;
            garden.patch(kind, NAMESPACE, "x", annotate("3")).await;
            is_quiet(&garden, "a change without the label").await;
            garden.patch(kind, NAMESPACE, "x", json!({ "metadata": { "labels": { label: "" } } })).await;
            is_active(&garden, "a new label").await;
            garden.delete(kind, NAMESPACE, "x").await;
            is_active(&garden, "a deletion").await;
        });
    }
}

/// spec 82 scenario 38
#[test]
fn project_activity_at_a_start_is_what_was_created_within_the_last_hour() {
    for (minutes, counts) in [(120, false), (61, false), (59, true)] {
        garden(|garden| async move {
            put_dev(&garden);
            let mut old = shoot(NAMESPACE, "s", json!({}));
            old["metadata"]["creationTimestamp"] = json!(garden.time(-minutes * 60));
            garden.put(old);
            garden.settled().await;

            assert_eq!(activity_of(&garden, "dev").is_some(), counts, "{minutes} minutes");
        });
    }
}

/// spec 82 scenario 38: a restart records nothing again, in whatever order its lists arrive.
#[test]
fn project_activity_is_not_written_again_by_a_restart() {
    for late in ["projects", "shoots"] {
        garden(|garden| async move {
            put_dev(&garden);
            garden.settled().await;
            garden.put(shoot(NAMESPACE, "s", json!({})));
            garden.settle().await;
            let recorded = activity_of(&garden, "dev").expect("activity");
            tokio::time::sleep(Duration::from_secs(60)).await;
            garden.stop().await;
            garden.sim.clear_requests();
            garden.sim.set_faults(move |info| match info.resource == late && info.verb == "list" {
                true => Fault::Delay(Duration::from_secs(5)),
                false => Fault::None,
            });
            garden.start().await;
            garden.settle().await;

            let writes = garden.asked_for("projects").into_iter().filter(|asked| asked.starts_with("patch"));
            assert_eq!(writes.collect::<Vec<_>>(), Vec::<String>::new(), "{late}");
            assert_eq!(activity_of(&garden, "dev"), Some(recorded), "{late}");
        });
    }
}

/// spec 82 scenario 38: what happened while no process ran is recorded.
#[test]
fn project_activity_between_two_processes_is_written() {
    garden(|garden| async move {
        put_dev(&garden);
        garden.settled().await;
        garden.put(shoot(NAMESPACE, "s", json!({})));
        garden.settle().await;
        let recorded = activity_of(&garden, "dev").expect("activity");
        garden.stop().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        garden.put(shoot(NAMESPACE, "later", json!({})));
        garden.start().await;
        garden.settle().await;

        assert!(activity_of(&garden, "dev").expect("activity") > recorded);
    });
}

/// The lists of a start arrive in any order.
#[test]
fn project_activity_at_a_start_is_noticed_if_projects_are_listed_last() {
    garden(|garden| async move {
        put_dev(&garden);
        garden.put(shoot(NAMESPACE, "s", json!({})));
        garden.sim.set_faults(|info| match info.resource == "projects" && info.verb == "list" {
            true => Fault::Delay(Duration::from_secs(5)),
            false => Fault::None,
        });
        garden.start().await;
        garden.settle().await;

        assert!(activity_of(&garden, "dev").is_some());
    });
}

/// spec 82 scenario 39, decision 24
#[test]
fn project_activity_elsewhere_is_nobodys() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_dev(&garden);
            garden.put(object(&kinds::PROJECT, "", "bad", json!({ "spec": { "namespace": "kube-system" } })));
            garden.put(object(&kinds::PROJECT, "", "none", json!({ "spec": { "namespace": "" } })));
            garden.settled().await;

            for namespace in ["garden-other", "kube-system", "garden-dev2"] {
                garden.put(shoot(namespace, "s", json!({})));
                garden.settle().await;
                garden.delete(&kinds::SHOOT, namespace, "s").await;
            }
            garden.settle().await;

            for project in ["dev", "bad", "none"] {
                assert_eq!(activity_of(&garden, project), None, "{project}");
            }
        });
    });
    let is_error = |line: &&str| line.contains("ERROR") && line.contains("project-activity");
    assert_eq!(log.lines().find(is_error), None);
}

/// spec 82 C.2: a Project that claims the namespace of another takes no activity from it.
#[test]
fn project_activity_in_a_shared_namespace_is_that_of_all_its_projects() {
    garden(|garden| async move {
        put_dev(&garden);
        garden.put(object(&kinds::PROJECT, "", "all", json!({ "spec": { "namespace": NAMESPACE } })));
        garden.settled().await;

        garden.put(shoot(NAMESPACE, "s", json!({})));
        garden.settle().await;

        assert!(activity_of(&garden, "all").is_some() && activity_of(&garden, "dev").is_some());
    });
}

/// spec 82 C.3, "better" 9
#[test]
fn project_activity_of_a_thousand_changes_is_written_once_in_ten_seconds() {
    garden(|garden| async move {
        put_dev(&garden);
        garden.settled().await;
        for number in 0..1000 {
            let labels = json!({ "metadata": { "labels": { "reference.gardener.cloud/secretbinding": "true" } } });
            garden.put(object(&kinds::SECRET, NAMESPACE, &format!("s{number}"), labels));
        }
        garden.settle().await;
        garden.sim.clear_requests();

        for number in 0..1000 {
            garden.edit(&kinds::SECRET, NAMESPACE, &format!("s{number}"), |secret| {
                secret["metadata"]["annotations"] = json!({ "rolled": "yes" });
            });
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        garden.settle().await;

        let writes = garden.asked().iter().filter(|asked| *asked == "patch projects dev").count();
        assert!((5..=6).contains(&writes), "{:?}", garden.asked());
    });
}

/// spec 82 C.3
#[test]
fn project_activity_of_a_project_in_deletion_is_not_written() {
    garden(|garden| async move {
        put_dev(&garden);
        garden.edit(&kinds::PROJECT, "", "dev", |project| project["metadata"]["finalizers"] = json!(["example.com/x"]));
        garden.settled().await;
        garden.delete(&kinds::PROJECT, "", "dev").await;
        garden.settle().await;

        garden.put(shoot(NAMESPACE, "s", json!({})));
        garden.settle().await;

        assert_eq!(activity_of(&garden, "dev"), None);
    });
}

/// spec 82 C.3; spec 80 §16 S-2
#[test]
fn project_activity_that_cannot_be_written_is_written_later() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_dev(&garden);
            garden.settled().await;
            garden.sim.set_faults(|info| match info.user == "gcm" && info.verb == "patch" {
                true => Fault::FailBefore(Seen::internal_error("not now")),
                false => Fault::None,
            });
            garden.put(shoot(NAMESPACE, "s", json!({})));
            garden.settle().await;
            assert_eq!(activity_of(&garden, "dev"), None);

            garden.sim.clear_faults();
            tokio::time::sleep(Duration::from_secs(30)).await;

            assert!(activity_of(&garden, "dev").is_some());
        });
    });
    assert!(log.contains("failed updating Project's lastActivityTimestamp: not now"), "{log}");
}

/// spec 80 §9: kinds that are not served have no activity, the others have.
#[test]
fn project_activity_is_noticed_while_some_kinds_are_not_served() {
    garden(|garden| async move {
        for kind in [&kinds::WORKLOAD_IDENTITY, &kinds::INTERNAL_SECRET, &kinds::BACKUP_ENTRY] {
            garden.withdraw(kind);
        }
        put_dev(&garden);
        garden.settled().await;

        garden.put(shoot(NAMESPACE, "s", json!({})));

        is_active(&garden, "a Shoot").await;
        garden.serve(&kinds::BACKUP_ENTRY);
        tokio::time::sleep(Duration::from_secs(75)).await;
        garden.put(object(&kinds::BACKUP_ENTRY, NAMESPACE, "b", json!({})));
        is_active(&garden, "a BackupEntry").await;
    });
}

/// spec 82 C.3: other fields of the status belong to others.
#[test]
fn project_activity_leaves_the_rest_of_the_status_alone() {
    garden(|garden| async move {
        put_dev(&garden);
        garden.settled().await;
        let conditions = json!([{ "type": "X" }]);
        garden.edit(&kinds::PROJECT, "", "dev", |project| project["status"]["conditions"] = conditions.clone());
        garden.settle().await;
        let status = garden.find(&kinds::PROJECT, "", "dev").unwrap()["status"].clone();

        garden.put(shoot(NAMESPACE, "s", json!({})));
        garden.soon("activity", || activity_of(&garden, "dev").is_some()).await;

        let mut project = garden.find(&kinds::PROJECT, "", "dev").unwrap();
        let fields = project["status"].as_object_mut().unwrap();
        fields.remove("lastActivityTimestamp");
        assert_eq!(Value::from(fields.clone()), status);
    });
}
