//! Two months of Shoots with changes of clocks, outages and users. The program is its pure decision, which a timer calls,
//! and which fails during an outage. Every time within the deadline takes effect, once, and nothing else does.

use gardener_resource_manager::actors::controller_manager::shoot_hibernation::{
    decision::{Shoot, Verdict, trigger_patch},
    schedules::{Entry, Operation, Schedules},
};
use jiff::{SignedDuration, Timestamp};
use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};
use serde_json::{Value, json};

/// Schedules have whole minutes. So no outage, which lasts whole minutes from here, begins or ends at a time of a schedule.
const BEGIN: &str = "2030-03-05T00:00:11Z";
const DAYS: i64 = 60;
const DEADLINE: SignedDuration = SignedDuration::from_hours(2);

/// Their clocks change within these days.
const LOCATIONS: [&str; 7] = [
    "America/New_York",
    "Europe/Berlin",
    "Asia/Beirut",
    "Africa/Cairo",
    "Australia/Lord_Howe",
    "America/Santiago",
    "UTC",
];

const ENTRIES: [&str; 7] =
    ["0 20 * * *", "0 7 * * 1-5", "30 2 * * *", "0 0 * * *", "45 1 * * 0,6", "*/40 3 * * *", "59 23 */2 * 5"];

fn schedules() -> impl Strategy<Value = Value> {
    let schedule = (select(&ENTRIES[..]), select(&ENTRIES[..]), select(&LOCATIONS[..]));
    let schedule =
        schedule.prop_map(|(start, end, location)| json!({ "start": start, "end": end, "location": location }));
    vec(schedule, 1..4).prop_map(Value::from)
}

/// Returns the last time in an interval, and what it does. At the same time the first entry wins.
fn last(entries: &[Entry], from: Timestamp, to: Timestamp) -> Option<(Timestamp, Operation)> {
    let times = entries.iter().rev().filter_map(|entry| Some((entry.previous(from, to)?, entry.operation)));
    times.max_by_key(|(time, _)| *time)
}

/// A look at a Shoot: does what is due, and returns when to look again.
fn look(shoot: &mut Value, now: Timestamp, done: &mut Vec<(Timestamp, Operation)>) -> Timestamp {
    let state = Shoot::of(shoot, "");
    let Verdict::Plan(plan) = state.judge(DEADLINE, now) else { panic!("its schedules are valid") };
    if let Some(due) = plan.due {
        let operation = due.entry.operation;
        done.push((due.time, operation));
        shoot["spec"]["hibernation"]["enabled"] = operation.patch()["spec"]["hibernation"]["enabled"].take();
        shoot["status"] = trigger_patch(now)["status"].take();
    }
    plan.timer().expect("there is always a next time")
}

proptest! {
    // A life takes as long as many other cases.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(8), ..ProptestConfig::default() })]

    /// spec 84 B-12, B-13
    #[test]
    fn hibernation_executes_each_time_within_the_deadline_once(
        schedules in schedules(),
        outages in vec((30..5000_i64, 1..400_i64), 1..40),
        changes in vec(any::<Index>(), 0..20),
    ) {
        let begin: Timestamp = BEGIN.parse().unwrap();
        let minutes = SignedDuration::from_mins;
        let end = begin + SignedDuration::from_hours(24 * DAYS);
        let mut shoot = json!({
            "metadata": { "creationTimestamp": BEGIN }, "spec": { "hibernation": { "schedules": schedules } },
        });
        let entries = Schedules::of(&shoot).unwrap().entries.unwrap();
        let (mut now, mut timer, mut seen, mut done) = (begin, begin, begin, Vec::new());
        let mut expected = json!(null);
        for (number, (before, length)) in outages.into_iter().enumerate() {
            let outage: Timestamp = now + minutes(before);
            if outage > end {
                break;
            }
            while timer <= outage {
                timer = look(&mut shoot, timer, &mut done);
            }
            if let Some((_, operation)) = last(&entries, seen, outage) {
                expected = json!(operation.enabled());
            }
            prop_assert_eq!(&shoot["spec"]["hibernation"]["enabled"], &expected, "before the outage at {}", outage);
            // A user's change stands until the next time.
            if changes.iter().any(|change| change.index(40) == number) {
                expected = json!(expected != true);
                shoot["spec"]["hibernation"]["enabled"] = expected.clone();
            }
            now = outage + minutes(length);
            if timer <= now {
                timer = look(&mut shoot, now, &mut done);
            }
            let missed = last(&entries, outage, now).filter(|(time, _)| now.duration_since(*time) < DEADLINE);
            if let Some((_, operation)) = missed {
                expected = json!(operation.enabled());
            }
            seen = now;
            prop_assert_eq!(&shoot["spec"]["hibernation"]["enabled"], &expected, "after the outage until {}", now);
        }
        for pair in done.windows(2) {
            prop_assert!(pair[0].0 < pair[1].0, "{:?}", pair);
        }
        for (time, operation) in done {
            let mut meant = entries.iter().filter(|entry| entry.operation == operation);
            let is_time = meant.any(|entry| entry.next(time - SignedDuration::from_secs(1)) == Some(time));
            prop_assert!(is_time, "{:?} at {}", operation, time);
        }
    }
}
