//! What readers see: the status of a ManagedResource.
//!
//! * [`status`]: what is reported in each situation: each row of spec 10 §16 as a function from one status to the next
//! * [`status_cell`]: the one place through which the duties of a bundle write its status

pub(super) mod status;
mod status_cell;

pub(super) use status_cell::{Destination, StatusCell, writer};
