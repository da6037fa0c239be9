//! When a Project is stale, and when it is deleted (spec 82 D.3, D.4). Pure.

use std::time::Duration;

use cluster::object;
use jiff::{SignedDuration, Timestamp};
use kit::hash_of;
use serde_json::{Map, Value, json};

use crate::{
    actors::controller_manager::{
        fields::{time, whole_seconds},
        project_namespace::namespace_of,
    },
    api::config::controller_manager::Project as Settings,
};

const SINCE: &str = "staleSinceTimestamp";
const AUTO_DELETE: &str = "staleAutoDeleteTimestamp";

/// Seconds of a day.
const DAY: i64 = 24 * 60 * 60;

/// After a start, the first looks at all Projects are spread over this part of the period (spec 82 "better" 13).
const SPREAD: u32 = 10;

/// What counts of a Project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    uid: Box<str>,
    generation: i64,
    /// Hash of labels and annotations.
    metadata: u64,
    /// Its namespace; `None` if it has none.
    pub namespace: Option<Box<str>>,
    /// It is being deleted.
    pub is_deleting: bool,
    /// When it was created.
    pub created: Option<Timestamp>,
    last_activity: Option<Timestamp>,
    stale: StaleTimes,
}

/// What the status says about staleness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StaleTimes {
    /// `staleSinceTimestamp`: since when the Project is stale.
    pub since: Option<Timestamp>,
    /// `staleAutoDeleteTimestamp`: when it is deleted.
    pub auto_delete: Option<Timestamp>,
}

/// How long what takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Periods {
    /// Age, and time since the last activity, up to which a Project is not stale.
    pub minimum_lifetime: SignedDuration,
    /// Time from which a stale Project has a date of its deletion.
    pub grace: SignedDuration,
    /// Time after which a stale Project is deleted.
    pub expiration: SignedDuration,
}

/// Why a Project is not stale, whether it is in use or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// It is young.
    Age,
    /// There was activity a short time ago.
    Activity,
}

impl Periods {
    /// Reads the settings. Any numbers of days are accepted; very large ones mean never.
    pub fn of(settings: &Settings) -> Self {
        let days = |days: i64| SignedDuration::from_secs(days.saturating_mul(DAY));
        Self {
            minimum_lifetime: days(settings.minimum_lifetime_days),
            grace: days(settings.stale_grace_period_days),
            expiration: days(settings.stale_expiration_time_days),
        }
    }
}

impl Project {
    /// Reads a Project.
    pub fn of(project: &Value) -> Self {
        let metadata = ["/metadata/labels", "/metadata/annotations"].map(|pointer| project.pointer(pointer));
        Self {
            uid: object::uid(project).into(),
            generation: object::generation(project),
            metadata: hash_of(&metadata),
            namespace: namespace_of(project).map(Box::from),
            is_deleting: object::deletion_timestamp(project).is_some(),
            created: time(project, "/metadata/creationTimestamp"),
            last_activity: time(project, "/status/lastActivityTimestamp"),
            stale: StaleTimes {
                since: time(project, &format!("/status/{SINCE}")),
                auto_delete: time(project, &format!("/status/{AUTO_DELETE}")),
            },
        }
    }

    /// Returns true if what was found out about the use of a Project holds for this one: it is the same object, and has the
    /// same namespace.
    pub fn is_same(&self, other: &Self) -> bool {
        self.uid == other.uid && self.namespace == other.namespace && !self.is_deleting
    }

    /// Returns why a Project is not stale at a time, whether it is in use or not (D.3 steps 4 and 5). At exactly the limit
    /// it is not protected any more.
    pub fn protection(&self, periods: Periods, now: Timestamp) -> Option<Protection> {
        let is_within = |start: Timestamp| later(start, periods.minimum_lifetime) > now;
        if self.created.is_none_or(is_within) {
            return Some(Protection::Age); // without a time nothing is known of its age
        }
        self.last_activity.is_some_and(is_within).then_some(Protection::Activity)
    }

