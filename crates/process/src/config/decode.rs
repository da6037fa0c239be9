//! Decodes JSON values into structs, with the path of everything that is wrong or unknown. As in Go, keys are
//! case-sensitive, `null` equals absence, and a value of another type is an error. An unknown key is an error only in a
//! type that selects something.

use std::fmt;

use kit::quote::shown;
use serde::{
    Deserializer, Serialize,
    de::{
        DeserializeOwned, Error, Expected, IntoDeserializer, Unexpected, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_ignored::Path;
use serde_json::{Map, Value};

use super::{finding::did_you_mean, nearest::nearest};

/// Why a document is no configuration of this program.
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
    /// A value that its field does not accept.
    #[error("{}{cause}", if path.is_empty() { String::new() } else { format!("{path}: ") })]
    Value {
        /// Path of the field; empty for the whole document.
        path: String,
        /// What the field accepts and what was found.
        cause: String,
    },
}

/// A key that nobody knows.
#[derive(Debug)]
pub(super) struct UnknownKey {
    pub(super) path: String,
    /// The known key of the same block that it resembles.
    pub(super) nearest: Option<String>,
}

/// A step of a path.
enum Step {
    Key(String),
    Index(usize),
}

/// Returns the value and the unknown keys. Fails with [`DecodeError::Value`] at the first value of another type, and at
/// the first unknown key of a type named in `selecting`: to ignore it would select more.
pub(super) fn decode<T: DeserializeOwned + Serialize>(
    value: Value,
    selecting: &[&str],
) -> Result<(T, Vec<UnknownKey>), DecodeError> {
    let mut unknown = Vec::new();
    let mut note = |path: Path<'_>| unknown.push(steps(&path));
    let node = ConfigNode { value, selecting };
    let value = serde_path_to_error::deserialize(serde_ignored::Deserializer::new(node, &mut note));
    let value: T = value.map_err(|error| {
        let path = Some(error.path()).filter(|path| path.iter().len() > 0).map(ToString::to_string);
        DecodeError::Value { path: path.unwrap_or_default(), cause: error.inner().to_string() }
    })?;
    // A serialized block has all its known keys.
    let known = if unknown.is_empty() { Value::Null } else { serde_json::to_value(&value).unwrap_or_default() };
    let unknown =
        unknown.into_iter().map(|steps| UnknownKey { nearest: nearest_key(&known, &steps), path: text(&steps) });
    let unknown = unknown.collect();
    Ok((value, unknown))
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn steps(path: &Path<'_>) -> Vec<Step> {
    let (parent, step) = match path {
        Path::Root => return Vec::new(),
        Path::Seq { parent, index } => (parent, Step::Index(*index)),
        Path::Map { parent, key } => (parent, Step::Key(key.clone())),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            return steps(parent);
        }
    };
    let mut all = steps(parent);
    all.push(step);
    all
}

fn text(steps: &[Step]) -> String {
    steps.iter().fold(String::new(), |path, step| match step {
        Step::Key(key) => join(&path, key),
        Step::Index(index) => format!("{path}[{index}]"),
    })
}

fn nearest_key(known: &Value, steps: &[Step]) -> Option<String> {
    let (Step::Key(key), block) = steps.split_last()? else { return None };
    let block = block.iter().try_fold(known, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })?;
    nearest(key, block.as_object()?.keys().map(String::as_str)).map(str::to_owned)
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(String);

impl Error for Cause {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(text.to_string())
    }

    /// Omits the text that was found: the file may be a wrong one with a secret in it.
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = if let Unexpected::Str(_) = found { Unexpected::Other("string") } else { found };
        Self(format!("invalid type: {found}, expected {expected}"))
    }
}

/// A JSON value. Unlike in `serde_json`, a known key without a value is absent, and a list is no struct.
struct ConfigNode<'a> {
    value: Value,
    selecting: &'a [&'a str],
}

impl<'de> Deserializer<'de> for ConfigNode<'_> {
    type Error = Cause;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Cause> {
        let node = |value| ConfigNode { value, selecting: self.selecting };
        match self.value {
            Value::Null => Err(Cause::invalid_type(Unexpected::Other("null"), &visitor)),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => number.deserialize_any(visitor).map_err(Cause::custom),
            Value::String(text) => visitor.visit_string(text),
            Value::Array(entries) => visitor.visit_seq(SeqDeserializer::new(entries.into_iter().map(node))),
            Value::Object(fields) => {
                visitor.visit_map(MapDeserializer::new(fields.into_iter().map(|(key, value)| (key, node(value)))))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Cause> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Cause> {
        match &mut self.value {
            Value::Null => self.value = Value::Object(Map::new()),
            Value::Array(_) => return Err(Cause::invalid_type(Unexpected::Seq, &visitor)),
            Value::Object(fields) => {
                let unknown = fields.keys().find(|key| !known.contains(&key.as_str()));
                if let Some(key) = unknown.filter(|_| self.selecting.contains(&name)) {
                    let meant = nearest(key, known.iter().copied()).map(did_you_mean).unwrap_or_default();
                    let (key, known) = (shown(key), known.join(", "));
                    return Err(Cause(format!("unknown key {key}, expected one of {known}{meant}")));
                }
                fields.retain(|key, value| !value.is_null() || !known.contains(&key.as_str()));
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Cause> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier
    }
}

impl IntoDeserializer<'_, Cause> for ConfigNode<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
