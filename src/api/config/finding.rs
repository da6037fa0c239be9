use std::fmt;

use serde::Serialize;

use crate::api::quote::quoted;

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
}

/// What a warning says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WarningKind {
    /// The key is unknown and has no effect.
    UnknownKey,
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
    /// A former lock type; `leases` is used.
    LockReplaced,
    /// `--extra-target-namespace` without configured namespaces restricts the target to these (spec 70 trap 1).
    NarrowsTarget,
}

impl FieldError {
    pub(super) fn required(path: impl Into<String>, detail: &str) -> Self {
        let body = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self { path: path.into(), body }
    }

    pub(super) fn invalid(path: impl Into<String>, value: impl fmt::Display, detail: impl fmt::Display) -> Self {
        Self { path: path.into(), body: format!("Invalid value: {value}: {detail}") }
    }

    pub(super) fn unsupported(path: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let supported: Vec<_> = supported.iter().map(|value| quoted(value)).collect();
        let body = format!("Unsupported value: {}: supported values: {}", quoted(value), supported.join(", "));
        Self { path: path.into(), body }
    }

    pub(super) fn forbidden(path: impl Into<String>, detail: &str) -> Self {
        Self { path: path.into(), body: format!("Forbidden: {detail}") }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body)
    }
}

/// One text as it is, several as `[a, b]`; equal texts once, at their first position (spec 62 §2.2).
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
    // Fails only for maps with keys that are no strings, which do not occur.
    let text = serde_json::to_string(value).unwrap_or_default();
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

impl Warning {
    pub(crate) fn new(path: impl Into<String>, kind: WarningKind) -> Self {
        Self { path: path.into(), kind }
    }

    /// A constant text for the log; `path` and `instead` are fields of the record.
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

    /// The key to use instead, if there is one.
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
