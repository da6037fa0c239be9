//! The ManagedResource controller (spec 10): keeps the objects of the target cluster as the manifests of a bundle describe them.
//!
//! What happens to manifests and objects is in [`bundle`](crate::bundle): pure functions on plain values. Here is the
//! controller, in rooms along the way of the data, each with its list of files:
//!
//! * [`wake`]: who is woken, and why
//! * [`known`]: what is known without asking
//! * `pass`: from a wake to what is to be done. **Start reading there**
//! * `apply`: manifests to the target
//! * [`remove`]: what left
//! * [`report`]: what readers see
//! * `start`: ten thousand objects at once
//! * `health`: verdicts to conditions, by two further duties of the same actor (spec 20)
//!
//! Beside them: `module` (what is watched, when the actors start), [`controller`] (start and stop, duties) and `shared` (what all steps use).

pub(crate) mod apply;
pub mod controller;
mod health;
pub mod known;
mod module;
pub(crate) mod pass;
pub mod remove;
pub mod report;
mod shared;
mod start;
pub mod wake;

pub use module::MODULE;
