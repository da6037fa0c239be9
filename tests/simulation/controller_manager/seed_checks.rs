//! The conditions of Seeds that follow from BackupBuckets and ControllerInstallations.

use std::time::Duration;

use cluster::Resource;
use gardener_resource_manager::api::{
    config::controller_manager::{ConditionThreshold, SeedCheck},
    kinds,
};
use serde_json::{Value, json};
use sim::Fault;
use tracing::Level;

use super::garden::{Garden, garden, object};
use crate::log_capture::logged;

const BUCKETS: &str = "BackupBucketsReady";
const EXTENSIONS: &str = "ExtensionsReady";
const SEEDS: &str = "seeds.core.gardener.cloud";

const AVAILABLE: [&str; 3] = ["True", "BackupBucketsAvailable", "Backup Buckets are available."];
const GONE: [&str; 2] = ["BackupBucketsGone", "Backup Buckets are gone."];
const READY: [&str; 3] =
    ["True", "AllExtensionsReady", "All extensions installed into the seed cluster are ready and healthy."];

/// A threshold of a minute for both conditions.
fn delay(garden: &Garden) {
    let mut config = garden.config.borrow_mut();
    let threshold =
        |kind: &str| ConditionThreshold { condition_type: kind.to_owned(), duration: Duration::from_secs(60).into() };
    let set = |check: &mut SeedCheck, kind| check.condition_thresholds = vec![threshold(kind)];
    set(&mut config.controllers.seed_backup_buckets_check, BUCKETS);
    set(&mut config.controllers.seed_extensions_check, EXTENSIONS);
}

pub(super) fn put_seed(garden: &Garden, name: &str) {
    garden.put(object(&kinds::SEED, "", name, json!({})));
}

fn condition(garden: &Garden, seed: &str, kind: &str) -> Option<Value> {
    let seed = garden.find(&kinds::SEED, "", seed)?;
    seed["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind).cloned()
}

/// Returns status, reason and message.
fn shown(garden: &Garden, seed: &str, kind: &str) -> Option<[String; 3]> {
    let condition = condition(garden, seed, kind)?;
    Some(["status", "reason", "message"].map(|field| condition[field].as_str().unwrap_or_default().to_owned()))
}

async fn becomes(garden: &Garden, kind: &str, expected: [&str; 3]) -> Value {
    let what = format!("{kind} is {expected:?}");
    garden.soon(&what, || shown(garden, "s1", kind).is_some_and(|shown| shown == expected)).await;
    condition(garden, "s1", kind).expect("the condition exists")
}

pub(super) fn bucket(name: &str, seed: &str) -> Value {
    object(&kinds::BACKUP_BUCKET, "", name, json!({"spec": {"seedName": seed}}))
}

pub(super) fn set_error(garden: &Garden, bucket: &str, error: Value) {
    let set = |bucket: &mut Value| bucket["status"]["lastError"] = error;
    assert!(garden.sim.edit("backupbuckets.core.gardener.cloud", "", bucket, set));
}

fn broken(bucket: &str, error: &str) -> String {
    format!("The following BackupBuckets have issues:\n* Name: {bucket}, Error: {error}")
}

fn patches(garden: &Garden) -> Vec<String> {
    garden.asked().into_iter().filter(|asked| asked.starts_with("patch seeds")).collect()
}

async fn minutes(count: u64) {
    tokio::time::sleep(Duration::from_secs(60 * count)).await;
}

/// spec 83 scenario 13
#[test]
fn bucket_condition_is_for_seeds_with_buckets() {
    garden(|garden| async move {
        for seed in ["s1", "s2"] {
            put_seed(&garden, seed);
        }
        garden.start().await;
        garden.put(bucket("1", "s1"));
        garden.put(bucket("2", "s1"));
        garden.put(object(&kinds::BACKUP_BUCKET, "", "3", json!({"spec": {"shootRef": {"name": "sh"}}})));

        becomes(&garden, BUCKETS, AVAILABLE).await;
        minutes(10).await;
        assert_eq!(condition(&garden, "s2", BUCKETS), None);
        assert_eq!(condition(&garden, "s1", EXTENSIONS), None);
    });
}

/// spec 83 scenarios 14 and 17
#[test]
fn broken_bucket_shows_after_the_threshold_and_its_repair_at_once() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            delay(&garden);
            put_seed(&garden, "s1");
            garden.put(bucket("1", "s1"));
            garden.put(bucket("2", "s1"));
            garden.start().await;
            becomes(&garden, BUCKETS, AVAILABLE).await;
            minutes(1).await;

            set_error(&garden, "1", json!({"description": "foo", "taskID": "t"}));

            let foo = broken("1", "foo");
            let first = becomes(&garden, BUCKETS, ["Progressing", "BackupBucketsError", &foo]).await;
            tokio::time::sleep(Duration::from_secs(50)).await;
            assert_eq!(condition(&garden, "s1", BUCKETS).as_ref(), Some(&first));
            tokio::time::sleep(Duration::from_secs(11)).await;
            let second = becomes(&garden, BUCKETS, ["False", "BackupBucketsError", &foo]).await;
            assert_eq!(first["lastUpdateTime"], second["lastUpdateTime"]);
            assert_ne!(first["lastTransitionTime"], second["lastTransitionTime"]);
            garden.sim.clear_requests();
            set_error(&garden, "1", json!({"description": "foo", "taskID": "u"}));
            garden.settle().await;
            assert_eq!(patches(&garden), Vec::<String>::new());

            set_error(&garden, "1", Value::Null);

            becomes(&garden, BUCKETS, AVAILABLE).await;
        });
    });
    for status in ["True", "Progressing", "False"] {
        let record = format!("Successfully patched condition condition_type=\"{BUCKETS}\" condition_status={status}");
        assert!(log.contains(&record), "{record}: {log}");
    }
}

