//! The ManagedResource controller (spec 10): keeps the objects of the target cluster as the manifests of a bundle describe them.
//!
//! One file per step of a pass, each a pure function on plain values. Nothing in them reads a clock, sends a request or knows
//! an actor; objects are raw [`serde_json::Value`], so that unknown fields survive (spec 10 §11.6). In the order of a pass:
//!
//! * [`trigger`]: which events start a pass, and what the pass does first. **Start reading at [`trigger::entry`]**
//! * [`decode`]: from the data of Secrets to manifests
//! * [`plan`]: manifests and old references → what is applied, removed and released; with [`normalise`] (the namespace a
//!   manifest really has) and [`identity`] (keys, display strings, equivalent kinds, the index of the old references)
//! * [`checksum`]: tells whether the manifests changed
//! * [`clean`]: what happens to an object that is no longer wanted
//! * [`order`]: which objects come before which others
//! * [`merge`]: manifest and live object → the object to send; with [`inject`] (the labels every object of a bundle gets)
//!   and [`hpa`] (which objects an autoscaler scales)
//! * [`settled`]: whether that object needs to be sent at all; with [`quantity`] (equal amounts in other words)
//! * [`fingerprint`]: what is remembered of an object, in a few bytes
//! * [`status`]: what is reported in each situation
//!
//! Around them the shell, which reads, calls and writes: `module` (what is watched, when the actors start), [`controller`]
//! (start and stop, duties), `shared` (what all
//! steps use), `wakes` (filters and listeners), `pass` (one pass, from its cause to what is to be done), `run` (what its
//! steps share), `read`, `apply`, `apply_object`, `clean_up` with `own_refs`, `release` (the steps), `rest` (the look that
//! ends a period in which nothing happened), `start` with `opening` (claims and sweep over many bundles), [`targets`]
//! (interest and watches), `moment` (edits of a moment belong together), `widening` (back to all namespaces), [`secrets`],
//! `autoscalers`, [`status_cell`], [`snapshot`] and [`memory`] (what is kept between passes). `health` holds two further
//! duties of the same actor (spec 20).

mod apply;
pub(crate) mod apply_object;
mod autoscalers;
mod bodies;
pub mod checksum;
pub mod clean;
mod clean_up;
pub mod controller;
pub mod decode;
pub mod fingerprint;
mod health;
pub mod hpa;
pub mod identity;
pub mod inject;
pub mod memory;
pub mod merge;
mod module;
mod moment;
pub mod normalise;
mod opening;
pub mod order;
mod own_refs;
mod pass;
pub mod plan;
pub mod quantity;
pub(crate) mod read;
mod release;
mod rest;
mod run;
pub mod secrets;
pub mod settled;
mod shared;
pub mod snapshot;
mod start;
pub mod status;
pub mod status_cell;
pub mod targets;
pub mod trigger;
mod wakes;
mod widening;

pub use module::MODULE;
