//! What every webhook is to the server: a function from a request and a view to an answer.
//!
//! There is one [`Endpoint`] for each family of webhooks. All share the server with its limits, deadlines and live reads; what the
//! bytes mean, how an error is told and what a panic costs is the family's own contract.
//!
//! * `mutating.rs`: the [`Mutator`](super::mutating::Mutator)s, between reviews and patches.
//! * `validating.rs`: the [`Validator`](super::validating::Validator)s, between reviews and verdicts.
//! * `authorizing.rs`: the [`Authorizer`](super::authorizing::Authorizer)s.

mod authorizing;
mod mutating;
#[cfg(test)]
pub(super) mod testing;
mod validating;

pub use authorizing::Authorizing;
pub use mutating::Mutating;
pub use validating::Validating;

use super::{
    authorizing::Authorized,
    exchange::{Received, Reply},
    review::Judged,
    validating::Validated,
    view::{Lookup, View},
};

/// A webhook that is served.
pub trait Endpoint: Send + Sync {
    /// Answers a request, with what `view` knows. Free of side effects: it is called again after a live read. A panic inside
    /// is an answer like another.
    ///
    /// # Errors
    /// What must be read live before the next attempt.
    fn answer(&self, received: &Received, view: &dyn View) -> Result<Conclusion, Lookup>;

    /// Under which name requests are logged as they come; `None`: only their answers are.
    fn logger(&self) -> Option<&'static str> {
        None
    }

    /// The answer if nothing more is read for a request, because of a defect of the webhook.
    fn give_up(&self, received: &Received, why: &str) -> Conclusion;
}

/// The answer to a request, and what of it is for statistics and log.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// What is sent.
    pub reply: Reply,
    /// What is told of it.
    pub account: Account,
}

/// What is told of an answer, by family.
#[derive(Debug, Clone, PartialEq)]
pub enum Account {
    /// An AdmissionReview; of a validating webhook there is more to tell.
    Admission(Judged, Option<Validated>),
    /// A SubjectAccessReview.
    Authorization(Authorized),
}
