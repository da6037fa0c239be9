//! What users see: the status of a ManagedResource.
//! * [`status`]: what is reported in each situation: each row of spec 10 §16 as a function from one status to the next
//! * `fit`: what is left out of a status that is too large to be stored
//! * [`message`]: bounds of messages
//! * [`status_cell`]: the only path by which reconcilers write the status; it logs changed conditions and records Events
//! * `announcement`: which conditions are bad, and which changes are Events
//! * `condition_counts`: the metrics of conditions
//! * `summary`: the ManagedResource in a list

mod announcement;
mod condition_counts;
mod fit;
pub(super) mod message;
pub(super) mod status;
mod status_cell;
mod summary;

pub(super) use announcement::{problem, tone};
pub(super) use condition_counts::ConditionCounts;
pub(super) use status_cell::StatusCell;
pub(super) use summary::{Summaries, class_of};
