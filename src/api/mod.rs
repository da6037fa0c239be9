//! The outside contract: types, constants, defaults and validation. No I/O.

pub mod config;
pub mod crd;
pub mod duration;
pub mod object;
