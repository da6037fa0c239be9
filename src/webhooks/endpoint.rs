//! What every webhook is to the server: a function from a request and a view to an answer.
//!
//! There is one [`Endpoint`] for each family of webhooks. All share the server with its limits, deadlines and live reads; what the
//! bytes mean, how an error is told and what a panic costs is the family's own contract.

use std::any::Any;

use bytes::Bytes;

use super::{
    authorizing::Authorized,
    review::Judged,
    view::{Lookup, View},
};

/// A body of this many bytes is too large.
pub const LIMIT: usize = 7_340_032;
/// The only content type, byte for byte.
pub const JSON: &str = "application/json";
/// A request without a body.
pub const EMPTY: &str = "request body is empty";
/// A body of [`LIMIT`] bytes or more.
pub const TOO_LARGE: &str = "request entity is too large; limit is 7340032 bytes";

/// A webhook that is served.
pub trait Endpoint: Send + Sync {
    /// Answers a request, with what `view` knows. Free of side effects: it is called again after a live read. A panic inside
    /// is an answer like another.
    ///
    /// # Errors
    /// What must be read live before the next attempt.
    fn answer(&self, received: &Received, view: &dyn View) -> Result<Answer, Lookup>;

    /// The answer if nothing more is read for a request, because of a defect of the webhook.
    fn give_up(&self, received: &Received, why: &str) -> Answer;
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The body.
    pub body: Body,
    /// The header `Content-Type`; empty if absent.
    pub content_type: String,
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// There is none.
    None,
    /// It did not come to its end, for this reason.
    Broken(String),
    /// It has [`LIMIT`] bytes or more; how it begins.
    TooLarge(Bytes),
    /// All of it; may be empty if it came in chunks.
    Whole(Bytes),
}

/// An HTTP answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status: 200 for any verdict.
    pub status: u16,
    /// JSON with status 200, else plain text.
    pub body: Vec<u8>,
}

/// An answer, and what of it is for statistics and log.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What is sent.
    pub reply: Reply,
    /// What is told of it.
    pub account: Account,
}

/// What is told of an answer, by family.
#[derive(Debug, Clone, PartialEq)]
pub enum Account {
    /// An AdmissionReview.
    Admission(Judged),
    /// A SubjectAccessReview.
    Authorization(Authorized),
}

/// The text of a panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("of unknown cause").to_owned()
}
