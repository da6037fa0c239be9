//! The lifecycle of gardenlets: Seeds and Shoots whose gardenlet is silent.

use std::time::Duration;

use gardener_resource_manager::api::{config::controller_manager, kinds};
use serde_json::{Value, json};
use sim::{EventFault, Fault, Seen, WatchEnd};

use super::{
    garden::{Garden, garden, object},
    guards::shoot,
};

pub(super) const LEASES: &str = "gardener-system-seed-lease";
const CONDITIONS: [&str; 5] = [
    "APIServerAvailable",
    "ControlPlaneHealthy",
    "ObservabilityComponentsHealthy",
    "EveryNodeReady",
    "SystemComponentsHealthy",
];

pub(super) fn condition(kind: &str) -> Value {
    json!({ "type": kind, "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": "2020-01-01T00:00:00Z", "lastUpdateTime": "2020-01-01T00:00:00Z" })
}

/// A Seed whose gardenlet reported that it is ready.
pub(super) fn put_seed(garden: &Garden, name: &str) {
    let conditions = [condition("Other"), condition("GardenletReady")];
    let status = json!({ "conditions": conditions, "foreign": 1 });
    garden.put(object(&kinds::SEED, "", name, json!({ "spec": {}, "status": status })));
}

/// The Lease of a gardenlet, renewed so many seconds ago.
pub(super) fn beat(garden: &Garden, namespace: &str, name: &str, age: i64) {
    let renewed = garden.time(-age);
    garden.put(object(&kinds::LEASE, namespace, name, json!({ "spec": { "renewTime": renewed } })));
}

pub(super) fn put_shoot(garden: &Garden, name: &str, seed: &str, workers: Value) {
    let mut shoot = shoot("a", name, json!({ "seedName": "other", "provider": { "workers": workers } }));
    shoot["status"] = json!({ "seedName": seed, "conditions": [condition("SystemComponentsHealthy")] });
    garden.put(shoot);
}

pub(super) fn entry(object: &Value, list: &str, kind: &str) -> Value {
    let entries = object["status"][list].as_array().cloned().unwrap_or_default();
    entries.into_iter().find(|entry| entry["type"] == kind).unwrap_or_default()
}

fn is_unknown(entry: &Value, message: &str) -> bool {
    entry["status"] == "Unknown" && entry["reason"] == "StatusUnknown" && entry["message"] == message
}

pub(super) fn is_silent(object: &Value) -> bool {
    is_unknown(&entry(object, "conditions", "GardenletReady"), "Gardenlet stopped posting status updates.")
}

pub(super) fn seed(garden: &Garden, name: &str) -> Value {
    garden.find(&kinds::SEED, "", name).unwrap_or_default()
}

/// Returns the marks of a Shoot.
fn marks(garden: &Garden, name: &str) -> Vec<String> {
    let shoot = garden.find(&kinds::SHOOT, "a", name).unwrap_or_default();
    let entries = |list: &str| shoot["status"][list].as_array().cloned().unwrap_or_default();
    let marked = |entry: &Value| is_unknown(entry, "Gardenlet stopped sending heartbeats.");
    let all = entries("conditions").into_iter().chain(entries("constraints"));
    all.filter(marked).map(|entry| entry["type"].as_str().unwrap_or_default().to_owned()).collect()
}

pub(super) async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn with_shoot_monitor_period(garden: &Garden, period: &str) {
    let file = format!("controllers: {{seed: {{shootMonitorPeriod: {period}}}}}");
    garden.config.replace(controller_manager::load(file.as_bytes(), None).expect("a configuration").config);
}

/// spec 81 scenario 75
#[test]
fn seed_whose_gardenlet_has_not_reported_is_left_alone() {
    garden(|garden| async move {
        garden.put(object(&kinds::SEED, "", "s1", json!({ "spec": {} })));
        garden.settled().await;
        seconds(600).await;

        assert_eq!((garden.asked(), seed(&garden, "s1").get("status")), (Vec::<String>::new(), None));
    });
}

