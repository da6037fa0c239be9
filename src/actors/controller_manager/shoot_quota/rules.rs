//! When a Shoot expires (spec 84 D.2). Pure.

use cluster::object;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    actors::controller_manager::{
        bindings::binding::BindingKind,
        fields::{text, whole_seconds},
        shoot_record::ShootRecord,
    },
    api::meta::field::time::moment,
};

const EXPIRATION: &str = "shoot.gardener.cloud/expiration-timestamp";

/// Seconds of a day.
const DAY: i64 = 24 * 60 * 60;

/// How long after its end a lifetime is over for sure (rule L-8).
const AFTER_END: SignedDuration = SignedDuration::from_secs(1);

/// What the lifetime of a Shoot depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Term {
    /// The binding whose Quotas count: its kind and its name in the namespace of the Shoot (rule L-1); `None` if there is
    /// none.
    pub binding: Option<(BindingKind, Box<str>)>,
    /// The annotation with the time at which the Shoot expires; `None` if there is none.
    expiration: Option<Box<str>>,
}

/// The smallest lifetime in days that the Quotas of a Shoot allow (rule L-3); `None` if none has a lifetime.
pub type LifetimeDays = Option<i64>;

/// What must be done with a Shoot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it does not expire, or it is being deleted (rule L-0).
    Leave,
    /// It does not expire any more: the annotation must go (rule L-4).
    Remove,
    /// It must be annotated with this time (rule L-5).
    Annotate(Timestamp),
    /// The annotation, or the creation of the Shoot, is no time: nothing is done on doubt (rule L-6).
    Unreadable,
    /// It lives until then (rule L-8).
    Live(Timestamp),
    /// It must be deleted; it expired then (rule L-9).
    Delete(Timestamp),
}

impl Term {
    /// Reads a Shoot. A SecretBinding comes before a CredentialsBinding.
    pub fn of(shoot: &Value) -> Self {
        let binding = |kind: BindingKind| {
            let name = text(shoot, kind.field_of_shoot());
            (!name.is_empty()).then(|| (kind, name.into()))
        };
        Self {
            binding: BindingKind::ALL.into_iter().find_map(binding),
            expiration: object::annotation(shoot, EXPIRATION).map(Box::from),
        }
    }

    /// Returns true if the Shoot has or may get an expiration.
    pub fn may_end(&self) -> bool {
        self.binding.is_some() || self.expiration.is_some()
    }
}

impl Verdict {
    /// Judges a Shoot at a time. `is_bounded`: the annotation may at most double the lifetime (rule L-7).
    pub fn of(shoot: &ShootRecord, life: LifetimeDays, is_bounded: bool, now: Timestamp) -> Self {
        if shoot.is_deleting {
            return Self::Leave;
        }
        let Some(life) = life else {
            return if shoot.term.expiration.is_some() { Self::Remove } else { Self::Leave };
        };
        let after_creation = |days: i64| shoot.created.map(|created| later(created, days));
        let Some(annotation) = shoot.term.expiration.as_deref() else {
            return after_creation(life).map_or(Self::Unreadable, |end| Self::Annotate(whole_seconds(end)));
        };
        let Some(mut end) = moment(annotation) else { return Self::Unreadable };
        if is_bounded {
            let Some(latest) = after_creation(life.saturating_mul(2)) else { return Self::Unreadable };
            end = end.min(latest);
        }
        if now > end { Self::Delete(end) } else { Self::Live(end) }
    }
}

/// Returns the smallest of the lifetimes of Quotas (rule L-3).
pub fn shortest(lifetimes: impl IntoIterator<Item = LifetimeDays>) -> LifetimeDays {
    lifetimes.into_iter().flatten().min()
}

/// Returns the lifetime that a Quota allows. A number that is no integer is none.
pub fn lifetime_of_quota(quota: &Value) -> LifetimeDays {
    quota.pointer("/spec/clusterLifetimeDays").and_then(Value::as_i64)
}

/// Returns when a Shoot is looked at again whose lifetime ends at a time: then, or after a period (rule L-8).
pub fn next_look(end: Timestamp, period: SignedDuration, now: Timestamp) -> Timestamp {
    let after_end = end.checked_add(AFTER_END).unwrap_or(Timestamp::MAX);
    after_end.min(now.checked_add(period).unwrap_or(Timestamp::MAX))
}

