//! `spec.hibernation.schedules` of a Shoot (spec 84 §B.2). Pure.

use std::{fmt, iter};

use jiff::{Timestamp, tz::TimeZone};
use kit::{
    hash_of,
    quote::{cut_after, quoted},
};
use serde_json::Value;

use crate::api::meta::cron::{
    CronError, CronSpec,
    zone::{ZoneError, zone},
};

/// Where the schedules of a Shoot are.
const PATH: &str = "spec.hibernation.schedules";

/// More schedules, or entries of them, are an error: each look at a Shoot computes times of all its entries. A Shoot of usual
/// size has about ten.
pub const MOST_ENTRIES: usize = 1_000;

/// What a schedule does with a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `start`: sets `enabled`.
    Hibernate,
    /// `end`: unsets it.
    WakeUp,
}

/// `start` or `end` of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Position of the schedule, counted from 0.
    pub schedule: usize,
    /// What it does.
    pub operation: Operation,
    cron: CronSpec,
    zone: TimeZone,
}

/// The schedules of a Shoot: all entries in their order, or why they are invalid.
#[derive(Debug, Clone)]
pub struct Schedules {
    /// A hash of the list as it is written.
    pub revision: u64,
    /// The entries, at least one.
    pub entries: Result<Box<[Entry]>, ScheduleError>,
}

/// Why the schedules of a Shoot are invalid: the field, its value, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// A schedule is no map.
    #[error("{0}: it is no map — write start, end and location in it")]
    Map(String),
    /// A field is no text.
    #[error("{0}: it is no text — write it in quotes")]
    Text(String),
    /// `start` or `end` is no cron entry.
    #[error("{path}: {value}: {error}")]
    Cron {
        /// The field.
        path: String,
        /// Its value, or the beginning, in quotes.
        value: String,
        /// What is wrong.
        error: CronError,
    },
    /// There is no such location.
    #[error("{path}: {error}")]
    Zone {
        /// The field.
        path: String,
        /// What is wrong.
        error: ZoneError,
    },
    /// There are more than [`MOST_ENTRIES`].
    #[error("{PATH}: there are more than {MOST_ENTRIES} schedules, or times in them — remove some")]
    TooMany,
    /// No schedule has a time.
    #[error("{PATH}: no schedule has a time — write start, end or both")]
    NoEntry,
}

impl Operation {
    /// Returns the value of `spec.hibernation.enabled`.
    pub fn enabled(self) -> bool {
        self == Self::Hibernate
    }

    fn field(self) -> &'static str {
        match self {
            Self::Hibernate => "start",
            Self::WakeUp => "end",
        }
    }
}

impl Schedules {
    /// Reads the schedules of a Shoot. Returns `None` if it has none: the list is absent or empty.
    pub fn of(shoot: &Value) -> Option<Self> {
        let list = shoot.pointer("/spec/hibernation/schedules")?;
        let schedules = list.as_array().filter(|schedules| !schedules.is_empty())?;
        Some(Self { revision: hash_of(list), entries: entries(schedules) })
    }
}

/// One mistake spoils the whole list (spec 84 §B.3 step 3).
fn entries(schedules: &[Value]) -> Result<Box<[Entry]>, ScheduleError> {
    if schedules.len() > MOST_ENTRIES {
        return Err(ScheduleError::TooMany);
    }
    let mut entries = Vec::new();
    for (schedule, fields) in schedules.iter().enumerate() {
        if !fields.is_object() && !fields.is_null() {
            return Err(ScheduleError::Map(format!("{PATH}[{schedule}]")));
        }
        let path = |field: &str| format!("{PATH}[{schedule}].{field}");
        let location = text(fields, "location", path)?.unwrap_or_default();
        let zone = zone(location).map_err(|error| ScheduleError::Zone { path: path("location"), error })?;
        for operation in [Operation::Hibernate, Operation::WakeUp] {
            let Some(text) = text(fields, operation.field(), path)? else { continue };
            let cron = text.parse().map_err(|error| ScheduleError::Cron {
                path: path(operation.field()),
                value: quoted(&cut_after(40, text)),
                error,
            })?;
            if entries.len() == MOST_ENTRIES {
                return Err(ScheduleError::TooMany);
            }
            entries.push(Entry { schedule, operation, cron, zone: zone.clone() });
        }
    }
    if entries.is_empty() { Err(ScheduleError::NoEntry) } else { Ok(entries.into()) }
}

/// Returns the text of a field; `None` if it is absent or null.
fn text<'f>(fields: &'f Value, field: &str, path: impl Fn(&str) -> String) -> Result<Option<&'f str>, ScheduleError> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(ScheduleError::Text(path(field)))
        }
    }
}

impl Entry {
    /// Returns its first time after an instant; `None` if there is none within five years. `@every` counts from the instant.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.cron.next(&self.zone, after)
    }

    /// As [`Self::next`]; `@every` counts from `start` (spec 84 B-8).
    pub fn next_from(&self, start: Timestamp, after: Timestamp) -> Option<Timestamp> {
        if self.cron.counts_from_start() {
            self.next(self.previous(start, after).unwrap_or(start))
        } else {
            self.next(after)
        }
    }

    /// As [`Self::previous`]; `@every` counts from `start`, which is not after `from` (spec 84 B-8).
    pub fn previous_from(&self, start: Timestamp, from: Timestamp, to: Timestamp) -> Option<Timestamp> {
        if self.cron.counts_from_start() {
            self.previous(start, to).filter(|time| *time > from)
        } else {
            self.previous(from, to)
        }
    }

    /// Returns its last time after `from` that is not after `to`. `@every` counts from `from`.
    pub fn previous(&self, from: Timestamp, to: Timestamp) -> Option<Timestamp> {
        self.cron.previous(&self.zone, from, to)
    }

    /// Returns the zone on whose clocks its times are.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }
}

impl fmt::Display for Entry {
    /// The path of its field.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PATH}[{}].{}", self.schedule, self.operation.field())
    }
}

/// Returns the first time. At the same time the first entry wins.
pub fn first<'s>(times: impl Iterator<Item = (Timestamp, &'s Entry)>) -> Option<(Timestamp, &'s Entry)> {
    times.reduce(|first, other| if other.0 < first.0 { other } else { first })
}

/// Returns the times after an instant, with the entry that takes effect then. `@every` counts from `start` until something
/// takes effect, and from then on anew.
pub fn upcoming(entries: &[Entry], start: Timestamp, from: Timestamp) -> impl Iterator<Item = (Timestamp, &Entry)> {
    let after =
        move |start, time| first(entries.iter().filter_map(move |entry| Some((entry.next_from(start, time)?, entry))));
    iter::successors(after(start, from), move |(time, _)| after(*time, *time))
}
