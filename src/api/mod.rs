//! The outside contract: types, constants, defaults and validation. No I/O.

pub mod object;