/// Returns the merge patch that sets the annotation, or removes it.
pub fn annotation_patch(end: Option<Timestamp>) -> Value {
    json!({ "metadata": { "annotations": { EXPIRATION: end.map(|end| end.to_string()) } } })
}

/// Adds days without overflow.
fn later(time: Timestamp, days: i64) -> Timestamp {
    let limit = if days < 0 { Timestamp::MIN } else { Timestamp::MAX };
    time.checked_add(SignedDuration::from_secs(days.saturating_mul(DAY))).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATED: &str = "2026-08-01T00:00:00Z";

    fn shoot(expiration: Value) -> Value {
        json!({
            "metadata": {
                "namespace": "a", "name": "s", "creationTimestamp": CREATED, "annotations": { EXPIRATION: expiration },
            },
            "spec": { "secretBindingName": "b" },
        })
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn verdict(shoot: &Value, life: LifetimeDays, is_bounded: bool, now: &str) -> Verdict {
        Verdict::of(&ShootRecord::of(shoot), life, is_bounded, time(now))
    }

    /// spec 84 L-4, L-5, D-5, scenarios 75, 78 and 79
    #[test]
    fn shoot_gets_an_expiration_if_a_quota_limits_its_life() {
        let plain = shoot(Value::Null);
        let now = "2026-08-01T12:00:00.5Z";

        assert_eq!(verdict(&plain, Some(1), false, now), Verdict::Annotate(time("2026-08-02T00:00:00Z")));
        assert_eq!(verdict(&plain, Some(0), false, now), Verdict::Annotate(time(CREATED)));
        assert_eq!(verdict(&plain, Some(-1), false, now), Verdict::Annotate(time("2026-07-31T00:00:00Z")));
        assert_eq!(verdict(&plain, None, false, now), Verdict::Leave);
        for annotation in ["2026-08-09T00:00:00Z", "tomorrow", ""] {
            assert_eq!(verdict(&shoot(json!(annotation)), None, true, now), Verdict::Remove, "{annotation}");
        }
        assert_eq!(shortest([Some(3), None, Some(1)]), Some(1));
        assert_eq!(shortest([Some(3), Some(0)]), Some(0), "zero counts");
        assert_eq!(shortest([None, None]), None);
        assert_eq!(shortest([]), None);
    }

    /// spec 84 L-6, L-8, L-9, D-4, scenarios 76 and 77
    #[test]
    fn shoot_expires_strictly_after_the_time_in_its_annotation() {
        let table = [
            ("2026-08-02T00:00:00Z", "2026-08-01T23:59:59Z", false),
            ("2026-08-02T00:00:00Z", "2026-08-02T00:00:00Z", false),
            ("2026-08-02T00:00:00Z", "2026-08-02T00:00:00.000000001Z", true),
            ("2026-08-02T00:00:00.5Z", "2026-08-02T00:00:00.5Z", false),
            ("2026-08-02T02:00:00+02:00", "2026-08-02T00:00:01Z", true),
            ("2026-08-02T00:00:00-02:00", "2026-08-02T00:00:01Z", false),
            ("2036-08-02T00:00:00Z", "2036-08-01T00:00:00Z", false),
        ];
        for (annotation, now, is_over) in table {
            let end = time(annotation);

            let expected = if is_over { Verdict::Delete(end) } else { Verdict::Live(end) };
            assert_eq!(verdict(&shoot(json!(annotation)), Some(1), false, now), expected, "{annotation} {now}");
        }
    }

    /// spec 84 L-7, D-4, decision 22
    #[test]
    fn shoot_lives_twice_its_lifetime_at_most_if_that_is_enforced() {
        let extended = shoot(json!("2026-09-01T00:00:00Z"));
        let shortened = shoot(json!("2026-08-02T00:00:00Z"));
        let end = time("2026-08-05T00:00:00Z");

        assert_eq!(verdict(&extended, Some(2), true, "2026-08-05T00:00:00Z"), Verdict::Live(end));
        assert_eq!(verdict(&extended, Some(2), true, "2026-08-05T00:00:01Z"), Verdict::Delete(end));
        assert!(matches!(verdict(&extended, Some(2), false, "2026-08-05T00:00:01Z"), Verdict::Live(_)));
        assert!(matches!(verdict(&shortened, Some(2), true, "2026-08-02T00:00:01Z"), Verdict::Delete(_)));
    }

    /// spec 84 L-6, scenario 81: nothing is deleted on doubt.
    #[test]
    fn shoot_with_an_unreadable_time_is_left_alone() {
        let late = "2126-01-01T00:00:00Z";
        for annotation in ["tomorrow", "", "2026-08-02", "2026-08-02T00:00:00", "2026-08-02 00:00:00Z", "1785628800"] {
            for is_bounded in [false, true] {
                let verdict = verdict(&shoot(json!(annotation)), Some(1), is_bounded, late);
                assert_eq!(verdict, Verdict::Unreadable, "{annotation}");
            }
        }
        for created in [Value::Null, json!("x"), json!(5), json!("0001-01-01T00:00:00Z")] {
            let mut plain = shoot(Value::Null);
            plain["metadata"]["creationTimestamp"] = created.clone();
            assert_eq!(verdict(&plain, Some(1), false, late), Verdict::Unreadable, "{created}");
            let mut annotated = shoot(json!(CREATED));
            annotated["metadata"]["creationTimestamp"] = created.clone();
            assert_eq!(verdict(&annotated, Some(1), true, late), Verdict::Unreadable, "{created}");
        }
        for odd in [json!(5), json!(["2026-08-02T00:00:00Z"]), json!({})] {
            let verdict = verdict(&shoot(odd), Some(1), false, late);
            assert_eq!(verdict, Verdict::Annotate(time("2026-08-02T00:00:00Z")), "no annotation");
        }
    }

    /// spec 84 L-0
    #[test]
    fn shoot_in_deletion_is_left_alone() {
        let mut deleting = shoot(json!(CREATED));
        deleting["metadata"]["deletionTimestamp"] = json!("2026-08-02T00:00:00Z");

        for life in [None, Some(1)] {
            assert_eq!(verdict(&deleting, life, false, "2026-08-05T00:00:00Z"), Verdict::Leave);
        }
    }

    /// spec 84 D.2: days are counted in 64 bits; what is no integer is no lifetime.
    #[test]
    fn lifetime_of_any_size_is_no_overflow() {
        let plain = shoot(Value::Null);
        for (life, end) in
            [(i64::MAX, Timestamp::MAX), (i64::MIN, Timestamp::MIN), (i64::from(i32::MIN), Timestamp::MIN)]
        {
            let expected = Verdict::Annotate(whole_seconds(end));
            assert_eq!(verdict(&plain, Some(life), false, CREATED), expected, "{life}");
            let _ = verdict(&shoot(json!(CREATED)), Some(life), true, CREATED);
        }
        for (value, life) in
            [(json!(7), Some(7)), (json!("7"), None), (json!(1.5), None), (json!(null), None), (json!(1e30), None)]
        {
            assert_eq!(lifetime_of_quota(&json!({ "spec": { "clusterLifetimeDays": value } })), life, "{value}");
        }
    }

    /// spec 84 L-8
    #[test]
    fn next_look_is_at_the_end_or_after_the_period() {
        let (now, hour) = (time(CREATED), SignedDuration::from_hours(1));
        let in_seconds =
            |seconds: i64| next_look(now + SignedDuration::from_secs(seconds), hour, now).duration_since(now);

        assert_eq!(in_seconds(60), SignedDuration::from_secs(61));
        assert_eq!(in_seconds(3599), hour);
        assert_eq!(in_seconds(86_400), hour);
        assert_eq!(in_seconds(-60), SignedDuration::from_secs(-59));
        assert_eq!(next_look(Timestamp::MAX, SignedDuration::MAX, now), Timestamp::MAX);
    }

    /// spec 84 L-1
    #[test]
    fn term_depends_on_one_binding() {
        let binding =
            |spec: Value| Term::of(&json!({ "spec": spec })).binding.map(|(kind, name)| (kind, name.to_string()));
        let secret = |name: &str| Some((BindingKind::SecretBinding, name.to_owned()));
        let credentials = |name: &str| Some((BindingKind::CredentialsBinding, name.to_owned()));

        assert_eq!(binding(json!({ "secretBindingName": "s" })), secret("s"));
        assert_eq!(binding(json!({ "secretBindingName": "s", "credentialsBindingName": "c" })), secret("s"));
        assert_eq!(binding(json!({ "secretBindingName": "", "credentialsBindingName": "c" })), credentials("c"));
        assert_eq!(binding(json!({ "secretBindingName": 5, "credentialsBindingName": null })), None);
        assert!(!Term::default().may_end());
    }
}
