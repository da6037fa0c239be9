//! The steps of a pass that come before anything is done; `reconcile.rs` puts them in their order.
//!
//! * `run`: what every step of it needs, and the writes to the ManagedResource itself
//! * `todo`: what it has to look at, and how often what drifts is repaired
//! * `read`: reads the Secrets, decodes, looks up the kinds, plans (spec 10 §9.1 to §9.6)
//! * `rest`: the look that ends a period in which nothing happened, instead of a pass

mod read;
mod rest;
mod run;
mod todo;

pub(super) use read::{Bundle, given_away, read};
pub(super) use rest::{period, until_due};
pub(super) use run::Run;
pub(super) use todo::{Todo, todo};
