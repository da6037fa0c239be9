use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{backup_buckets, check::CheckDefinition, extensions, judgement::Judgement};
use crate::api::meta::conditions::{Condition, ConditionStatus};

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Judges the objects of one Seed as the controller does.
fn judged<F: 'static>(check: &CheckDefinition<F>, objects: &[Value]) -> Judgement {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    let facts: BTreeMap<String, F> = objects.iter().map(|object| (name(object), (check.facts)(object))).collect();
    (check.judge)(&facts)
}

/// Returns status, reason and message without a threshold.
fn shown<F: 'static>(check: &CheckDefinition<F>, objects: &[Value]) -> (String, String, String) {
    let condition = judged(check, objects).condition(check.condition, None, Duration::ZERO, Timestamp::UNIX_EPOCH);
    (condition.status.to_string(), condition.reason, condition.message)
}

fn texts(texts: [&str; 3]) -> (String, String, String) {
    texts.map(str::to_owned).into()
}

fn bucket(name: &str, error: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"seedName": "s1"}, "status": {"lastError": error}})
}

fn buckets(objects: &[Value]) -> (String, String, String) {
    shown(&backup_buckets::CHECK, objects)
}

/// spec 83 B.3
#[test]
fn buckets_without_errors_are_available() {
    let available = texts(["True", "BackupBucketsAvailable", "Backup Buckets are available."]);

    assert_eq!(buckets(&[bucket("1", Value::Null)]), available);
    let without_status = json!({"metadata": {"name": "2"}, "spec": {"seedName": "s1"}, "status": null});
    assert_eq!(buckets(&[bucket("1", Value::Null), without_status]), available);
}

/// spec 83 B.3, D-5
#[test]
fn buckets_that_are_gone_are_unknown() {
    assert_eq!(buckets(&[]), texts(["Unknown", "BackupBucketsGone", "Backup Buckets are gone."]));
}

/// spec 83 B.3, scenario 16
#[test]
fn broken_buckets_are_named_in_order() {
    let objects = [
        bucket("b", json!({"description": "late"})),
        bucket("c", Value::Null),
        bucket("a", json!({"description": "foo", "taskID": "t"})),
        bucket("a-1", json!({})),
        bucket("d", json!("garbage")),
    ];
    let message = "The following BackupBuckets have issues:\n* Name: a, Error: foo\n* Name: a-1, Error: \
        \n* Name: b, Error: late\n* Name: d, Error: ";

    assert_eq!(buckets(&objects), texts(["False", "BackupBucketsError", message]));
}

/// spec 83 B.2, scenario 17: only the description counts.
#[test]
fn bucket_facts_are_the_description_of_its_error() {
    let facts = |error: Value| (backup_buckets::CHECK.facts)(&bucket("1", error));

    assert_eq!(facts(json!({"description": "d", "taskID": "1"})), facts(json!({"description": "d", "taskID": "2"})));
    assert_ne!(facts(json!({"description": "d"})), facts(json!({"description": "e"})));
    assert_ne!(facts(json!({})), facts(Value::Null));
}

/// spec 83 §2.1, scenario 25: those of self-hosted Shoots have a `shootRef` instead.
#[test]
fn object_without_a_seed_belongs_to_none() {
    let of_shoot = json!({"spec": {"shootRef": {"name": "sh", "namespace": "garden"}}});
    for object in [of_shoot, json!({}), json!({"spec": {"seedName": null, "seedRef": {"name": 5}}})] {
        assert_eq!((backup_buckets::CHECK.seed)(&object), "");
        assert_eq!((extensions::CHECK.seed)(&object), "");
    }
    assert_eq!((backup_buckets::CHECK.seed)(&json!({"spec": {"seedName": "s1"}})), "s1");
    assert_eq!((extensions::CHECK.seed)(&json!({"spec": {"seedRef": {"name": "s1"}}})), "s1");
}

/// An installation with these conditions, each with its type as message.
fn installation(name: &str, conditions: &[(&str, &str)]) -> Value {
    let condition =
        |(kind, status): &(&str, &str)| json!({"type": kind, "status": status, "message": format!("{kind}!")});
    let conditions: Vec<_> = conditions.iter().map(condition).collect();
    json!({"metadata": {"name": name}, "spec": {"seedRef": {"name": "s1"}}, "status": {"conditions": conditions}})
}

const GOOD: [(&str, &str); 4] =
    [("Valid", "True"), ("Installed", "True"), ("Healthy", "True"), ("Progressing", "False")];

