//! An HTTP exchange as the webhooks see it: the request received and the reply to send.

use bytes::Bytes;
use serde::Serialize;

/// Bodies must be smaller than this many bytes.
pub const LIMIT: usize = 7_340_032;
/// The only accepted content type, compared byte for byte.
pub const JSON: &str = "application/json";
/// Message for a request without a body.
pub const EMPTY: &str = "request body is empty";
/// Message for a body of [`LIMIT`] bytes or more.
pub const TOO_LARGE: &str = "request entity is too large; limit is 7340032 bytes";

/// An HTTP request.
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
    /// The request has no body.
    None,
    /// The body broke off, for this reason.
    Broken(String),
    /// The body has [`LIMIT`] bytes or more; this is its beginning.
    TooLarge(Bytes),
    /// The complete body. A chunked body may be empty.
    Whole(Bytes),
}

/// An HTTP answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status: 200 for any verdict.
    pub status: u16,
    /// JSON with status 200, otherwise plain text.
    pub body: Vec<u8>,
}

impl Reply {
    pub(super) fn json(document: &impl Serialize) -> Self {
        match serde_json::to_vec(document) {
            Ok(body) => Self { status: 200, body },
            Err(error) => Self { status: 500, body: format!("cannot encode the answer: {error}\n").into_bytes() },
        }
    }
}
