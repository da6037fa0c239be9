use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    decision::{Plan, Shoot, Verdict, trigger_patch},
    schedules::{Operation, ScheduleError, Schedules, upcoming},
};

const NO_DEADLINE: SignedDuration = SignedDuration::MAX;
const HIBERNATE: Option<Operation> = Some(Operation::Hibernate);
const WAKE_UP: Option<Operation> = Some(Operation::WakeUp);

fn at(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A Shoot that was created long ago.
fn shoot(schedules: Value, status: Value) -> Value {
    json!({
        "metadata": { "creationTimestamp": "2020-01-01T00:00:00Z", "generation": 2 },
        "spec": { "hibernation": { "schedules": schedules } }, "status": status,
    })
}

/// spec 84 scenario 12: hibernates at 07:00 and wakes up at 02:00, each day.
fn daily() -> Value {
    json!([{ "start": "00 07 * * 1,2,3,4,5,6,0", "end": "00 02 * * 1,2,3,4,5,6,0" }])
}

fn plan(shoot: &Shoot, deadline: SignedDuration, now: &str, check: impl FnOnce(&Plan<'_>)) {
    match shoot.judge(deadline, at(now)) {
        Verdict::Plan(plan) => check(&plan),
        verdict => panic!("{now}: {verdict:?}"),
    }
}

/// Returns the mistake of the schedules.
fn judged_as_invalid(shoot: &Value) -> String {
    match Shoot::of(shoot, "").judge(NO_DEADLINE, at("2026-05-15T07:00:01Z")) {
        Verdict::Invalid(_, error) => error.to_string(),
        verdict => panic!("{verdict:?}"),
    }
}

/// Returns what is due, and the time of the timer.
fn judged(shoot: &Value, deadline: SignedDuration, now: &str) -> (Option<Operation>, Option<String>) {
    let (mut due, mut timer) = (None, None);
    plan(&Shoot::of(shoot, ""), deadline, now, |plan| {
        due = plan.due.map(|due| due.entry.operation);
        timer = plan.timer().map(|time| time.to_string());
    });
    (due, timer)
}

/// spec 84 scenarios 12, 13, 14 and 15
#[test]
fn hibernation_takes_the_last_time_since_creation_trigger_and_deadline() {
    let (created, triggered) = ("/metadata/creationTimestamp", "/status/lastHibernationTriggerTime");
    let seconds = SignedDuration::from_secs;
    let table = [
        // field, its value, deadline, now, what is due
        (created, "2026-05-14T07:00:01Z", NO_DEADLINE, "2026-05-15T07:00:01Z", HIBERNATE),
        (created, "2026-05-14T07:00:01Z", NO_DEADLINE, "2026-05-15T06:59:59Z", WAKE_UP),
        (created, "2026-05-14T01:00:00Z", NO_DEADLINE, "2026-05-15T01:59:30Z", HIBERNATE),
        (created, "2026-05-15T06:59:30Z", NO_DEADLINE, "2026-05-15T07:00:00Z", HIBERNATE),
        (created, "2026-05-15T19:00:00Z", NO_DEADLINE, "2026-05-15T19:00:01Z", None),
        (created, "2026-05-14T07:00:01Z", seconds(10), "2026-05-15T07:00:11Z", None),
        (created, "2026-05-14T07:00:01Z", seconds(10), "2026-05-15T07:00:09.9Z", HIBERNATE),
        (created, "2026-05-14T07:00:01Z", seconds(0), "2026-05-15T07:00:00.1Z", None),
        (triggered, "2026-05-15T02:00:00Z", NO_DEADLINE, "2026-05-15T06:59:59Z", None),
        (triggered, "2026-05-15T02:00:00Z", NO_DEADLINE, "2026-05-15T07:00:01Z", HIBERNATE),
        (triggered, "2026-06-15T02:00:00Z", NO_DEADLINE, "2026-05-15T07:00:01Z", None),
        (triggered, "soon", NO_DEADLINE, "2026-05-15T07:00:01Z", HIBERNATE),
    ];

    for (field, value, deadline, now, expected) in table {
        let mut shoot = shoot(daily(), json!({ "lastHibernationTriggerTime": null }));
        *shoot.pointer_mut(field).unwrap() = value.into();
        assert_eq!(judged(&shoot, deadline, now).0, expected, "{field} {value}, {deadline:#}, {now}");
    }
}

/// spec 84 scenarios 12 and 14; spec 84 B-13
#[test]
fn hibernation_timer_ends_shortly_after_the_next_time() {
    for now in ["2026-05-15T07:00:01Z", "2026-05-15T07:00:11Z", "2026-05-16T01:59:59.999Z"] {
        let timer = judged(&shoot(daily(), json!({})), NO_DEADLINE, now).1;
        assert_eq!(timer.as_deref(), Some("2026-05-16T02:00:00.1Z"), "{now}");
    }
}

/// spec 84 B-13: entries of whole minutes are not delayed, not even after a time that was missed for a while.
#[test]
fn hibernation_pauses_for_a_minute_after_a_time() {
    let failed = json!({ "lastOperation": { "state": "Failed" }, "observedGeneration": 2 });
    let each = |entry: &str, status: &Value| shoot(json!([{ "start": entry }]), status.clone());
    for (shoot, now, timer) in [
        (each("@every 1s", &json!({})), "2026-05-15T07:00:01.1Z", "2026-05-15T07:01:01Z"),
        (each("@every 1s", &failed), "2026-05-15T07:00:01.1Z", "2026-05-15T07:01:01.1Z"),
        (each("* * * * *", &json!({})), "2026-05-15T07:00:00.1Z", "2026-05-15T07:01:00.1Z"),
        (each("* * * * *", &json!({})), "2026-05-15T07:00:59.9Z", "2026-05-15T07:01:00.1Z"),
        (
            each("@every 61s", &json!({ "lastHibernationTriggerTime": "2026-05-15T07:00:00Z" })),
            "2026-05-15T07:00:59Z",
            "2026-05-15T07:01:01.1Z",
        ),
    ] {
        assert_eq!(judged(&shoot, NO_DEADLINE, now).1.as_deref(), Some(timer), "{now}");
    }
}

/// spec 84 scenario 16
#[test]
fn hibernation_schedules_of_several_locations_work_together() {
    let schedules = json!([
        { "start": "00 07 * * *", "end": "00 02 * * *", "location": "Europe/Berlin" },
        { "start": "00 08 * * 1,2,3,4,5", "end": "00 19 * * 1,2,3,4,5", "location": "Europe/Sofia" },
        { "start": "00 02 * * *", "end": "00 07 * * *" },
    ]);

    plan(&Shoot::of(&shoot(schedules, json!({})), ""), NO_DEADLINE, "2022-04-12T07:00:01Z", |plan| {
        let due = plan.due.unwrap();
        assert_eq!((due.entry.schedule, due.entry.operation), (2, Operation::WakeUp));
        assert_eq!(due.entry.to_string(), "spec.hibernation.schedules[2].end");
        assert_eq!(plan.timer(), Some(at("2022-04-12T16:00:00.1Z")), "19:00 in Sofia");
    });
}

/// spec 84 scenario 17; spec 84 B-12
#[test]
fn hibernation_takes_the_first_entry_of_those_at_the_same_time() {
    let (eight, nine) = ("0 8 * * *", "0 9 * * *");
    let table = [
        (json!([{ "start": eight, "end": eight }]), HIBERNATE),
        (json!([{ "end": eight }, { "start": eight }]), WAKE_UP),
        (json!([{ "end": eight }, { "start": eight, "end": nine }]), WAKE_UP),
        (json!([{ "end": nine, "location": "Etc/GMT-1" }, { "start": eight }]), WAKE_UP),
        (json!([{}, { "start": null, "end": eight }]), WAKE_UP),
    ];

    for (schedules, expected) in table {
        assert_eq!(
            judged(&shoot(schedules.clone(), json!({})), NO_DEADLINE, "2026-05-15T08:30:00Z").0,
            expected,
            "{schedules}"
        );
    }
}

/// spec 84 B-8, B-12: however short the deadline is.
#[test]
fn hibernation_counts_every_from_the_last_trigger_or_the_creation() {
    let of = |status: Value| shoot(json!([{ "start": "@every 12h" }]), status);
    let triggered = of(json!({ "lastHibernationTriggerTime": "2026-05-15T07:00:00Z" }));
    let (created, deadline) = (of(json!({})), SignedDuration::from_hours(2));
    let (today, tomorrow) = ("2026-05-15T19:00:00.1Z", "2026-05-16T07:00:00.1Z");
    for (shoot, now, due, timer) in [
        (&triggered, "2026-05-15T06:00:00Z", None, today),
        (&triggered, "2026-05-15T18:59:59.9Z", None, today),
        (&triggered, "2026-05-15T19:00:00.1Z", HIBERNATE, tomorrow),
        (&triggered, "2026-05-15T20:59:59Z", HIBERNATE, tomorrow),
        (&triggered, "2026-05-15T21:00:00Z", None, tomorrow),
        (&created, "2026-05-15T12:30:00Z", HIBERNATE, "2026-05-16T00:00:00.1Z"),
    ] {
        assert_eq!(judged(shoot, deadline, now), (due, Some(timer.to_owned())), "{now}");
    }
}

/// spec 84 §B.5 B-T4: without a deadline, seven days are the limit.
#[test]
fn hibernation_looks_back_seven_days_at_most() {
    let weekly = || json!([{ "start": "0 8 * * 5" }]); // Friday

    assert_eq!(judged(&shoot(weekly(), json!({})), NO_DEADLINE, "2026-05-22T07:59:59Z").0, HIBERNATE);
    let two_weeks = json!([{ "start": "0 8 15 5 *" }]);
    assert_eq!(judged(&shoot(two_weeks.clone(), json!({})), NO_DEADLINE, "2026-05-22T07:59:59Z").0, HIBERNATE);
    assert_eq!(judged(&shoot(two_weeks, json!({})), NO_DEADLINE, "2026-05-22T08:00:00Z").0, None);
    let mut ageless = shoot(weekly(), json!({}));
    ageless["metadata"] = json!({});
    assert_eq!(judged(&ageless, NO_DEADLINE, "2026-05-16T00:00:00Z").0, HIBERNATE);
}

/// spec 84 §B.5 B-T1: the status has whole seconds.
#[test]
fn hibernation_time_does_not_count_again_once_the_status_has_it() {
    let now = "2026-05-15T07:00:00.1Z";
    let mut shoot = shoot(daily(), json!({}));
    assert_eq!(judged(&shoot, NO_DEADLINE, now).0, HIBERNATE);

    shoot["status"] = trigger_patch(at(now))["status"].take();

    assert_eq!(shoot["status"], json!({ "lastHibernationTriggerTime": "2026-05-15T07:00:00Z" }));
    assert_eq!(judged(&shoot, NO_DEADLINE, now).0, None);
}

/// spec 84 scenario 21; spec 84 D-6
#[test]
fn hibernation_ignores_failed_shoots_of_the_own_version() {
    let failed =
        json!({ "lastOperation": { "state": "Failed" }, "observedGeneration": 2, "gardener": { "version": "v1" } });
    let behind = json!({ "lastOperation": { "state": "Failed" }, "observedGeneration": 1 });
    let table = [
        (&failed, "", true),
        (&failed, "v1", true),
        (&failed, "v2", false),
        (&behind, "", false),
        (&json!({ "lastOperation": { "state": "Error" }, "observedGeneration": 2 }), "", false),
        (&json!({ "lastOperation": { "state": "Failed" } }), "", false),
    ];

    for (status, version, is_failed) in table {
        plan(&Shoot::of(&shoot(daily(), status.clone()), version), NO_DEADLINE, "2026-05-15T07:00:01Z", |plan| {
            assert_eq!((plan.is_failed, plan.due.is_none()), (is_failed, is_failed), "{status} {version:?}");
            assert!(plan.timer().is_some());
        });
    }
}

/// spec 84 §B.3: steps 1 and 2
#[test]
fn hibernation_ends_for_shoots_in_deletion_or_without_schedules() {
    let mut deleting = shoot(daily(), json!({}));
    deleting["metadata"]["deletionTimestamp"] = json!("2026-05-15T00:00:00Z");
    let now = at("2026-05-15T07:00:01Z");

    assert!(matches!(Shoot::of(&deleting, "").judge(NO_DEADLINE, now), Verdict::Deleting));
    for none in [json!([]), json!(null), json!("x")] {
        let shoot = Shoot::of(&shoot(none, json!({})), "");
        assert!(!shoot.has_schedules() && matches!(shoot.judge(NO_DEADLINE, now), Verdict::NoSchedules));
    }
}

/// spec 84 scenarios 19, 20 and 25: one mistake spoils the list, and its error names field and remedy.
#[test]
fn hibernation_schedules_with_a_mistake_are_invalid() {
    let list = "spec.hibernation.schedules";
    let zone = "is no time zone — write a name of the IANA database, for example Europe/Berlin, or UTC";
    let count = "fields — write five: minute, hour, day of month, month, day of week";
    let table = [
        (json!([{ "start": "" }]), format!("{list}[0].start: \"\": it has 0 {count}")),
        (json!([{ "start": "* * * *" }]), format!("{list}[0].start: \"* * * *\": it has 4 {count}")),
        (
            json!([{ "start": "0 8 * * 1" }, { "end": "0 8 * * 7" }]),
            format!("{list}[1].end: \"0 8 * * 7\": day of week: \"7\": it is out of range — write 0 to 6; Sunday is 0"),
        ),
        (
            json!([{ "start": "60 * * * *" }]),
            format!("{list}[0].start: \"60 * * * *\": minute: \"60\": it is out of range — write 0 to 59"),
        ),
        (
            json!([{ "start": "@Daily" }]),
            format!(
                "{list}[0].start: \"@Daily\": it is no descriptor — write @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or @every 12h"
            ),
        ),
        (
            json!([{ "start": "* * * * *" }, { "start": "0 8 * * *", "location": "Moon/Crater" }]),
            format!("{list}[1].location: \"Moon/Crater\" {zone}"),
        ),
        (json!([{ "location": "Moon/Crater" }]), format!("{list}[0].location: \"Moon/Crater\" {zone}")),
        (json!([{ "start": 5 }]), format!("{list}[0].start: it is no text — write it in quotes")),
        (
            json!([{ "start": "@hourly", "location": {} }]),
            format!("{list}[0].location: it is no text — write it in quotes"),
        ),
        (json!(["0 8 * * *"]), format!("{list}[0]: it is no map — write start, end and location in it")),
        (
            json!([{ "location": "Europe/Berlin" }, null]),
            format!("{list}: no schedule has a time — write start, end or both"),
        ),
    ];

    for (schedules, expected) in table {
        assert_eq!(judged_as_invalid(&shoot(schedules, json!({}))), expected);
    }
}

/// spec 84 scenario 18; spec 84 B-11: dead entries take no part, and others do.
#[test]
fn hibernation_ignores_dead_entries() {
    let dead = json!([{ "start": "0 0 31 2 *", "end": "* * * * *" }, { "end": "0 0 30 2 *" }]);

    plan(&Shoot::of(&shoot(dead, json!({})), ""), NO_DEADLINE, "2026-05-15T07:00:01Z", |plan| {
        assert_eq!(plan.due.map(|due| due.entry.operation), WAKE_UP);
        assert_eq!(plan.dead.map(|(count, first)| (count, first.schedule)), Some((2, 0)));
        assert_eq!(plan.timer(), Some(at("2026-05-15T07:01:00.1Z")));
    });
    plan(
        &Shoot::of(&shoot(json!([{ "end": "0 0 30 2 *" }]), json!({})), ""),
        NO_DEADLINE,
        "2026-05-15T07:00:01Z",
        |plan| {
            assert!(plan.due.is_none() && plan.next.is_none() && plan.timer().is_none());
        },
    );
}

/// spec 84 §B.1; spec 84 "better" 4
#[test]
fn hibernation_looks_at_once_at_new_schedules_and_after_a_failure() {
    let failed = json!({ "lastOperation": { "state": "Failed" }, "observedGeneration": 2 });
    let of = |schedules: &Value, status: &Value| Shoot::of(&shoot(schedules.clone(), status.clone()), "");
    let (none, daily, other) = (json!({}), daily(), json!([{ "start": "0 8 * * *" }]));

    let table = [
        (of(&daily, &none), of(&other, &none), true),
        (of(&daily, &none), of(&json!([]), &none), true),
        (of(&daily, &failed), of(&daily, &none), true),
        (of(&daily, &none), of(&daily, &failed), false),
        (of(&daily, &none), of(&daily, &json!({ "lastHibernationTriggerTime": "2026-05-15T07:00:00Z" })), false),
        (of(&json!([]), &none), of(&json!(null), &none), false),
    ];

    for (old, new, expected) in table {
        assert_eq!(old.is_woken_by(&new), expected, "{old:?} {new:?}");
    }
}

/// spec 84 §B.5 B-T6: the work is bounded, whatever tenants write.
#[test]
fn hibernation_survives_schedules_of_any_size() {
    let both = |number: usize| json!({ "start": format!("{} {} 31 2 *", number % 60, number % 24), "end": "@every 1s", "location": "Europe/Berlin" });
    let many = |count: usize| shoot((0..count).map(both).collect::<Vec<_>>().into(), json!({}));
    let empty = vec![json!({}); 1_001];
    let long = "1-59,".repeat(200_000) + " * * * *";

    plan(&Shoot::of(&many(500), ""), NO_DEADLINE, "2026-05-15T07:00:01Z", |plan| {
        assert_eq!(plan.due.map(|due| due.time), Some(at("2026-05-15T07:00:01Z")));
        assert_eq!(plan.dead.map(|(count, _)| count), Some(500));
    });
    for too_many in [many(501), many(20_000), shoot(empty.into(), json!({}))] {
        let entries = Schedules::of(&too_many).unwrap().entries;
        assert_eq!(entries, Err(ScheduleError::TooMany));
        assert_eq!(
            judged_as_invalid(&too_many),
            "spec.hibernation.schedules: there are more than 1000 schedules, or times in them — remove some"
        );
    }
    assert_eq!(judged(&shoot(json!([{ "start": long }]), json!({})), NO_DEADLINE, "2026-05-15T07:00:01Z").0, HIBERNATE);
    let bad = json!([{ "start": "x".repeat(1_000_000) }]);
    let schedules = Schedules::of(&shoot(bad, json!({}))).unwrap();
    assert!(schedules.entries.unwrap_err().to_string().len() < 500);
}

#[test]
fn hibernation_upcoming_times_name_the_entry_that_takes_effect() {
    let schedules = json!([{ "start": "0 20 * * *", "location": "Europe/Berlin" }, { "end": "0 18 * * *" }, { "end": "0 6 * * *" }]);
    let schedules = Schedules::of(&shoot(schedules, json!({}))).unwrap();

    let entries = schedules.entries.unwrap();
    let from = at("2026-05-15T12:00:00Z");
    let times = upcoming(&entries, from, from).take(4);
    let times: Vec<_> = times.map(|(time, entry)| (time.to_string(), entry.schedule)).collect();

    let expected = [
        ("2026-05-15T18:00:00Z", 0),
        ("2026-05-16T06:00:00Z", 2),
        ("2026-05-16T18:00:00Z", 0),
        ("2026-05-17T06:00:00Z", 2),
    ];
    assert_eq!(times, expected.map(|(time, schedule)| (time.to_owned(), schedule)));
}
