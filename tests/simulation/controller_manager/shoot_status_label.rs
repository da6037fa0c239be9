//! The status label of Shoots.

use cluster::object;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen, WatchEnd};

use super::{
    garden::{Garden, STATUS_LABEL, garden, object},
    shoots::{
        SHOOTS, before_first, condition, miss_events, operation, put_seed, seconds, set_status, shoot_of,
        shoot_with_status, writes,
    },
};

fn label(garden: &Garden) -> Option<String> {
    object::label(&shoot_of(garden, "a", "s"), STATUS_LABEL).map(str::to_owned)
}

async fn labelled(garden: &Garden, expected: &str) {
    garden.soon(&format!("it is {expected}"), || label(garden).as_deref() == Some(expected)).await;
}

fn set_label(garden: &Garden, value: Value) {
    garden
        .edit(&kinds::SHOOT, "a", "s", |shoot| shoot["metadata"]["labels"] = json!({ STATUS_LABEL: value, "x": "y" }));
}

pub(super) fn unlabelled(status: Value) -> Value {
    let mut shoot = shoot_with_status("a", "s", "healthy", status);
    shoot["metadata"]["labels"] = json!({ "x": "y" });
    shoot
}

/// spec 84 scenarios 98 to 100
#[test]
fn status_label_tells_the_status() {
    let error = json!([{ "description": "d" }]);
    let all = |statuses: &[&str]| Value::from_iter(statuses.iter().map(|status| condition("EveryNodeReady", status)));
    let table = [
        (Value::Null, Value::Null, all(&["True", "False"]), "healthy"),
        (operation("Create", "Processing"), error.clone(), all(&["True"]), "unhealthy"),
        (operation("Create", "Processing"), Value::Null, all(&["False"]), "healthy"),
        (operation("Reconcile", "Succeeded"), Value::Null, all(&["True", "Progressing"]), "progressing"),
        (operation("Reconcile", "Succeeded"), Value::Null, all(&["True", "Unknown"]), "unknown"),
        (operation("Reconcile", "Succeeded"), Value::Null, all(&["Unknown", "False"]), "unhealthy"),
        (operation("Reconcile", "Processing"), error, all(&["True"]), "unhealthy"),
        (operation("Reconcile", "Error"), Value::Null, all(&["True"]), "unhealthy"),
        (operation("Reconcile", "Pending"), Value::Null, all(&["True"]), "unhealthy"),
    ];
    for (operation, errors, conditions, expected) in table {
        garden(|garden| async move {
            garden
                .put(unlabelled(json!({ "lastOperation": operation, "lastErrors": errors, "conditions": conditions })));
            garden.settled().await;

            assert_eq!(label(&garden).as_deref(), Some(expected));
            assert_eq!(object::label(&shoot_of(&garden, "a", "s"), "x"), Some("y"));
        });
    }
}

/// spec 84 scenario 101
#[test]
fn status_label_is_restored_and_follows_the_status() {
    garden(|garden| async move {
        garden.put(unlabelled(json!({ "lastOperation": operation("Reconcile", "Succeeded") })));
        garden.settled().await;
        for value in [Value::Null, json!("unhealthy"), json!("odd")] {
            set_label(&garden, value);
            labelled(&garden, "healthy").await;
        }
        set_status(&garden, "a", "s", "lastOperation", operation("Reconcile", "Failed"));
        labelled(&garden, "unhealthy").await;
        set_status(&garden, "a", "s", "lastOperation", operation("Reconcile", "Succeeded"));
        labelled(&garden, "healthy").await;
        set_status(&garden, "a", "s", "conditions", json!([condition("EveryNodeReady", "Unknown")]));
        labelled(&garden, "unknown").await;

        // Heartbeats, and changes of what does not count.
        garden.settle().await;
        garden.sim.clear_requests();
        set_status(&garden, "a", "s", "lastOperation", {
            let mut later = operation("Reconcile", "Succeeded");
            later["progress"] = json!(100);
            later
        });
        set_status(&garden, "a", "s", "constraints", json!([condition("HibernationPossible", "False")]));
        garden.edit(&kinds::SHOOT, "a", "s", |shoot| shoot["spec"]["purpose"] = json!("testing"));
        seconds(3600).await;
        assert_eq!(garden.asked_for("shoots"), Vec::<String>::new());
        garden.stop().await;
        garden.sim.clear_requests();
        garden.start().await;
        garden.settle().await;
        assert_eq!(garden.asked_for("shoots"), ["list shoots"]);
    });
}

