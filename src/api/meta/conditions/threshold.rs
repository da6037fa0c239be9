//! Conditions that are `Progressing` for a while before they turn bad (spec 83 §5, rule T). Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Condition, ConditionStatus};

/// Returns the status of a condition after a bad result. A condition that was `True` is `Progressing` until `threshold`
/// is over; then it gets `target`. A zero threshold delays nothing. Only `True` becomes `Progressing`.
pub fn status_after_problem(
    known: &Condition,
    target: ConditionStatus,
    threshold: Duration,
    now: Timestamp,
) -> ConditionStatus {
    let is_delayed = match known.status {
        ConditionStatus::True => true,
        ConditionStatus::Progressing => progressing_for(known, threshold, now).is_some(),
        ConditionStatus::False | ConditionStatus::Unknown | ConditionStatus::Other(_) => false,
    };
    if is_delayed && !threshold.is_zero() { ConditionStatus::Progressing } else { target }
}

/// Returns how long a condition may still be `Progressing`; `None` if it is not, or if the threshold is over.
pub fn progressing_for(condition: &Condition, threshold: Duration, now: Timestamp) -> Option<Duration> {
    let since = condition.last_transition_time.filter(|_| condition.status == ConditionStatus::Progressing)?;
    let threshold = SignedDuration::try_from(threshold).unwrap_or(SignedDuration::MAX);
    Duration::try_from(threshold.saturating_sub(now.duration_since(since))).ok()
}

#[cfg(test)]
mod tests {
    use super::{
        super::ConditionStatus::{False, Other, Progressing, True, Unknown},
        *,
    };

    const MINUTE: Duration = Duration::from_secs(60);

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn condition(status: ConditionStatus, since: &str) -> Condition {
        Condition {
            status,
            last_transition_time: since.parse().ok(),
            ..Condition::new("Ready", time("2026-01-01T00:00:00Z"))
        }
    }

    /// spec 83 §5, rule T
    #[test]
    fn threshold_delays_only_what_was_true() {
        let now = time("2026-08-21T17:56:00.000Z");
        let (just, long_ago) = ("2026-08-21T17:55:00Z", "2026-08-21T17:54:59Z");
        let garbage = Other("Odd".to_owned());
        for target in [False, Unknown] {
            let table = [
                (True, long_ago, Duration::ZERO, &target),
                (True, long_ago, MINUTE, &Progressing),
                (True, "", MINUTE, &Progressing),
                (Progressing, just, Duration::ZERO, &target),
                (Progressing, just, MINUTE, &Progressing),
                (Progressing, long_ago, MINUTE, &target),
                (Progressing, "", MINUTE, &target),
                (Progressing, "2026-08-21T17:59:00Z", MINUTE, &Progressing),
                (Progressing, "-009999-01-02T01:59:59Z", Duration::MAX, &Progressing),
                (False, just, MINUTE, &target),
                (Unknown, just, MINUTE, &target),
                (garbage.clone(), just, MINUTE, &target),
            ];
            for (known, since, threshold, expected) in table {
                let known = condition(known, since);

                let status = status_after_problem(&known, target.clone(), threshold, now);

                assert_eq!(&status, expected, "{} {since} {threshold:?}", known.status);
            }
        }
    }

    /// spec 83 §5, rule T: the stored time counts, so that a restart does not begin anew.
    #[test]
    fn threshold_ends_at_a_time_that_the_condition_tells() {
        let now = time("2026-08-21T17:56:00.5Z");
        let left = |status, since| progressing_for(&condition(status, since), MINUTE, now);

        assert_eq!(left(Progressing, "2026-08-21T17:55:30Z"), Some(Duration::from_millis(29_500)));
        assert_eq!(left(Progressing, "2026-08-21T17:55:00Z"), None);
        assert_eq!(left(True, "2026-08-21T17:55:30Z"), None);
        assert_eq!(left(Progressing, ""), None);
    }
}
