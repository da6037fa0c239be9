//! Validating webhooks: whether a request may be carried out; none of them changes an object (spec 60).
//!
//! ```text
//! review.rs: decode ─► Review ─► a Validator: judge(review, view) ─► Judgement ─► review/answer.rs: JSON
//! ```
//!
//! * `review.rs`: AdmissionReviews with both objects, borrowed from the bytes.
//! * `confirmation.rs`: what says that an object may be deleted.
//! * [`deletion`]: nothing that holds a cluster together is deleted without a confirmation (spec 60 §2).
//! * [`extensions`]: the rules of extension objects, a file for each kind (spec 62).

mod confirmation;
pub mod deletion;
pub mod extensions;
mod review;

pub use review::{Extent, Resource, Review, decode};

use super::{
    review::ReviewVerdict,
    view::{Failure, View},
};
use crate::api::object::NamespacedName;

/// Says whether requests may be carried out.
pub trait Validator: Send + Sync {
    /// How much of the objects it looks at.
    fn extent(&self) -> Extent {
        Extent::Whole
    }

    /// The verdict on a review, from what `view` knows. Free of side effects: it is called again after a live read.
    ///
    /// # Errors
    /// Why there is none; [`Failure::Look`] asks for a live read.
    fn judge(&self, review: &Review<'_>, view: &dyn View) -> Result<Judgement, Failure>;

    /// What statistics and log tell of a review, beside its verdict.
    fn account(&self, review: &Review<'_>, judgement: &Judgement) -> Validated;
}

/// A verdict, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: ReviewVerdict,
    /// The object that decided it, if that is not the object of the request: another object of a collection.
    pub about: Option<NamespacedName>,
}

impl From<ReviewVerdict> for Judgement {
    fn from(verdict: ReviewVerdict) -> Self {
        Self { verdict, about: None }
    }
}

/// What is told of a review, beside its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validated {
    /// What it is about, for metrics: a plural, or `other`.
    pub resource: &'static str,
    /// Whether the request was denied for what it is.
    pub is_denied: bool,
    /// If it would delete something that is protected.
    pub deletion: Option<deletion::Deletion>,
}
