//! What is wrong with a configuration, and what its author should know.

use std::fmt;

use kit::quote::quoted;
use serde::Serialize;

use super::DecodeError;

/// Why a configuration cannot be used. The texts are those of spec 70 §1.1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The bytes are no configuration of this program.
    #[error("error decoding config: {0}")]
    Decode(#[from] DecodeError),
    /// A feature gate that does not exist.
    #[error("unrecognized feature gate: {0}")]
    UnknownFeatureGate(String),
    /// Broken rules, at least one, in the order of the specification.
    #[error("{}", aggregate(.0))]
    Invalid(Vec<FieldError>),
}

/// A broken rule of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// JSON path of the field, with list items as `[i]`.
    pub path: String,
    /// The text after the path (spec 62 §2.1).
    pub body: String,
}

/// An accepted part of the file or the flags that may not mean what its author thinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// JSON path of the key, or the flag with its dashes.
    pub path: String,
    /// What the warning says.
    pub kind: WarningKind,
    /// Line of the key in the file, counted from 1; `None`: it is not known, or the warning is about a flag.
    pub line: Option<usize>,
}

/// What a warning says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WarningKind {
    /// The key is unknown and has no effect.
    UnknownKey {
        /// The known key of the same block that it resembles.
        nearest: Option<String>,
    },
    /// Both spellings of a block exist; the official one wins.
    BothSpellings {
        /// Path of the official spelling.
        official: String,
    },
    /// A former spelling that still works.
    Deprecated {
        /// What to write instead.
        official: String,
    },
    /// Known from earlier releases, without effect today.
    NoEffect,
    /// The value is not positive; the default counts.
    NotPositive,
    /// What only one program says; the text is that of the log.
    OfProgram(&'static str),
}

impl FieldError {
    /// A value is missing; `detail` may be empty.
    pub fn required(path: impl Into<String>, detail: &str) -> Self {
        let body = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self { path: path.into(), body }
    }

    /// A value that its field does not take, as it is shown.
    pub fn invalid(path: impl Into<String>, value: impl fmt::Display, detail: impl fmt::Display) -> Self {
        Self { path: path.into(), body: format!("Invalid value: {value}: {detail}") }
    }

    /// A text that is none of the supported ones.
    pub fn unsupported(path: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let supported: Vec<_> = supported.iter().map(|value| quoted(value)).collect();
        let body = format!("Unsupported value: {}: supported values: {}", quoted(value), supported.join(", "));
        Self { path: path.into(), body }
    }

    /// A value that must not be there.
    pub fn forbidden(path: impl Into<String>, detail: &str) -> Self {
        Self { path: path.into(), body: format!("Forbidden: {detail}") }
    }

    /// Adds an error if a text is empty.
    pub fn unless_given(errors: &mut Vec<Self>, path: &str, field: &str, detail: &str) {
        if field.is_empty() {
            errors.push(Self::required(path, detail));
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body)
    }
}

impl ConfigError {
    /// Paths of the keys that the error is about.
    pub(super) fn paths(&self) -> Vec<String> {
        match self {
            Self::Decode(DecodeError::Value { path, .. }) => vec![path.clone()],
            Self::Decode(DecodeError::Kind { .. }) => vec!["kind".to_owned()],
            Self::Decode(DecodeError::Syntax(_)) => Vec::new(),
            Self::UnknownFeatureGate(name) => vec![format!("featureGates.{name}")],
            Self::Invalid(errors) => errors.iter().map(|error| error.path.clone()).collect(),
        }
    }
}

/// One text as it is, several as `[a, b]`; equal texts once, at their first position (spec 62 §2.2).
fn aggregate(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::with_capacity(errors.len());
    for text in errors.iter().map(FieldError::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// Compact JSON with Go's escapes for `<`, `>` and `&`.
pub fn json(value: &impl Serialize) -> String {
    // Fails only for maps with keys that are no strings, which do not occur.
    let text = serde_json::to_string(value).unwrap_or_default();
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

impl Warning {
    /// A warning about a key or flag.
    pub fn new(path: impl Into<String>, kind: WarningKind) -> Self {
        Self { path: path.into(), kind, line: None }
    }

    /// A constant text for the log; everything else is a field of the record.
    pub fn message(&self) -> &'static str {
        match &self.kind {
            WarningKind::UnknownKey { .. } => "Unknown configuration key is ignored",
            WarningKind::BothSpellings { .. } => "Configuration has both spellings of a key, the official one wins",
            WarningKind::Deprecated { .. } => "Configuration key is deprecated",
            WarningKind::NoEffect => "Setting has no effect any more",
            WarningKind::NotPositive => "Value is not positive, the default is used",
            WarningKind::OfProgram(message) => message,
        }
    }

    /// Logs the warning. `file`: the configuration file, if there is one.
    pub fn log(&self, file: Option<&str>) {
        let (path, instead, did_you_mean) = (&self.path, self.instead(), self.nearest());
        let (file, line) = (file.filter(|_| self.line.is_some()), self.line);
        tracing::warn!(path, file, line, did_you_mean, instead, "{}", self.message());
    }

    /// The whole text, with file and line if it is about a key of the file.
    pub fn text(&self, file: Option<&str>) -> String {
        match file.zip(self.line) {
            Some((file, line)) => format!("{file}:{line}: {self}"),
            None => self.to_string(),
        }
    }

    /// The key to use instead, if there is one.
    pub fn instead(&self) -> Option<&str> {
        match &self.kind {
            WarningKind::BothSpellings { official } | WarningKind::Deprecated { official } => Some(official),
            WarningKind::UnknownKey { .. }
            | WarningKind::NoEffect
            | WarningKind::NotPositive
            | WarningKind::OfProgram(_) => None,
        }
    }

    /// The known key that an unknown one resembles.
    fn nearest(&self) -> Option<&str> {
        if let WarningKind::UnknownKey { nearest } = &self.kind { nearest.as_deref() } else { None }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message())?;
        self.instead().map_or(Ok(()), |official| write!(f, " ({official})"))?;
        self.nearest().map_or(Ok(()), |nearest| f.write_str(&did_you_mean(nearest)))
    }
}

/// The end of a text about a misspelt key.
pub(super) fn did_you_mean(nearest: &str) -> String {
    format!("; did you mean {}?", quoted(nearest))
}
