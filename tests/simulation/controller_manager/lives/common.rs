//! What all parts of a life know: the simulator, the program's clock, and how old a decision may be.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cluster::{Resource, object};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sim::Sim;
use tokio::time::Instant;

use crate::controller_manager::garden::{self, resource};

/// A write may rest on what was read this long before: a reconcile may take three minutes, and a request some seconds.
const LAG: Duration = Duration::from_secs(200);
/// The same in a life without faults of requests.
const SHORT_LAG: Duration = Duration::from_secs(3);

/// Known to all parts of a life. Clones share it.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) sim: Sim,
    /// Requests are undisturbed.
    pub(super) calm: bool,
    clock: Arc<Mutex<Clock>>,
}

/// The wall clock of the program.
struct Clock {
    begin: Timestamp,
    start: Instant,
    /// By how many seconds it is ahead, and since when.
    ahead: Vec<(Instant, i64)>,
}

impl Common {
    pub(super) fn new(sim: &Sim, begin: Timestamp, calm: bool) -> Self {
        let start = Instant::now();
        let clock = Clock { begin, start, ahead: vec![(start, 0)] };
        Self { sim: sim.clone(), calm, clock: Arc::new(Mutex::new(clock)) }
    }

    /// How old the facts of a decision may be.
    pub(super) fn lag(&self) -> Duration {
        if self.calm { SHORT_LAG } else { LAG }
    }

    /// The clock jumps.
    pub(super) fn jump(&self, seconds: i64) {
        let mut clock = lock(&self.clock);
        let ahead = clock.ahead.last().map_or(0, |(_, ahead)| *ahead);
        clock.ahead.push((Instant::now(), ahead + seconds));
    }

    /// Returns the time now, as the program's clock shows it.
    pub(super) fn wall(&self) -> Timestamp {
        let clock = lock(&self.clock);
        clock.at(clock.ahead.last().map_or(0, |(_, ahead)| *ahead))
    }

    /// Returns the latest time that a decision may rest on which is carried out now.
    pub(super) fn latest_wall(&self) -> Timestamp {
        let clock = lock(&self.clock);
        let ends = clock.ahead.iter().skip(1).map(|(since, _)| Some(*since)).chain([None]);
        let is_recent = |end: Option<Instant>| end.is_none_or(|end| end.elapsed() <= self.lag());
        let recent = clock.ahead.iter().zip(ends).filter(|(_, end)| is_recent(*end)).map(|((_, ahead), _)| *ahead);
        clock.at(recent.max().unwrap_or_default())
    }

    /// Returns the time in so many seconds, as texts of the API write it.
    pub(super) fn time(&self, seconds: i64) -> String {
        (self.wall() + SignedDuration::from_secs(seconds)).to_string()
    }

    pub(super) fn find(&self, kind: &Resource, namespace: &str, name: &str) -> Option<Value> {
        self.sim.object(&resource(kind), namespace, name)
    }

    pub(super) fn all(&self, kind: &Resource) -> Vec<Value> {
        self.sim.objects(&resource(kind))
    }

    /// Sets fields of an object, or creates it with them. Metadata of an object that exists stays. A kind that is not
    /// served has no objects.
    pub(super) fn set(&self, kind: &Resource, namespace: &str, name: &str, fields: Value) {
        let change = |live: &mut Value| {
            let fields = fields.as_object().into_iter().flatten().filter(|(field, _)| *field != "metadata");
            for (field, value) in fields {
                live[field] = value.clone();
            }
        };
        if !self.sim.edit(&resource(kind), namespace, name, change) {
            drop(self.sim.put(garden::object(kind, namespace, name, fields.clone())));
        }
    }

    /// Creates an object unless it exists.
    pub(super) fn create(&self, kind: &Resource, namespace: &str, name: &str, fields: Value) {
        if self.find(kind, namespace, name).is_none() {
            drop(self.sim.put(garden::object(kind, namespace, name, fields)));
        }
    }

    pub(super) fn remove(&self, kind: &Resource, namespace: &str, name: &str) -> Option<Value> {
        self.sim.remove(&resource(kind), namespace, name)
    }

    /// Removes a finalizer, as another program does at the end of its work.
    pub(super) fn unhold(&self, kind: &Resource, namespace: &str, name: &str, finalizer: &str) {
        let Some(live) = self.find(kind, namespace, name) else { return };
        let left: Vec<_> = object::finalizers(&live).filter(|other| *other != finalizer).map(str::to_owned).collect();
        if left.is_empty() && is_deleting(&live) {
            self.remove(kind, namespace, name);
        } else {
            self.sim.edit(&resource(kind), namespace, name, |live| live["metadata"]["finalizers"] = json!(left));
        }
    }
}

impl Clock {
    fn at(&self, ahead: i64) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.start.elapsed()).expect("a short life");
        self.begin + elapsed + SignedDuration::from_secs(ahead)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn is_deleting(object: &Value) -> bool {
    object::deletion_timestamp(object).is_some()
}

pub(super) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    object::finalizers(object).any(|other| other == finalizer)
}

/// Returns the text at a JSON pointer; empty if there is none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the entry of a list of conditions.
pub(super) fn condition<'a>(object: &'a Value, list_at: &str, kind: &str) -> Option<&'a Value> {
    list(object, list_at).find(|condition| condition["type"] == kind)
}

pub(super) fn parse(time: &str) -> Option<Timestamp> {
    time.parse().ok()
}

pub(super) fn one_of<T: Copy>(random: &mut fastrand::Rng, of: &[T]) -> T {
    of[random.usize(0..of.len())]
}