/// spec 83 rule T: reason and message follow the present problem.
#[test]
fn broken_bucket_shows_its_present_error_during_the_threshold() {
    garden(|garden| async move {
        delay(&garden);
        put_seed(&garden, "s1");
        garden.put(bucket("1", "s1"));
        garden.start().await;
        becomes(&garden, BUCKETS, AVAILABLE).await;
        set_error(&garden, "1", json!({"description": "foo"}));
        let first = becomes(&garden, BUCKETS, ["Progressing", "BackupBucketsError", &broken("1", "foo")]).await;
        tokio::time::sleep(Duration::from_secs(30)).await;

        set_error(&garden, "1", json!({"description": "bar"}));

        let second = becomes(&garden, BUCKETS, ["Progressing", "BackupBucketsError", &broken("1", "bar")]).await;
        assert_eq!(first["lastTransitionTime"], second["lastTransitionTime"]);
    });
}

/// spec 83 scenario 15
#[test]
fn broken_bucket_shows_at_once_without_a_threshold_or_a_condition() {
    for has_threshold in [false, true] {
        garden(|garden| async move {
            if has_threshold {
                delay(&garden);
            }
            put_seed(&garden, "s1");
            garden.put(bucket("1", "s1"));
            set_error(&garden, "1", json!({"description": "foo"}));
            garden.start().await;
            becomes(&garden, BUCKETS, ["False", "BackupBucketsError", &broken("1", "foo")]).await;
            if !has_threshold {
                set_error(&garden, "1", Value::Null);
                becomes(&garden, BUCKETS, AVAILABLE).await;
                set_error(&garden, "1", json!({}));
                becomes(&garden, BUCKETS, ["False", "BackupBucketsError", &broken("1", "")]).await;
            }
        });
    }
}

