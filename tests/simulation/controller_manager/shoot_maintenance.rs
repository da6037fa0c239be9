//! Maintenances of Shoots: when they take place, what is written, and in which order.

use std::time::Duration;

use cluster::object::{annotation, generation};
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen, Sim};

use super::garden::{Garden, garden, object};

const OPERATION: &str = "gardener.cloud/operation";
const TASKS: &str = "shoot.gardener.cloud/tasks";
const DEPLOY: &str = "deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress";
const UPDATED: &str = "Control Plane: Updated Kubernetes version from \"1.30.1\" to \"1.30.5\". Reason: Automatic update of \
                       Kubernetes version configured";

/// A CloudProfile with these versions, and image `os` with versions 1.0.0 and 1.1.0.
pub(super) fn put_profile(garden: &Garden, versions: &Value) {
    let spec = json!({ "kubernetes": { "versions": versions }, "machineTypes": [{ "name": "m" }],
        "machineImages": [{ "name": "os", "versions": [{ "version": "1.0.0" }, { "version": "1.1.0" }] }] });
    garden.put(object(&kinds::CLOUD_PROFILE, "", "cp", json!({ "spec": spec })));
}

pub(super) fn two_versions() -> Value {
    json!([{ "version": "1.30.1" }, { "version": "1.30.5" }])
}

/// A maintenance window from so many minutes ahead to so many.
pub(super) fn window(garden: &Garden, begin: i64, end: i64) -> Value {
    let at = |minutes: i64| format!("{}+0000", garden.time(60 * minutes)[11..19].replace(':', ""));
    json!({ "begin": at(begin), "end": at(end) })
}

/// A Shoot whose window is hours away, and which has been reconciled.
pub(super) fn shoot(garden: &Garden, name: &str, spec: Value) -> Value {
    let mut shoot = object(
        &kinds::SHOOT,
        "a",
        name,
        json!({
            "spec": { "cloudProfile": { "name": "cp" }, "kubernetes": { "version": "1.30.1" },
                "maintenance": { "timeWindow": window(garden, 360, 420), "autoUpdate": { "kubernetesVersion": true } } },
            "status": { "lastOperation": { "state": "Succeeded" } },
        }),
    );
    for (field, value) in spec.as_object().expect("a map") {
        shoot["spec"][field] = value.clone();
    }
    shoot
}

/// Starts the controllers with a CloudProfile of two versions and Shoot `s`, whose window is hours away.
pub(super) async fn started(garden: &Garden, spec: Value) {
    put_profile(garden, &two_versions());
    garden.put(shoot(garden, "s", spec));
    garden.settled().await;
}

fn find(garden: &Garden) -> Value {
    garden.find(&kinds::SHOOT, "a", "s").unwrap_or_default()
}

pub(super) fn version(garden: &Garden) -> String {
    find(garden)["spec"]["kubernetes"]["version"].as_str().unwrap_or_default().to_owned()
}

pub(super) fn last(garden: &Garden) -> Value {
    find(garden)["status"]["lastMaintenance"].clone()
}

pub(super) fn has_tasks(garden: &Garden) -> bool {
    annotation(&find(garden), TASKS).is_some()
}

pub(super) async fn ask(garden: &Garden) {
    let patch = json!({ "metadata": { "annotations": { OPERATION: "maintain" } } });
    garden.patch(&kinds::SHOOT, "a", "s", patch).await;
}

/// Asks for a maintenance and waits for its end.
async fn maintain(garden: &Garden) {
    ask(garden).await;
    garden.soon("it is maintained", || has_tasks(garden) && last(garden)["state"] != "Processing").await;
    garden.settle().await;
}

/// Lets requests fail that update Shoots. `fault` gets the number of the request, from 1, and whether it is a dry run.
pub(super) fn on_updates(garden: &Garden, mut fault: impl FnMut(usize, bool, &Sim) -> Fault + Send + 'static) {
    let (sim, mut count) = (garden.sim.clone(), 0);
    garden.sim.set_faults(move |info| {
        if info.user != "gcm" || info.verb != "update" || info.resource != "shoots" {
            return Fault::None;
        }
        count += 1;
        fault(count, info.query.contains("dryRun"), &sim)
    });
}

