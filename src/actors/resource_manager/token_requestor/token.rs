//! Issued tokens, and the claims in a token.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use cluster::object::NamespacedName;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Problem;

/// Audience of the tokens (spec 30 §3).
pub const AUDIENCE: &str = "gardener";

/// Identifies a token without revealing it.
pub type Fingerprint = [u8; 32];

/// An issued token. It is in memory until it is written, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    text: String,
    /// Its expiry by the API server's clock.
    pub expires: Timestamp,
}

/// The unverified claims of a ServiceAccount token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Its ServiceAccount.
    pub account: NamespacedName,
    /// The uid of the ServiceAccount.
    pub account_uid: String,
    /// The time of its issue.
    pub issued: Option<Timestamp>,
    /// The time of its expiry.
    pub expires: Option<Timestamp>,
}

/// Builds a TokenRequest (spec 30 §5.4).
pub fn request(seconds: i64) -> Value {
    json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": { "audiences": [AUDIENCE], "expirationSeconds": seconds },
    })
}

/// Builds a TokenReview (spec 30 §5.1 g).
pub fn review(token: &str) -> Value {
    json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": token } })
}

/// Returns the fingerprint of a token.
pub fn fingerprint(token: &str) -> Fingerprint {
    Sha256::digest(token).into()
}

impl Token {
    /// Reads the answer to a TokenRequest; fails without token or expiry.
    pub fn of(answer: &Value) -> Result<Self, Problem> {
        let text = answer.pointer("/status/token").and_then(Value::as_str).filter(|text| !text.is_empty());
        let expires = answer.pointer("/status/expirationTimestamp").and_then(Value::as_str);
        let (Some(text), Some(expires)) = (text, expires.and_then(|time| time.parse().ok())) else {
            return Err(Problem::Unusable(
                "the answer to the TokenRequest holds no token with an expiration".to_owned(),
            ));
        };
        Ok(Self { text: text.to_owned(), expires })
    }

    /// Returns the token, for the Secret only.
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
    /// Reads a token; `None` if it is not a ServiceAccount token.
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

    /// Returns issue and expiry by the API server's clock.
    pub fn life(&self) -> Option<(Timestamp, Timestamp)> {
        self.issued.zip(self.expires)
    }
}