/// spec 81 scenarios 76 and 79
#[test]
fn seed_whose_gardenlet_is_alive_costs_nothing() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        beat(&garden, LEASES, "s1", 0);
        garden.settled().await;
        for _ in 0..30 {
            seconds(10).await;
            beat(&garden, LEASES, "s1", 0);
        }

        assert_eq!(garden.asked(), Vec::<String>::new());
        assert!(!is_silent(&seed(&garden, "s1")));
    });
}

/// spec 81 scenario 77
#[test]
fn seed_whose_gardenlet_is_silent_becomes_unknown() {
    for lease in [None, Some(json!({})), Some(json!({ "renewTime": "old" }))] {
        garden(|garden| async move {
            put_seed(&garden, "s1");
            if let Some(mut spec) = lease {
                if spec["renewTime"] == "old" {
                    spec["renewTime"] = json!(garden.time(-80));
                }
                garden.put(object(&kinds::LEASE, LEASES, "s1", json!({ "spec": spec })));
            }
            garden.settled().await;

            let seed = seed(&garden, "s1");
            assert!(is_silent(&seed), "{seed}");
            assert_eq!(
                (entry(&seed, "conditions", "Other"), &seed["status"]["foreign"]),
                (condition("Other"), &json!(1))
            );
            assert_ne!(entry(&seed, "conditions", "GardenletReady")["lastTransitionTime"], "2020-01-01T00:00:00Z");
        });
    }
}

/// spec 81 scenario 77: within a period after the Lease became too old.
#[test]
fn seed_becomes_unknown_soon_after_its_gardenlet_stopped() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        beat(&garden, LEASES, "s1", 0);
        garden.settled().await;
        seconds(25).await;
        assert!(!is_silent(&seed(&garden, "s1")));

        seconds(16).await;

        assert!(is_silent(&seed(&garden, "s1")));
    });
}

/// spec 81 scenarios 78, 79 and 80
#[test]
fn shoots_of_a_silent_seed_are_marked_later_and_once() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        put_shoot(&garden, "s", "s1", json!([{ "name": "w" }]));
        put_shoot(&garden, "workerless", "s1", Value::Null);
        put_shoot(&garden, "other", "s2", json!([{ "name": "w" }]));
        garden.edit(&kinds::SHOOT, "a", "other", |shoot| shoot["spec"]["seedName"] = json!("s1"));
        garden.settled().await;
        assert!(is_silent(&seed(&garden, "s1")));
        seconds(185).await;
        assert_eq!(marks(&garden, "s"), Vec::<String>::new());

        seconds(25).await;

        let of = |without: &str| -> Vec<String> {
            let conditions = CONDITIONS.iter().filter(|kind| **kind != without && **kind != "SystemComponentsHealthy");
            let all = ["SystemComponentsHealthy"].iter().chain(conditions);
            let all = all.chain(&["HibernationPossible", "MaintenancePreconditionsSatisfied"]);
            all.map(|kind| (*kind).to_owned()).collect()
        };
        assert_eq!((marks(&garden, "s"), marks(&garden, "workerless")), (of(""), of("EveryNodeReady")));
        assert_eq!(marks(&garden, "other"), Vec::<String>::new());
        garden.sim.clear_requests();
        seconds(600).await;
        assert_eq!(garden.asked(), Vec::<String>::new());
        beat(&garden, LEASES, "s1", 0);
        seconds(30).await;
        assert!(!garden.asked().iter().any(|asked| asked.starts_with("patch")), "{:?}", garden.asked());
    });
}

