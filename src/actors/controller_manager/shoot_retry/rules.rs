//! Which Shoots are retried, and when (spec 84 F). Pure.

use std::time::Duration;

use cluster::object;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::actors::controller_manager::{
    fields::{list, time},
    shoot_record::is_failed,
};

const OPERATION: &str = "gardener.cloud/operation";
const RETRY: &str = "retry";
const RATE_LIMITS: &str = "ERR_INFRA_RATE_LIMITS_EXCEEDED";

/// "After a time" is strictly after it (rule F-2).
const STRICTLY: SignedDuration = SignedDuration::from_millis(1);

/// A Shoot that failed because of rate limits of the infrastructure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// When the failed operation was updated last; `None` if that is unreadable.
    pub updated: Option<Timestamp>,
    /// A retry is asked for.
    pub is_asked: bool,
}

impl RateLimit {
    /// Reads a Shoot; `None` if it did not fail, or not because of rate limits (F.1). The type of the operation plays no
    /// role.
    pub fn of(shoot: &Value) -> Option<Self> {
        let is_limited = || {
            list(shoot, "/status/lastErrors").flat_map(|error| list(error, "/codes")).any(|code| code == RATE_LIMITS)
        };
        (is_failed(shoot) && is_limited()).then(|| Self {
            updated: time(shoot, "/status/lastOperation/lastUpdateTime"),
            is_asked: object::annotation(shoot, OPERATION) == Some(RETRY),
        })
    }

    /// Returns when to retry at a time: `None` for now. `jitter` is added to the time at which the retry is due (rules F-2
    /// and F-3). A failure without a time was long ago.
    pub fn retry_at(self, period: Duration, jitter: Duration, now: Timestamp) -> Option<Timestamp> {
        let due = self.updated.map(|updated| later(updated, period))?;
        (now <= due).then(|| later(due, jitter).max(due.checked_add(STRICTLY).unwrap_or(due)))
    }
}

/// Returns true if a Shoot now needs a retry that it did not need before: it failed, or the request for a retry was removed
/// before anybody retried. A failure that follows another one unseen has another time.
pub fn is_news(old: Option<RateLimit>, new: Option<RateLimit>) -> bool {
    let updated = |limit: Option<RateLimit>| limit.filter(|limit| !limit.is_asked).map(|limit| limit.updated);
    updated(new).is_some() && updated(old) != updated(new)
}

/// Returns the merge patch that asks for a retry of a Shoot (F-4); `None` if it did not fail because of rate limits, or if
/// that was asked for already.
pub fn retry_patch(shoot: &Value) -> Option<Value> {
    let limit = RateLimit::of(shoot)?;
    (!limit.is_asked).then(|| json!({ "metadata": { "annotations": { OPERATION: RETRY } } }))
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| time.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn now() -> Timestamp {
        "2026-08-21T12:00:00Z".parse().unwrap()
    }

    fn shoot(state: &str, observed: i64, errors: Value) -> Value {
        json!({
            "metadata": { "generation": 3 },
            "status": {
                "observedGeneration": observed, "lastErrors": errors,
                "lastOperation": { "type": "Delete", "state": state, "lastUpdateTime": "2026-08-21T11:50:00Z" },
            },
        })
    }

    /// spec 84 F.1, scenarios 93 and 95
    #[test]
    fn shoot_is_rate_limited_if_it_failed_with_that_code() {
        let limited = json!([{ "codes": ["ERR_X"] }, { "description": "d", "codes": ["ERR_Y", RATE_LIMITS] }]);
        let table = [
            ("Failed", 3, limited.clone(), true),
            ("Failed", 2, limited.clone(), false),
            ("Error", 3, limited.clone(), false),
            ("Processing", 3, limited, false),
            ("Failed", 3, json!([{ "codes": ["ERR_INFRA_QUOTA_EXCEEDED"] }]), false),
            ("Failed", 3, json!([{ "codes": RATE_LIMITS }, { "codes": [5, null] }, 7]), false),
            ("Failed", 3, json!({ "codes": [RATE_LIMITS] }), false),
            ("Failed", 3, json!([]), false),
        ];
        for (state, observed, errors, expected) in table {
            let shoot = shoot(state, observed, errors);

            assert_eq!(RateLimit::of(&shoot).is_some(), expected, "{shoot}");
            assert_eq!(retry_patch(&shoot).is_some(), expected, "{shoot}");
        }
    }

    /// spec 84 F-2, F-3, scenario 94; spec 80 §16 S-14
    #[test]
    fn retry_comes_after_the_period_and_the_jitter() {
        let at = |seconds_ago: i64, period: Duration, jitter: Duration| {
            let updated = Some(now() - SignedDuration::from_secs(seconds_ago));
            let at = RateLimit { updated, is_asked: false }.retry_at(period, jitter, now());
            at.map(|at| at.duration_since(now()).as_millis())
        };

        assert_eq!(at(0, MINUTE * 10, MINUTE), Some(660_000));
        assert_eq!(at(599, MINUTE * 10, Duration::ZERO), Some(1_001));
        assert_eq!(at(600, MINUTE * 10, Duration::ZERO), Some(1), "strictly after");
        assert_eq!(at(600, MINUTE * 10, MINUTE), Some(60_000));
        assert_eq!(at(601, MINUTE * 10, MINUTE), None);
        assert_eq!(at(-3600, MINUTE * 10, Duration::ZERO), Some(4_200_001), "clocks differ");
        assert_eq!(at(0, Duration::MAX, Duration::MAX), Some(Timestamp::MAX.duration_since(now()).as_millis()));
        let unknown = RateLimit { updated: None, is_asked: false };
        assert_eq!(unknown.retry_at(MINUTE, MINUTE, now()), None);
    }

    /// spec 84 F.1
    #[test]
    fn retry_is_news_once_for_each_failure_and_when_nobody_asks_any_more() {
        let limit = |minute: i64, is_asked: bool| {
            Some(RateLimit { updated: Some(now() + SignedDuration::from_mins(minute)), is_asked })
        };
        let unread = |is_asked: bool| Some(RateLimit { updated: None, is_asked });
        for (old, new, expected) in [
            (None, limit(0, false), true),
            (None, limit(0, true), false),
            (None, None, false),
            (limit(0, false), None, false),
            (limit(0, false), limit(0, false), false),
            (limit(0, false), limit(0, true), false),
            (limit(0, true), limit(0, false), true),
            (limit(0, true), limit(1, false), true),
            (limit(0, false), limit(1, false), true),
            (unread(false), unread(false), false),
            (unread(true), unread(false), true),
            (None, unread(false), true),
        ] {
            assert_eq!(is_news(old, new), expected, "{old:?} {new:?}");
        }
    }

    /// spec 84 F-4
    #[test]
    fn retry_replaces_another_operation_and_is_asked_for_once() {
        for (operation, is_written) in
            [(Value::Null, true), (json!("reconcile"), true), (json!(5), true), (json!("retry"), false)]
        {
            let mut shoot = shoot("Failed", 3, json!([{ "codes": [RATE_LIMITS] }]));
            shoot["metadata"]["annotations"] = json!({ OPERATION: operation });

            let expected = json!({ "metadata": { "annotations": { OPERATION: "retry" } } });
            assert_eq!(retry_patch(&shoot), is_written.then_some(expected), "{operation}");
        }
    }
}
