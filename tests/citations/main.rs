//! What the specification demands is cited by the tests that show it.

mod faults;
mod scenarios;
mod sources;
