//! What a changed condition means for people: whether it says that the ManagedResource is broken, and which Event tells
//! so (spec 20, before §1).

use cluster::EventType;
use kit::{
    Tone,
    quote::{cut, cut_after},
};

use crate::api::{
    meta::conditions::{self, Condition, ConditionStatus},
    resources::condition_names::{
        DELETION_PENDING, MANAGED_RESOURCE_IGNORED, RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING,
    },
};

const ANNOUNCED: [&str; 2] = [RESOURCES_APPLIED, RESOURCES_HEALTHY];

/// Longest message of a problem, in characters. There are thousands of ManagedResources.
const LONGEST_PROBLEM: usize = 256;

/// Returns true if the condition says that the ManagedResource does not work. A deletion is no defect.
pub(crate) fn is_broken(condition: &Condition) -> bool {
    is_announced(condition) && condition.status == ConditionStatus::False && condition.reason != DELETION_PENDING
}

/// Returns what a condition means for the ManagedResource. Conditions of other programs mean nothing here.
pub(crate) fn tone(condition: &Condition) -> Tone {
    let Condition { kind, status, reason, .. } = condition;
    let is_done = match kind.as_str() {
        RESOURCES_APPLIED | RESOURCES_HEALTHY => *status == ConditionStatus::True,
        RESOURCES_PROGRESSING => *status == ConditionStatus::False,
        _ => return Tone::None,
    };
    match reason.as_str() {
        _ if is_broken(condition) => Tone::Bad,
        MANAGED_RESOURCE_IGNORED => Tone::None,
        DELETION_PENDING => Tone::Pending,
        _ if is_done => Tone::Good,
        _ => Tone::Pending,
    }
}

/// Returns the type of the Event that a changed condition deserves. `is_warned`: the last Event about the condition was a
/// Warning. A restart forgets that, but the old condition shows it too, unless it is `Unknown` or `Progressing`.
pub(super) fn event_type(old: Option<&Condition>, is_warned: bool, new: &Condition) -> Option<EventType> {
    let broken = old.filter(|old| is_broken(old));
    if is_broken(new) {
        let is_known = broken.is_some_and(|old| old.reason == new.reason);
        return (!is_known).then_some(EventType::Warning);
    }
    let is_good = is_announced(new) && new.status == ConditionStatus::True && new.reason != MANAGED_RESOURCE_IGNORED;
    (is_good && (is_warned || broken.is_some())).then_some(EventType::Normal)
}

