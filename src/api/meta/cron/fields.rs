//! The five fields: sets of numbers as bits, and the days of a month that match.

use std::{fmt, ops::RangeInclusive};

use jiff::civil::Date;

/// A field of a cron entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CronField {
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// 1 to 31.
    DayOfMonth,
    /// 1 to 12, or `jan` to `dec`.
    Month,
    /// 0 to 6, or `sun` to `sat`.
    DayOfWeek,
}

/// The values of each field. Bit `n` stands for the value `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) minutes: u64,
    pub(super) hours: u64,
    pub(super) days: u64,
    pub(super) months: u64,
    pub(super) weekdays: u64,
    /// Day of month and day of week must both match; else one of them suffices (spec 84 B-7).
    pub(super) needs_both_days: bool,
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The first day, and each one a whole number of weeks later: the days 1, 8, 15, 22 and 29.
const WEEKLY: u64 = 1 << 1 | 1 << 8 | 1 << 15 | 1 << 22 | 1 << 29;

impl CronField {
    /// All fields, in their order in an entry.
    pub const ALL: [Self; 5] = [Self::Minute, Self::Hour, Self::DayOfMonth, Self::Month, Self::DayOfWeek];

    /// Its smallest and its largest value.
    pub fn range(self) -> RangeInclusive<u64> {
        match self {
            Self::Minute => 0..=59,
            Self::Hour => 0..=23,
            Self::DayOfMonth => 1..=31,
            Self::Month => 1..=12,
            Self::DayOfWeek => 0..=6,
        }
    }

    /// Returns the value that a name has in this field.
    pub(super) fn named(self, name: &str) -> Option<u64> {
        let (names, first): (&[&str], u64) = match self {
            Self::Month => (&MONTHS, 1),
            Self::DayOfWeek => (&WEEKDAYS, 0),
            Self::Minute | Self::Hour | Self::DayOfMonth => return None,
        };
        let values = first..;
        names.iter().zip(values).find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl fmt::Display for CronField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
        })
    }
}

impl Fields {
    /// Returns the days of a month that match, given its first day. Bit `n` stands for day `n`.
    pub(super) fn days_of(&self, first: Date) -> u64 {
        if self.months & bit(first.month()) == 0 {
            return 0;
        }
        let of_month = bits_to(first.days_in_month()) & !1;
        let begins_on = u64::try_from(first.weekday().to_sunday_zero_offset()).unwrap_or_default();
        let of_week = (0..7_u64).filter(|day| self.weekdays & 1 << day != 0);
        let weekdays = of_week.fold(0, |days, day| days | WEEKLY << ((day + 7 - begins_on) % 7));
        let matching = if self.needs_both_days { self.days & weekdays } else { self.days | weekdays };
        matching & of_month
    }

    /// Returns the first matching minute of a day that is not before `minute`. Minutes count from midnight.
    pub(super) fn minute_from(&self, minute: i64) -> Option<i64> {
        let (hour, minute) = (minute / 60, minute % 60);
        let in_hour = (self.hours & bit(hour) != 0).then(|| lowest(self.minutes & !bits_below(minute))).flatten();
        match in_hour {
            Some(minute) => Some(hour * 60 + minute),
            None => Some(lowest(self.hours & !bits_to(hour))? * 60 + lowest(self.minutes)?),
        }
    }

    /// Returns the last matching minute of a day that is not after `minute`.
    pub(super) fn minute_until(&self, minute: i64) -> Option<i64> {
        let (hour, minute) = (minute / 60, minute % 60);
        let in_hour = (self.hours & bit(hour) != 0).then(|| highest(self.minutes & bits_to(minute))).flatten();
        match in_hour {
            Some(minute) => Some(hour * 60 + minute),
            None => Some(highest(self.hours & bits_below(hour))? * 60 + highest(self.minutes)?),
        }
    }
}

/// Returns the set of this number; of no number if it is above 63.
pub(super) fn bit(number: impl Into<i64>) -> u64 {
    u32::try_from(number.into()).ok().and_then(|number| 1_u64.checked_shl(number)).unwrap_or_default()
}

/// Returns the set of the numbers below this one.
pub(super) fn bits_below(number: impl Into<i64>) -> u64 {
    bit(number).wrapping_sub(1)
}

/// Returns the set of the numbers up to this one.
pub(super) fn bits_to(number: impl Into<i64>) -> u64 {
    let bit = bit(number);
    bit | bit.wrapping_sub(1)
}

/// Returns the smallest number of a set.
pub(super) fn lowest(set: u64) -> Option<i64> {
    (set != 0).then(|| i64::from(set.trailing_zeros()))
}

/// Returns the largest number of a set.
pub(super) fn highest(set: u64) -> Option<i64> {
    set.checked_ilog2().map(i64::from)
}
