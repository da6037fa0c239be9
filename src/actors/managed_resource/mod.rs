//! The ManagedResource controller (spec 10): keeps the objects of the target cluster as the manifests of a bundle describe them.
//!
//! What happens to manifests and objects is in [`bundle`](crate::bundle): pure functions on plain values. Here is the
//! controller, in rooms along the way of the data, each with its list of files, and with its face: what other rooms may name.
//!
//! * `wake`: who is woken, and why
//! * `known`: what is known without asking
//! * `pass`: from a wake to what is to be done
//! * `apply`: manifests to the target
//! * `remove`: what left
//! * `report`: what readers see
//! * `start`: ten thousand objects at once
//! * `health`: verdicts to conditions, by two further duties of the same actor (spec 20)
//!
//! Beside them: `reconcile` (a pass, from its cause to what is done: **start reading there**), `module` (what is watched, when the actors start), `controller` (start and stop, duties) and `shared` (what
//! all steps use).

mod apply;
mod controller;
mod health;
mod initial_sync;
mod known;
mod reconcile;
mod registration;
mod remove;
mod report;
mod shared;
mod steps;
mod wake;

pub use registration::REGISTRATION;

// For the commands that say what the controller would do.
pub(crate) use apply::OWN_MANAGER;
pub(crate) use remove::clean;
