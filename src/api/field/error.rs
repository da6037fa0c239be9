//! Errors of fields, and how several become one (spec 62 §2.1, §2.2).

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::Serialize;

use super::Path;
use crate::api::quote::quoted;

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is missing or empty.
    Required,
    /// Its value is not as it must be.
    Invalid,
    /// Its value is none of those that there are.
    Unsupported,
    /// It must not be there, or not change.
    Forbidden,
    /// Its value is there twice.
    Duplicate,
    /// It has too many bytes.
    TooLong,
}

/// One error. Its text is `<field>: <message>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The kind.
    pub kind: Kind,
    /// Path of the field.
    pub field: String,
    /// The text after the path.
    pub message: String,
}

/// Errors in the order in which they were found. Its text is that of the only one, or all in brackets, each text once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Errors(Vec<Error>);

/// A value as errors show it.
#[derive(Debug, Clone, Copy)]
pub enum Shown<'a> {
    /// A plain text: in quotes, with escapes.
    Text(&'a str),
    /// A number.
    Integer(i64),
    /// Anything else, as JSON without spaces: an enumeration, a list, an optional value.
    Json(&'a dyn ToJson),
    /// As it stands: what stands for a value that is not repeated.
    Instead(&'a str),
}

/// Something that can be written as JSON.
pub trait ToJson: fmt::Debug {
    /// Without spaces.
    fn to_json(&self) -> String;
}

// === impl Kind ===

impl Kind {
    /// The reason of a cause in `details.causes` of an API status.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::Unsupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
        }
    }
}

// === impl Errors ===

impl Errors {
    /// The field is missing or empty.
    pub fn required(&mut self, field: &Path<'_>, detail: &str) {
        let colon = if detail.is_empty() { "" } else { ": " };
        self.add(Kind::Required, field, format!("Required value{colon}{detail}"));
    }

    /// The value is not as it must be.
    pub fn invalid(&mut self, field: &Path<'_>, value: Shown<'_>, detail: impl fmt::Display) {
        self.add(Kind::Invalid, field, format!("Invalid value: {value}: {detail}"));
    }

    /// The value is none of these.
    pub fn unsupported(&mut self, field: &Path<'_>, value: Shown<'_>, supported: &[&str]) {
        let supported: Vec<_> = supported.iter().map(|value| quoted(value)).collect();
        let supported = supported.join(", ");
        self.add(Kind::Unsupported, field, format!("Unsupported value: {value}: supported values: {supported}"));
    }

    /// The field must not be there, or not change.
    pub fn forbidden(&mut self, field: &Path<'_>, detail: impl fmt::Display) {
        self.add(Kind::Forbidden, field, format!("Forbidden: {detail}"));
    }

    /// The value is there twice.
    pub fn duplicate(&mut self, field: &Path<'_>, value: Shown<'_>) {
        self.add(Kind::Duplicate, field, format!("Duplicate value: {value}"));
    }

    /// The field has more bytes than this.
    pub fn too_long(&mut self, field: &Path<'_>, bytes: usize) {
        self.add(Kind::TooLong, field, format!("Too long: may not be more than {bytes} bytes"));
    }

    fn add(&mut self, kind: Kind, field: &Path<'_>, message: String) {
        self.0.push(Error { kind, field: field.to_string(), message });
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Errors {
    type Item = &'a Error;
    type IntoIter = std::slice::Iter<'a, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Errors {
    type Item = Error;
    type IntoIter = std::vec::IntoIter<Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seen = HashSet::new();
        let mut texts = self.0.iter().filter(|error| seen.insert((&error.field, &error.message)));
        let Some(first) = texts.next() else { return Ok(()) };
        let Some(second) = texts.next() else { return first.fmt(f) };
        write!(f, "[{first}, {second}")?;
        texts.try_for_each(|error| write!(f, ", {error}"))?;
        f.write_str("]")
    }
}

// === impl Error ===

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

// === impl Shown ===

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::Integer(number) => number.fmt(f),
            Self::Json(value) => f.write_str(&as_go_writes(&value.to_json())),
            Self::Instead(text) => f.write_str(text),
        }
    }
}

impl<T: Serialize + fmt::Debug> ToJson for T {
    fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "null".to_owned())
    }
}

/// Go writes what HTML could take for markup as escapes. Outside of texts JSON has none of these characters.
fn as_go_writes(json: &str) -> Cow<'_, str> {
    const MARKUP: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];

    if !json.contains(MARKUP) {
        return Cow::Borrowed(json);
    }
    let mut written = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if MARKUP.contains(&character) {
            written.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            written.push(character);
        }
    }
    Cow::Owned(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 62 §2.1, all rows of the tables of kinds and of values
    #[test]
    fn each_kind_has_its_reason_and_text() {
        let field = Path::root("f");
        let mut errors = Errors::default();
        errors.required(&field, "field is required");
        errors.required(&field, "");
        errors.invalid(&field, Shown::Text("a\"\n"), "detail");
        errors.invalid(&field, Shown::Integer(-1), "detail");
        errors.invalid(&field, Shown::Json(&["<a>"]), "detail");
        errors.invalid(&field, Shown::Json(&None::<&str>), "detail");
        errors.unsupported(&field, Shown::Text("c"), &["a", "b"]);
        errors.forbidden(&field, "detail");
        errors.duplicate(&field, Shown::Text("a"));
        errors.too_long(&field, 128);

        let told: Vec<_> = errors.iter().map(|error| (error.kind.reason(), &*error.message)).collect();

        let expected = [
            ("FieldValueRequired", "Required value: field is required"),
            ("FieldValueRequired", "Required value"),
            ("FieldValueInvalid", r#"Invalid value: "a\"\n": detail"#),
            ("FieldValueInvalid", "Invalid value: -1: detail"),
            ("FieldValueInvalid", r#"Invalid value: ["\u003ca\u003e"]: detail"#),
            ("FieldValueInvalid", "Invalid value: null: detail"),
            ("FieldValueNotSupported", r#"Unsupported value: "c": supported values: "a", "b""#),
            ("FieldValueForbidden", "Forbidden: detail"),
            ("FieldValueDuplicate", r#"Duplicate value: "a""#),
            ("FieldValueTooLong", "Too long: may not be more than 128 bytes"),
        ];
        assert_eq!(told, expected);
    }

    /// spec 62 §2.2
    #[test]
    fn a_text_that_is_there_twice_is_told_once() {
        let mut errors = Errors::default();
        assert_eq!(errors.to_string(), "");
        errors.forbidden(&Path::root("a"), "x");
        errors.forbidden(&Path::root("a"), "x");
        assert_eq!(errors.to_string(), "a: Forbidden: x");
        errors.forbidden(&Path::root("b"), "y");
        errors.forbidden(&Path::root("a"), "x");
        assert_eq!(errors.to_string(), "[a: Forbidden: x, b: Forbidden: y]");
        assert_eq!(errors.len(), 4);
    }
}
