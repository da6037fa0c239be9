//! The classification of versions at a time (spec 81 C.3, C.4). Pure.

use jiff::Timestamp;
use serde_json::Value;

use crate::actors::controller_manager::fields::{list, text, time};

const SUPPORTED: &str = "supported";
const UNAVAILABLE: &str = "unavailable";
const EXPIRED: &str = "expired";

/// A version and what it becomes in the course of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The version.
    pub version: String,
    /// Its stages in the order of the list.
    stages: Vec<Stage>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stage {
    classification: String,
    /// `None`: it has always started.
    start: Option<Timestamp>,
}

impl Version {
    /// Reads a version of Kubernetes or of an image.
    pub fn of(version: &Value) -> Self {
        let mut stages: Vec<_> = list(version, "/lifecycle").map(Stage::of).collect();
        let expiration = time(version, "/expirationDate");
        if stages.is_empty() && (expiration.is_some() || !text(version, "/classification").is_empty()) {
            stages.push(Stage { start: None, ..Stage::of(version) });
            stages.extend(expiration.map(|start| Stage { classification: EXPIRED.to_owned(), start: Some(start) }));
        }
        Self { version: text(version, "/version").to_owned(), stages }
    }

    /// Returns the classification at a time: that of the last stage in the list that has started.
    pub fn classification(&self, now: Timestamp) -> &str {
        let started = self.stages.iter().rev().find(|stage| stage.start.is_none_or(|start| start <= now));
        match started {
            Some(stage) => &stage.classification,
            None if self.stages.is_empty() => SUPPORTED,
            None => UNAVAILABLE,
        }
    }

    /// Returns the number of its stages.
    pub fn stage_count(&self) -> usize {
        self.stages.len()
    }

    /// Returns when the next of its stages starts.
    pub fn next_start(&self, now: Timestamp) -> Option<Timestamp> {
        self.stages.iter().filter_map(|stage| stage.start).filter(|start| *start > now).min()
    }
}

impl Stage {
    fn of(stage: &Value) -> Self {
        let classification = Some(text(stage, "/classification")).filter(|text| !text.is_empty());
        Self { classification: classification.unwrap_or(SUPPORTED).to_owned(), start: time(stage, "/startTime") }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-08-21T12:00:00Z".parse().unwrap()
    }

    fn hours(hours: i64) -> Timestamp {
        now() + SignedDuration::from_hours(hours)
    }

    fn at(version: &Value, hours_from_now: i64) -> String {
        Version::of(version).classification(hours(hours_from_now)).to_owned()
    }

    fn day(day: i64) -> String {
        hours(day * 24).to_string()
    }

    /// spec 81 C.3 rules 2 and 3, scenarios 33 and 34
    #[test]
    fn version_without_lifecycle_is_classified_by_its_two_fields() {
        for (version, today, in_25_hours) in [
            (json!({}), "supported", "supported"),
            (json!({ "classification": "" }), "supported", "supported"),
            (json!({ "classification": null, "lifecycle": [] }), "supported", "supported"),
            (json!({ "classification": "deprecated" }), "deprecated", "deprecated"),
            (json!({ "expirationDate": day(-1) }), "expired", "expired"),
            (json!({ "expirationDate": day(1) }), "supported", "expired"),
            (json!({ "classification": "preview", "expirationDate": day(1) }), "preview", "expired"),
        ] {
            assert_eq!((at(&version, 0).as_str(), at(&version, 25).as_str()), (today, in_25_hours), "{version}");
        }
    }

    /// spec 81 C.3 rules 1 and 4, scenario 35
    #[test]
    fn version_with_lifecycle_has_the_class_of_the_last_stage_that_started() {
        let stages = |stages: &[(&str, Option<i64>)]| {
            let stage =
                |(class, start): &(&str, Option<i64>)| json!({ "classification": class, "startTime": start.map(day) });
            json!({ "version": "1", "lifecycle": stages.iter().map(stage).collect::<Vec<_>>() })
        };
        let rising = stages(&[("preview", Some(-1)), ("supported", Some(1)), ("deprecated", Some(2))]);
        let at_days = |version: &Value| [0, 1, 2].map(|day| at(version, day * 24));
        assert_eq!(at_days(&rising), ["preview", "supported", "deprecated"]);
        assert_eq!(at(&rising, 23), "preview", "the start is inclusive, and not earlier");

        assert_eq!(at(&stages(&[("preview", None), ("supported", Some(1))]), 0), "preview");
        assert_eq!(at(&stages(&[("preview", Some(1)), ("supported", Some(2))]), 0), "unavailable");
        assert_eq!(at(&stages(&[("deprecated", Some(-1)), ("preview", Some(-2))]), 0), "preview");
        let with_date = json!({ "expirationDate": day(-1), "lifecycle": [{ "classification": "preview" }] });
        assert_eq!(at(&with_date, 0), "preview");
    }

    /// spec 81 C.4
    #[test]
    fn version_changes_next_at_the_first_start_in_the_future() {
        let next = |version: &Value| Version::of(version).next_start(now());
        let staged = json!({ "expirationDate": day(1), "lifecycle":
            [{ "startTime": day(-1) }, { "startTime": day(3) }, { "startTime": day(2) }, { "startTime": now().to_string() }] });

        assert_eq!(next(&staged), Some(hours(48)));
        assert_eq!(next(&json!({ "expirationDate": day(1) })), Some(hours(24)));
        assert_eq!(next(&json!({ "expirationDate": day(-1) })), None);
        assert_eq!(next(&json!({ "classification": "preview" })), None);
    }
}
