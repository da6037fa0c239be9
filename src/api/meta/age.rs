//! Ages as kubectl writes them: two units at most, coarser with time (spec 20 §11.3).

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Returns the time from `then` to `now`, or `<unknown>` without `then`; `0s` if `then` is less than 2 s ahead.
pub fn age(then: Option<Timestamp>, now: Timestamp) -> String {
    let Some(then) = then else { return "<unknown>".to_owned() };
    match now.duration_since(then).as_secs() {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..600 => two(seconds, (MINUTE, "m"), (1, "s")),
        seconds if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        seconds if seconds < 8 * HOUR => two(seconds, (HOUR, "h"), (MINUTE, "m")),
        seconds if seconds < 48 * HOUR => format!("{}h", seconds / HOUR),
        seconds if seconds < 8 * DAY => two(seconds, (DAY, "d"), (HOUR, "h")),
        seconds if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        seconds if seconds < 8 * YEAR => two(seconds, (YEAR, "y"), (DAY, "d")),
        seconds => format!("{}y", seconds / YEAR),
    }
}

fn two(seconds: i64, (large, large_name): (i64, &str), (small, small_name): (i64, &str)) -> String {
    let (whole, rest) = (seconds / large, seconds % large / small);
    if rest == 0 { format!("{whole}{large_name}") } else { format!("{whole}{large_name}{rest}{small_name}") }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn ages_read_as_in_the_table() {
        let now: Timestamp = "2026-06-01T12:00:00Z".parse().unwrap();
        for (milliseconds, expected) in [
            (-2000, "<invalid>"),
            (-1999, "0s"),
            (-1001, "0s"),
            (-1000, "0s"),
            (-1, "0s"),
            (0, "0s"),
            (95_999, "95s"),
            (119_999, "119s"),
            (120_000, "2m"),
            (247_000, "4m7s"),
            (300_000, "5m"),
            (599_000, "9m59s"),
            (600_000, "10m"),
            (75 * 60_000, "75m"),
            (3 * HOUR * 1000, "3h"),
            ((3 * HOUR + 20 * MINUTE) * 1000, "3h20m"),
            ((8 * HOUR - 1) * 1000, "7h59m"),
            (8 * HOUR * 1000, "8h"),
            (30 * HOUR * 1000, "30h"),
            (48 * HOUR * 1000, "2d"),
            (53 * HOUR * 1000, "2d5h"),
            (8 * DAY * 1000, "8d"),
            (40 * DAY * 1000, "40d"),
            ((2 * YEAR - 1) * 1000, "729d"),
            (2 * YEAR * 1000, "2y"),
            ((2 * YEAR + 12 * DAY) * 1000, "2y12d"),
            ((8 * YEAR - 1) * 1000, "7y364d"),
            (8 * YEAR * 1000, "8y"),
            ((9 * YEAR + 12 * DAY) * 1000, "9y"),
        ] {
            let then = now - SignedDuration::from_millis(milliseconds);

            assert_eq!(age(Some(then), now), expected, "{milliseconds} ms");
        }
        assert_eq!(age(None, now), "<unknown>");
    }
}