/// An installation as [`GOOD`], with some other conditions.
fn with(name: &str, changes: &[(&str, &str)]) -> Value {
    let changed = |kind: &str| changes.iter().find(|(changed, _)| *changed == kind).map(|(_, status)| *status);
    installation(name, &GOOD.map(|(kind, status)| (kind, changed(kind).unwrap_or(status))))
}

fn installations(objects: &[Value]) -> (String, String, String) {
    shown(&extensions::CHECK, objects)
}

fn not(what: &str, reason: &str, map: &str) -> (String, String, String) {
    texts(["False", reason, &format!("Some extensions are {what}: {map}")])
}

/// spec 83 C.3, scenarios 22 and 25
#[test]
fn extensions_that_are_well_or_none_are_ready() {
    let message = "All extensions installed into the seed cluster are ready and healthy.";
    let ready = texts(["True", "AllExtensionsReady", message]);

    assert_eq!(installations(&[]), ready);
    assert_eq!(installations(&[with("a", &[]), with("b", &[])]), ready);
    let with_others = installation("a", &[&[("Required", "False"), ("", "")][..], &GOOD].concat());
    assert_eq!(installations(&[with_others]), ready);
}

/// spec 83 C.3, scenario 21
#[test]
fn extension_without_conditions_is_not_installed() {
    let bare = |name: &str| json!({"metadata": {"name": name}});
    let map = "map[foo-1:extension was not yet installed foo-3:extension was not yet installed]";

    let shown = installations(&[bare("foo-3"), with("foo-2", &[]), installation("foo-1", &[])]);

    assert_eq!(shown, not("not installed", "NotAllExtensionsInstalled", map));
}

/// spec 83 C.3, scenario 22
#[test]
fn extension_with_a_bad_condition_is_named_with_its_message() {
    let table = [
        ("Valid", "False", "NotAllExtensionsValid", "not valid"),
        ("Installed", "False", "NotAllExtensionsInstalled", "not installed"),
        ("Healthy", "False", "NotAllExtensionsHealthy", "not healthy"),
        ("Healthy", "Unknown", "NotAllExtensionsHealthy", "not healthy"),
        ("Healthy", "", "NotAllExtensionsHealthy", "not healthy"),
        ("Healthy", "true", "NotAllExtensionsHealthy", "not healthy"),
        ("Progressing", "True", "SomeExtensionsProgressing", "progressing"),
        ("Progressing", "Unknown", "SomeExtensionsProgressing", "progressing"),
    ];
    for (kind, status, reason, what) in table {
        let shown = installations(&[with("a", &[(kind, status)]), with("b", &[])]);

        assert_eq!(shown, not(what, reason, &format!("map[a:{kind}!]")), "{kind} {status}");
    }
    let mut silent = with("foo-2", &[("Valid", "False")]);
    silent["status"]["conditions"][0]["message"] = Value::Null;
    assert_eq!(installations(&[silent]), not("not valid", "NotAllExtensionsValid", "map[foo-2:]"));
}

/// spec 83 C.3, scenario 23
#[test]
fn extension_problem_that_comes_first_decides() {
    let all = [("Valid", "False"), ("Installed", "False"), ("Healthy", "False"), ("Progressing", "True")];
    let bare = installation("z", &[]);

    let shown = installations(&[with("a", &[("Healthy", "False")]), with("b", &all), bare.clone()]);
    assert_eq!(shown, not("not valid", "NotAllExtensionsValid", "map[b:Valid!]"));

    let map = "map[b:Installed! z:extension was not yet installed]";
    let shown = installations(&[with("a", &[("Healthy", "False")]), with("b", &all[1..]), bare]);
    assert_eq!(shown, not("not installed", "NotAllExtensionsInstalled", map));

    let shown = installations(&[with("a", &[("Healthy", "False")]), with("b", &all[2..])]);
    assert_eq!(shown, not("not healthy", "NotAllExtensionsHealthy", "map[a:Healthy! b:Healthy!]"));
}

/// spec 83 C.3, scenario 24
#[test]
fn extension_that_lacks_a_condition_is_not_healthy() {
    let incomplete = "not all required conditions found in ControllerInstallation";
    let without = |kind: &str| {
        let rest: Vec<_> = GOOD.into_iter().filter(|(other, _)| *other != kind).collect();
        installation("a", &[&rest[..], &[("Required", "True")]].concat())
    };
    for (kind, _) in GOOD {
        let map = format!("map[a:{incomplete}]");
        assert_eq!(installations(&[without(kind)]), not("not healthy", "NotAllExtensionsHealthy", &map), "{kind}");
    }

    let map = "map[a:Healthy!]";
    let unhealthy = installation("a", &[("Healthy", "False")]);
    assert_eq!(installations(&[unhealthy]), not("not healthy", "NotAllExtensionsHealthy", map));
    let invalid = installation("a", &[("Valid", "False")]);
    assert_eq!(installations(&[invalid]), not("not valid", "NotAllExtensionsValid", "map[a:Valid!]"));
}

