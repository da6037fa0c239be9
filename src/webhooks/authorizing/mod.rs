//! Authorization webhooks: whether a user of the target cluster may do something (spec 61).
//!
//! ```text
//! review.rs: decode ─► Attributes ─► an Authorizer: decide(attributes, view) ─► Decision ─► answer.rs: JSON
//! ```
//!
//! * `review.rs`: SubjectAccessReviews, from bytes to attributes, which borrow from the bytes; `selector.rs`: field selectors;
//!   `text.rs`: texts that are borrowed.
//! * `ruling.rs`: what becomes of a review: a decision, an error, a panic.
//! * `answer.rs`: the answer. Errors are told inside of HTTP 200.
//! * [`node_agent`]: the one authorizer there is.

mod answer;
pub mod node_agent;
mod review;
mod ruling;
mod selector;
mod text;

#[cfg(test)]
mod tests;

use super::view::{Failure, View};
pub use answer::reply;
pub use review::{Action, Attributes, PathAction, Refusal, ResourceAction, Review, decode};
pub use ruling::{Asked, Authorized, Ruling, rule};
pub use selector::{Requirement, Requirements, Selector};

/// Decides what users may do.
pub trait Authorizer: Send + Sync {
    /// The decision on a request, from what `view` knows. Free of side effects, and nothing is remembered.
    ///
    /// # Errors
    /// Why there is none; [`Failure::Look`] asks for a live read, and to be called again.
    fn decide(&self, attributes: &Attributes<'_>, view: &dyn View) -> Result<Decision, Failure>;

    /// What kind of object the request is about, for metrics: one of
    /// [`DECIDED_RESOURCES`](crate::metrics::DECIDED_RESOURCES).
    fn topic(&self, attributes: &Attributes<'_>) -> &'static str;

    /// Under which name it logs.
    fn logger(&self) -> &'static str;
}

/// What an authorizer says (spec 61 §1.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The user may.
    Allow,
    /// The user may not, whatever other authorizers say, for this reason; it may be empty.
    Deny(String),
    /// That is for others to say.
    NoOpinion,
}

/// The topic of a request that is no review.
pub(super) const NO_TOPIC: &str = "other";
