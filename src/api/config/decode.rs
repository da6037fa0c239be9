//! Decodes JSON values into records, with the path of everything that is wrong or not known.
//!
//! As in Go: keys are case-sensitive, `null` and absence are the same, a value of another type is an error (nothing is
//! converted), an unknown key is none.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Warning, WarningKind};
use crate::api::duration::GoDuration;

/// Why a document is no component configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not YAML, not JSON, or not UTF-8.
    #[error("{0}")]
    Syntax(String),
    /// Another group, version or kind.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    Kind {
        /// The kind of the document.
        kind: String,
        /// Its group and version.
        api_version: String,
    },
    /// A value of another type than its field has.
    #[error("{}expected {expected}, found {found}", field(.path))]
    Type {
        /// Path of the field; empty for the whole document.
        path: String,
        /// What the field takes.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A text that is no duration.
    #[error("{path}: {cause}")]
    Duration {
        /// Path of the field.
        path: String,
        /// What is wrong with the text.
        cause: crate::api::duration::DurationError,
    },
}

/// A value of the document and where it stands.
pub(super) struct Node<'a> {
    value: &'a Value,
    path: String,
}

/// Something a value of the document can become.
pub(super) trait Decode: Sized {
    /// Decodes; keys nobody knows go to `warnings`.
    fn decode(node: &Node<'_>, warnings: &mut Vec<Warning>) -> Result<Self, DecodeError>;

    /// Adds the paths of all keys below `path`, list entries as `path[]`.
    #[cfg(test)]
    fn keys(path: String, keys: &mut Vec<String>) {
        keys.push(path);
    }
}

/// Declares records: a struct, how to decode it, and which keys it has.
macro_rules! records {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty = $key:literal),* $(,)? })*) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub(crate) struct $name {
            $($(#[$field_meta])* pub(crate) $field: $type,)*
        }

        impl $crate::api::config::decode::Decode for $name {
            fn decode(
                node: &$crate::api::config::decode::Node<'_>,
                warnings: &mut Vec<$crate::api::config::Warning>,
            ) -> Result<Self, $crate::api::config::decode::DecodeError> {
                let fields = node.fields(&[$($key),*], warnings)?;
                Ok(Self {
                    $($field: $crate::api::config::decode::Decode::decode(&node.child(fields, $key), warnings)?,)*
                })
            }

            #[cfg(test)]
            fn keys(path: String, keys: &mut Vec<String>) {
                $(<$type as $crate::api::config::decode::Decode>::keys(
                    $crate::api::config::decode::join(&path, $key), keys);)*
            }
        }
    )* };
}
pub(super) use records;

// === impl DecodeError ===

impl DecodeError {
    /// With its path rewritten.
    pub(super) fn at(self, rewrite: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Type { path, expected, found } => Self::Type { path: rewrite(&path), expected, found },
            Self::Duration { path, cause } => Self::Duration { path: rewrite(&path), cause },
            Self::Syntax(_) | Self::Kind { .. } => self,
        }
    }
}

// === impl Node ===

impl<'a> Node<'a> {
    /// The whole document.
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    /// The object's fields (`None` where it is absent), after a warning for each key not in `known`.
    pub(super) fn fields(
        &self,
        known: &[&str],
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<&'a Map<String, Value>>, DecodeError> {
        let fields = match self.value {
            Value::Null => return Ok(None),
            Value::Object(fields) => fields,
            _ => return Err(self.wrong("an object")),
        };
        let unknown = fields.keys().filter(|key| !known.contains(&key.as_str()));
        warnings.extend(unknown.map(|key| Warning::new(join(&self.path, key), WarningKind::UnknownKey)));
        Ok(Some(fields))
    }

    /// A field of the object.
    pub(super) fn child(&self, fields: Option<&'a Map<String, Value>>, key: &str) -> Self {
        let value = fields.and_then(|fields| fields.get(key)).unwrap_or(&Value::Null);
        Self { value, path: join(&self.path, key) }
    }

    fn wrong(&self, expected: &'static str) -> DecodeError {
        let found = match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        DecodeError::Type { path: self.path.clone(), expected, found }
    }
}

// === impl Decode ===

impl<T: Decode> Decode for Option<T> {
    fn decode(node: &Node<'_>, warnings: &mut Vec<Warning>) -> Result<Self, DecodeError> {
        if node.value.is_null() { Ok(None) } else { T::decode(node, warnings).map(Some) }
    }

    #[cfg(test)]
    fn keys(path: String, keys: &mut Vec<String>) {
        T::keys(path, keys);
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node<'_>, warnings: &mut Vec<Warning>) -> Result<Self, DecodeError> {
        let entries = match node.value {
            Value::Null => return Ok(Self::new()),
            Value::Array(entries) => entries,
            _ => return Err(node.wrong("a list")),
        };
        let entry = |(i, value)| T::decode(&Node { value, path: format!("{}[{i}]", node.path) }, warnings);
        entries.iter().enumerate().map(entry).collect()
    }

    #[cfg(test)]
    fn keys(path: String, keys: &mut Vec<String>) {
        T::keys(format!("{path}[]"), keys);
    }
}

impl Decode for BTreeMap<String, String> {
    fn decode(node: &Node<'_>, warnings: &mut Vec<Warning>) -> Result<Self, DecodeError> {
        let entries = match node.value {
            Value::Null => return Ok(Self::new()),
            Value::Object(entries) => entries,
            _ => return Err(node.wrong("an object of strings")),
        };
        let entry = |(key, value)| {
            Ok((String::clone(key), String::decode(&Node { value, path: join(&node.path, key) }, warnings)?))
        };
        entries.iter().map(entry).collect()
    }
}

impl Decode for bool {
    fn decode(node: &Node<'_>, _: &mut Vec<Warning>) -> Result<Self, DecodeError> {
        node.value.as_bool().ok_or_else(|| node.wrong("a boolean"))
    }
}

impl Decode for String {
    fn decode(node: &Node<'_>, _: &mut Vec<Warning>) -> Result<Self, DecodeError> {
        node.value.as_str().map(str::to_owned).ok_or_else(|| node.wrong("a string"))
    }
}

impl Decode for i64 {
    fn decode(node: &Node<'_>, _: &mut Vec<Warning>) -> Result<Self, DecodeError> {
        node.value.as_i64().ok_or_else(|| node.wrong("an integer"))
    }
}

impl Decode for f64 {
    fn decode(node: &Node<'_>, _: &mut Vec<Warning>) -> Result<Self, DecodeError> {
        node.value.as_f64().filter(|number| number.is_finite()).ok_or_else(|| node.wrong("a number"))
    }
}

impl Decode for GoDuration {
    fn decode(node: &Node<'_>, _: &mut Vec<Warning>) -> Result<Self, DecodeError> {
        let text = node.value.as_str().ok_or_else(|| node.wrong("a duration such as \"1m30s\""))?;
        text.parse().map_err(|cause| DecodeError::Duration { path: node.path.clone(), cause })
    }
}

/// `path.key`, or `key` at the top.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn field(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}
