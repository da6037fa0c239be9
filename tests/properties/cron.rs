//! Times of cron entries agree with a walk through all minutes of two years, in zones whose clocks change in odd ways.

use std::ops::Range;

use gardener_resource_manager::api::meta::cron::{CronSpec, zone::zone};
use jiff::{Timestamp, ToSpan as _, civil::DateTime, tz::TimeZone};
use proptest::{collection::vec, prelude::*, sample::select, strategy::ValueTree as _, test_runner::TestRunner};

/// Zones, and the first year of the walk.
const ZONES: [(&str, i16); 21] = [
    ("Africa/Cairo", 2025),        // skips midnight
    ("Asia/Beirut", 2025),         // skips midnight
    ("America/Santiago", 2025),    // skips midnight, and has midnight twice
    ("America/Asuncion", 2024),    // ended its changes
    ("Australia/Lord_Howe", 2025), // half an hour
    ("Europe/Berlin", 2025),
    ("Asia/Kolkata", 2025),
    ("Europe/Sofia", 2025),
    ("America/New_York", 2025),
    ("Pacific/Apia", 2011),      // lost a day
    ("Africa/Casablanca", 2025), // four changes a year
    ("Pacific/Chatham", 2025),   // 12:45 from UTC
    ("Antarctica/Troll", 2025),  // two hours
    ("America/Havana", 2025),
    ("America/St_Johns", 2010), // changed one minute after midnight
    ("Asia/Kathmandu", 2025),
    ("Asia/Gaza", 2025),
    ("Asia/Pyongyang", 2018), // changed its zone by half an hour
    ("Pacific/Kiritimati", 2025),
    ("America/Caracas", 2016),
    ("", 2024),
];

/// Entries whose times lie where clocks change, beside generated ones.
const ENTRIES: [&str; 4] = ["0 0 * * *", "15,30 2 * * 0", "59 23 */2 * 6", "* 0-3 * 3-4,9-11 *"];

/// Minutes of a walk: two years.
const MINUTES: usize = 2 * 366 * 24 * 60;

/// Walked zones have this many generated entries.
const GENERATED: usize = 8;

/// Minutes of the walk that follow each other in one local hour.
struct Run {
    /// Position of the first one in the walk.
    at: usize,
    /// On local clocks.
    minutes: Range<i8>,
    /// Hour, day of month, month and day of week, each as the set of one number. Tests are not optimized, so sets are bits.
    fields: [u64; 4],
}

/// A cron entry, told apart from its text.
#[derive(Debug, Clone)]
struct Wanted {
    text: String,
    fields: [u64; 5],
    has_star: bool,
}

fn bits(numbers: impl IntoIterator<Item = i8>) -> u64 {
    numbers.into_iter().fold(0, |bits, number| bits | 1 << number)
}

fn field(range: Range<i8>, stars: u32) -> impl Strategy<Value = (String, Vec<i8>, bool)> {
    let (low, last) = (range.start, range.end - 1);
    let star = Just(("*".to_owned(), range.clone().collect(), true));
    let step = (1..12_i8).prop_map(move |step| {
        (format!("*/{step}"), (low..=last).step_by(usize::from(step.unsigned_abs())).collect(), true)
    });
    let list = vec(select((low..=last).collect::<Vec<_>>()), 1..4).prop_map(|values| {
        let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
        (texts.join(","), values, false)
    });
    let span = (low..=last, low..=last).prop_map(|(one, other)| {
        let (low, high) = (one.min(other), one.max(other));
        (format!("{low}-{high}"), (low..=high).collect(), false)
    });
    prop_oneof![stars => star, 1 => step, 2 => list, 1 => span]
}

fn entry() -> impl Strategy<Value = Wanted> {
    (field(0..60, 1), field(0..24, 2), field(1..32, 4), field(1..13, 6), field(0..7, 4)).prop_map(
        |(minute, hour, day, month, weekday)| Wanted {
            text: format!("{} {} {} {} {}", minute.0, hour.0, day.0, month.0, weekday.0),
            has_star: day.2 || weekday.2,
            fields: [minute.1, hour.1, day.1, month.1, weekday.1].map(bits),
        },
    )
}

impl Wanted {
    /// Returns the positions of the minutes that match (spec 84 B-7, B-9).
    fn times(&self, walk: &[Run]) -> Vec<usize> {
        let [minutes, hours, days, months, weekdays] = self.fields;
        let mut times = Vec::new();
        for run in walk {
            let [hour, day, month, weekday] = run.fields;
            let (is_day, is_weekday) = (days & day != 0, weekdays & weekday != 0);
            let is_date = if self.has_star { is_day && is_weekday } else { is_day || is_weekday };
            if hours & hour != 0 && months & month != 0 && is_date {
                let matching = (run.at..).zip(run.minutes.clone()).filter(|(_, minute)| minutes & 1 << minute != 0);
                times.extend(matching.map(|(at, _)| at));
            }
        }
        times
    }
}

