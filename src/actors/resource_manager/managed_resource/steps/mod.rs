//! The steps of a reconcile before anything is applied; `reconcile.rs` puts them in their order.
//! * `run`: what every step needs, and the writes to the ManagedResource itself
//! * `todo`: what the reconcile has to check
//! * `read`: reads the Secrets, decodes, looks up the kinds, plans (spec 10 §9.1 to §9.6)
//! * `idle`: the idle check that ends a period in which nothing happened, instead of a reconcile

mod idle;
mod read;
mod run;
mod todo;

pub(super) use idle::{period, until_due};
pub(super) use read::{Bundle, given_away, read};
pub(crate) use read::{scope_of, served};
pub(super) use run::Run;
pub(super) use todo::{Todo, todo};
