//! When an Event was last seen, and whether it concerns a Shoot (spec 81 J). Pure.

use jiff::Timestamp;
use serde_json::Value;

use crate::actors::controller_manager::fields::{text, time};

/// Where the time of the last occurrence stands; the first that is set counts.
const TIMES: [&str; 5] = [
    "/series/lastObservedTime",
    "/eventTime",
    "/deprecatedLastTimestamp",
    "/deprecatedFirstTimestamp",
    "/metadata/creationTimestamp",
];

/// Returns true if an Event is about a Shoot, of any version (rule 2). `related` is not looked at.
pub fn concerns_shoot(event: &Value) -> bool {
    let group = text(event, "/regarding/apiVersion").split_once('/');
    let is_of_gardener = group.is_some_and(|(group, version)| group == "core.gardener.cloud" && !version.contains('/'));
    is_of_gardener && text(event, "/regarding/kind") == "Shoot"
}

/// Returns when an Event was last seen (rule 3); `None` if it has no time at all.
pub fn last_seen(event: &Value) -> Option<Timestamp> {
    TIMES.iter().find_map(|pointer| time(event, pointer))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// spec 81 J rule 2, scenario 70
    #[test]
    fn event_of_a_shoot_is_told_by_kind_and_group() {
        for (api_version, kind, expected) in [
            ("core.gardener.cloud/v1beta1", "Shoot", true),
            ("core.gardener.cloud/v9", "Shoot", true),
            ("core.gardener.cloud/v1beta1", "Seed", false),
            ("example.com/v1", "Shoot", false),
            ("core.gardener.cloud", "Shoot", false),
            ("core.gardener.cloud/v1/x", "Shoot", false),
            ("v1", "Secret", false),
            ("", "Shoot", false),
        ] {
            let event = json!({ "regarding": { "apiVersion": api_version, "kind": kind } });

            assert_eq!(concerns_shoot(&event), expected, "{api_version} {kind}");
        }
        let related = json!({ "regarding": { "apiVersion": "v1", "kind": "Secret" },
            "related": { "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot" } });
        assert!(!concerns_shoot(&related));
    }

    /// spec 81 J rule 3, scenarios 71 to 73
    #[test]
    fn event_was_last_seen_at_the_first_time_that_is_set() {
        let hours = ["05", "04", "03", "02", "01"].map(|hour| format!("2026-08-21T{hour}:00:00.000001Z"));
        let mut event = json!({
            "series": { "lastObservedTime": hours[0] }, "eventTime": hours[1], "deprecatedLastTimestamp": hours[2],
            "deprecatedFirstTimestamp": hours[3], "metadata": { "creationTimestamp": hours[4] },
        });

        for (pointer, hour) in TIMES.iter().zip(&hours) {
            assert_eq!(last_seen(&event), hour.parse().ok(), "{pointer}");
            *event.pointer_mut(pointer).unwrap() = Value::Null;
        }
        assert_eq!(last_seen(&event), None);
    }
}