pub(super) fn refused(code: u16) -> Fault {
    Fault::FailBefore(Seen::status(code, if code == 422 { "Invalid" } else { "Unavailable" }, "no way"))
}

fn notes(garden: &Garden, reason: &str) -> Vec<(String, String, String)> {
    garden.events(&kinds::SHOOT, "s", reason)
}

pub(super) fn maintenances(garden: &Garden, result: &str) -> Option<f64> {
    garden.metric(&format!("maintenance_total{{result=\"{result}\"}}"))
}

/// spec 84 C.14, C.15, scenarios 26 and 40
#[test]
fn shoot_is_updated_in_one_dry_run_and_three_writes() {
    garden(|garden| async move {
        started(&garden, json!({ "unknown": { "field": [1] } })).await;

        maintain(&garden).await;

        let shoot = find(&garden);
        assert_eq!((version(&garden), annotation(&shoot, OPERATION)), ("1.30.5".to_owned(), Some("reconcile")));
        assert_eq!(annotation(&shoot, TASKS), Some(&*format!("{DEPLOY},restartControlPlanePods")));
        assert_eq!(shoot["spec"]["unknown"], json!({ "field": [1] }));
        let (description, state) = (&last(&garden)["description"], &last(&garden)["state"]);
        assert_eq!(
            (description, state),
            (&json!(format!("All maintenance operations successful. {UPDATED}")), &json!("Succeeded"))
        );
        let event = ("Normal".to_owned(), "Reconcile".to_owned(), format!("{UPDATED}."));
        assert_eq!(notes(&garden, "KubernetesVersionMaintenance"), [event]);
        let requests = ["get shoots s", "update shoots s", "patch shoots s", "update shoots s", "patch shoots s"];
        assert_eq!(garden.asked_for("shoots"), requests);
        assert_eq!(maintenances(&garden, "succeeded"), Some(1.0));
        let row = garden.row("shoot-maintenance/a/s").map(|row| row.line).unwrap_or_default();
        assert!(row.starts_with("next maintenance at "), "{row}");
    });
}

/// spec 84 C-20, C-23, C-24, scenarios 28, 29 and 32
#[test]
fn shoot_that_needs_nothing_gets_one_write() {
    garden(|garden| async move {
        started(&garden, json!({ "kubernetes": { "version": "1.30.5" } })).await;
        maintain(&garden).await;
        assert_eq!(garden.asked_for("shoots"), ["get shoots s", "update shoots s"]);
        assert_eq!((last(&garden), maintenances(&garden, "unchanged")), (Value::Null, Some(1.0)));

        let before =
            json!({ "state": "Failed", "description": "d", "failureReason": "r", "triggeredTime": garden.time(0) });
        garden.edit(&kinds::SHOOT, "a", "s", |shoot| {
            shoot["status"] = json!({ "lastMaintenance": before });
            shoot["metadata"]["annotations"] = json!({ "a": "b" });
        });
        maintain(&garden).await;

        let after = json!({ "state": "Succeeded", "description": "Maintenance succeeded", "triggeredTime": before["triggeredTime"] });
        assert_eq!(last(&garden), after);
        assert_eq!(annotation(&find(&garden), OPERATION), None, "without a last operation none is started");
    });
}

/// spec 84 C.1, C.3, scenarios 33 and 35
#[test]
fn shoot_is_maintained_in_its_window() {
    garden(|garden| async move {
        put_profile(&garden, &two_versions());
        garden.settled().await;
        garden.put(shoot(&garden, "s", json!({})));
        garden.settle().await;
        assert_eq!((version(&garden), garden.asked_for("shoots")), ("1.30.1".to_owned(), vec![]));

        let inside = window(&garden, -10, 60);
        let patch = json!({ "spec": { "maintenance": { "timeWindow": inside } } });
        garden.patch(&kinds::SHOOT, "a", "s", patch).await;
        garden.soon("it is updated", || version(&garden) == "1.30.5").await;

        let settings = json!({ "timeWindow": window(&garden, -10, 60) });
        garden.put(shoot(&garden, "t", json!({ "maintenance": settings })));
        let version =
            || garden.find(&kinds::SHOOT, "a", "t").map(|shoot| shoot["spec"]["kubernetes"]["version"].clone());
        garden.soon("it is updated", || version() == Some(json!("1.30.5"))).await;
    });
}