/// Also a Shoot in deletion; and conditions that another controller of this process has copied (trap A-T4).
#[test]
fn status_label_follows_own_writes_and_deletion() {
    garden(|garden| async move {
        let status = json!({ "lastOperation": operation("Reconcile", "Succeeded"), "conditions": [] });
        garden.put(shoot_with_status("garden", "s", "healthy", status));
        garden.put(object(&kinds::MANAGED_SEED, "garden", "ms", json!({ "spec": { "shoot": { "name": "s" } } })));
        put_seed(&garden, object(&kinds::SEED, "", "ms", json!({})));
        garden.settled().await;

        garden.edit(&kinds::SEED, "", "ms", |seed| {
            seed["status"] = json!({ "conditions": [condition("GardenletReady", "Unknown")] })
        });

        let label = || object::label(&shoot_of(&garden, "garden", "s"), STATUS_LABEL).map(str::to_owned);
        garden.soon("it is unknown", || label().as_deref() == Some("unknown")).await;
        garden.edit(&kinds::SHOOT, "garden", "s", |shoot| shoot["metadata"]["finalizers"] = json!(["gardener"]));
        garden.delete(&kinds::SHOOT, "garden", "s").await;
        set_status(&garden, "garden", "s", "lastOperation", operation("Delete", "Processing"));
        garden.soon("it is healthy", || label().as_deref() == Some("healthy")).await;
    });
}

/// Another client that undoes the label is answered more and more rarely.
#[test]
fn status_label_that_another_client_undoes_is_repaired_after_pauses() {
    garden(|garden| async move {
        garden.put(unlabelled(json!({})));
        garden.settled().await;
        let beside = garden.clone();
        garden
            .minute_beside(|| {
                if label(&beside).as_deref() == Some("healthy") {
                    set_label(&beside, json!("unhealthy"));
                }
            })
            .await;

        let writes = writes(&garden).len();
        assert!((5..=9).contains(&writes), "{writes}");
        seconds(60).await;
        assert_eq!(label(&garden).as_deref(), Some("healthy"), "at last");
    });
}

/// A webhook that always changes the label does not keep the program busy.
#[test]
fn status_label_that_the_server_changes_is_repeated_rarely() {
    garden(|garden| async move {
        garden.sim.set_mutation(|reviewed, object| {
            if reviewed.resource == "shoots" {
                object["metadata"]["labels"][STATUS_LABEL] = json!("odd");
            }
        });
        garden.put(unlabelled(json!({})));
        garden.start().await;
        seconds(600).await;

        let writes = writes(&garden).len();
        assert!((2..40).contains(&writes), "{writes}");
    });
}

/// A write from a cache that lags is corrected when the cache has the change.
#[test]
fn status_label_follows_a_shoot_that_changes_meanwhile() {
    garden(|garden| async move {
        garden.put(unlabelled(json!({ "lastOperation": operation("Reconcile", "Succeeded") })));
        garden.settled().await;
        before_first(&garden, ("patch", "shoots"), |sim| {
            let fail = |shoot: &mut Value| shoot["status"]["lastOperation"] = operation("Reconcile", "Failed");
            assert!(sim.edit(SHOOTS, "a", "s", fail));
        });
        set_label(&garden, Value::Null);
        labelled(&garden, "unhealthy").await;

        garden.sim.clear_faults();
        miss_events(&garden, "shoots");
        set_status(&garden, "a", "s", "lastOperation", operation("Reconcile", "Succeeded"));
        garden.settle().await;
        garden.sim.clear_event_faults();
        garden.sim.compact();
        garden.sim.break_watches(WatchEnd::Disconnect);
        seconds(60).await;
        assert_eq!(label(&garden).as_deref(), Some("healthy"));
    });
}

/// Two replicas that both believe to lead, and requests that fail.
#[test]
fn status_label_is_right_in_the_end() {
    garden(|garden| async move {
        garden.put(unlabelled(json!({})));
        garden.start().await;
        garden.start_second().await;
        for (number, state) in ["Failed", "Succeeded", "Error", "Succeeded", "Processing"].into_iter().enumerate() {
            let mut count = 0;
            garden.sim.set_faults(move |info| {
                count += u32::from(info.user == "gcm" && info.resource == "shoots");
                let is_failing = info.user == "gcm" && info.resource == "shoots" && info.verb != "watch" && count <= 2;
                match (is_failing, number % 2) {
                    (true, 0) => Fault::FailBefore(Seen::unavailable()),
                    (true, _) => Fault::FailAfterCommit(Seen::Disconnect),
                    (false, _) => Fault::None,
                }
            });
            set_status(&garden, "a", "s", "lastOperation", operation("Reconcile", state));
            let expected = if ["Failed", "Error"].contains(&state) { "unhealthy" } else { "healthy" };
            labelled(&garden, expected).await;
        }
    });
}