/// Returns one line with what is broken, for the dashboard.
pub(crate) fn problem(conditions: &[Condition]) -> Option<String> {
    let known = ANNOUNCED.into_iter().filter_map(|kind| conditions::find(conditions, kind));
    let broken = known.filter(|condition| is_broken(condition));
    let texts: Vec<String> = broken
        .map(|Condition { kind, reason, message, .. }| {
            format!("{kind} {}: {}", cut(reason), cut_after(LONGEST_PROBLEM, message))
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn is_announced(condition: &Condition) -> bool {
    ANNOUNCED.contains(&condition.kind.as_str())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::api::resources::condition_names::{
        APPLY_FAILED, APPLY_PROGRESSING, APPLY_SUCCEEDED, CHECKS_PENDING, DECODING_FAILED,
    };

    const WARNING: Option<EventType> = Some(EventType::Warning);
    const NORMAL: Option<EventType> = Some(EventType::Normal);

    fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Condition {
        let status = match status {
            "True" => ConditionStatus::True,
            "False" => ConditionStatus::False,
            "Progressing" => ConditionStatus::Progressing,
            _ => ConditionStatus::Unknown,
        };
        let now = Timestamp::UNIX_EPOCH;
        Condition::new(kind, now).updated(status, reason, message, now)
    }

    #[test]
    fn event_tells_that_a_condition_becomes_bad_has_another_reason_or_is_good_again() {
        let failed = ("False", APPLY_FAILED);
        let good = ("True", APPLY_SUCCEEDED);
        let going_on = ("Progressing", APPLY_PROGRESSING);
        let deleting = ("False", DELETION_PENDING);
        let ignored = ("True", MANAGED_RESOURCE_IGNORED);
        let unknown = ("Unknown", CHECKS_PENDING);
        for (old, is_warned, new, expected) in [
            (None, false, failed, WARNING),
            (Some(good), false, failed, WARNING),
            (Some(going_on), false, failed, WARNING),
            (Some(going_on), true, failed, WARNING),
            (Some(unknown), false, failed, WARNING),
            (Some(failed), true, ("False", DECODING_FAILED), WARNING),
            (Some(deleting), false, failed, WARNING),
            (Some(failed), true, failed, None),
            (Some(failed), false, failed, None),
            (Some(failed), true, good, NORMAL),
            (Some(failed), false, good, NORMAL),
            (Some(going_on), true, good, NORMAL),
            (Some(unknown), true, good, NORMAL),
            (None, false, good, None),
            (Some(going_on), false, good, None),
            (Some(unknown), false, good, None),
            (Some(good), false, good, None),
            (Some(failed), true, going_on, None),
            (Some(failed), true, unknown, None),
            (Some(good), false, unknown, None),
            (Some(good), false, deleting, None),
            (Some(failed), true, deleting, None),
            (Some(deleting), false, good, None),
            (None, false, ignored, None),
            (Some(failed), true, ignored, None),
        ] {
            for kind in [RESOURCES_APPLIED, RESOURCES_HEALTHY] {
                let condition = |(status, reason)| condition(kind, status, reason, "m");
                let event = event_type(old.map(condition).as_ref(), is_warned, &condition(new));

                assert_eq!(event, expected, "{kind}: {old:?}, {is_warned}, {new:?}");
            }
            let condition = |(status, reason)| condition(RESOURCES_PROGRESSING, status, reason, "m");
            assert_eq!(event_type(old.map(condition).as_ref(), false, &condition(new)), None, "a roll-out");
        }
    }

    #[test]
    fn tone_of_a_condition_is_bad_only_if_somebody_has_to_do_something() {
        for (kind, status, reason, expected) in [
            (RESOURCES_APPLIED, "True", APPLY_SUCCEEDED, Tone::Good),
            (RESOURCES_APPLIED, "False", APPLY_FAILED, Tone::Bad),
            (RESOURCES_APPLIED, "Progressing", APPLY_PROGRESSING, Tone::Pending),
            (RESOURCES_APPLIED, "Progressing", DELETION_PENDING, Tone::Pending),
            (RESOURCES_APPLIED, "True", MANAGED_RESOURCE_IGNORED, Tone::None),
            (RESOURCES_HEALTHY, "True", "ResourcesHealthy", Tone::Good),
            (RESOURCES_HEALTHY, "False", "PodUnhealthy", Tone::Bad),
            (RESOURCES_HEALTHY, "False", DELETION_PENDING, Tone::Pending),
            (RESOURCES_HEALTHY, "Unknown", CHECKS_PENDING, Tone::Pending),
            (RESOURCES_PROGRESSING, "False", "ResourcesRolledOut", Tone::Good),
            (RESOURCES_PROGRESSING, "True", "DeploymentProgressing", Tone::Pending),
            (RESOURCES_PROGRESSING, "Unknown", CHECKS_PENDING, Tone::Pending),
            (RESOURCES_PROGRESSING, "False", MANAGED_RESOURCE_IGNORED, Tone::None),
            ("SomebodyElses", "False", "R", Tone::None),
        ] {
            assert_eq!(tone(&condition(kind, status, reason, "m")), expected, "{kind} {status} {reason}");
        }
    }

    #[test]
    fn event_is_not_repeated_for_another_text() {
        let old = condition(RESOURCES_APPLIED, "False", APPLY_FAILED, "one");
        let new = condition(RESOURCES_APPLIED, "False", APPLY_FAILED, "two");

        assert_eq!(event_type(Some(&old), true, &new), None);
    }

    #[test]
    fn problem_names_what_is_broken_and_is_short() {
        let conditions = [
            condition(RESOURCES_APPLIED, "False", APPLY_FAILED, &"x".repeat(1000)),
            condition(RESOURCES_HEALTHY, "False", "PodUnhealthy", "it crashes"),
            condition(RESOURCES_PROGRESSING, "False", "ResourcesRolledOut", "m"),
        ];

        let text = problem(&conditions).unwrap();

        assert_eq!(
            text,
            format!("ResourcesApplied ApplyFailed: {}…; ResourcesHealthy PodUnhealthy: it crashes", "x".repeat(256))
        );
        assert_eq!(problem(&[condition(RESOURCES_HEALTHY, "False", DELETION_PENDING, "m")]), None);
        assert_eq!(problem(&[condition(RESOURCES_HEALTHY, "Unknown", CHECKS_PENDING, "m")]), None);
        let twice =
            [("b", "False"), ("a", "True")].map(|(reason, status)| condition(RESOURCES_APPLIED, status, reason, "m"));
        assert_eq!(problem(&twice).as_deref(), Some("ResourcesApplied b: m"), "the first of a type counts");
        assert_eq!(problem(&[]), None);
    }
}
