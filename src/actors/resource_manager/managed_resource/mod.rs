//! The ManagedResource controller (spec 10): keeps the objects of the target cluster as manifests in the source cluster
//! describe them. [`bundle`](crate::actors::resource_manager::bundle) decides what happens to manifests and objects: pure functions on plain
//! values. The controller is here, in folders that follow the way of the data. Each folder's `mod.rs` lists its files,
//! and exports what other folders may use.
//! * `wake`: which ManagedResources are woken, and why
//! * `known`: what is known without a request
//! * `steps`: from a wake to what has to be done
//! * `apply`: from manifests to the target
//! * `remove`: pruning, deletion, release
//! * `report`: what users see
//! * `record`: what reconcilers note for the page of a ManagedResource; `details`: that page
//! * `initial_sync`: ten thousand objects at once
//! * `health`: from verdicts to conditions, by two further reconcilers of the same actor (spec 20)
//!
//! Beside them: `reconcile` (from the cause of a reconcile to what is done: **start reading there**), `registration`
//! (watches, start of the actors), `controller` (start and stop, reconcilers) and `shared`.

mod apply;
mod controller;
mod details;
mod health;
mod initial_sync;
mod known;
mod reconcile;
mod record;
mod registration;
mod remove;
mod report;
mod shared;
mod steps;
mod wake;

// For the commands that say what the controller would do.
pub(crate) use apply::OWN_MANAGER;
pub use registration::REGISTRATION;
pub(crate) use remove::clean;
pub(crate) use steps::{scope_of, served};
