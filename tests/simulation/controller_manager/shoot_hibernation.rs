//! Hibernation of Shoots: at its times, once, and not against anybody's will.

use std::time::Duration;

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    shoots::{maintained_in_the_evening, relabel},
};
use crate::log_capture::logged;

pub(super) const HIBERNATED: &str = "Hibernated";
pub(super) const WOKEN_UP: &str = "WokenUp";
pub(super) const HOUR: u64 = 3600;

/// A Shoot `s` with these schedules, which nobody maintains meanwhile. Virtual time begins at midnight.
pub(super) fn sleeper(schedules: Value) -> Value {
    let spec = json!({ "hibernation": { "schedules": schedules }, "maintenance": maintained_in_the_evening() });
    object(&kinds::SHOOT, "a", "s", json!({ "spec": spec }))
}

pub(super) fn find(garden: &Garden) -> Value {
    garden.find(&kinds::SHOOT, "a", "s").expect("it exists")
}

pub(super) fn edit(garden: &Garden, change: impl FnOnce(&mut Value)) {
    garden.edit(&kinds::SHOOT, "a", "s", change);
}

/// Returns `spec.hibernation.enabled`; null if it is absent.
pub(super) fn enabled(garden: &Garden) -> Value {
    find(garden)["spec"]["hibernation"]["enabled"].clone()
}

/// Returns the trigger time as hours, minutes and seconds; nothing if there is none.
pub(super) fn triggered(garden: &Garden) -> String {
    let shoot = find(garden);
    let time = shoot["status"]["lastHibernationTriggerTime"].as_str().unwrap_or_default();
    time.split_once('T').map(|(_, time)| time.to_owned()).unwrap_or_default()
}

/// Returns what the program patched of Shoots since the last settling: `spec` or `status`.
pub(super) fn patches(garden: &Garden) -> Vec<String> {
    let patches = garden.requests().into_iter().map(|request| request.info);
    let patches = patches.filter(|info| info.verb == "patch" && info.resource == "shoots");
    patches.map(|info| if info.subresource.is_empty() { "spec".to_owned() } else { info.subresource }).collect()
}

pub(super) async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Returns the notes of the Events with this reason.
pub(super) fn notes(garden: &Garden, reason: &str) -> Vec<String> {
    garden.events(&kinds::SHOOT, "s", reason).into_iter().map(|(_, _, note)| note).collect()
}

fn fail(garden: &Garden, observed: i64, version: &str) {
    edit(garden, |shoot| {
        let generation = shoot["metadata"]["generation"].as_i64().unwrap_or_default();
        shoot["status"]["lastOperation"] = json!({ "state": "Failed" });
        shoot["status"]["observedGeneration"] = json!(generation + observed);
        shoot["status"]["gardener"] = json!({ "version": version });
        relabel(shoot, "unhealthy");
    });
}

fn lines<'l>(log: &'l str, text: &str) -> Vec<&'l str> {
    log.lines().filter(|line| line.contains(text)).collect()
}

/// spec 84 scenario 10
#[test]
fn hibernation_sets_enabled_at_its_time() {
    garden(|garden| async move {
        garden.settled().await;
        garden.put(sleeper(json!([{ "start": "* * * * *" }])));
        seconds(65).await;

        assert_eq!((enabled(&garden), triggered(&garden)), (json!(true), "00:01:00Z".to_owned()));
        assert_eq!(patches(&garden), ["spec", "status"]);
        let note = "Hibernating cluster due to schedule".to_owned();
        let event = ("Normal".to_owned(), "Reconcile".to_owned(), note);
        assert_eq!(garden.events(&kinds::SHOOT, "s", HIBERNATED), [event]);
        let events = garden.sim.objects("events.events.k8s.io");
        assert!(events.iter().all(|event| event["reportingController"] == "shoot-hibernation-controller"));
        let row = garden.row("shoot-hibernation/a/s").expect("it has an actor");
        assert_eq!(row.line, "hibernates at 2030-01-01T00:02:00Z, schedule 0");
    });
}

/// spec 84 scenario 11: `false` is written even where nothing stood.
#[test]
fn hibernation_unsets_enabled_at_its_time() {
    for before in [json!(true), Value::Null] {
        garden(|garden| async move {
            let mut shoot = sleeper(json!([{ "end": "* * * * *" }]));
            shoot["spec"]["hibernation"]["enabled"] = before.clone();
            garden.put(shoot);
            garden.settled().await;
            seconds(65).await;

            assert_eq!(enabled(&garden), json!(false), "{before}");
            assert_eq!(notes(&garden, WOKEN_UP), ["Waking up cluster due to schedule"], "{before}");
        });
    }
}

