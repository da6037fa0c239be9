//! One HTTP exchange as the webhooks see it: what came, and what is sent back.

use bytes::Bytes;
use serde::Serialize;

/// A body of this many bytes is too large.
pub const LIMIT: usize = 7_340_032;
/// The only content type, byte for byte.
pub const JSON: &str = "application/json";
/// A request without a body.
pub const EMPTY: &str = "request body is empty";
/// A body of [`LIMIT`] bytes or more.
pub const TOO_LARGE: &str = "request entity is too large; limit is 7340032 bytes";

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

impl Reply {
    /// A verdict: this document, with status 200.
    pub(super) fn json(document: &impl Serialize) -> Self {
        match serde_json::to_vec(document) {
            Ok(body) => Self { status: 200, body },
            Err(error) => Self { status: 500, body: format!("cannot encode the answer: {error}\n").into_bytes() },
        }
    }
}