/// spec 81 scenario 81
#[test]
fn managed_seed_is_asked_for_a_new_certificate_when_it_expired() {
    for (silent, expires, expected) in [(true, -3600, true), (true, 3600, false), (false, -3600, false)] {
        garden(|garden| async move {
            put_seed(&garden, "s1");
            let time = garden.time(expires);
            garden.edit(&kinds::SEED, "", "s1", |seed| {
                seed["status"]["clientCertificateExpirationTimestamp"] = json!(time);
            });
            beat(&garden, LEASES, "s1", if silent { 80 } else { -60 });
            garden.put(object(&kinds::MANAGED_SEED, "garden", "s1", json!({ "spec": {} })));
            garden.settled().await;
            let operation = || {
                let managed_seed = garden.find(&kinds::MANAGED_SEED, "garden", "s1").unwrap_or_default();
                managed_seed["metadata"]["annotations"]["gardener.cloud/operation"].clone()
            };

            assert_eq!(operation() == "reconcile", expected, "{silent} {expires}");
            if !expected {
                return;
            }
            seconds(180).await;
            assert_eq!(garden.asked(), Vec::<String>::new(), "it is there already");
            garden.edit(&kinds::MANAGED_SEED, "garden", "s1", |managed_seed| {
                managed_seed["metadata"]["annotations"] = json!({})
            });
            garden.settle().await;
            assert_eq!(operation(), "reconcile", "it is wanted again");
        });
    }
}

/// spec 81 K.6
#[test]
fn seed_without_a_managed_seed_has_nobody_to_ask() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        let time = garden.time(-60);
        garden
            .edit(&kinds::SEED, "", "s1", |seed| seed["status"]["clientCertificateExpirationTimestamp"] = json!(time));
        garden.settled().await;
        seconds(180).await;

        assert_eq!(garden.asked(), Vec::<String>::new());
    });
}

/// decision 32; spec 80 scenario 36, spec 81 scenario 82
#[test]
fn self_hosted_shoot_is_judged_by_its_own_lease() {
    garden(|garden| async move {
        let own = [condition("GardenletReady"), condition("SystemComponentsHealthy")];
        for (name, labels, workers) in [
            ("labelled", json!({ "shoot.gardener.cloud/self-hosted": "true" }), json!([{}])),
            ("by-workers", json!({}), json!([{ "controlPlane": {} }])),
            ("ordinary", json!({}), json!([{}])),
            ("alive", json!({ "shoot.gardener.cloud/self-hosted": "true" }), json!([{}])),
        ] {
            let mut shoot = shoot("a", name, json!({ "provider": { "workers": workers } }));
            shoot["metadata"]["labels"] = labels;
            shoot["status"] = json!({ "conditions": own });
            garden.put(shoot);
            beat(&garden, "a", &format!("self-hosted-shoot-{name}"), if name == "alive" { -900 } else { 80 });
        }
        garden.settled().await;
        let find = |name: &str| garden.find(&kinds::SHOOT, "a", name).unwrap_or_default();
        assert_eq!(entry(&find("alive"), "conditions", "GardenletReady"), own[0], "it stays at a start");
        for (name, expected) in [("labelled", true), ("by-workers", true), ("ordinary", false), ("alive", false)] {
            assert_eq!(is_silent(&find(name)), expected, "{name}");
            assert_eq!(marks(&garden, name), Vec::<String>::new());
        }

        seconds(210).await;

        assert_eq!(marks(&garden, "labelled").len(), 7);
        assert_eq!((marks(&garden, "by-workers").len(), marks(&garden, "ordinary").len()), (7, 0));
        assert!(is_silent(&find("labelled")), "the condition of step 5 stays");
    });
}

/// spec 81 K.3 step 7: restarts do not put the marks off, because the transition time stays.
#[test]
fn self_hosted_shoot_is_marked_in_time_in_spite_of_restarts() {
    garden(|garden| async move {
        let mut shoot = shoot("a", "s", json!({ "provider": { "workers": [{ "controlPlane": {} }] } }));
        shoot["status"] = json!({ "conditions": [condition("GardenletReady")] });
        garden.put(shoot);
        for _ in 0..5 {
            garden.start().await;
            seconds(50).await;
            garden.stop().await;
        }

        assert_eq!(marks(&garden, "s").len(), 7);
    });
}

