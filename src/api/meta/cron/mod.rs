//! Times of schedules that repeat, in the notation of cron, on the clocks of a time zone (spec 84 §B.2).
//! * `grammar`: from the text to a [`CronSpec`]; `fields`: what one field, and a day, may be
//! * `occurrences`: the next and the latest time, computed from the bits of the fields: no time is stepped through
//! * [`zone`]: time zones by name, from the database in the program
//!
//! No library has this grammar. Refused by croner 3, saffron 0.1 and cron 0.15: `@every 1h`, `+5`, `*-5`, `?` for a minute.
//! Accepted by all three: `7` as a day of the week. croner reads `*/2` as no star (spec 84 B-7).

mod fields;
mod grammar;
mod occurrences;
pub mod zone;

#[cfg(test)]
mod tests;

use self::fields::Fields;
pub use self::{
    fields::CronField,
    grammar::{CronError, ItemError},
};

/// When something repeats. Small, whatever text it is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CronSpec(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// At the local times that match.
    Fields(Fields),
    /// So many seconds after the last time, at least one (spec 84 B-8).
    Every(i64),
}
