//! The ManagedResource controller (spec 10): keeps the objects of the target cluster as the manifests of a bundle describe them.
//!
//! What happens to manifests and objects is in [`bundle`](crate::bundle). Here is the controller: first what is pure as well,
//! in the order of a pass,
//!
//! * [`trigger`]: which events start a pass, and what the pass does first. **Start reading at [`trigger::entry`]**
//! * [`clean`]: what happens to an object that is no longer wanted
//! * [`fingerprint`]: what is remembered of an object, in a few bytes
//! * [`status`]: what is reported in each situation
//!
//! Around them the shell, which reads, calls and writes: `module` (what is watched, when the actors start), [`controller`]
//! (start and stop, duties), `shared` (what all
//! steps use), `wakes` (filters and listeners), `pass` (one pass, from its cause to what is to be done), `run` (what its
//! steps share), `read`, `apply`, `apply_object`, `clean_up` with `own_refs`, `release` (the steps), `rest` (the look that
//! ends a period in which nothing happened), `start` with `opening` (claims and sweep over many bundles), [`targets`]
//! (interest and watches), `moment` (edits of a moment belong together), [`secrets`],
//! `autoscalers`, [`status_cell`], [`snapshot`] and [`memory`] (what is kept between passes). `health` holds two further
//! duties of the same actor (spec 20).

mod apply;
pub(crate) mod apply_object;
mod autoscalers;
mod bodies;
pub mod clean;
mod clean_up;
pub mod controller;
pub mod fingerprint;
mod health;
pub mod memory;
mod module;
mod moment;
mod opening;
mod own_refs;
mod pass;
pub(crate) mod read;
mod release;
mod rest;
mod run;
pub mod secrets;
mod shared;
pub mod snapshot;
mod start;
pub mod status;
pub mod status_cell;
pub mod targets;
pub mod trigger;
mod wakes;

pub use module::MODULE;
