//! The time window of a maintenance (spec 84 C.2). Pure: the time and a random number are arguments.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::actors::controller_manager::fields::text;

const DAY: i64 = 24 * 60 * 60;
/// The end of a window in which no maintenance begins any more, in seconds (spec 84 C-2).
const RESERVED_END: i64 = 15 * 60;

/// The longest wait after a start of the program (spec 84 "better" 6).
const LONGEST_START_DELAY: SignedDuration = SignedDuration::from_mins(15);

/// The time of day, in UTC, in which the maintenance of a Shoot may begin. Both ends belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaintenanceWindow {
    /// Second of the day.
    begin: i64,
    /// Second of the day: the end of the effective window.
    end: i64,
}

impl MaintenanceWindow {
    /// The whole day (spec 84 C-3).
    pub const ALWAYS: Self = Self { begin: 0, end: DAY - 1 };

    /// Reads the effective window of a Shoot (spec 84 C-1 to C-3).
    pub fn of(shoot: &Value) -> Self {
        let at = |field| second_of_day(text(shoot, field));
        match (at("/spec/maintenance/timeWindow/begin"), at("/spec/maintenance/timeWindow/end")) {
            (Some(begin), Some(end)) => Self { begin, end: (end - RESERVED_END).rem_euclid(DAY) },
            (None, _) | (_, None) => Self::ALWAYS,
        }
    }

    /// Returns true if a maintenance may begin at a time. Parts of a second do not count (spec 84 C-4).
    pub fn contains(self, time: Timestamp) -> bool {
        let second = second_of(time);
        if self.end < self.begin {
            second >= self.begin || second <= self.end
        } else {
            (self.begin..=self.end).contains(&second)
        }
    }

    /// Returns how long the window that contains a time stays open; zero outside of it.
    pub fn rest(self, time: Timestamp) -> SignedDuration {
        if !self.contains(time) {
            return SignedDuration::ZERO;
        }
        let seconds = (self.end - second_of(time)).rem_euclid(DAY);
        SignedDuration::from_secs(seconds)
    }

    /// Returns how long a maintenance inside of the window waits after a start of the program: a random part of the rest
    /// of the window, at most 15 minutes (spec 84 "better" 6). `draw` is a random number in `[0, 1)`.
    pub fn start_delay(self, now: Timestamp, draw: f64) -> SignedDuration {
        self.rest(now).min(LONGEST_START_DELAY).mul_f64(draw.clamp(0.0, 1.0))
    }

    /// Returns the time from now until the next maintenance: the next begin, and a random part of the window. `draw` is a
    /// random number in `[0, 1)` (spec 84 C-5).
    pub fn until_next(self, now: Timestamp, draw: f64) -> SignedDuration {
        let midnight = now.as_second().div_euclid(DAY) * DAY;
        let seconds = |second: i64| Timestamp::from_second(midnight.saturating_add(second)).unwrap_or(Timestamp::MAX);
        let length = if self.end <= self.begin { self.end + DAY - self.begin } else { self.end - self.begin };
        let (begin, end) = (seconds(self.begin), seconds(self.begin + length));
        let is_over = begin < now && (self.contains(now) || now > end);
        let begin = if is_over { seconds(self.begin + DAY) } else { begin };
        let spread = SignedDuration::from_secs(length).mul_f64(draw.clamp(0.0, 1.0));
        begin.duration_since(now).saturating_add(spread)
    }
}

impl fmt::Display for MaintenanceWindow {
    /// The effective window: `22:00:00 – 22:45:00 UTC`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = |second: i64| format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
        write!(f, "{} – {} UTC", clock(self.begin), clock(self.end))
    }
}

fn second_of(time: Timestamp) -> i64 {
    time.as_second().rem_euclid(DAY)
}

/// Reads `HHMMSS±hhmm` as a second of the day in UTC (spec 84 C-1).
fn second_of_day(text: &str) -> Option<i64> {
    let (clock, zone) = text.split_at_checked(6)?;
    let sign = match zone.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let [hour, minute, second] = pairs(clock)?;
    let [zone_hour, zone_minute] = pairs(&zone[1..])?;
    let is_time = hour < 24 && minute < 60 && second < 60 && zone_hour <= 24 && zone_minute < 60;
    let local = (hour * 60 + minute) * 60 + second;
    is_time.then(|| (local - sign * (zone_hour * 60 + zone_minute) * 60).rem_euclid(DAY))
}

