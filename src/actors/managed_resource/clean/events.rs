//! Warning events of a Service as messages show them (spec 10 §13.6, spec 20 §11.3).

use jiff::Timestamp;
use serde_json::Value;

/// More would make the message unreadable.
const SHOWN: usize = 5;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The newest five of the (core `v1`) events, the oldest of them first; `None` if there is none. No newline at either
/// end.
pub fn warnings(events: &[Value], now: Timestamp) -> Option<String> {
    if events.is_empty() {
        return None;
    }
    let mut sorted: Vec<&Value> = events.iter().collect();
    sorted.sort_by_key(|event| time(event, "lastTimestamp"));
    let mut text = "-> Events:".to_owned();
    for event in sorted.iter().skip(sorted.len().saturating_sub(SHOWN)) {
        text.push_str(&line(event, now));
    }
    Some(text)
}

/// The age of something as `kubectl` writes it, in whole units: `95s`, `4m7s`, `75m`, `3h20m`, `30h`, `2d5h`, `40d`,
/// `2y12d`. Without a time it is `<unknown>`.
pub fn age(of: Option<Timestamp>, now: Timestamp) -> String {
    let Some(of) = of else { return "<unknown>".to_owned() };
    let elapsed = now.duration_since(of).as_secs();
    match elapsed {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if elapsed < 2 * MINUTE => format!("{elapsed}s"),
        _ if elapsed < 10 * MINUTE => two_units(elapsed, (MINUTE, "m"), (1, "s")),
        _ if elapsed < 3 * HOUR => format!("{}m", elapsed / MINUTE),
        _ if elapsed < 8 * HOUR => two_units(elapsed, (HOUR, "h"), (MINUTE, "m")),
        _ if elapsed < 48 * HOUR => format!("{}h", elapsed / HOUR),
        _ if elapsed < 8 * DAY => two_units(elapsed, (DAY, "d"), (HOUR, "h")),
        _ if elapsed < 2 * YEAR => format!("{}d", elapsed / DAY),
        _ if elapsed < 8 * YEAR => two_units(elapsed, (YEAR, "y"), (DAY, "d")),
        _ => format!("{}y", elapsed / YEAR),
    }
}

/// The second unit is left out when it is zero.
fn two_units(elapsed: i64, (large, large_name): (i64, &str), (small, small_name): (i64, &str)) -> String {
    match elapsed % large / small {
        0 => format!("{}{large_name}", elapsed / large),
        rest => format!("{}{large_name}{rest}{small_name}", elapsed / large),
    }
}

fn line(event: &Value, now: Timestamp) -> String {
    let text = |path| event.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
    // The field of core events; events.k8s.io calls it by another name.
    let source = text("/source/component").or(text("/reportingComponent")).or(text("/reportingController"));
    let source = source.unwrap_or_default();
    let message = text("/message").unwrap_or_default();
    let count = event.get("count").and_then(Value::as_i64).unwrap_or_default();
    let first = time(event, "firstTimestamp");

    if count > 1 {
        let (last, first) = (age(time(event, "lastTimestamp"), now), age(first, now));
        format!("\n* {source} reported {last} ago (x{count} over {first}): {message}")
    } else {
        let age = age(first.or(time(event, "eventTime")), now);
        format!("\n* {source} reported {age} ago: {message}")
    }
}

fn time(event: &Value, field: &str) -> Option<Timestamp> {
    event.get(field).and_then(Value::as_str)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }

    fn ago(seconds: i64) -> String {
        (now() - SignedDuration::from_secs(seconds)).to_string()
    }

    /// spec 20 §11.3
    #[test]
    fn ages_are_written_as_kubectl_does() {
        let table = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (95, "95s"),
            (119, "119s"),
            (120, "2m"),
            (247, "4m7s"),
            (300, "5m"),
            (600, "10m"),
            (4500, "75m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 20 * MINUTE, "3h20m"),
            (30 * HOUR, "30h"),
            (48 * HOUR, "2d"),
            (53 * HOUR, "2d5h"),
            (40 * DAY, "40d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 12 * DAY, "2y12d"),
            (9 * YEAR + DAY, "9y"),
        ];

        for (elapsed, text) in table {
            assert_eq!(age(Some(now() - SignedDuration::from_secs(elapsed)), now()), text, "{elapsed} s");
        }
        assert_eq!(age(None, now()), "<unknown>");
    }

    /// spec 10 scenario 9
    #[test]
    fn the_newest_five_events_are_shown_the_oldest_first() {
        let events: Vec<Value> = (1..=7)
            .map(|n| {
                json!({"message": format!("m{n}"), "source": {"component": "c"}, "count": 1,
                "firstTimestamp": ago(10 * n), "lastTimestamp": ago(10 * n)})
            })
            .collect();

        let text = warnings(&events, now()).unwrap();

        assert_eq!(
            text,
            "-> Events:\n* c reported 50s ago: m5\n* c reported 40s ago: m4\n* c reported 30s ago: m3\n\
             * c reported 20s ago: m2\n* c reported 10s ago: m1"
        );
    }

    /// spec 10 §13.6
    #[test]
    fn a_line_tells_who_when_and_how_often() {
        let table = [
            (
                json!({"message": "m", "source": {"component": "service-controller"}, "count": 14,
                    "firstTimestamp": ago(20 * MINUTE), "lastTimestamp": ago(3 * MINUTE)}),
                "\n* service-controller reported 3m ago (x14 over 20m): m",
            ),
            (
                json!({"message": "m", "source": {}, "reportingComponent": "r", "eventTime": ago(45), "firstTimestamp": null}),
                "\n* r reported 45s ago: m",
            ),
            (json!({"message": "m", "reportingComponent": "r"}), "\n* r reported <unknown> ago: m"),
            (json!({"count": 2}), "\n*  reported <unknown> ago (x2 over <unknown>): "),
        ];

        for (event, text) in table {
            assert_eq!(line(&event, now()), text);
        }
    }

    #[test]
    fn without_events_there_is_no_text() {
        assert_eq!(warnings(&[], now()), None);
    }
}
