//! The simulated API server (list of modules only).
#![allow(dead_code, reason = "the HTTP service uses them")]

mod defaults;
mod discovery;
mod kinds;
mod lists;
mod managed_fields;
mod patch;
mod schema;
mod selector;
mod status;

mod validate;

pub use status::Failure;
