//! What all kinds share: fields of raw JSON, numbers, selectors, conditions.

pub mod age;
pub mod conditions;
pub mod cron;
pub mod field;
pub mod fields;
pub mod integer;
pub mod quantity;
pub mod record;
pub mod selector;
