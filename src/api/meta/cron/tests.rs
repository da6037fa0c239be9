use jiff::{Timestamp, tz::TimeZone};

use super::{zone::zone, *};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn spec(text: &str) -> CronSpec {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// Returns the first occurrences after a time.
fn next(text: &str, location: &str, after: &str, count: usize) -> Vec<String> {
    let (spec, zone) = (spec(text), zone(location).unwrap());
    let times = std::iter::successors(spec.next(&zone, at(after)), |time| spec.next(&zone, *time));
    times.take(count).map(|time| time.to_string()).collect()
}

fn previous(text: &str, location: &str, from: &str, to: &str) -> Option<String> {
    Some(spec(text).previous(&zone(location).unwrap(), at(from), at(to))?.to_string())
}

/// spec 84 scenarios 17 and 20; spec 84 B-4, B-5, B-6
#[test]
fn cron_entries_are_valid_or_not() {
    let valid = [
        "0 8 * JAN mon-FRI",
        "*/5 * * * ?",
        "@hourly",
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@every 1h30m",
        "@every 1ms",
        "@every -5h",
        "0 8 * * 0",
        "00 07 * * 1,2,3,4,5,6,0",
        "1,,2 * * * *",
        ", * * * *",
        "*-5 * * * *",
        "+5 * * * *",
        "005 8 * * *",
        "5/15 * * * *",
        "*/70 * * * *",
        "? ? ? ? ?",
        " 0\t8 *\n* \u{3000} * ",
        "1-5/2,*/3,? * * * *",
        "0-59 0-23 1-31 1-12 0-6",
        "0 0 31 2 *",
        "0 0 * jan-3 sun",
        "*/+2 * * * *",
    ];
    let invalid = [
        "",
        " ",
        "0 8 * * 7",
        "60 * * * *",
        "* * * *",
        "@Daily",
        "0 24 * * *",
        "0 8 0 * *",
        "0 8 32 * *",
        "0 8 * 0 *",
        "0 8 * 13 *",
        "0 0 8 * * *",
        "* * * * * *",
        "TZ=UTC 0 8 * * *",
        "TZ=UTC 8 * * *",
        "0 8 L * *",
        "0 8 15W * *",
        "0 8 * * 5#2",
        "0 8 * * 5L",
        "5-3 * * * *",
        "*/0 * * * *",
        "*/x * * * *",
        "*/ * * * *",
        "1/2/3 * * * *",
        "1-2-3 * * * *",
        "-5 * * * *",
        "1- * * * *",
        "++5 * * * *",
        "*/-1 * * * *",
        "0 8 * january *",
        "0 8 mon * *",
        "@",
        " @daily",
        "@daily ",
        "@every",
        "@every ",
        "@every 5",
        "@every x",
        "@reboot",
        "٣ * * * *",
        "5.0 * * * *",
        "*/9223372036854775808 * * * *",
        "99999999999999999999 * * * *",
    ];

    for text in valid {
        assert!(text.parse::<CronSpec>().is_ok(), "{text:?}");
    }
    for text in invalid {
        assert!(text.parse::<CronSpec>().is_err(), "{text:?}");
    }
}

#[test]
fn cron_errors_name_field_and_remedy() {
    let table = [
        ("* * * *", "it has 4 fields — write five: minute, hour, day of month, month, day of week"),
        ("0 8 * * 7", "day of week: \"7\": it is out of range — write 0 to 6; Sunday is 0"),
        ("0 8 * may-x *", "month: \"may-x\": it is no number — write 1 to 12, or *, or jan to dec"),
        (
            "5-3 * * * *",
            "minute: \"5-3\": the range ends before it begins — write the smaller number first, or two ranges with a comma",
        ),
        ("0 */0 * * *", "hour: \"*/0\": the step is no number above zero — write for example */15"),
        (
            "0 8 1-2-3 * *",
            "day of month: \"1-2-3\": it has more than one hyphen — write ranges with a comma between them",
        ),
        ("1/2/3 * * * *", "minute: \"1/2/3\": it has more than one slash — write one step"),
        ("@every 5", "\"5\" is no duration — write for example @every 1h30m"),
        (
            "@Daily",
            "it is no descriptor — write @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or @every 12h",
        ),
    ];

    for (text, expected) in table {
        assert_eq!(text.parse::<CronSpec>().map_err(|error| error.to_string()), Err(expected.to_owned()), "{text}");
    }
    let long = format!("{} * * * *", "x\n".repeat(500_000).replace('\n', ";"));
    assert!(long.parse::<CronSpec>().unwrap_err().to_string().len() < 200);
}

/// spec 84 §B.2.3: the worked values; spec 84 scenario 17
#[test]
fn cron_entries_occur_at_the_worked_values() {
    let table: [(&str, &str, &str, &[&str]); 7] = [
        ("0 20 * * *", "", "2006-01-02T00:00Z", &["2006-01-02T20:00:00Z"]),
        ("0 20 * * *", "Europe/Berlin", "2006-01-02T00:00Z", &["2006-01-02T19:00:00Z"]),
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", &["2026-03-30T00:30:00Z"]),
        ("0 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", &["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"]),
        ("0 20 * * 1-5", "Asia/Kolkata", "2026-05-15T15:00Z", &["2026-05-18T14:30:00Z"]),
        ("0 0 13 * 5", "", "2026-05-02T00:00Z", &["2026-05-08T00:00:00Z"]),
        ("0 0 */2 * 5", "", "2026-05-02T00:00Z", &["2026-05-15T00:00:00Z"]),
    ];

    for (text, location, after, expected) in table {
        assert_eq!(next(text, location, after, expected.len()), expected, "{text} {location}");
    }
}

/// spec 84 B-7: `1-31` is no star.
#[test]
fn cron_days_match_both_fields_if_one_has_a_star() {
    let table = [
        ("0 0 1-31 * 5", "2026-05-03T00:00:00Z"),
        ("0 0 ? * 5", "2026-05-08T00:00:00Z"),
        ("0 0 13 * *", "2026-05-13T00:00:00Z"),
        ("0 0 13 * */6", "2026-06-13T00:00:00Z"),
        ("0 0 1,*/7 * 5", "2026-05-08T00:00:00Z"),
        ("0 0 13 * 6", "2026-05-09T00:00:00Z"),
        ("0 0 , * 5", "2026-05-08T00:00:00Z"),
    ];

    for (text, expected) in table {
        assert_eq!(next(text, "", "2026-05-02T00:00Z", 1), [expected], "{text}");
    }
}

/// spec 84 §B.2.3: a midnight that does not exist, and clocks that change by half an hour. The expected values are those of
/// the IANA database.
#[test]
fn cron_entries_survive_changes_of_clocks() {
    let table: [(&str, &str, &str, &[&str]); 8] = [
        // Until 1972 the clocks of Monrovia were 44 minutes and 30 seconds behind UTC.
        ("0 12 * * *", "Africa/Monrovia", "1970-01-01T00:00Z", &["1970-01-01T12:44:30Z"]),
        // Cairo skips 00:00 to 01:00 on Friday 2026-04-24.
        ("0 0 * * *", "Africa/Cairo", "2026-04-22T23:00Z", &["2026-04-24T21:00:00Z", "2026-04-25T21:00:00Z"]),
        ("0 3 * * 5", "Africa/Cairo", "2026-04-23T12:00Z", &["2026-04-24T00:00:00Z"]),
        ("0 1 * * 0", "Asia/Beirut", "2026-03-28T12:00Z", &["2026-03-28T22:00:00Z"]),
        // Lord Howe goes from 02:00 to 02:30 on 2026-10-04, and from 02:00 to 01:30 on 2026-04-05.
        ("15 2 4-5 10 *", "Australia/Lord_Howe", "2026-10-01T00:00Z", &["2026-10-04T15:15:00Z"]),
        ("30 2 4 10 *", "Australia/Lord_Howe", "2026-10-01T00:00Z", &["2026-10-03T15:30:00Z"]),
        ("45 1 5 4 *", "Australia/Lord_Howe", "2026-04-01T00:00Z", &["2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z"]),
        // Apia had no 30 December 2011.
        ("0 12 29-31 12 *", "Pacific/Apia", "2011-12-29T00:00Z", &["2011-12-29T22:00:00Z", "2011-12-30T22:00:00Z"]),
    ];

    for (text, location, after, expected) in table {
        assert_eq!(next(text, location, after, expected.len()), expected, "{text} {location}");
    }
}

/// spec 84 B-9: open on the left, closed on the right.
#[test]
fn cron_previous_is_the_last_one_in_the_interval() {
    let table = [
        ("0 8 * * *", "", "2026-05-01T08:00:00Z", "2026-05-02T07:59:59Z", None),
        ("0 8 * * *", "", "2026-05-01T07:59:59.9Z", "2026-05-02T07:59:59Z", Some("2026-05-01T08:00:00Z")),
        ("0 8 * * *", "", "2026-05-01T08:00:00Z", "2026-05-02T08:00:00Z", Some("2026-05-02T08:00:00Z")),
        ("* * * * *", "", "2026-05-01T08:00:00Z", "2026-05-02T08:00:59.5Z", Some("2026-05-02T08:00:00Z")),
        ("0 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T23:00:00Z", Some("2026-10-25T01:00:00Z")),
        ("0 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:59:00Z", Some("2026-10-25T00:00:00Z")),
        ("30 2 29 3 *", "Europe/Berlin", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", None),
        ("0 0 1 1 *", "", "2020-01-01T00:00:00Z", "2026-04-01T00:00:00Z", Some("2026-01-01T00:00:00Z")),
        ("0 8 * * *", "", "2026-05-02T08:00:00Z", "2026-05-01T08:00:00Z", None),
        ("59 23 31 12 *", "", "2025-05-02T08:00:00Z", "2026-05-01T08:00:00Z", Some("2025-12-31T23:59:00Z")),
    ];

    for (text, location, from, to, expected) in table {
        assert_eq!(previous(text, location, from, to).as_deref(), expected, "{text} {location} ({from}, {to}]");
    }
}

/// spec 84 B-8
#[test]
fn cron_every_counts_from_the_start_of_the_interval() {
    assert_eq!(next("@every 90m", "", "2026-05-01T08:00:00.7Z", 2), ["2026-05-01T09:30:00Z", "2026-05-01T11:00:00Z"]);
    for shortest in ["@every 1ms", "@every 0s", "@every -1h", "@every 1.9s"] {
        assert_eq!(next(shortest, "", "2026-05-01T08:00:00.7Z", 1), ["2026-05-01T08:00:01Z"], "{shortest}");
    }
    let table = [
        ("2026-05-01T08:00:00.7Z", "2026-05-01T08:29:59.9Z", None),
        ("2026-05-01T08:00:00.7Z", "2026-05-01T08:30:00Z", Some("2026-05-01T08:30:00Z")),
        ("2026-05-01T08:00:00Z", "2026-05-08T07:59:00Z", Some("2026-05-08T07:30:00Z")),
    ];
    for (from, to, expected) in table {
        assert_eq!(previous("@every 30m", "", from, to).as_deref(), expected, "({from}, {to}]");
    }
}

/// spec 84 B-11
#[test]
fn cron_entries_without_a_time_within_five_years_are_dead() {
    let dead = [
        "0 0 31 2 *",
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        ", * * * *",
        "* , * * *",
        "* * * , *",
        "* * , * ,",
        "@every 43900h",
    ];
    for text in dead {
        assert_eq!(next(text, "Europe/Berlin", "2026-05-01T00:00Z", 1), [""; 0], "{text}");
    }
    assert_eq!(next("0 0 29 2 *", "", "2024-02-29T00:00Z", 1), ["2028-02-29T00:00:00Z"]);
    assert_eq!(next("0 0 29 2 *", "", "2096-02-29T00:00Z", 1), [""; 0]);
}

/// spec 84 B-1, B-2
#[test]
fn cron_zones_are_those_of_the_database_in_its_case() {
    for utc in ["", "UTC", "Local"] {
        assert_eq!(zone(utc), Ok(TimeZone::UTC), "{utc}");
    }
    for name in ["Europe/Berlin", "US/Pacific", "Asia/Calcutta", "Europe/Kiev", "Etc/GMT+5", "GMT", "EST5EDT"] {
        assert!(zone(name).is_ok(), "{name}");
        assert_eq!(zone(name), zone(name), "{name}");
    }
    let unknown = [
        "Moon/Crater",
        "europe/berlin",
        "utc",
        "local",
        "Europe/../Europe/Berlin",
        "/usr/share/zoneinfo/UTC",
        "Europe\\Berlin",
        "Europe/",
        "Europe/Berlin ",
        "+01:00",
        "EST5EDT,M3.2.0,M11.1.0",
    ];
    for name in unknown {
        assert!(zone(name).is_err(), "{name}");
    }
    let error = |name| zone(name).unwrap_err().to_string();
    assert_eq!(error("europe/berlin"), "\"europe/berlin\" is no time zone — write Europe/Berlin");
    let remedy = "is no time zone — write a name of the IANA database, for example Europe/Berlin, or UTC";
    assert_eq!(error("Moon/Crater"), format!("\"Moon/Crater\" {remedy}"));
    assert!(error(&"x".repeat(1_000_000)).len() < 300);
}

#[test]
fn cron_times_at_the_ends_of_time_do_not_overflow() {
    for text in ["* * * * *", "0 0 29 2 *", "0 0 31 2 *", "@every 2562047h", "@every 1s"] {
        for location in ["", "Europe/Berlin", "Pacific/Kiritimati"] {
            let (spec, zone) = (spec(text), zone(location).unwrap());
            for end in [Timestamp::MIN, Timestamp::MAX] {
                spec.next(&zone, end);
                spec.previous(&zone, Timestamp::MIN, end);
                spec.previous(&zone, end, Timestamp::MAX);
            }
        }
    }
}
