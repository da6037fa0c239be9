//! Many days of many Shoots with changes of clocks, amid outages, restarts and other leaders. What a time or a user says
//! stands until the next time. [`LongLife`] says how many.

use cluster::object;
use gardener_resource_manager::{
    actors::controller_manager::shoot_hibernation::schedules::{Entry, Schedules},
    api::kinds,
};
use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::TimeZone};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    garden::{Garden, garden},
    long_lives::{LongLife, Random, now, pass},
    shoot_hibernation::{seconds, sleeper},
};

const DEADLINE: SignedDuration = SignedDuration::from_hours(2);

/// After an outage or a start, at most so long passes until a missed time is executed: the longest back-off, and a little.
const RECOVERY: i64 = 330;

/// Their clocks change in March and April 2030.
const LOCATIONS: [&str; 8] = [
    "America/New_York",
    "Europe/Berlin",
    "Asia/Beirut",
    "Africa/Cairo",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Pacific/Chatham",
    "UTC",
];

const ENTRIES: [&str; 8] = [
    "0 20 * * *",
    "0 7 * * 1-5",
    "30 2 * * *",
    "0 0 * * *",
    "45 1 * * 0,6",
    "*/40 3 * * *",
    "0 */7 * * 1",
    "59 23 */2 * 5",
];

/// A Shoot, and what must be so.
struct Sleeper {
    name: String,
    entries: Box<[Entry]>,
    enabled: Value,
}

impl Sleeper {
    fn of(shoot: &Value) -> Self {
        let schedules = Schedules::of(shoot).expect("it has schedules");
        let entries = schedules.entries.expect("they are valid");
        Self { name: object::name(shoot).to_owned(), entries, enabled: Value::Null }
    }

    /// Returns the last time in an interval, and the value it sets. At the same time the first entry wins.
    fn last(&self, from: Timestamp, to: Timestamp) -> Option<(Timestamp, Value)> {
        let times = self.entries.iter().rev().filter_map(|entry| {
            let time = entry.previous(from, to)?;
            Some((time, json!(entry.operation.enabled())))
        });
        times.max_by_key(|(time, _)| *time)
    }

    fn live(&self, garden: &Garden) -> Value {
        let shoot = garden.find(&kinds::SHOOT, "a", &self.name).expect("it exists");
        shoot["spec"]["hibernation"]["enabled"].clone()
    }
}

/// Returns a Shoot that was created then: the clock of the API server does not jump.
fn random_shoot(random: &mut Random, number: usize, created: Timestamp) -> Value {
    let schedules: Vec<Value> = (0..=random.below(3))
        .map(|_| {
            let location = random.one_of(LOCATIONS);
            json!({ "start": random.one_of(ENTRIES), "end": random.one_of(ENTRIES), "location": location })
        })
        .collect();
    let mut shoot = sleeper(schedules.into());
    shoot["metadata"]["name"] = format!("s{number}").into();
    shoot["metadata"]["creationTimestamp"] = created.to_string().into();
    shoot
}

/// spec 84 B-12, B-13, §B.5
#[test]
fn hibernation_of_many_days_loses_no_time_and_undoes_no_change() {
    let life = LongLife::from_environment();
    let (shoots, days, length, mut random) = (life.shoots, life.days, life.length(), life.random);
    let executed = garden(|garden| async move {
        // A week before the first of these clocks changes.
        let begin = TimeZone::UTC.to_timestamp(DateTime::constant(2030, 3, 5, 0, 0, 11, 0)).expect("a time");
        garden.jump(begin.duration_since(now(&garden)).as_secs());
        let mut sleepers = Vec::new();
        for number in 0..shoots {
            let shoot = random_shoot(&mut random, number, begin);
            sleepers.push(Sleeper::of(&shoot));
            garden.put(shoot);
        }
        garden.start().await;
        let (start, mut checked, mut executed) = (Instant::now(), begin, 0);
        while start.elapsed() < length {
            let (phase, length) = random.phase([20, 60, 100, 150, 300]);
            let back = pass(&garden, phase, length).await;
            seconds(u64::try_from(RECOVERY).expect("positive")).await;
            let (until, at) = (now(&garden), now(&garden));
            for sleeper in &mut sleepers {
                let live = sleeper.live(&garden);
                if let Some((time, value)) = sleeper.last(checked, until) {
                    // Of a time that ended near the deadline nothing is known.
                    let age = back.map_or(SignedDuration::ZERO, |back| back.duration_since(time));
                    let is_open = age < DEADLINE && age + SignedDuration::from_secs(RECOVERY) >= DEADLINE;
                    if is_open {
                        sleeper.enabled = live.clone();
                    } else if age < DEADLINE {
                        sleeper.enabled = value;
                        executed += 1;
                    }
                }
                assert_eq!(live, sleeper.enabled, "{} at {at} after {phase:?} of {length} minutes", sleeper.name);
            }
            for sleeper in &mut sleepers {
                if random.below(4) == 0 {
                    sleeper.enabled = json!(sleeper.enabled != true);
                    let spec = json!({ "spec": { "hibernation": { "enabled": sleeper.enabled } } });
                    garden.patch(&kinds::SHOOT, "a", &sleeper.name, spec).await;
                }
            }
            checked = until;
            garden.sim.clear_requests();
        }
        executed
    });
    assert!(executed > shoots * days, "only {executed} times of {shoots} Shoots were executed");
}
