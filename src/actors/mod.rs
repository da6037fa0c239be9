//! The actors: the kit they stand on, and one folder per controller.

pub mod kit;
pub mod leader;