    /// Returns what the status must say at a time about a Project that is stale if nothing protects it (D.4).
    pub fn stale_times(&self, periods: Periods, now: Timestamp) -> StaleTimes {
        let since = self.stale.since.unwrap_or_else(|| whole_seconds(now));
        if later(since, periods.grace) > now {
            return StaleTimes { since: Some(since), auto_delete: None };
        }
        let candidate = later(since, periods.expiration);
        StaleTimes { since: Some(since), auto_delete: self.stale.auto_delete.max(Some(candidate)) }
    }

    /// Returns the times as the status has them.
    pub fn stale(&self) -> StaleTimes {
        self.stale
    }

    /// Returns the merge patch for `/status` that makes it say this; `None` if it does. Only what differs is in it.
    pub fn stale_patch(&self, wanted: StaleTimes) -> Option<Value> {
        let fields =
            [(SINCE, self.stale.since, wanted.since), (AUTO_DELETE, self.stale.auto_delete, wanted.auto_delete)];
        let differing = fields.into_iter().filter(|(_, known, wanted)| known != wanted);
        let status: Map<_, _> =
            differing.map(|(name, _, wanted)| (name.to_owned(), json!(wanted.map(|time| time.to_string())))).collect();
        (!status.is_empty()).then(|| json!({ "status": status }))
    }

    /// Returns true if a Project that is not in use must be deleted at a time (D.3 step 8): nothing protects it, and the
    /// date of its deletion has come.
    pub fn is_expired(&self, periods: Periods, now: Timestamp) -> bool {
        let auto_delete = self.stale_times(periods, now).auto_delete;
        !self.is_deleting && self.protection(periods, now).is_none() && auto_delete.is_some_and(|date| date <= now)
    }

    /// Returns the next time at which one of its limits ends: lifetime, grace, expiration (spec 82 "better" 14).
    pub fn next_limit(&self, periods: Periods, now: Timestamp) -> Option<Timestamp> {
        let lifetimes = [self.created, self.last_activity].into_iter().flatten();
        let lifetimes = lifetimes.map(|start| later(start, periods.minimum_lifetime));
        let grace = self.stale.since.map(|since| later(since, periods.grace));
        lifetimes.chain(grace).chain(self.stale.auto_delete).filter(|limit| *limit > now).min()
    }
}

/// Returns when a Project is looked at first after a start, from the start on: evenly spread, always the same for a
/// Project.
pub fn first_look(project: &Project, period: Duration) -> Duration {
    const STEPS: u32 = 1 << 16;
    let step = u32::try_from(hash_of(&project.uid) % u64::from(STEPS)).unwrap_or_default();
    (period / SPREAD / STEPS).saturating_mul(step)
}

