//! The webhooks: what API servers ask this program about objects before they store them.
//!
//! * `mutating/`: the mutating webhooks, one file each, as pure functions (spec 50, spec 51). Start with
//!   [`mutating::Mutator`].
//! * `view.rs`: what a webhook may know of the target cluster.
//! * `fields.rs`: fields of raw JSON objects, read and made.
//! * `testing.rs`: for tests, a view that answers what the test says.
//!
//! A new webhook is one file in `mutating/` and one line in its registry.

pub mod fields;
pub mod mutating;
#[cfg(any(test, feature = "sim"))]
pub mod testing;
pub mod view;