/// spec 81 K.2: a Shoot that becomes self-hosted is found. A Shoot that stops being self-hosted is left.
#[test]
fn shoot_that_becomes_self_hosted_is_judged() {
    garden(|garden| async move {
        let mut shoot = shoot("a", "s", json!({ "provider": { "workers": [{}] } }));
        shoot["status"] = json!({ "conditions": [condition("SystemComponentsHealthy")] });
        garden.put(shoot);
        garden.settled().await;
        let set = |value: Value| json!({ "metadata": { "labels": { "shoot.gardener.cloud/self-hosted": value } } });
        let find = || garden.find(&kinds::SHOOT, "a", "s").unwrap_or_default();

        garden.patch(&kinds::SHOOT, "a", "s", set(json!("true"))).await;
        garden.soon("it is judged", || is_silent(&find())).await;
        garden.patch(&kinds::SHOOT, "a", "s", set(Value::Null)).await;
        seconds(60).await;
        garden.sim.clear_requests();
        seconds(600).await;

        assert_eq!(garden.asked(), Vec::<String>::new());
    });
}

/// spec 81 scenario 83
#[test]
fn shoots_are_marked_at_once_without_a_shoot_monitor_period() {
    garden(|garden| async move {
        with_shoot_monitor_period(&garden, "0s");
        put_seed(&garden, "s1");
        put_shoot(&garden, "s", "s1", json!([{}]));
        garden.start().await;
        seconds(1).await;

        assert!(is_silent(&seed(&garden, "s1")) && marks(&garden, "s").len() == 7);
    });
}

/// spec 81 scenario 84, trap K-T2
#[test]
fn gardenlet_that_comes_back_while_its_seed_is_written_wins() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        beat(&garden, LEASES, "s1", 80);
        // The write arrives late: the gardenlet is back before it.
        garden.sim.set_faults(|request| match request.resource == "seeds" && request.subresource == "status" {
            true => Fault::Delay(Duration::from_secs(2)),
            false => Fault::None,
        });
        garden.start().await;
        seconds(1).await;
        beat(&garden, LEASES, "s1", 0);
        garden.edit(&kinds::SEED, "", "s1", |seed| seed["status"]["foreign"] = json!(2));
        garden.sim.clear_faults();
        seconds(10).await;

        assert_eq!(entry(&seed(&garden, "s1"), "conditions", "GardenletReady"), condition("GardenletReady"));
    });
}

/// spec 81 scenario 85
#[test]
fn seeds_are_not_marked_because_the_watch_of_leases_hangs() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        beat(&garden, LEASES, "s1", 0);
        garden.sim.set_faults(|request| match request.resource == "leases" && request.verb == "watch" {
            true => Fault::BreakWatch { after_events: 0, end: WatchEnd::Hang },
            false => Fault::None,
        });
        garden.settled().await;
        for _ in 0..60 {
            seconds(10).await;
            beat(&garden, LEASES, "s1", 0);
        }

        assert_eq!(entry(&seed(&garden, "s1"), "conditions", "GardenletReady"), condition("GardenletReady"));
    });
}