/// Reads numbers of two digits each, and nothing else.
fn pairs<const N: usize>(text: &str) -> Option<[i64; N]> {
    let bytes = text.as_bytes();
    let is_digits = bytes.len() == 2 * N && bytes.iter().all(u8::is_ascii_digit);
    let pair = |at: usize| i64::from(bytes[2 * at] - b'0') * 10 + i64::from(bytes[2 * at + 1] - b'0');
    is_digits.then(|| std::array::from_fn(pair))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn window(begin: &str, end: &str) -> MaintenanceWindow {
        MaintenanceWindow::of(&json!({ "spec": { "maintenance": { "timeWindow": { "begin": begin, "end": end } } } }))
    }

    fn at(time: &str) -> Timestamp {
        format!("2026-08-21T{time}").parse().unwrap()
    }

    fn seconds(seconds: i64) -> SignedDuration {
        SignedDuration::from_secs(seconds)
    }

    /// spec 84 C.2, scenario 34
    #[test]
    fn window_table_of_the_specification_holds() {
        let (hour, minute) = (3600, 60);
        let evening = window("220000+0100", "230000+0100");
        let midnight = window("230000+0000", "003000+0000");
        let always = MaintenanceWindow::of(&json!({}));
        for (window, now, is_inside, wait, spread) in [
            (evening, "20:00:00Z", false, hour, 45 * minute),
            (evening, "21:45:00Z", true, 23 * hour + 15 * minute, 45 * minute),
            (evening, "21:45:01Z", false, 23 * hour + 14 * minute + 59, 45 * minute),
            (midnight, "00:05:00Z", true, 22 * hour + 55 * minute, 75 * minute),
            (always, "10:00:00Z", true, 14 * hour, 24 * hour - 1),
        ] {
            let now = at(now);
            assert_eq!(window.contains(now), is_inside, "{now}");
            assert_eq!(window.until_next(now, 0.0), seconds(wait), "{now}");
            let almost = window.until_next(now, 1.0 - f64::EPSILON);
            assert!(almost <= seconds(wait + spread) && almost > seconds(wait + spread - 1), "{now}: {almost}");
        }
    }

    /// spec 84 C-1, C-3
    #[test]
    fn window_of_an_odd_shoot_is_always_open() {
        for (begin, end) in [
            ("", ""),
            ("220000+0100", ""),
            ("220000Z", "230000+0000"),
            ("240000+0000", "230000+0000"),
            ("226000+0000", "230000+0000"),
            ("22000+0000", "230000+0000"),
            ("220000+000", "230000+0000"),
            ("220000+0060", "230000+0000"),
            ("220000 0000", "230000+0000"),
            ("2200€0+0000", "230000+0000"),
            ("€€", "230000+0000"),
            ("220000+0000", "230000+00:00"),
        ] {
            assert_eq!(window(begin, end), MaintenanceWindow::ALWAYS, "{begin} {end}");
        }
        for odd in
            [json!(null), json!([]), json!({ "spec": { "maintenance": { "timeWindow": { "begin": 5, "end": {} } } } })]
        {
            assert_eq!(MaintenanceWindow::of(&odd), MaintenanceWindow::ALWAYS);
        }
    }

    /// spec 84 C-1, C-2, C-4
    #[test]
    fn window_is_that_of_utc_without_the_last_15_minutes() {
        for (begin, end, outside, inside) in [
            ("010000+0530", "020000+0530", ["19:29:59Z", "20:15:01Z"], ["19:30:00Z", "20:15:00.9Z"]),
            ("230000-0130", "000000-0130", ["00:29:59Z", "01:15:01Z"], ["00:30:00Z", "01:15:00Z"]),
            ("235000+0000", "002000+0000", ["23:49:59Z", "00:05:01Z"], ["23:50:00Z", "00:05:00Z"]),
            ("120000+0000", "121500+0000", ["11:59:59Z", "12:00:01Z"], ["12:00:00Z", "12:00:00.5Z"]),
        ] {
            let window = window(begin, end);
            assert!(outside.iter().all(|time| !window.contains(at(time))), "{begin}");
            assert!(inside.iter().all(|time| window.contains(at(time))), "{begin}");
        }
    }

    /// spec 84 "better" 6
    #[test]
    fn window_knows_how_long_it_stays_open() {
        let evening = window("220000+0100", "230000+0100");
        assert_eq!(evening.rest(at("21:30:00Z")), seconds(15 * 60));
        assert_eq!(evening.rest(at("21:45:00Z")), seconds(0));
        assert_eq!(evening.rest(at("20:00:00Z")), seconds(0));
        assert_eq!(evening.to_string(), "21:00:00 – 21:45:00 UTC");
        let midnight = window("230000+0000", "003000+0000");
        assert_eq!(midnight.rest(at("23:55:00Z")), seconds(20 * 60));
        assert_eq!(midnight.start_delay(at("23:55:00Z"), 0.5), seconds(7 * 60 + 30));
        assert_eq!(midnight.start_delay(at("00:10:00Z"), 0.5), seconds(150));
        assert_eq!(midnight.start_delay(at("12:00:00Z"), 0.5), seconds(0));
    }

    /// spec 84 C-5
    #[test]
    fn next_maintenance_lies_in_the_window() {
        for begin in [0, 5, 12, 18, 23] {
            for length in 1..6 {
                let text = |hour: i64| format!("{:02}0000+0000", hour % 24);
                let window = window(&text(begin), &text(begin + length));
                for hour in 0..24 {
                    let now = at(&format!("{hour:02}:00:00Z"));
                    for draw in [0.0, 0.5, 0.999] {
                        let next = now + window.until_next(now, draw);
                        assert!(window.contains(next) && next >= now, "{begin} {length} {now} {next}");
                    }
                }
            }
        }
        assert!(window("220000+0000", "230000+0000").until_next(Timestamp::MAX, 0.5) < seconds(2 * DAY));
        assert!(window("220000+0000", "230000+0000").until_next(Timestamp::MIN, 0.5) >= seconds(0));
    }
}
