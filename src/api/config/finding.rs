//! What validation finds, and what a user should know although it is no error.

use std::fmt;

use serde::Serialize;

use crate::api::quote::quoted;

/// A rule of the configuration that is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// JSON path of the field, lists as `[i]`.
    pub path: String,
    /// The text behind the path (spec 62 §2.1).
    pub body: String,
}

/// Something in the file or the flags that is accepted and may not mean what its author thinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// JSON path of the key, or the flag with its dashes.
    pub path: String,
    /// What it is.
    pub kind: WarningKind,
}

/// What a warning says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WarningKind {
    /// The key is not known and has no effect.
    UnknownKey,
    /// Both spellings of a block are there; the official one wins.
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
    /// A lock type that exists no more; `leases` is used.
    LockReplaced,
    /// `--extra-target-namespace` without configured namespaces restricts the target to these (spec 70 trap 1).
    NarrowsTarget,
}

impl FieldError {
    /// `Required value`, with a detail if there is one.
    pub(super) fn required(path: impl Into<String>, detail: &str) -> Self {
        let body = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self { path: path.into(), body }
    }

    /// `Invalid value`.
    pub(super) fn invalid(path: impl Into<String>, value: impl fmt::Display, detail: impl fmt::Display) -> Self {
        Self { path: path.into(), body: format!("Invalid value: {value}: {detail}") }
    }

    /// `Unsupported value`, with the values there are.
    pub(super) fn unsupported(path: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let supported: Vec<_> = supported.iter().map(|value| quoted(value)).collect();
        let body = format!("Unsupported value: {}: supported values: {}", quoted(value), supported.join(", "));
        Self { path: path.into(), body }
    }

    /// `Forbidden`.
    pub(super) fn forbidden(path: impl Into<String>, detail: &str) -> Self {
        Self { path: path.into(), body: format!("Forbidden: {detail}") }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body)
    }
}

/// One text as it is, several as `[a, b]`; equal ones once, at their first place (spec 62 §2.2).
pub(super) fn aggregate(errors: &[FieldError]) -> String {
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
pub(super) fn json(value: &impl Serialize) -> String {
    // Only maps with keys that are no strings cannot be written; there are none here.
    let text = serde_json::to_string(value).unwrap_or_default();
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

impl Warning {
    pub(crate) fn new(path: impl Into<String>, kind: WarningKind) -> Self {
        Self { path: path.into(), kind }
    }

    /// A constant text for the log; `path` and `instead` belong into its fields.
    pub fn message(&self) -> &'static str {
        match &self.kind {
            WarningKind::UnknownKey => "Unknown configuration key is ignored",
            WarningKind::BothSpellings { .. } => "Configuration has both spellings of a key, the official one wins",
            WarningKind::Deprecated { .. } => "Configuration key is deprecated",
            WarningKind::NoEffect => "Setting has no effect any more",
            WarningKind::LockReplaced => "Lock type does not exist any more, leases is used",
            WarningKind::NarrowsTarget => "Extra target namespaces replace all namespaces, only these are watched",
        }
    }

    /// The key to use instead, where there is one.
    pub fn instead(&self) -> Option<&str> {
        match &self.kind {
            WarningKind::BothSpellings { official } | WarningKind::Deprecated { official } => Some(official),
            WarningKind::UnknownKey
            | WarningKind::NoEffect
            | WarningKind::LockReplaced
            | WarningKind::NarrowsTarget => None,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message())?;
        self.instead().map_or(Ok(()), |official| write!(f, " ({official})"))
    }
}