/// spec 83 C.2, scenario 26
#[test]
fn extension_facts_are_four_conditions() {
    let facts = |conditions: &[(&str, &str)]| (extensions::CHECK.facts)(&installation("a", conditions));
    let with = |more: (&str, &str)| facts(&[&GOOD[..], &[more]].concat());

    assert_eq!(with(("Required", "True")), with(("Required", "False")));
    assert_eq!(facts(&GOOD), with(("Required", "True")));
    assert_ne!(facts(&GOOD), facts(&GOOD[1..]));
    assert_ne!(facts(&[]), facts(&[("Required", "True")]));
    let mut other = installation("a", &GOOD);
    other["status"]["conditions"][2]["message"] = json!("other");
    assert_ne!(facts(&GOOD), (extensions::CHECK.facts)(&other));
}

/// spec 83 "better" 7
#[test]
fn check_message_is_bounded() {
    let long = "ä".repeat(3_000);
    let text = |name: &str| {
        let mut object = with(name, &[("Healthy", "False")]);
        object["status"]["conditions"][2]["message"] = json!(long);
        object
    };
    let one = installations(&[text("a")]).2;
    assert!(one.len() < 1_100 && one.ends_with("…]"), "{}", one.len());

    let many: Vec<_> = (0..1_000).map(|number| text(&format!("a-{number:04}"))).collect();
    let many = installations(&many).2;
    assert!(many.len() <= 16 * 1024 && many.len() > 16_000 && many.ends_with('…'), "{}", many.len());

    let broken: Vec<_> =
        (0..1_000).map(|number| bucket(&format!("{number:04}"), json!({"description": long}))).collect();
    let broken = buckets(&broken).2;
    assert!(broken.len() <= 16 * 1024 && broken.ends_with('…'), "{}", broken.len());
}

const MINUTE: Duration = Duration::from_secs(60);

/// spec 83 §5, B.3, scenarios 14, 15, 17 and 18: one history with a threshold of a minute.
#[test]
fn bucket_condition_turns_bad_after_its_threshold() {
    let (good, foo) = ([bucket("1", Value::Null)], [bucket("1", json!({"description": "foo"}))]);
    let bar = [bucket("1", json!({"description": "bar"}))];
    let history: [(&str, &[Value], &str, &str, &str); 10] = [
        ("12:00:00", &good, "True", "12:00:00", "12:00:00"),
        ("12:01:00", &good, "True", "12:00:00", "12:00:00"),
        ("12:02:00", &foo, "Progressing", "12:02:00", "12:02:00"),
        ("12:02:30", &bar, "Progressing", "12:02:00", "12:02:30"),
        ("12:03:00", &bar, "Progressing", "12:02:00", "12:02:30"),
        ("12:03:01", &bar, "False", "12:03:01", "12:02:30"),
        ("12:03:02", &[], "Unknown", "12:03:02", "12:03:02"),
        ("12:04:00", &good, "True", "12:04:00", "12:04:00"),
        ("12:05:00", &[], "Progressing", "12:05:00", "12:05:00"),
        ("12:06:01", &[], "Unknown", "12:06:01", "12:05:00"),
    ];
    let at = |clock: &str| time(&format!("2026-08-21T{clock}Z"));
    let mut known: Option<Condition> = None;
    for (now, objects, status, transition, update) in history {
        let judgement = judged(&backup_buckets::CHECK, objects);

        let condition = judgement.condition("BackupBucketsReady", known.as_ref(), MINUTE, at(now));

        assert_eq!(condition.status.as_str(), status, "{now}");
        assert_eq!(condition.last_transition_time, Some(at(transition)), "{now}");
        assert_eq!(condition.last_update_time, Some(at(update)), "{now}");
        known = Some(condition);
    }
}

/// spec 83 §5, rule T, scenario 15: `Progressing` comes only after `True`.
#[test]
fn first_bad_result_of_a_check_is_not_delayed() {
    let judgement = judged(&backup_buckets::CHECK, &[bucket("1", json!({}))]);

    let condition = judgement.condition("BackupBucketsReady", None, MINUTE, time("2026-08-21T12:00:00Z"));

    assert_eq!((condition.status, &*condition.kind), (ConditionStatus::False, "BackupBucketsReady"));
}
