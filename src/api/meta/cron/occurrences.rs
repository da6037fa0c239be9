//! When an entry occurs (spec 84 B-8 to B-11).
//!
//! Between two changes of its offset, a zone's clocks run as those of UTC do. So each such stretch is searched on local time,
//! where the bits of the fields give the answer month by month. A local time that a change skips is in no stretch, and one
//! that occurs twice is in two.
//!
//! Instants are seconds since 1970, local times are minutes since the local midnight of 1970-01-01.

use jiff::{
    Timestamp,
    civil::Date,
    tz::{Offset, TimeZone},
};

use super::{
    CronSpec, Kind,
    fields::{Fields, bit, bits_below, bits_to, highest, lowest},
};

const MINUTE: i64 = 60;
const MINUTES_OF_DAY: i64 = 24 * 60;
const DAY: i64 = 24 * 60 * 60;

/// Five years, in seconds. An entry without an occurrence within that time is dead (spec 84 B-11).
const HORIZON: i64 = (5 * 365 + 2) * DAY;

impl CronSpec {
    /// Returns true for `@every`: its occurrences count from a start (spec 84 B-8). Those of others are on a fixed grid.
    pub fn counts_from_start(&self) -> bool {
        matches!(self.0, Kind::Every(_))
    }

    /// Returns the first occurrence after an instant; `None` if there is none within five years (spec 84 B-9, B-11).
    /// `@every` counts from the instant, without its part of a second (spec 84 B-8).
    pub fn next(&self, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
        let after = second(after);
        let last = after.saturating_add(HORIZON);
        let next = match &self.0 {
            Kind::Every(seconds) => Some(after.saturating_add(*seconds)).filter(|next| *next <= last),
            Kind::Fields(fields) => fields.next(zone, after + 1, last),
        };
        Timestamp::from_second(next?).ok()
    }

    /// Returns the last occurrence after `from` that is not after `to`; `None` if there is none (spec 84 B-9). `@every` counts
    /// from `from`, without its part of a second. The work grows with the months and the changes of clocks between them.
    pub fn previous(&self, zone: &TimeZone, from: Timestamp, to: Timestamp) -> Option<Timestamp> {
        let (from, to) = (second(from), second(to));
        if from >= to {
            return None;
        }
        let previous = match &self.0 {
            Kind::Every(seconds) => {
                let past = to - from;
                (past >= *seconds).then(|| to - past % seconds)
            }
            Kind::Fields(fields) => fields.previous(zone, from + 1, to),
        };
        Timestamp::from_second(previous?).ok()
    }
}

impl Fields {
    /// Returns the first matching instant from `first` to `last`.
    fn next(&self, zone: &TimeZone, first: i64, last: i64) -> Option<i64> {
        let mut from = first;
        while from <= last {
            let at = Timestamp::from_second(from).ok()?;
            let offset = i64::from(zone.to_offset(at).seconds());
            let mut changes = zone.following(at).map(|change| change.timestamp().as_second());
            let end = changes.find(|change| *change > from).unwrap_or(i64::MAX).min(last + 1);
            let local_first = (from + offset).div_euclid(MINUTE) + i64::from((from + offset).rem_euclid(MINUTE) > 0);
            let local_last = (end - 1 + offset).div_euclid(MINUTE);
            if let Some(local) = self.local_from(local_first, local_last) {
                return Some(local * MINUTE - offset);
            }
            from = end;
        }
        None
    }

    /// Returns the last matching instant from `first` to `last`.
    fn previous(&self, zone: &TimeZone, first: i64, last: i64) -> Option<i64> {
        let mut until = last;
        while until >= first {
            let offset = i64::from(zone.to_offset(Timestamp::from_second(until).ok()?).seconds());
            // A change at this very second is the beginning of the stretch.
            let changes = zone.preceding(Timestamp::from_second(until + 1).ok()?);
            let mut changes = changes.map(|change| change.timestamp().as_second());
            let begin = changes.find(|change| *change <= until).unwrap_or(i64::MIN).max(first);
            let local_first = (begin + offset).div_euclid(MINUTE) + i64::from((begin + offset).rem_euclid(MINUTE) > 0);
            let local_last = (until + offset).div_euclid(MINUTE);
            if let Some(local) = self.local_until(local_first, local_last) {
                return Some(local * MINUTE - offset);
            }
            until = begin - 1;
        }
        None
    }

    /// Returns the first matching local minute from `first` to `last`.
    fn local_from(&self, first: i64, last: i64) -> Option<i64> {
        let (day, minute) = (first.div_euclid(MINUTES_OF_DAY), first.rem_euclid(MINUTES_OF_DAY));
        let date = date(day)?;
        let (mut month, mut before) = (date.first_of_month(), day - i64::from(date.day()));
        let mut days = self.days_of(month);
        if days & bit(date.day()) != 0
            && let Some(minute) = self.minute_from(minute)
        {
            return Some(day * MINUTES_OF_DAY + minute).filter(|local| *local <= last);
        }
        days &= !bits_to(date.day());
        while (before + 1) * MINUTES_OF_DAY <= last {
            if let Some(day) = lowest(days) {
                let local = (before + day) * MINUTES_OF_DAY + self.minute_from(0)?;
                return Some(local).filter(|local| *local <= last);
            }
            before += i64::from(month.days_in_month());
            month = month.last_of_month().tomorrow().ok()?;
            days = self.days_of(month);
        }
        None
    }

    /// Returns the last matching local minute from `first` to `last`.
    fn local_until(&self, first: i64, last: i64) -> Option<i64> {
        let (day, minute) = (last.div_euclid(MINUTES_OF_DAY), last.rem_euclid(MINUTES_OF_DAY));
        let date = date(day)?;
        let (mut month, mut before) = (date.first_of_month(), day - i64::from(date.day()));
        let mut days = self.days_of(month);
        if days & bit(date.day()) != 0
            && let Some(minute) = self.minute_until(minute)
        {
            return Some(day * MINUTES_OF_DAY + minute).filter(|local| *local >= first);
        }
        days &= bits_below(date.day());
        loop {
            if let Some(day) = highest(days) {
                let local = (before + day) * MINUTES_OF_DAY + self.minute_until(MINUTES_OF_DAY - 1)?;
                return Some(local).filter(|local| *local >= first);
            }
            if (before + 1) * MINUTES_OF_DAY <= first {
                return None;
            }
            month = month.yesterday().ok()?.first_of_month();
            before -= i64::from(month.days_in_month());
            days = self.days_of(month);
        }
    }
}

/// Returns the last whole second that is not after an instant.
fn second(at: Timestamp) -> i64 {
    at.as_second() - i64::from(at.subsec_nanosecond() < 0)
}

/// Returns the date of a day, counted from 1970-01-01.
fn date(day: i64) -> Option<Date> {
    Some(Offset::UTC.to_datetime(Timestamp::from_second(day.checked_mul(DAY)?).ok()?).date())
}
