//! The grammar (spec 84 B-4 to B-8). The work grows with the length of the text, not with what it says.

use std::{num::NonZeroU64, str::FromStr};

use kit::{
    duration::GoDuration,
    quote::{cut_after, quoted},
};

use super::{
    CronField, CronSpec, Kind,
    fields::{Fields, bit, bits_to},
};

/// Characters of a foreign text in an error.
const SHOWN: usize = 40;

/// Why a text is no cron entry, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// It does not have five fields.
    #[error("it has {0} fields — write five: minute, hour, day of month, month, day of week")]
    FieldCount(usize),
    /// It starts with `@` and is no descriptor.
    #[error(
        "it is no descriptor — write @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or @every 12h"
    )]
    Descriptor,
    /// What follows `@every` is no duration; its beginning, in quotes.
    #[error("{0} is no duration — write for example @every 1h30m")]
    Duration(String),
    /// An item of a field is wrong.
    #[error("{field}: {item}: {error}")]
    Item {
        /// The field.
        field: CronField,
        /// The item, or its beginning, in quotes.
        item: String,
        /// What is wrong with it.
        error: ItemError,
    },
}

/// Why a text is no item of a field, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// It is neither a number nor a name that the field has.
    #[error("it is no number — write {} to {}, or *{}", .0.range().start(), .0.range().end(), names(*.0))]
    Number(CronField),
    /// The number is too small or too large.
    #[error("it is out of range — write {} to {}{}", .0.range().start(), .0.range().end(), sunday(*.0))]
    Range(CronField),
    /// The range ends before it begins.
    #[error("the range ends before it begins — write the smaller number first, or two ranges with a comma")]
    Reversed,
    /// The step is no number above zero.
    #[error("the step is no number above zero — write for example */15")]
    Step,
    /// It has several steps.
    #[error("it has more than one slash — write one step")]
    Slashes,
    /// It has several hyphens.
    #[error("it has more than one hyphen — write ranges with a comma between them")]
    Hyphens,
}

fn shown(text: &str) -> String {
    quoted(&cut_after(SHOWN, text))
}

fn names(field: CronField) -> &'static str {
    match field {
        CronField::Month => ", or jan to dec",
        CronField::DayOfWeek => ", or sun to sat",
        CronField::Minute | CronField::Hour | CronField::DayOfMonth => "",
    }
}

fn sunday(field: CronField) -> &'static str {
    if field == CronField::DayOfWeek { "; Sunday is 0" } else { "" }
}

/// The values of one field.
struct Values {
    set: u64,
    /// An item is `*` or `?`, possibly with a step.
    has_star: bool,
}

impl FromStr for CronSpec {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        match text.strip_prefix('@') {
            Some(descriptor) => described(descriptor),
            None => fields(text).map(Kind::Fields).map(Self),
        }
    }
}

fn described(descriptor: &str) -> Result<CronSpec, CronError> {
    let entry = match descriptor {
        "yearly" | "annually" => "0 0 1 1 *",
        "monthly" => "0 0 1 * *",
        "weekly" => "0 0 * * 0",
        "daily" | "midnight" => "0 0 * * *",
        "hourly" => "0 * * * *",
        _ => {
            let duration = descriptor.strip_prefix("every ").ok_or(CronError::Descriptor)?;
            let parsed: GoDuration = duration.parse().map_err(|_| CronError::Duration(shown(duration)))?;
            return Ok(CronSpec(Kind::Every((parsed.nanos() / 1_000_000_000).max(1))));
        }
    };
    fields(entry).map(Kind::Fields).map(CronSpec)
}

fn fields(text: &str) -> Result<Fields, CronError> {
    let mut texts = [""; CronField::ALL.len()];
    let mut count = 0;
    for field in text.split_whitespace() {
        if let Some(place) = texts.get_mut(count) {
            *place = field;
        }
        count += 1;
    }
    if count != texts.len() {
        return Err(CronError::FieldCount(count));
    }
    let [minutes, hours, days, months, weekdays] = texts;
    let minutes = values(CronField::Minute, minutes)?.set;
    let hours = values(CronField::Hour, hours)?.set;
    let days = values(CronField::DayOfMonth, days)?;
    let months = values(CronField::Month, months)?.set;
    let weekdays = values(CronField::DayOfWeek, weekdays)?;
    let needs_both_days = days.has_star || weekdays.has_star;
    Ok(Fields { minutes, hours, days: days.set, months, weekdays: weekdays.set, needs_both_days })
}

/// Empty items are ignored (spec 84 B-6).
fn values(field: CronField, text: &str) -> Result<Values, CronError> {
    let mut values = Values { set: 0, has_star: false };
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let of_item = value(field, item).map_err(|error| CronError::Item { field, item: shown(item), error })?;
        values.set |= of_item.set;
        values.has_star |= of_item.has_star;
    }
    Ok(values)
}

fn value(field: CronField, item: &str) -> Result<Values, ItemError> {
    let (base, step) = match item.split_once('/') {
        Some((_, step)) if step.contains('/') => return Err(ItemError::Slashes),
        Some((base, step)) => (base, Some(number(step).and_then(NonZeroU64::new).ok_or(ItemError::Step)?)),
        None => (item, None),
    };
    let (low, high) = match base.split_once('-') {
        Some((_, high)) if high.contains('-') => return Err(ItemError::Hyphens),
        Some((low, high)) => (low, Some(high)),
        None => (base, None),
    };
    let range = field.range();
    let (first, last) = match (low, high) {
        ("*" | "?", _) => (*range.start(), *range.end()),
        (low, Some(high)) => (number_or_name(field, low)?, number_or_name(field, high)?),
        (low, None) => {
            let first = number_or_name(field, low)?;
            (first, if step.is_some() { *range.end() } else { first })
        }
    };
    if !range.contains(&first) || !range.contains(&last) {
        return Err(ItemError::Range(field));
    }
    if first > last {
        return Err(ItemError::Reversed);
    }
    Ok(Values { set: set(first, last, step.map_or(1, NonZeroU64::get)), has_star: matches!(low, "*" | "?") })
}

/// Returns the set of `first`, `first` + `step` and so on up to `last`, which is at most 59.
fn set(first: u64, last: u64, step: u64) -> u64 {
    let numbers = std::iter::successors(Some(first), |number| number.checked_add(step).filter(|next| *next <= last));
    let as_bit = |number: u64| i64::try_from(number).map_or(0, bit);
    let highest = i64::try_from(last).map_or(0, bits_to);
    if step == 1 { highest & !as_bit(first).wrapping_sub(1) } else { numbers.map(as_bit).fold(0, |set, bit| set | bit) }
}

fn number_or_name(field: CronField, text: &str) -> Result<u64, ItemError> {
    field.named(text).or_else(|| number(text)).ok_or(ItemError::Number(field))
}

/// Leading zeros and one leading `+` are allowed (spec 84 B-6). As in Go, the number must fit into 63 bits.
fn number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    // `parse` alone would accept a second sign.
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_number && i64::try_from(*number).is_ok())
}