/// spec 84 C-5, C.3
#[test]
fn shoot_is_maintained_again_on_the_next_day() {
    garden(|garden| async move {
        started(&garden, json!({})).await;
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
            assert!(has_tasks(&garden), "{}", garden.time(0));
            garden.edit(&kinds::SHOOT, "a", "s", |shoot| shoot["metadata"]["annotations"] = json!({ "a": "b" }));
        }
        assert_eq!(maintenances(&garden, "unchanged"), Some(2.0));
        assert_eq!(maintenances(&garden, "succeeded"), Some(1.0));
    });
}

/// spec 84 "better" 6
#[test]
fn shoots_in_their_window_are_not_all_maintained_at_the_start() {
    garden(|garden| async move {
        put_profile(&garden, &two_versions());
        let settings = json!({ "timeWindow": window(&garden, -30, 120) });
        let names: Vec<_> = (0..20).map(|at| format!("s{at}")).collect();
        for name in &names {
            garden.put(shoot(&garden, name, json!({ "maintenance": settings })));
        }
        let mut asking = shoot(&garden, "s", json!({ "maintenance": settings }));
        asking["metadata"]["annotations"] = json!({ OPERATION: "maintain" });
        garden.put(asking);
        let maintained = || {
            let has_tasks = |name: &&String| {
                let shoot = garden.find(&kinds::SHOOT, "a", name).unwrap_or_default();
                annotation(&shoot, TASKS).is_some()
            };
            names.iter().filter(has_tasks).count()
        };
        garden.settled().await;
        assert!(has_tasks(&garden) && maintained() < 5, "{}", maintained());

        tokio::time::sleep(Duration::from_secs(450)).await;
        assert!((3..=17).contains(&maintained()), "{}", maintained());
        tokio::time::sleep(Duration::from_secs(460)).await;
        assert_eq!(maintained(), 20);
    });
}

/// spec 84 C-22, API-3, scenario 37
#[test]
fn refused_maintenance_is_reported_and_can_be_asked_for_again() {
    garden(|garden| async move {
        started(&garden, json!({})).await;
        on_updates(&garden, |_, is_dry_run, _| if is_dry_run { refused(422) } else { Fault::None });
        let before = find(&garden)["spec"].clone();

        ask(&garden).await;
        garden.soon("it is refused", || last(&garden)["state"] == "Failed").await;
        garden.settle().await;

        let reason = json!("Updates to the Shoot failed to be applied: no way");
        assert_eq!(
            (&last(&garden)["description"], &last(&garden)["failureReason"]),
            (&json!("Maintenance failed"), &reason)
        );
        let shoot = find(&garden);
        assert_eq!((&shoot["spec"], annotation(&shoot, OPERATION), annotation(&shoot, TASKS)), (&before, None, None));
        assert_eq!(
            garden.asked_for("shoots").len(),
            4,
            "a read, a dry run, and two patches: the status takes no annotations"
        );
        assert_eq!(maintenances(&garden, "refused"), Some(1.0));

        garden.sim.clear_faults();
        maintain(&garden).await;
        assert_eq!((version(&garden), last(&garden).get("failureReason")), ("1.30.5".to_owned(), None));
        assert_eq!(last(&garden)["state"], "Succeeded");
    });
}