/// spec 84 B-8: an interval may be longer than the deadline of two hours.
#[test]
fn hibernation_every_five_hours_takes_place() {
    garden(|garden| async move {
        garden.put(sleeper(json!([{ "start": "@every 5h" }])));
        garden.settled().await;
        seconds(5 * HOUR - 60).await;
        assert_eq!(enabled(&garden), Value::Null);
        seconds(60).await;
        assert_eq!(enabled(&garden), json!(true));
        edit(&garden, |shoot| shoot["spec"]["hibernation"]["enabled"] = json!(false));
        seconds(5 * HOUR).await;

        assert_eq!(enabled(&garden), json!(true));
        assert_eq!(patches(&garden), ["spec", "status", "spec", "status"]);
    });
}

/// spec 84 §B.4: what is so already is not written and not announced, but counts as executed.
#[test]
fn hibernation_only_enters_the_time_if_enabled_is_as_wanted() {
    garden(|garden| async move {
        let mut shoot = sleeper(json!([{ "start": "* * * * *" }]));
        shoot["spec"]["hibernation"]["enabled"] = json!(true);
        garden.put(shoot);
        garden.settled().await;
        seconds(125).await;

        assert_eq!((patches(&garden), triggered(&garden)), (vec!["status".to_owned(); 2], "00:02:00Z".to_owned()));
        assert_eq!(notes(&garden, HIBERNATED), Vec::<String>::new());
    });
}

/// spec 84 B-13: a tenant cannot have the program write each second.
#[test]
fn hibernation_every_second_costs_a_write_per_minute() {
    for is_hibernated in [true, false] {
        garden(|garden| async move {
            let mut shoot = sleeper(json!([{ "start": "@every 1s" }]));
            shoot["spec"]["hibernation"]["enabled"] = json!(is_hibernated);
            garden.put(shoot);
            garden.settled().await;
            seconds(600).await;

            let written = patches(&garden).len();
            assert!((9..=11).contains(&written), "{written}");
            assert_eq!(enabled(&garden), json!(true));
        });
    }
}

/// spec 84 scenario 18; spec 84 B-11
#[test]
fn hibernation_ignores_entries_that_never_occur() {
    let ((), log) = logged(Level::WARN, || {
        garden(|garden| async move {
            garden.put(sleeper(json!([{ "start": "0 0 31 2 *", "end": "* * * * *" }])));
            garden.settled().await;
            seconds(180).await;

            assert_eq!((enabled(&garden), triggered(&garden)), (json!(false), "00:03:00Z".to_owned()));
        });
    });

    let warnings = lines(&log, "Hibernation schedules without a time within five years are ignored");
    assert!(warnings.len() == 1 && warnings[0].contains("first=spec.hibernation.schedules[0].start"), "{log}");
}

/// spec 84 scenarios 19 and 25
#[test]
fn hibernation_of_invalid_schedules_is_one_error_in_the_log() {
    let cases = [
        (json!([{ "start": "* * * * *" }, { "start": "* * * * *", "location": "Moon/Crater" }]), "[1].location: "),
        (json!([{ "location": "Europe/Berlin" }]), "no schedule has a time"),
    ];
    for (schedules, mistake) in cases {
        let ((), log) = logged(Level::INFO, || {
            garden(|garden| async move {
                garden.put(sleeper(schedules));
                garden.settled().await;
                seconds(HOUR).await;
                fail(&garden, 0, "");
                seconds(1).await;
                // Wakes it.
                edit(&garden, |shoot| {
                    shoot["status"] = json!({});
                    relabel(shoot, "healthy");
                });
                seconds(HOUR).await;

                assert_eq!((enabled(&garden), patches(&garden)), (Value::Null, vec![]));
                let row = garden.row("shoot-hibernation/a/s").expect("it has an actor");
                assert_eq!(row.line, "invalid schedules");
            });
        });

        let errors = lines(&log, "ERROR");
        let text = "Invalid hibernation schedules, stopping reconciliation";
        assert!(errors.len() == 1 && errors[0].contains(text) && errors[0].contains(mistake), "{log}");
    }
}

/// spec 84 scenario 21; spec 84 D-6
#[test]
fn hibernation_leaves_failed_shoots_alone() {
    let cases = [
        // Gardener's version, observed generation, the version of the failure, whether the Shoot is hibernated
        ("", 0, "v1", false),
        ("", -1, "v1", true),
        ("v2", 0, "v1", true),
        ("v2", 0, "v2", false),
    ];
    for (gardener, observed, version, is_hibernated) in cases {
        garden(|garden| async move {
            garden.config.borrow_mut().gardener_version = gardener.to_owned();
            garden.put(sleeper(json!([{ "start": "* * * * *" }])));
            fail(&garden, observed, version);
            garden.settled().await;
            seconds(130).await;

            let case = format!("{gardener:?} {observed} {version:?}");
            assert_eq!(enabled(&garden) == json!(true), is_hibernated, "{case}");
            assert_eq!(patches(&garden).is_empty(), !is_hibernated, "{case}");
        });
    }
}