/// The known entries, as they are meant.
fn known() -> Vec<Wanted> {
    let all = |range: Range<i8>| range.collect::<Vec<_>>();
    let fields = [
        ([vec![0], vec![0], all(1..32), all(1..13), all(0..7)], true),
        ([vec![15, 30], vec![2], all(1..32), all(1..13), vec![0]], true),
        ([vec![59], vec![23], (1..32).step_by(2).collect(), all(1..13), vec![6]], true),
        ([all(0..60), all(0..4), all(1..32), vec![3, 4, 9, 10, 11], all(0..7)], true),
    ];
    let known = ENTRIES.iter().zip(fields);
    known
        .map(|(text, (fields, has_star))| Wanted { text: (*text).to_owned(), fields: fields.map(bits), has_star })
        .collect()
}

/// Returns all minutes of two years. Clocks differ from UTC by whole minutes there, and change once in a quarter of an hour
/// at most. So a quarter whose first and last minute are as far apart on these clocks has no change.
fn walk(zone: &TimeZone, begin: Timestamp) -> Vec<Run> {
    let local = |at: usize| zone.to_datetime(begin + i64::try_from(at).expect("two years have few minutes").minutes());
    let mut runs: Vec<Run> = Vec::new();
    for quarter in (0..MINUTES).step_by(15) {
        let (first, last) = (local(quarter), local(quarter + 14));
        if (first.date(), first.hour(), first.minute() + 14) == (last.date(), last.hour(), last.minute()) {
            append(&mut runs, quarter, first, 15);
        } else {
            (quarter..quarter + 15).for_each(|at| append(&mut runs, at, local(at), 1));
        }
    }
    runs
}

/// Appends minutes that follow each other in one local hour.
fn append(runs: &mut Vec<Run>, at: usize, local: DateTime, count: i8) {
    assert_eq!(local.second(), 0);
    let weekday = local.weekday().to_sunday_zero_offset();
    let fields = [local.hour(), local.day(), local.month(), weekday].map(|number| 1 << number);
    match runs.last_mut() {
        Some(last) if last.fields == fields && last.minutes.end == local.minute() => last.minutes.end += count,
        _ => runs.push(Run { at, minutes: local.minute()..local.minute() + count, fields }),
    }
}

/// spec 84 §B.2.3: B-9, B-10
#[test]
fn cron_times_are_those_of_a_walk_through_all_minutes() {
    let mut runner = TestRunner::deterministic();
    for (name, year) in ZONES {
        let zone = zone(name).unwrap();
        let begin = TimeZone::UTC.to_timestamp(DateTime::constant(year, 1, 1, 0, 0, 0, 0)).unwrap();
        let walk = walk(&zone, begin);
        let generated: Vec<_> = (0..GENERATED).map(|_| entry().new_tree(&mut runner).unwrap().current()).collect();
        for wanted in known().into_iter().chain(generated) {
            let spec: CronSpec = wanted.text.parse().unwrap();
            let expected = wanted.times(&walk);
            check(&spec, &zone, begin, &expected, &format!("{} {name}", wanted.text), &mut runner);
        }
    }
}

/// Compares all times if they are few. Of many, compares those around generated instants.
fn check(spec: &CronSpec, zone: &TimeZone, begin: Timestamp, expected: &[usize], what: &str, runner: &mut TestRunner) {
    const MOST: usize = 1500;

    let time = |minute: usize| begin + i64::try_from(minute).expect("two years have few minutes").minutes();
    let before = begin - 1.second();
    let end = time(MINUTES - 1);
    let places: Vec<usize> = match expected.len() {
        0 => Vec::new(),
        few @ 1..=MOST => (0..few).collect(),
        many => vec(0..many, 400).new_tree(runner).expect("nothing is filtered").current(),
    };
    for place in places {
        let (this, next) = (time(expected[place]), expected.get(place + 1).map(|next| time(*next)));
        let last = place.checked_sub(1).map_or(before, |last| time(expected[last]));
        assert_eq!(spec.next(zone, last), Some(this), "{what}: next after {last}");
        assert_eq!(spec.next(zone, this - 1.second()), Some(this), "{what}: next a second before");
        assert_eq!(spec.previous(zone, last, this), Some(this), "{what}: last in ({last}, {this}]");
        assert_eq!(spec.previous(zone, this, next.unwrap_or(end) - 1.second()), None, "{what}: none after {this}");
        assert_eq!(spec.previous(zone, before, next.unwrap_or(end + 1.second()) - 1.second()), Some(this), "{what}");
    }
    if let Some(last) = expected.last() {
        assert!(spec.next(zone, time(*last)).is_none_or(|next| next > end), "{what}: no time after the last one");
    } else {
        assert!(spec.next(zone, before).is_none_or(|next| next > end), "{what}: no time at all");
        assert_eq!(spec.previous(zone, before, end), None, "{what}: no time at all");
    }
}