/// spec 84 C-22a, scenario 38
#[test]
fn change_of_a_user_survives_a_maintenance() {
    for at in [1, 2] {
        garden(|garden| async move {
            started(&garden, json!({})).await;
            on_updates(&garden, move |count, _, sim| {
                if count == at {
                    let change = |shoot: &mut Value| {
                        shoot["spec"]["region"] = json!("other");
                        shoot["metadata"]["generation"] = json!(generation(shoot) + 1);
                    };
                    assert!(sim.edit("shoots.core.gardener.cloud", "a", "s", change));
                }
                Fault::None
            });

            maintain(&garden).await;

            assert_eq!((version(&garden), &find(&garden)["spec"]["region"]), ("1.30.5".to_owned(), &json!("other")));
            assert_eq!((&last(&garden)["state"], notes(&garden, "MaintenanceFailed").len()), (&json!("Succeeded"), 0));
        });
    }
}

/// spec 84 C-22a, C-23
#[test]
fn short_outage_is_no_failed_maintenance() {
    garden(|garden| async move {
        started(&garden, json!({})).await;
        on_updates(&garden, |count, _, _| if count < 4 { refused(503) } else { Fault::None });
        ask(&garden).await;
        garden.soon("it is updated", || version(&garden) == "1.30.5").await;
        garden.settle().await;
        assert_eq!((&last(&garden)["state"], notes(&garden, "MaintenanceFailed").len()), (&json!("Succeeded"), 0));
    });
}

/// spec 84 C.3: the longest pause between two attempts is shorter than the shortest window.
#[test]
fn maintenance_follows_a_long_outage_within_five_minutes() {
    garden(|garden| async move {
        started(&garden, json!({})).await;
        on_updates(&garden, |_, _, _| refused(503));
        ask(&garden).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert!(!has_tasks(&garden));

        garden.sim.clear_faults();
        tokio::time::sleep(Duration::from_secs(310)).await;

        assert!(has_tasks(&garden));
        assert_eq!(last(&garden)["state"], "Succeeded");
    });
}

/// spec 84 C-23, C.15
#[test]
fn update_that_cannot_be_written_is_told() {
    garden(|garden| async move {
        started(&garden, json!({})).await;
        let mut is_refused = false;
        on_updates(&garden, move |_, is_dry_run, _| {
            let is_first = !is_dry_run && !std::mem::replace(&mut is_refused, true);
            if is_first { refused(422) } else { Fault::None }
        });

        maintain(&garden).await;

        let event = ("Warning".to_owned(), "Reconcile".to_owned(), "no way".to_owned());
        assert_eq!(notes(&garden, "MaintenanceFailed"), [event]);
        assert_eq!((version(&garden), &last(&garden)["state"]), ("1.30.5".to_owned(), &json!("Succeeded")));
        assert_eq!(maintenances(&garden, "failed"), Some(1.0));
    });
}

/// spec 84 C-T1, "better" 7
#[test]
fn images_that_do_not_fit_the_new_version_do_not_hold_it_up() {
    garden(|garden| async move {
        let image = json!({ "type": "m", "image": { "name": "os", "version": "1.0.0" } });
        let settings = json!({ "timeWindow": window(&garden, 360, 420), "autoUpdate": { "kubernetesVersion": true } });
        started(
            &garden,
            json!({ "maintenance": settings, "provider": { "workers": [{ "name": "w", "machine": image }] } }),
        )
        .await;
        on_updates(&garden, |count, _, _| if count == 1 { refused(422) } else { Fault::None });

        maintain(&garden).await;

        let shoot = find(&garden);
        assert_eq!(
            (version(&garden), &shoot["spec"]["provider"]["workers"][0]["machine"]),
            ("1.30.5".to_owned(), &image)
        );
        assert_eq!(last(&garden)["state"], "Failed");
        assert_eq!(last(&garden)["failureReason"], "Worker pool \"w\": failed to update machine image \"os\": no way");
        let warnings = notes(&garden, "MachineImageVersionMaintenance");
        assert!(
            warnings.len() == 1 && warnings[0].0 == "Warning" && warnings[0].2.ends_with("\"os\": no way"),
            "{warnings:?}"
        );
        assert_eq!(maintenances(&garden, "partly_failed"), Some(1.0));
    });
}