/// spec 84 "better" 4: what a failed Shoot missed is executed as soon as the failure ends, within the deadline.
#[test]
fn hibernation_missed_by_a_failed_shoot_follows_its_failure() {
    for (minutes, expected) in [(90, json!(true)), (150, Value::Null)] {
        garden(|garden| async move {
            garden.put(sleeper(json!([{ "start": "30 0 * * *" }])));
            fail(&garden, 0, "");
            garden.settled().await;
            seconds(60 * (30 + minutes) - 20).await;
            assert_eq!(enabled(&garden), Value::Null);

            edit(&garden, |shoot| shoot["status"]["lastOperation"]["state"] = json!("Processing"));
            seconds(1).await;

            assert_eq!(enabled(&garden), expected, "{minutes}");
        });
    }
}

/// spec 84 scenario 22
#[test]
fn hibernation_ends_with_the_deletion_of_the_shoot_or_its_schedules() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            let mut shoot = sleeper(json!([{ "start": "* * * * *" }]));
            shoot["metadata"]["finalizers"] = json!(["gardener"]);
            garden.put(shoot);
            garden.settled().await;
            garden.delete(&kinds::SHOOT, "a", "s").await;
            seconds(130).await;

            assert_eq!(enabled(&garden), Value::Null);
            assert!(garden.row("shoot-hibernation/a/s").is_none());
        });
        garden(|garden| async move {
            garden.put(sleeper(json!([{ "start": "* * * * *" }])));
            garden.settled().await;
            seconds(60).await;
            let before = patches(&garden);
            garden.patch(&kinds::SHOOT, "a", "s", json!({ "spec": { "hibernation": { "schedules": [] } } })).await;
            seconds(130).await;

            assert_eq!((before.len(), patches(&garden)), (2, before));
            assert!(garden.row("shoot-hibernation/a/s").is_none());
        });
    });

    for text in ["Shoot is currently being deleted", "Hibernation schedules have been removed from shoot"] {
        assert_eq!(lines(&log, &format!("{text}, stopping reconciliation")).len(), 1, "{log}");
    }
}

/// spec 84 scenario 23; spec 84 §B.5 B-T2
#[test]
fn hibernation_does_not_undo_a_users_change_after_a_restart() {
    garden(|garden| async move {
        garden.put(sleeper(json!([{ "start": "* * * * *" }])));
        garden.settled().await;
        seconds(52).await;
        assert_eq!(enabled(&garden), json!(true));
        garden.patch(&kinds::SHOOT, "a", "s", json!({ "spec": { "hibernation": { "enabled": false } } })).await;

        garden.stop().await;
        garden.settled().await;
        seconds(30).await;
        assert_eq!((enabled(&garden), patches(&garden)), (json!(false), vec![]));
        seconds(30).await;

        assert_eq!((enabled(&garden), triggered(&garden)), (json!(true), "00:02:00Z".to_owned()));
    });
}

/// spec 84 §B.1, §B.5 B-T3
#[test]
fn hibernation_heeds_new_schedules_at_once() {
    garden(|garden| async move {
        garden.put(sleeper(json!([])));
        garden.settled().await;
        assert!(garden.row("shoot-hibernation/a/s").is_none());
        seconds(HOUR).await;
        let set = async |schedules: Value| {
            garden
                .patch(&kinds::SHOOT, "a", "s", json!({ "spec": { "hibernation": { "schedules": schedules } } }))
                .await;
            seconds(1).await;
        };

        set(json!([{ "start": "30 0 * * *" }])).await;
        assert_eq!(enabled(&garden), json!(true));
        set(json!([{ "start": "30 0 * * *" }, { "end": "45 0 * * *" }])).await;
        assert_eq!(enabled(&garden), json!(true), "00:45 is before the trigger time");
        set(json!([{ "end": "5 1 * * *" }])).await;
        seconds(300).await;
        assert_eq!(enabled(&garden), json!(false));
    });
}

/// spec 84 §B.3: the texts of the log
#[test]
fn hibernation_tells_the_log_what_it_does() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            garden.put(sleeper(json!([{ "start": "1 0 * * *", "end": "31 0 * * *" }])));
            garden.start().await;
            seconds(120).await;
        });
    });

    let done = lines(&log, "Successfully set hibernation.enabled");
    assert!(done.len() == 1 && done[0].contains("enabled=true"), "{log}");
    let timers = lines(&log, "Requeuing shoot hibernation");
    assert!(timers.len() == 2 && timers[0].contains("requeueAfter=5"), "{log}");
    assert!(timers[1].contains("requeueAfter=29m59.9"), "{log}");
}