/// spec 83 scenario 16, spec 80 §16 S-9
#[test]
fn condition_of_broken_buckets_does_not_change_at_rest() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        for name in ["b", "a"] {
            garden.put(bucket(name, "s1"));
            set_error(&garden, name, json!({"description": name}));
        }
        garden.settled().await;
        let message = format!("{}\n* Name: b, Error: b", broken("a", "a"));
        let before = becomes(&garden, BUCKETS, ["False", "BackupBucketsError", &message]).await;

        tokio::time::sleep(Duration::from_secs(300)).await;

        assert_eq!(condition(&garden, "s1", BUCKETS), Some(before));
        assert_eq!(garden.asked(), Vec::<String>::new());
    });
}

/// spec 83 scenario 18, D-5
#[test]
fn seed_that_lost_its_buckets_becomes_unknown() {
    garden(|garden| async move {
        delay(&garden);
        put_seed(&garden, "s1");
        for name in ["1", "2"] {
            garden.put(bucket(name, "s1"));
        }
        garden.start().await;
        becomes(&garden, BUCKETS, AVAILABLE).await;

        garden.delete(&kinds::BACKUP_BUCKET, "", "1").await;
        garden
            .sim
            .edit("backupbuckets.core.gardener.cloud", "", "2", |bucket| bucket["spec"]["seedName"] = json!("s2"));

        becomes(&garden, BUCKETS, ["Progressing", GONE[0], GONE[1]]).await;
        minutes(1).await;
        becomes(&garden, BUCKETS, ["Unknown", GONE[0], GONE[1]]).await;
    });
}

/// spec 83 scenario 19, "better" 4
#[test]
fn condition_without_buckets_is_looked_at_after_a_restart() {
    garden(|garden| async move {
        let stored = json!({"type": BUCKETS, "status": "True", "reason": "R", "message": "m"});
        garden.put(object(&kinds::SEED, "", "s1", json!({"status": {"conditions": [stored]}})));
        garden.start().await;
        becomes(&garden, BUCKETS, ["Unknown", GONE[0], GONE[1]]).await;
    });
}

/// spec 83 scenario 20, §6
#[test]
fn change_of_another_condition_at_the_same_moment_survives() {
    garden(|garden| async move {
        let foreign = |status: &str| json!({"type": "ForeignReady", "status": status, "unknown": [1]});
        garden.put(object(&kinds::SEED, "", "s1", json!({"status": {"conditions": [foreign("False")], "other": 1}})));
        garden.start().await;
        garden.settle().await;
        let (sim, mut is_done) = (garden.sim.clone(), false);
        garden.sim.set_faults(move |info| {
            let is_meant = info.user == "gcm" && info.verb == "patch" && info.resource == "seeds";
            if is_meant && !std::mem::replace(&mut is_done, true) {
                let change = |seed: &mut Value| seed["status"]["conditions"][0]["status"] = json!("True");
                assert!(sim.edit(SEEDS, "", "s1", change));
            }
            Fault::None
        });

        garden.put(bucket("1", "s1"));

        becomes(&garden, BUCKETS, AVAILABLE).await;
        let seed = garden.find(&kinds::SEED, "", "s1").unwrap();
        assert_eq!(seed["status"]["conditions"][0], foreign("True"));
        assert_eq!(seed["status"]["other"], 1);
    });
}

/// spec 83 B.3 steps 4 and 5: what somebody edits or removes is repaired.
#[test]
fn condition_that_somebody_edits_is_repaired() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        garden.put(bucket("1", "s1"));
        garden.settled().await;
        becomes(&garden, BUCKETS, AVAILABLE).await;
        for change in [json!([]), Value::Null, json!([{"type": BUCKETS, "status": "False"}])] {
            assert!(garden.sim.edit(SEEDS, "", "s1", |seed| seed["status"]["conditions"] = change));
            becomes(&garden, BUCKETS, AVAILABLE).await;
        }
    });
}

