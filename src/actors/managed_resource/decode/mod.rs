//! From the data of Secrets to manifests (spec 10 §9.2).

use std::{fmt, sync::Arc};

/// A part of a data key that is no manifest. The text holds positions and limits, never content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// Namespace and name of the Secret, `ns/name`.
    pub secret: Arc<str>,
    /// Data key of the Secret.
    pub data_key: Arc<str>,
    /// Zero-based position of the document within the data key.
    pub index: usize,
    /// What is wrong.
    pub text: String,
}

impl fmt::Display for DecodeError {
    /// The item of the condition's message (spec 10 §16, row "decoding failed").
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { secret, data_key, index, text } = self;
        write!(f, "Could not decode resource at index {index} in '{data_key}' in secret '{secret}': {text}.")
    }
}