/// Adds without overflow.
fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    let limit = if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
    time.checked_add(by).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of the scenarios of spec 82.
    const PERIODS: Periods = Periods { minimum_lifetime: days(5), grace: days(10), expiration: days(15) };

    const SECOND: SignedDuration = SignedDuration::from_secs(1);

    const fn days(days: i64) -> SignedDuration {
        SignedDuration::from_secs(days * DAY)
    }

    fn now() -> Timestamp {
        "2026-08-21T12:00:00.25Z".parse().unwrap()
    }

    /// A Project that is 100 days old; times in days from now.
    fn project(since: Option<i64>, auto_delete: Option<i64>) -> Project {
        let at = |from_now: i64| whole_seconds(now()) + days(from_now);
        Project {
            uid: "u1".into(),
            generation: 1,
            metadata: 0,
            namespace: Some("garden-dev".into()),
            is_deleting: false,
            created: Some(at(-100)),
            last_activity: None,
            stale: StaleTimes { since: since.map(at), auto_delete: auto_delete.map(at) },
        }
    }

    /// spec 82 D.3 steps 4 and 5, traps D-T1 and D-T2, scenario 40
    #[test]
    fn project_is_protected_while_it_is_young_and_after_activity() {
        let protection = |age: SignedDuration, idle: Option<SignedDuration>| {
            let project = Project {
                created: Some(now() - age),
                last_activity: idle.map(|idle| now() - idle),
                ..project(Some(-1), None)
            };
            project.protection(PERIODS, now())
        };
        let old = days(100);

        assert_eq!(protection(days(5) - SECOND, None), Some(Protection::Age));
        assert_eq!(protection(days(5), None), None, "the limit is exclusive");
        assert_eq!(protection(old, Some(days(5) - SECOND)), Some(Protection::Activity));
        assert_eq!(protection(old, Some(days(5))), None);
        assert_eq!(protection(old, Some(-days(7))), Some(Protection::Activity), "a time in the future");
        assert_eq!(protection(SECOND, Some(SECOND)), Some(Protection::Age));
        let unknown = Project { created: None, ..project(None, None) };
        assert_eq!(unknown.protection(PERIODS, now()), Some(Protection::Age));
    }

    /// spec 82 D.3: a minimum lifetime of zero or less protects nothing except activity in the future.
    #[test]
    fn project_without_a_minimum_lifetime_is_protected_by_activity_in_the_future_only() {
        for lifetime in [SignedDuration::ZERO, -days(1)] {
            let periods = Periods { minimum_lifetime: lifetime, ..PERIODS };
            let created_now = Project { created: Some(now()), last_activity: Some(now()), ..project(None, None) };
            let future = Project { last_activity: Some(now() + days(2)), ..created_now.clone() };

            assert_eq!(created_now.protection(periods, now()), None);
            assert_eq!(future.protection(periods, now()), Some(Protection::Activity));
        }
    }

    /// spec 82 D.4, scenarios 41 to 44
    #[test]
    fn stale_project_has_a_date_of_its_deletion_after_the_grace_period() {
        let table = [
            // since, date before; since, date afterwards
            ((None, None), (0, None)),
            ((None, Some(3)), (0, None)),
            ((Some(-9), None), (-9, None)),
            ((Some(-9), Some(6)), (-9, None)),
            ((Some(-10), None), (-10, Some(5))),
            ((Some(-11), None), (-11, Some(4))),
            ((Some(-11), Some(9)), (-11, Some(9))),
            ((Some(-11), Some(1)), (-11, Some(4))),
            ((Some(-11), Some(-1)), (-11, Some(4))),
            ((Some(-20), None), (-20, Some(-5))),
            ((Some(2), Some(1)), (2, None)),
        ];
        for ((since, date), (new_since, new_date)) in table {
            let times = project(since, date).stale_times(PERIODS, now());

            assert_eq!(times, project(Some(new_since), new_date).stale(), "{since:?} {date:?}");
        }
    }

    /// spec 82 D.3 steps 8 and 9, D.4, scenario 44
    #[test]
    fn project_is_expired_when_its_date_has_come_and_nothing_protects_it() {
        let is_expired = |project: &Project| project.is_expired(PERIODS, now());
        for (since, date, expected) in [
            (None, None, false),
            (None, Some(-1), false),
            (Some(-9), Some(-1), false),
            (Some(-11), Some(-1), false),
            (Some(-14), None, false),
            (Some(-15), None, true),
            (Some(-15), Some(0), true),
            (Some(-20), Some(1), false),
            (Some(-20), Some(-1), true),
        ] {
            assert_eq!(is_expired(&project(since, date)), expected, "{since:?} {date:?}");
        }
        let due = || project(Some(-20), Some(-1));
        assert!(!is_expired(&Project { is_deleting: true, ..due() }));
        assert!(!is_expired(&Project { last_activity: Some(now() - days(1)), ..due() }));
        assert!(!is_expired(&Project { created: Some(now() - days(1)), ..due() }));
        let without_grace = Periods { grace: SignedDuration::ZERO, expiration: -days(1), ..PERIODS };
        assert!(project(None, None).is_expired(without_grace, now()), "in the very first reconcile");
    }

    /// spec 82 D.4: only the two fields, and only what differs
    #[test]
    fn stale_patch_has_what_differs() {
        let patch = |before: (Option<i64>, Option<i64>), after: (Option<i64>, Option<i64>)| {
            project(before.0, before.1).stale_patch(project(after.0, after.1).stale())
        };
        let none = (None, None);

        assert_eq!(patch(none, none), None);
        assert_eq!(patch((Some(-1), Some(1)), (Some(-1), Some(1))), None);
        let both = json!({ "status": { "staleSinceTimestamp": null, "staleAutoDeleteTimestamp": null } });
        assert_eq!(patch((Some(-1), Some(1)), none), Some(both));
        let since = json!({ "status": { "staleSinceTimestamp": "2026-08-21T12:00:00Z" } });
        assert_eq!(patch(none, (Some(0), None)), Some(since));
        let date = json!({ "status": { "staleAutoDeleteTimestamp": "2026-08-22T12:00:00Z" } });
        assert_eq!(patch((Some(-14), None), (Some(-14), Some(1))), Some(date));
    }

    /// spec 82 "better" 14
    #[test]
    fn next_limit_is_the_first_in_the_future() {
        let limit = |project: Project| project.next_limit(PERIODS, now()).map(|limit| limit.duration_since(now()));
        let about = |days_from_now| Some(days(days_from_now) - SignedDuration::from_millis(250));

        assert_eq!(limit(project(None, None)), None);
        assert_eq!(limit(project(Some(-4), None)), about(6));
        assert_eq!(limit(project(Some(-11), Some(4))), about(4));
        assert_eq!(limit(project(Some(-20), Some(-1))), None);
        let young = Project { created: Some(now() - days(2)), ..project(None, None) };
        assert_eq!(limit(young.clone()), Some(days(3)));
        assert_eq!(limit(Project { last_activity: Some(now() - days(4)), ..young }), Some(days(1)));
    }

    /// spec 82 §4: upstream overflows above 106751 days.
    #[test]
    fn periods_of_any_length_are_no_overflow() {
        for number in [i64::MAX, i64::MIN, 106_752, 0, -1] {
            let settings = Settings {
                minimum_lifetime_days: number,
                stale_grace_period_days: number,
                stale_expiration_time_days: number,
                ..Settings::default()
            };
            let periods = Periods::of(&settings);
            let project = project(Some(-1), Some(1));

            let is_long = number > 0;
            assert_eq!(project.protection(periods, now()).is_some(), is_long, "{number}");
            assert_eq!(project.stale_times(periods, now()).auto_delete.is_none(), is_long, "{number}");
            assert!(project.next_limit(periods, now()).is_some(), "{number}");
        }
        let default = Periods { minimum_lifetime: days(30), grace: days(14), expiration: days(90) };
        assert_eq!(Periods::of(&Settings::default()), default);
    }

    /// spec 82 "better" 13
    #[test]
    fn first_looks_are_spread_over_a_tenth_of_the_period() {
        let period = Duration::from_secs(12 * 60 * 60);
        let looks = (0..1000).map(|number| {
            let project = Project { uid: format!("u{number}").into(), ..project(None, None) };
            first_look(&project, period)
        });
        let mut looks: Vec<_> = looks.collect();
        looks.sort_unstable();

        assert!(looks.iter().all(|look| *look < period / 10));
        let gaps = looks.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.max() < Some(period / 200), "no long time without a look, no burst after it");
        assert_eq!(first_look(&project(None, None), Duration::ZERO), Duration::ZERO);
    }

    /// spec 82 D.2: what wakes a Project
    #[test]
    fn project_differs_if_anything_differs_that_counts() {
        let base = json!({ "metadata": { "uid": "u1", "generation": 1, "labels": { "a": "b" } },
            "spec": { "namespace": "garden-dev" }, "status": { "phase": "Ready" } });
        let with = |pointer: &[&str], value: Value| {
            let mut changed = base.clone();
            *object::field_mut(&mut changed, pointer) = value;
            Project::of(&changed) != Project::of(&base)
        };

        for (pointer, value) in [
            (&["metadata", "generation"][..], json!(2)),
            (&["metadata", "labels"], json!({ "a": "c" })),
            (&["metadata", "annotations"], json!({ "a": "b" })),
            (&["status", "lastActivityTimestamp"], json!("2026-08-21T12:00:00Z")),
            (&["status", SINCE], json!("2026-08-21T12:00:00Z")),
            (&["status", AUTO_DELETE], json!("2026-08-21T12:00:00Z")),
        ] {
            assert!(with(pointer, value), "{pointer:?}");
        }
        assert!(!with(&["status", "phase"], json!("Failed")));
        assert!(!with(&["metadata", "resourceVersion"], json!("7")));
        assert!(!with(&["metadata", "finalizers"], json!(["gardener"])));
    }
}
