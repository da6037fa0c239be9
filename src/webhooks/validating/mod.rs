//! Validating webhooks: whether a request may be carried out; none of them changes an object (spec 60).
//! ```text
//! review.rs: decode ─► Review ─► a Validator: judge(review, view) ─► Judgement ─► review/answer.rs: JSON
//! ```
//! [`deletion`]: critical resources are deleted only with a confirmation (spec 60 §2), see `confirmation.rs`.
//! [`extensions`]: the rules of extension objects, a file for each kind (spec 62).

mod confirmation;
pub mod deletion;
pub mod extensions;
mod review;

use cluster::object::NamespacedName;
pub use review::{Extent, Resource, Review, decode};

use super::{
    review::ReviewVerdict,
    view::{Failure, View},
};

/// A validating webhook.
pub trait Validator: Send + Sync {
    /// Returns how much of the objects it reads.
    fn extent(&self) -> Extent {
        Extent::Whole
    }

    /// Returns the verdict on a review with the knowledge of `view`, or fails with [`Failure::Look`] or the reason why
    /// there is no verdict. Has no side effects, because it is called again after a live read.
    fn judge(&self, review: &Review<'_>, view: &dyn View) -> Result<Judgement, Failure>;

    /// Returns the data for statistics and log besides the verdict.
    fn account(&self, review: &Review<'_>, judgement: &Judgement) -> Validated;
}

/// A verdict and its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: ReviewVerdict,
    /// The object that decided, if it is another object of the collection than the request's.
    pub about: Option<NamespacedName>,
}

impl From<ReviewVerdict> for Judgement {
    fn from(verdict: ReviewVerdict) -> Self {
        Self { verdict, about: None }
    }
}

/// Data of a review for statistics and log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validated {
    /// The resource for metrics: a plural, or `other`.
    pub resource: &'static str,
    /// Whether the webhook's rules denied the request.
    pub is_denied: bool,
    /// Set if the request would delete a protected object.
    pub deletion: Option<deletion::Deletion>,
}
