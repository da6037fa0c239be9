//! The JSONPath templates of kubectl, as far as the commands know them. The dialect is kubectl's, not that of RFC 9535:
//! a library for the RFC reads neither templates nor escaped names.
//!
//! | Expression | Meaning |
//! |---|---|
//! | `{.a.b}` | a field; a backslash escapes the next character: `{.metadata.labels.example\.com/name}` |
//! | `{['a']}`, `{["a"]}` | a field with any name |
//! | `{.a[0]}`, `{.a[-1]}` | an item of a list, counted from its start or its end |
//! | `{.a[*]}`, `{.a.*}` | all items of a list, or all values of a map |
//! | `{.a[?(@.b=="x")]}` | the items whose field equals a text, a number, `true` or `false`; also `!=`, and `?(@.b)` for *has it* |
//! | `{@}`, `{$}`, `{.}` | the current value |
//! | `{range .items[*]}…{end}` | the part between them, once for each value; paths in it begin at that value |
//! | `{"text\n"}`, `{'text'}` | a text, with the escapes `\n \t \r \\ \" \'` |
//!
//! Text outside of braces stands for itself. Several results of one expression are separated by blanks. A string is
//! printed without quotes, any other value as JSON. An absent field and `null` print nothing. Everything else of
//! kubectl's dialect (`..`, unions, slices, other comparisons) is refused with its name. [`Template::from_str`] parses,
//! [`Template::print`] evaluates; both are pure.

mod evaluate;
mod parse;

#[cfg(test)]
mod tests;

use std::str::FromStr;

pub use evaluate::text;
use serde_json::Value;

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Node>);

/// A path to values within a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(Vec<Segment>);

/// Why a template or path is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonPathError {
    /// It cannot be parsed.
    #[error("{reason}, at {place:?}")]
    Syntax {
        /// What is wrong, and a remedy.
        reason: &'static str,
        /// The text from the wrong place on, cut.
        place: String,
    },
    /// It is valid for kubectl, and not known here.
    #[error("{what} not supported, at {place:?}")]
    Unsupported {
        /// The feature and its verb, for example `slices are`.
        what: &'static str,
        /// The text from its place on, cut.
        place: String,
    },
    /// It is longer than any that a person writes.
    #[error("it is longer than {0} bytes")]
    TooLong(usize),
}

/// A template takes too many steps, or prints too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the JSONPath visits too many values or prints too much — select fewer objects, or write a simpler one")]
pub struct TooMuch;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Text(String),
    Path(Path),
    Range(Path, Vec<Node>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Field(String),
    Item(i64),
    All,
    Filter(Filter),
}

/// Selects the items for which it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Filter {
    path: Path,
    /// `None`: the path leads to a value.
    comparison: Option<Comparison>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Comparison {
    equal: bool,
    with: Value,
}

impl FromStr for Template {
    type Err = JsonPathError;

    /// Fails for an unknown or unsupported expression, and for a template without any.
    fn from_str(text: &str) -> Result<Self, JsonPathError> {
        parse::template(text).map(Self)
    }
}

impl FromStr for Path {
    type Err = JsonPathError;

    /// Parses one path, with or without braces and a leading dot: `{.a.b}`, `.a.b` and `a.b` are equal.
    fn from_str(text: &str) -> Result<Self, JsonPathError> {
        parse::lone_path(text)
    }
}
