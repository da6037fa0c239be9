//! AdmissionReviews: from the bytes of a request to the bytes of its answer (spec 50 §2), without I/O.
//! ```text
//! input.rs: decode ─► Review ─► attempt.rs: attempt(mutator, review, view) ─► Verdict ─► answer.rs: JSON
//!                                   │ Err(lookup): read it live, then attempt again       patch.rs: the difference
//! ```
//! [`Mutating`](super::endpoint::Mutating) combines these steps into one call. `input.rs` bounds the memory of
//! a review. Start reading at [`decode`]; [`attempt`] is the middle.

mod answer;
mod attempt;
mod identity;
mod input;
mod patch;

#[cfg(test)]
mod tests;

pub use answer::{FailurePolicy, Judged, ReviewVerdict, reply};
pub use attempt::attempt;
pub use identity::Identity;
pub use input::{Refusal, Review, decode};
pub(super) use input::{checked, fault, reason};
pub use patch::{FEW, Operation, Path, difference};

pub use super::exchange::{Body, LIMIT, Reply};