/// spec 83 A-T8, "better" 10: two writers do not keep each other busy.
#[test]
fn condition_that_another_client_writes_too_is_repaired_ever_more_rarely() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        garden.put(bucket("1", "s1"));
        garden.settled().await;
        let is_right = || shown(&garden, "s1", BUCKETS).is_some_and(|shown| shown == AVAILABLE);
        assert!(is_right());

        let opponent = || {
            if is_right() {
                let change = |seed: &mut Value| seed["status"]["conditions"] = json!([]);
                assert!(garden.sim.edit(SEEDS, "", "s1", change));
            }
        };
        garden.minute_beside(opponent).await;

        let patches = patches(&garden).len();
        assert!((3..=10).contains(&patches), "{patches}");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(is_right(), "it is repaired when the other client gives up");
    });
}

/// spec 83 B.1: a Seed that never had a bucket gets no condition, also if an earlier Seed of its name had some.
#[test]
fn seed_that_is_created_anew_without_buckets_gets_no_condition() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        garden.put(bucket("1", "s1"));
        garden.settled().await;
        becomes(&garden, BUCKETS, AVAILABLE).await;
        garden.delete(&kinds::BACKUP_BUCKET, "", "1").await;
        garden.sim.remove(SEEDS, "", "s1");
        put_seed(&garden, "s1");
        minutes(5).await;

        assert_eq!(condition(&garden, "s1", BUCKETS), None);
        garden.put(bucket("2", "s1"));
        becomes(&garden, BUCKETS, AVAILABLE).await;
    });
}

/// spec 83 B.2: a Seed that comes after its buckets is checked.
#[test]
fn seed_that_comes_after_its_buckets_gets_the_condition() {
    garden(|garden| async move {
        garden.put(bucket("1", "s1"));
        garden.settled().await;
        put_seed(&garden, "s1");
        becomes(&garden, BUCKETS, AVAILABLE).await;
    });
}

/// spec 80 §9: a kind that is not served is no absence of objects.
#[test]
fn bucket_condition_stays_while_buckets_are_not_served() {
    garden(|garden| async move {
        garden.withdraw(&kinds::BACKUP_BUCKET);
        let stored = json!({"type": BUCKETS, "status": "True", "reason": "R", "message": "m"});
        garden.put(object(&kinds::SEED, "", "s1", json!({"status": {"conditions": [stored]}})));
        garden.put(installation("a", "s1", &GOOD));
        garden.start().await;
        minutes(5).await;

        assert_eq!(condition(&garden, "s1", BUCKETS), Some(stored));
        becomes(&garden, EXTENSIONS, READY).await;
        let waiting = ["controllerinstallation-seed", "controllerinstallation-shoot", "seed-backupbuckets-check"];
        assert_eq!(garden.metrics.waiting_controllers(), waiting);
        garden.serve(&kinds::BACKUP_BUCKET);
        minutes(2).await;
        becomes(&garden, BUCKETS, ["Unknown", GONE[0], GONE[1]]).await;
    });
}

pub(super) const GOOD: [(&str, &str); 4] =
    [("Valid", "True"), ("Installed", "True"), ("Healthy", "True"), ("Progressing", "False")];

fn conditions(states: &[(&str, &str)]) -> Value {
    let condition =
        |(kind, status): &(&str, &str)| json!({"type": kind, "status": status, "message": format!("{kind}!")});
    states.iter().map(condition).collect()
}

pub(super) fn installation(name: &str, seed: &str, states: &[(&str, &str)]) -> Value {
    let fields = json!({"spec": {"seedRef": {"name": seed}}, "status": {"conditions": conditions(states)}});
    object(&kinds::CONTROLLER_INSTALLATION, "", name, fields)
}

pub(super) fn report(garden: &Garden, name: &str, states: &[(&str, &str)]) {
    let resource: &Resource = &kinds::CONTROLLER_INSTALLATION;
    let resource = format!("{}.{}", resource.plural, resource.group);
    let set = |installation: &mut Value| installation["status"]["conditions"] = conditions(states);
    assert!(garden.sim.edit(&resource, "", name, set));
}

/// spec 83 scenario 21
#[test]
fn extension_that_is_not_installed_yet_is_named() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        garden.start().await;
        garden.put(installation("foo-1", "s1", &[]));

        let message = "Some extensions are not installed: map[foo-1:extension was not yet installed]";
        becomes(&garden, EXTENSIONS, ["False", "NotAllExtensionsInstalled", message]).await;
    });
}