/// spec 81 K.5 F1: the watches of Leases and Seeds hide that a gardenlet came back after its Seed became unknown.
#[test]
fn gardenlet_that_came_back_is_believed_before_its_shoots_are_marked() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        let expired = garden.time(-3600);
        garden.edit(&kinds::SEED, "", "s1", |seed| {
            seed["status"]["clientCertificateExpirationTimestamp"] = json!(expired);
        });
        beat(&garden, LEASES, "s1", 80);
        put_shoot(&garden, "s", "s1", json!([{}]));
        garden.put(object(&kinds::MANAGED_SEED, "garden", "s1", json!({ "spec": {} })));
        garden.settled().await;
        assert!(is_silent(&seed(&garden, "s1")));
        garden.sim.set_event_faults(|event| {
            let is_hidden = ["leases", "seeds"].contains(&event.resource.as_str()) && event.event == "MODIFIED";
            if is_hidden { EventFault::Drop } else { EventFault::Deliver }
        });

        beat(&garden, LEASES, "s1", -3600);
        garden.edit(&kinds::SEED, "", "s1", |seed| seed["status"]["conditions"] = json!([condition("GardenletReady")]));
        garden.edit(&kinds::MANAGED_SEED, "garden", "s1", |managed_seed| {
            managed_seed["metadata"]["annotations"] = json!({});
        });
        seconds(240).await;

        assert_eq!(marks(&garden, "s"), Vec::<String>::new());
        assert_eq!(entry(&seed(&garden, "s1"), "conditions", "GardenletReady"), condition("GardenletReady"));
        let managed_seed = garden.find(&kinds::MANAGED_SEED, "garden", "s1").unwrap_or_default();
        assert_eq!(managed_seed["metadata"]["annotations"].get("gardener.cloud/operation"), None);
        let written: Vec<_> = garden.asked().into_iter().filter(|asked| asked.starts_with("patch")).collect();
        assert_eq!(written, Vec::<String>::new());
    });
}

/// spec 81 K.5 F1: the Lease was young when the API server was asked, and is old when the answer comes.
#[test]
fn seed_is_not_marked_because_the_answer_about_its_lease_is_late() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        beat(&garden, LEASES, "s1", 35);
        garden.sim.set_event_faults(|event| match event.resource == "leases" && event.event == "MODIFIED" {
            true => EventFault::Drop,
            false => EventFault::Deliver,
        });
        garden.sim.set_faults(|request| match request.resource == "leases" && request.verb == "get" {
            true => Fault::DelayAnswer(Duration::from_secs(8)),
            false => Fault::None,
        });
        garden.start().await;
        seconds(2).await;
        beat(&garden, LEASES, "s1", 28);
        seconds(20).await;

        let asked = garden.asked();
        assert!(asked.contains(&"get leases s1".to_owned()), "{asked:?}");
        assert_eq!(entry(&seed(&garden, "s1"), "conditions", "GardenletReady"), condition("GardenletReady"));
    });
}

/// spec 81 scenario 86, trap K-T3
#[test]
fn all_shoots_of_a_large_silent_seed_are_marked_once() {
    const SHOOTS: usize = 3_000;
    garden(|garden| async move {
        put_seed(&garden, "s1");
        put_seed(&garden, "s2");
        for number in 0..SHOOTS {
            put_shoot(&garden, &format!("s{number}"), "s1", json!([{}]));
        }
        let marked = || (0..SHOOTS).filter(|number| marks(&garden, &format!("s{number}")).len() == 7).count();
        // The marks take more than half a minute. In this time, the other gardenlet becomes silent.
        garden.sim.set_faults(|request| match request.resource == "shoots" && request.subresource == "status" {
            true => Fault::Delay(Duration::from_millis(200)),
            false => Fault::None,
        });
        beat(&garden, LEASES, "s2", -172);
        garden.settled().await;
        seconds(199).await;
        assert!(!is_silent(&seed(&garden, "s2")));

        seconds(15).await;

        assert!(is_silent(&seed(&garden, "s2")), "no period after its Lease became too old");
        assert!((1..SHOOTS).contains(&marked()), "{} are marked", marked());
        seconds(60).await;
        assert_eq!(marked(), SHOOTS);
        garden.sim.clear_requests();
        seconds(300).await;
        assert_eq!(garden.asked(), Vec::<String>::new());
    });
}

/// spec 81 scenario 87
#[test]
fn errors_do_not_stop_the_looks_at_a_gardenlet() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        garden.sim.set_faults(|request| match request.resource == "seeds" && request.subresource == "status" {
            true => Fault::FailBefore(Seen::Disconnect),
            false => Fault::None,
        });
        garden.start().await;
        seconds(60).await;
        assert!(!is_silent(&seed(&garden, "s1")));

        garden.sim.clear_faults();
        seconds(11).await;

        assert!(is_silent(&seed(&garden, "s1")));
    });
}
