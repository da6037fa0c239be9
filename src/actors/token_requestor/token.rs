//! Tokens: one that was issued, and what one says of itself.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use cluster::object::NamespacedName;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Problem;

/// Who must accept a token (spec 30 §3).
pub const AUDIENCE: &str = "gardener";

/// Tells tokens apart without holding them.
pub type Fingerprint = [u8; 32];

/// A token as it was issued. It is in memory until it is written, and shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    text: String,
    /// When it expires, by the clock of the API server.
    pub expires: Timestamp,
}

/// What a token of a ServiceAccount says of itself. Nobody has checked it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Its ServiceAccount.
    pub account: NamespacedName,
    /// The uid of that.
    pub account_uid: String,
    /// When it was issued.
    pub issued: Option<Timestamp>,
    /// When it expires.
    pub expires: Option<Timestamp>,
}

/// The body of a TokenRequest (spec 30 §5.4).
pub fn request(seconds: i64) -> Value {
    json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": { "audiences": [AUDIENCE], "expirationSeconds": seconds },
    })
}

/// The body of a TokenReview (spec 30 §5.1 g).
pub fn review(token: &str) -> Value {
    json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": token } })
}

/// Tells a token from others.
pub fn fingerprint(token: &str) -> Fingerprint {
    Sha256::digest(token).into()
}

impl Token {
    /// From the answer to a TokenRequest.
    ///
    /// # Errors
    /// If it holds no token, or does not say when it expires.
    pub fn of(answer: &Value) -> Result<Self, Problem> {
        let text = answer.pointer("/status/token").and_then(Value::as_str).filter(|text| !text.is_empty());
        let expires = answer.pointer("/status/expirationTimestamp").and_then(Value::as_str);
        let (Some(text), Some(expires)) = (text, expires.and_then(|time| time.parse().ok())) else {
            return Err(Problem::Answer("the answer to the TokenRequest holds no token with an expiration"));
        };
        Ok(Self { text: text.to_owned(), expires })
    }

    /// The token itself: for the Secret and nothing else.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("expires", &self.expires).finish_non_exhaustive()
    }
}

impl Claims {
    /// Of a token; `None` if it is none of a ServiceAccount.
    pub fn of(token: &str) -> Option<Self> {
        let payload = token.split('.').nth(1)?;
        let payload: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
        let text = |pointer| payload.pointer(pointer).and_then(Value::as_str);
        let account =
            NamespacedName::new(text("/kubernetes.io/namespace")?, text("/kubernetes.io/serviceaccount/name")?);
        let account_uid = text("/kubernetes.io/serviceaccount/uid")?.to_owned();
        let time =
            |claim| payload.get(claim).and_then(Value::as_i64).and_then(|time| Timestamp::from_second(time).ok());
        Some(Self { account, account_uid, issued: time("iat"), expires: time("exp") })
    }

    /// From when to when it is good, by the clock of the API server.
    pub fn life(&self) -> Option<(Timestamp, Timestamp)> {
        self.issued.zip(self.expires)
    }
}