/// spec 83 scenario 22
#[test]
fn extension_that_turns_bad_shows_after_the_threshold() {
    let table = [
        ("Valid", "False", "NotAllExtensionsValid", "not valid"),
        ("Installed", "False", "NotAllExtensionsInstalled", "not installed"),
        ("Healthy", "False", "NotAllExtensionsHealthy", "not healthy"),
        ("Progressing", "True", "SomeExtensionsProgressing", "progressing"),
    ];
    garden(|garden| async move {
        delay(&garden);
        put_seed(&garden, "s1");
        garden.put(installation("a", "s1", &GOOD));
        garden.start().await;
        for (kind, status, reason, words) in table {
            becomes(&garden, EXTENSIONS, READY).await;

            report(&garden, "a", &GOOD.map(|(other, good)| (other, if other == kind { status } else { good })));

            let message = format!("Some extensions are {words}: map[a:{kind}!]");
            becomes(&garden, EXTENSIONS, ["Progressing", reason, &message]).await;
            minutes(1).await;
            becomes(&garden, EXTENSIONS, ["False", reason, &message]).await;
            report(&garden, "a", &GOOD);
        }
    });
}

/// spec 83 scenarios 23 and 24
#[test]
fn extension_problems_are_told_in_their_order() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        garden.put(installation("a", "s1", &[("Valid", "True"), ("Installed", "True"), ("Healthy", "True")]));
        garden.put(installation("b", "s1", &[("Valid", "False")]));
        garden.start().await;
        let message = "Some extensions are not valid: map[b:Valid!]";
        becomes(&garden, EXTENSIONS, ["False", "NotAllExtensionsValid", message]).await;

        report(&garden, "b", &GOOD);

        let message =
            "Some extensions are not healthy: map[a:not all required conditions found in ControllerInstallation]";
        becomes(&garden, EXTENSIONS, ["False", "NotAllExtensionsHealthy", message]).await;
    });
}

/// spec 83 scenario 25
#[test]
fn extensions_of_shoots_are_ignored_and_a_seed_without_extensions_is_ready() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        let of_shoot = json!({"spec": {"shootRef": {"name": "s1", "namespace": "garden"}}});
        garden.put(object(&kinds::CONTROLLER_INSTALLATION, "", "a", of_shoot));
        garden.start().await;
        minutes(1).await;
        assert_eq!(condition(&garden, "s1", EXTENSIONS), None);

        garden.put(installation("b", "s1", &[]));
        let message = "Some extensions are not installed: map[b:extension was not yet installed]";
        becomes(&garden, EXTENSIONS, ["False", "NotAllExtensionsInstalled", message]).await;
        garden.delete(&kinds::CONTROLLER_INSTALLATION, "", "b").await;

        becomes(&garden, EXTENSIONS, READY).await;
    });
}

/// spec 83 scenario 26
#[test]
fn extension_condition_of_another_type_causes_no_reconcile() {
    garden(|garden| async move {
        garden.config.borrow_mut().controllers.seed_extensions_check.sync_period = Duration::from_secs(3600).into();
        put_seed(&garden, "s1");
        garden.put(installation("a", "s1", &GOOD));
        garden.settled().await;
        becomes(&garden, EXTENSIONS, READY).await;
        let reconciles = || {
            let text = garden.metrics.render();
            let is_meant = |line: &&str| {
                line.starts_with("controller_runtime_reconcile_total{") && line.contains("\"seed-extensions-check\"")
            };
            text.lines().filter(is_meant).map(str::to_owned).collect::<Vec<_>>()
        };
        let before = reconciles();
        assert!(!before.is_empty());

        report(&garden, "a", &[&GOOD[..], &[("Required", "False")]].concat());
        garden.settle().await;

        assert_eq!(reconciles(), before);
        assert_eq!(garden.asked(), Vec::<String>::new());
    });
}