/// spec 84 C-26, C.15: more Events than the recorder keeps about one object.
#[test]
fn maintenance_tells_of_each_of_many_worker_pools() {
    garden(|garden| async move {
        let machine = json!({ "type": "m", "image": { "name": "os", "version": "1.0.0" } });
        let worker = |at: usize| json!({ "name": format!("w{at}"), "machine": machine });
        let workers: Vec<_> = (0..10).map(worker).collect();
        let settings = json!({ "timeWindow": window(&garden, 360, 420), "autoUpdate": {} });
        started(&garden, json!({ "maintenance": settings, "provider": { "workers": workers } })).await;

        maintain(&garden).await;

        let mut notes: Vec<_> =
            notes(&garden, "MachineImageVersionMaintenance").into_iter().map(|(_, _, note)| note).collect();
        notes.sort_unstable();
        let is_of_its_pool =
            |(at, note): (usize, &String)| note.starts_with(&format!("Worker pool \"w{at}\": Updated"));
        assert!(notes.len() == 10 && notes.iter().enumerate().all(is_of_its_pool), "{notes:?}");
    });
}

/// spec 84 K4, C.10.1, scenarios 51 and 52
#[test]
fn secret_binding_is_replaced_with_kubernetes_1_34() {
    for users in [vec![], vec![("b", "s"), ("a", "s")], vec![("force-migrated-sb", "other")]] {
        garden(|garden| async move {
            put_profile(
                &garden,
                &json!([{ "version": "1.33.1", "classification": "expired" }, { "version": "1.34.0" }]),
            );
            garden.put(object(&kinds::SECRET, "a", "s", json!({})));
            garden.put(object(&kinds::SECRET, "a", "other", json!({})));
            garden.put(object(&kinds::QUOTA, "a", "q", json!({})));
            let quotas = json!([{ "name": "q", "namespace": "a" }]);
            let secret = json!({ "name": "s", "namespace": "a" });
            let binding = json!({ "secretRef": secret, "quotas": quotas, "provider": { "type": "p" } });
            garden.put(object(&kinds::SECRET_BINDING, "a", "sb", binding));
            for (name, secret) in &users {
                let reference = json!({ "apiVersion": "v1", "kind": "Secret", "name": secret, "namespace": "a" });
                let binding = json!({ "credentialsRef": reference, "quotas": quotas, "provider": { "type": "p" } });
                garden.put(object(&kinds::CREDENTIALS_BINDING, "a", name, binding));
            }
            garden.put(shoot(
                &garden,
                "s",
                json!({ "kubernetes": { "version": "1.33.1" }, "secretBindingName": "sb" }),
            ));
            garden.settled().await;

            maintain(&garden).await;

            let spec = find(&garden)["spec"].clone();
            let description = last(&garden)["description"].as_str().unwrap_or_default().to_owned();
            let found = garden.find(&kinds::CREDENTIALS_BINDING, "a", "force-migrated-sb");
            match users.first() {
                Some(("force-migrated-sb", _)) => {
                    assert_eq!((&spec["secretBindingName"], spec.get("credentialsBindingName")), (&json!("sb"), None));
                    assert!(
                        description.ends_with("does not reference the same Secret as SecretBinding a/sb"),
                        "{description}"
                    );
                }
                Some(_) => {
                    assert_eq!(
                        (spec.get("secretBindingName"), &spec["credentialsBindingName"], found),
                        (None, &json!("a"), None)
                    );
                }
                None => {
                    let found = found.expect("it was created");
                    assert_eq!(
                        (spec.get("secretBindingName"), &spec["credentialsBindingName"]),
                        (None, &json!("force-migrated-sb"))
                    );
                    assert_eq!((&found["quotas"], &found["provider"]), (&quotas, &json!({ "type": "p" })));
                    assert!(
                        description.contains(".spec.secretBindingName was migrated to .spec.credentialsBindingName.")
                    );
                }
            }
        });
    }
}
