//! Tests of the contract (the module doc of `kit`) on virtual time, one file per group of rules; and facts about actix.

mod actix_facts;
mod details;
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
