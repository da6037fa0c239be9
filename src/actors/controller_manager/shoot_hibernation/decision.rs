//! What is due for a Shoot, and when to look again (spec 84 §B.3). Pure.

use std::sync::Arc;

use cluster::object;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::schedules::{Entry, Operation, ScheduleError, Schedules, first};
use crate::actors::controller_manager::fields::{text, time, whole_seconds};

/// Older times are never executed (spec 84 B-12).
const LONGEST_LOOK_BACK: SignedDuration = SignedDuration::from_hours(7 * 24);

/// So much later than a time the timer ends, because clocks are corrected by a little (spec 84 B-13).
const MARGIN: SignedDuration = SignedDuration::from_millis(100);

/// So much later than a time that is executed, or than a look at a failed Shoot, it is looked at again. `@every 1s` would
/// cost requests each second otherwise. Other entries occur once a minute at most, and are not delayed (spec 84 B-13).
const PAUSE: SignedDuration = SignedDuration::from_mins(1);

/// What matters of a Shoot.
#[derive(Debug, Clone)]
pub struct Shoot {
    is_deleting: bool,
    is_failed: bool,
    /// `spec.hibernation.enabled`, if it is there.
    pub enabled: Option<bool>,
    created: Option<Timestamp>,
    /// `status.lastHibernationTriggerTime`, if it is there.
    pub triggered: Option<Timestamp>,
    schedules: Option<Arc<Schedules>>,
}

/// What to do about a Shoot.
#[derive(Debug)]
pub enum Verdict<'s> {
    /// Nothing: it is being deleted.
    Deleting,
    /// Nothing: it has no schedules.
    NoSchedules,
    /// Nothing, because its schedules, at this revision, are invalid.
    Invalid(u64, &'s ScheduleError),
    /// What the schedules say.
    Plan(Plan<'s>),
}

/// What the schedules of a Shoot say.
#[derive(Debug)]
pub struct Plan<'s> {
    /// Revision of the schedules.
    pub revision: u64,
    /// The Shoot is failed, so nothing is due.
    pub is_failed: bool,
    /// What is due now.
    pub due: Option<Due<'s>>,
    /// The next time of any entry.
    pub next: Option<(Timestamp, &'s Entry)>,
    /// Entries without any time, lately or within five years (spec 84 B-11): how many, and the first.
    pub dead: Option<(usize, &'s Entry)>,
    /// The Shoot is not looked at again before this time.
    resumed: Option<Timestamp>,
}

/// An entry that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due<'s> {
    /// Its time.
    pub time: Timestamp,
    /// The entry.
    pub entry: &'s Entry,
}

/// The times of an entry that matter now.
struct EntryTimes<'s> {
    entry: &'s Entry,
    /// The last time that counts.
    last: Option<Timestamp>,
    next: Option<Timestamp>,
}

impl Shoot {
    /// Reads a Shoot. `gardener_version` is the version whose failures count; any if it is empty (spec 84 D-6).
    pub fn of(shoot: &Value, gardener_version: &str) -> Self {
        let observed = shoot.pointer("/status/observedGeneration").and_then(Value::as_i64).unwrap_or_default();
        let is_of_version = gardener_version.is_empty() || text(shoot, "/status/gardener/version") == gardener_version;
        Self {
            is_deleting: object::deletion_timestamp(shoot).is_some(),
            is_failed: text(shoot, "/status/lastOperation/state") == "Failed"
                && object::generation(shoot) == observed
                && is_of_version,
            enabled: shoot.pointer("/spec/hibernation/enabled").and_then(Value::as_bool),
            created: time(shoot, "/metadata/creationTimestamp"),
            triggered: time(shoot, "/status/lastHibernationTriggerTime"),
            schedules: Schedules::of(shoot).map(Arc::new),
        }
    }

    /// Returns true if the Shoot has schedules.
    pub fn has_schedules(&self) -> bool {
        self.schedules.is_some()
    }

