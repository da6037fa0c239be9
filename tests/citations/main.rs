//! What the specification demands is cited by the tests that show it, and what is cited is there.

mod documents;
mod faults;
mod indexing;
mod reading;
mod scenarios;
mod sources;
mod targets;
