//! The interface between the server and a webhook: a function from a request and a view to an answer. The server
//! provides limits, deadlines and live reads. Each family of webhooks ([`Mutating`], [`Validating`], [`Authorizing`])
//! decodes the bytes, reports errors and answers panics by its own contract.

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
    /// Answers a request with the knowledge of `view`, or fails with what must be read live before the next call. Has
    /// no side effects, because it is called again after a live read. A panic of the webhook is answered too.
    fn answer(&self, received: &Received, view: &dyn View) -> Result<Conclusion, Lookup>;

    /// Returns the logger for incoming requests, or `None` if only answers are logged.
    fn logger(&self) -> Option<&'static str> {
        None
    }

    /// Returns the answer when the webhook, because of a defect, repeats a read.
    fn give_up(&self, received: &Received, why: &str) -> Conclusion;
}

/// The answer to a request, and its data for statistics and log.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// The reply to send.
    pub reply: Reply,
    /// The data for statistics and log.
    pub account: Account,
}

/// Data of an answer for statistics and log, by family.
#[derive(Debug, Clone, PartialEq)]
pub enum Account {
    /// An AdmissionReview; validating webhooks add more.
    Admission(Judged, Option<Validated>),
    /// A SubjectAccessReview.
    Authorization(Authorized),
}