    /// Returns true if a change to `new` is a reason to look at the Shoot at once: other schedules, or the end of a failure
    /// (spec 84 §B.1, "better" 4). Everything else waits for the timer.
    pub fn is_woken_by(&self, new: &Self) -> bool {
        let revision = |shoot: &Self| shoot.schedules.as_ref().map(|schedules| schedules.revision);
        revision(self) != revision(new) || self.is_failed && !new.is_failed
    }

    /// Judges the Shoot. Times that are missed by more than `deadline` do not count.
    pub fn judge(&self, deadline: SignedDuration, now: Timestamp) -> Verdict<'_> {
        if self.is_deleting {
            return Verdict::Deleting;
        }
        let Some(schedules) = &self.schedules else { return Verdict::NoSchedules };
        let entries = match &schedules.entries {
            Ok(entries) => entries,
            Err(error) => return Verdict::Invalid(schedules.revision, error),
        };
        let start = self.start().unwrap_or(Timestamp::MIN);
        let earliest = earliest(start, deadline, now);
        let of_entry = |entry| EntryTimes::of(entry, start, earliest, now);
        let times: Vec<EntryTimes<'_>> = entries.iter().map(of_entry).collect();
        let mut dead = times.iter().filter(|times| times.is_dead()).map(|times| times.entry);
        let first_dead = dead.next();
        let due = if self.is_failed { None } else { due(&times) };
        let paused = due.map(|due| due.time).or(self.is_failed.then_some(now));
        Verdict::Plan(Plan {
            revision: schedules.revision,
            is_failed: self.is_failed,
            due,
            next: first(times.iter().filter_map(|times| Some((times.next?, times.entry)))),
            dead: first_dead.map(|first| (1 + dead.count(), first)),
            resumed: paused.map(|paused| paused.checked_add(PAUSE).unwrap_or(paused)),
        })
    }

    /// Returns the last trigger time, or the creation, from which `@every` counts (spec 84 B-8, B-12); `None` if neither is
    /// known.
    pub fn start(&self) -> Option<Timestamp> {
        self.triggered.or(self.created)
    }

    /// Returns what is due.
    pub fn due(&self, deadline: SignedDuration, now: Timestamp) -> Option<Due<'_>> {
        match self.judge(deadline, now) {
            Verdict::Plan(plan) => plan.due,
            Verdict::Deleting | Verdict::NoSchedules | Verdict::Invalid(..) => None,
        }
    }
}

impl<'s> EntryTimes<'s> {
    fn of(entry: &'s Entry, start: Timestamp, earliest: Timestamp, now: Timestamp) -> Self {
        Self { entry, last: entry.previous_from(start, earliest, now), next: entry.next_from(start, now) }
    }

    fn is_dead(&self) -> bool {
        self.last.is_none() && self.next.is_none()
    }
}

/// Returns the instant after which times count (spec 84 B-12).
fn earliest(start: Timestamp, deadline: SignedDuration, now: Timestamp) -> Timestamp {
    let ago = |duration| now.checked_sub(duration).unwrap_or(Timestamp::MIN);
    start.max(ago(deadline)).max(ago(LONGEST_LOOK_BACK))
}

/// Returns the entry with the latest time. At the same time the first entry wins (spec 84 B-12).
fn due<'s>(times: &[EntryTimes<'s>]) -> Option<Due<'s>> {
    let times = times.iter().filter_map(|times| Some(Due { time: times.last?, entry: times.entry }));
    times.reduce(|last, other| if other.time > last.time { other } else { last })
}

impl Plan<'_> {
    /// Returns when to look at the Shoot again (spec 84 B-13).
    pub fn timer(&self) -> Option<Timestamp> {
        let (next, _) = self.next?;
        let timer = next.checked_add(MARGIN).unwrap_or(next);
        Some(self.resumed.map_or(timer, |resumed| timer.max(resumed)))
    }
}

impl Operation {
    /// Returns the patch of the Shoot (spec 84 §B.4, W1).
    pub fn patch(self) -> Value {
        json!({ "spec": { "hibernation": { "enabled": self.enabled() } } })
    }
}

/// Returns the patch of the status (spec 84 §B.4, W2).
pub fn trigger_patch(now: Timestamp) -> Value {
    json!({ "status": { "lastHibernationTriggerTime": whole_seconds(now).to_string() } })
}
