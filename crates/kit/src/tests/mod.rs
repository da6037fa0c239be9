//! The contract of the kit (the module doc of `kit`), rule by rule, on virtual time, and what it relies on in actix.
//!
//! `support` has the scripted controller all tests share. One file per group of rules: `wakes` (1, 2), `results` (4),
//! `permits` (5), `panics` (6), `limits` (7, 8), `stopping` (10), `census` (11), `determinism` (12). `reentrancy`: what
//! a controller's code may do from where. `actix_facts`: what would break the kit if a new actix did otherwise.

mod actix_facts;
mod determinism;
mod limits;
mod panics;
mod permits;
mod reentrancy;
mod results;
mod resyncs;
mod status_registry;
mod stopping;
mod support;
mod wakes;
