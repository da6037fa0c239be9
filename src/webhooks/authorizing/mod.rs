//! Authorization webhooks: whether a user of the target cluster may do something (spec 61).
//! ```text
//! review.rs: decode ─► Attributes ─► an Authorizer: decide(attributes, view) ─► Decision ─► answer.rs: JSON
//! ```
//! `review.rs` decodes SubjectAccessReviews into attributes that borrow from the bytes, with `selector.rs` and
//! `text.rs`. `ruling.rs` has the outcome: a decision, an error or a panic. `answer.rs` reports errors inside HTTP 200.
//! [`node_agent`] is the only authorizer.

mod answer;
pub mod node_agent;
mod review;
mod ruling;
mod selector;
mod text;

#[cfg(test)]
mod tests;

pub use answer::reply;
pub use review::{Action, Attributes, PathAction, ResourceAction, Review, decode};
pub use ruling::{Asked, Authorized, Ruling, rule};
pub use selector::{Requirement, Requirements, Selector};

use super::view::{Failure, View};

/// Decides what users may do.
pub trait Authorizer: Send + Sync {
    /// Decides with the knowledge of `view`, without side effects and memory. Fails with [`Failure::Look`] if something
    /// must be read live before the next call, or with the reason why there is no decision.
    fn decide(&self, attributes: &Attributes<'_>, view: &dyn View) -> Result<Decision, Failure>;

    /// Returns the kind of object, for metrics: one of [`DECIDED_RESOURCES`](crate::webhooks::server::metrics::DECIDED_RESOURCES).
    fn topic(&self, attributes: &Attributes<'_>) -> &'static str;

    /// Returns the name of its logger.
    fn logger(&self) -> &'static str;
}

/// The decision of an authorizer (spec 61 §1.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The user may.
    Allow,
    /// The user may not, whatever other authorizers say. The reason may be empty.
    Deny(String),
    /// Other authorizers decide.
    NoOpinion,
}

pub(super) const NO_TOPIC: &str = "other";
