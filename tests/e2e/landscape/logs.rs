//! The rules of the parser and filter that Gardener deploys for the program's log (spec 71 §10), evaluated as fluent-bit
//! does.

use anyhow::{Context, Result, ensure};
use jiff::fmt::strtime::BrokenDownTime;
use serde_json::{Map, Value};

const TIME_KEY: &str = "ts";
/// Up to the fraction of a second, which is `.%L`. What follows is ignored.
const TIME_FORMAT: &str = "%Y-%m-%dT%H:%M:%S";
const RENAMED: [(&str, &str); 3] = [("level", "severity"), ("msg", "log"), ("logger", "source")];

/// Returns what fluent-bit stores for a line.
pub(super) fn parsed(line: &str) -> Result<Map<String, Value>> {
    let mut record: Map<String, Value> =
        serde_json::from_str(line).with_context(|| format!("no JSON object: {line}"))?;
    let time = record.remove(TIME_KEY).with_context(|| format!("no {TIME_KEY}: {line}"))?;
    let time = time.as_str().with_context(|| format!("{TIME_KEY} is no text: {line}"))?;
    let (_, length) = BrokenDownTime::parse_prefix(TIME_FORMAT, time).with_context(|| format!("the time of {line}"))?;
    let fraction = time[length..].strip_prefix('.').with_context(|| format!("no fraction of a second: {line}"))?;
    ensure!(fraction.starts_with(|first: char| first.is_ascii_digit()), "no fraction of a second: {line}");
    for (from, to) in RENAMED {
        if let Some(value) = record.remove(from) {
            record.insert(to.to_owned(), value);
        }
    }
    Ok(record)
}

/// Fails if a line is not stored with severity and text. Returns the sources of the lines.
pub(super) fn sources(log: &str) -> Result<Vec<String>> {
    let mut sources = Vec::new();
    for line in log.lines() {
        let record = parsed(line)?;
        for key in ["severity", "log"] {
            ensure!(record.get(key).is_some_and(Value::is_string), "no {key}: {line}");
        }
        sources.extend(record.get("source").and_then(Value::as_str).map(str::to_owned));
    }
    Ok(sources)
}

#[test]
fn parser_refuses_a_time_that_fluent_bit_does_not_read() {
    for time in ["2024-05-01 10:11:12.345Z", "2024-05-01T10:11:12Z", "1714558272.345"] {
        assert!(parsed(&serde_json::json!({ "ts": time, "level": "info", "msg": "m" }).to_string()).is_err(), "{time}");
    }
}
