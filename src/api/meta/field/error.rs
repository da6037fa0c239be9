//! Errors of fields, and how several become one (spec 62 §2.1, §2.2).

use std::{borrow::Cow, collections::HashSet, fmt};

use kit::quote::{cut, cut_after, quoted, shown};
use serde::Serialize;

use super::Path;

const MOST_ERRORS: usize = 100; // errors that are kept. People do not read more.
/// Bytes of their fields and messages together. They are sent twice (causes and message), and a byte takes up to six in
/// JSON: an answer of at most 3 MiB is small among those that a server has in memory.
const MOST_BYTES: usize = 256 * 1024;
/// Longest value that is not a text, in characters: specs of usual size are shown whole.
const LONGEST_VALUE: usize = 4096;
/// Longest message, in characters; details may name many things. At four bytes each, the first message always fits.
const LONGEST_MESSAGE: usize = 16 * 1024;

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Missing or empty.
    Required,
    /// Not valid.
    Invalid,
    /// Not among the supported values.
    Unsupported,
    /// Must be absent, or must not change.
    Forbidden,
    /// The same value occurs twice.
    Duplicate,
    /// Too many bytes.
    TooLong,
}

/// An error. Its text is `<field>: <message>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Path of the field.
    pub field: String,
    /// The text after the path.
    pub message: String,
}

/// Errors in the order in which they were found. The text is that of the only error, or all in brackets, each text
/// once. From the first error that does not fit, errors are only counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Errors {
    kept: Vec<Error>,
    bytes: usize,
    more: usize,
}

/// A value as errors show it; very long values are cut.
#[derive(Debug, Clone, Copy)]
pub enum Shown<'a> {
    /// A plain text: in quotes, with escapes.
    Text(&'a str),
    /// Any other value, as JSON without spaces: a number, an enumeration, a list, an optional value.
    Json(&'a dyn ToJson),
    /// A replacement for a value that must not be repeated, as it is.
    Instead(&'a str),
}

/// A value that can be written as JSON.
pub trait ToJson: fmt::Debug {
    /// Without spaces.
    fn to_json(&self) -> String;
}

impl ErrorKind {
    /// The reason in `details.causes` of an API status.
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

impl Errors {
    /// Adds: the field is missing or empty.
    pub fn required(&mut self, field: &Path<'_>, detail: &str) {
        let colon = if detail.is_empty() { "" } else { ": " };
        self.add(ErrorKind::Required, field, || format!("Required value{colon}{detail}"));
    }

    /// Adds: the value is not valid.
    pub fn invalid(&mut self, field: &Path<'_>, value: Shown<'_>, detail: impl fmt::Display) {
        self.add(ErrorKind::Invalid, field, || format!("Invalid value: {value}: {detail}"));
    }

    /// Adds: the value is not among the supported ones.
    pub fn unsupported(&mut self, field: &Path<'_>, value: Shown<'_>, supported: &[&str]) {
        self.add(ErrorKind::Unsupported, field, || {
            let supported: Vec<_> = supported.iter().map(|value| quoted(value)).collect();
            format!("Unsupported value: {value}: supported values: {}", supported.join(", "))
        });
    }

    /// Adds: the field must be absent, or must not change.
    pub fn forbidden(&mut self, field: &Path<'_>, detail: impl fmt::Display) {
        self.add(ErrorKind::Forbidden, field, || format!("Forbidden: {detail}"));
    }

    /// Adds: the same value occurs twice.
    pub fn duplicate(&mut self, field: &Path<'_>, value: Shown<'_>) {
        self.add(ErrorKind::Duplicate, field, || format!("Duplicate value: {value}"));
    }

    /// Adds: the field has more than `bytes` bytes.
    pub fn too_long(&mut self, field: &Path<'_>, bytes: usize) {
        self.add(ErrorKind::TooLong, field, || format!("Too long: may not be more than {bytes} bytes"));
    }

    fn add(&mut self, kind: ErrorKind, field: &Path<'_>, message: impl FnOnce() -> String) {
        if self.more == 0 && self.kept.len() < MOST_ERRORS {
            let field = cut(&field.to_string()).into_owned();
            let message = cut_after(LONGEST_MESSAGE, &message()).into_owned();
            let bytes = self.bytes + field.len() + message.len();
            if bytes <= MOST_BYTES {
                self.bytes = bytes;
                self.kept.push(Error { kind, field, message });
                return;
            }
        }
        self.more += 1;
    }

    /// Number of errors, including those that are not kept.
    pub fn len(&self) -> usize {
        self.kept.len() + self.more
    }

    /// Returns true if there are no errors.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The kept errors, in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.kept.iter()
    }

    /// A text about the errors that are not kept, if there are any.
    pub fn rest(&self) -> Option<String> {
        (self.more > 0).then(|| format!("and {} more", self.more))
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seen = HashSet::new();
        let rest = self.rest();
        let errors = self.kept.iter().filter(|error| seen.insert((&error.field, &error.message)));
        let errors = errors.map(|error| error as &dyn fmt::Display);
        let mut texts = errors.chain(rest.iter().map(|rest| rest as &dyn fmt::Display));
        let Some(first) = texts.next() else { return Ok(()) };
        let Some(second) = texts.next() else { return first.fmt(f) };
        write!(f, "[{first}, {second}")?;
        texts.try_for_each(|error| write!(f, ", {error}"))?;
        f.write_str("]")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&shown(text)),
            Self::Json(value) => {
                let json = value.to_json();
                // Cut before, as escaping is work, and after, as escapes are long.
                f.write_str(&cut_after(LONGEST_VALUE, &as_go_writes(&cut_after(LONGEST_VALUE, &json))))
            }
            Self::Instead(text) => f.write_str(text),
        }
    }
}

impl<T: Serialize + fmt::Debug> ToJson for T {
    fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "null".to_owned())
    }
}

/// Go escapes what HTML could take for markup. JSON has these characters only inside of texts.
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
    fn errors_have_the_reason_and_text_of_their_kind() {
        let field = Path::root("f");
        let mut errors = Errors::default();
        errors.required(&field, "field is required");
        errors.required(&field, "");
        errors.invalid(&field, Shown::Text("a\"\n"), "detail");
        errors.invalid(&field, Shown::Json(&-1), "detail");
        errors.invalid(&field, Shown::Json(&["<a>"]), "detail");
        errors.invalid(&field, Shown::Json(&None::<&str>), "detail");
        errors.unsupported(&field, Shown::Text("c"), &["a", "b"]);
        errors.forbidden(&field, "detail");
        errors.duplicate(&field, Shown::Text("a"));
        errors.too_long(&field, 128);

        let reported: Vec<_> = errors.iter().map(|error| (error.kind.reason(), &*error.message)).collect();

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
        assert_eq!(reported, expected);
    }

    /// spec 62 §2.2
    #[test]
    fn errors_with_equal_texts_appear_once() {
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

    /// spec 62 §2.2
    #[test]
    fn errors_beyond_a_hundred_are_counted_only() {
        let mut errors = Errors::default();
        for number in 0..107 {
            errors.forbidden(&Path::root("f").at(number), "x");
        }
        let text = errors.to_string();
        assert_eq!((errors.len(), errors.iter().count()), (107, 100));
        assert!(text.starts_with("[f[0]: Forbidden: x, f[1]: ") && text.ends_with("f[99]: Forbidden: x, and 7 more]"));
        assert_eq!(errors.rest().as_deref(), Some("and 7 more"));
    }

    /// spec 62 §2.2
    #[test]
    fn errors_that_are_large_are_counted_sooner() {
        let (mut errors, large) = (Errors::default(), "€".repeat(100_000));
        for _ in 0..50 {
            errors.forbidden(&Path::root(&large), &large);
        }
        errors.forbidden(&Path::root("small"), "would find room, but is found later");
        let bytes: usize = errors.iter().map(|error| error.field.len() + error.message.len()).sum();
        assert_eq!((errors.len(), errors.iter().count()), (51, 5));
        assert!(bytes <= MOST_BYTES && errors.to_string().ends_with(", and 46 more]"), "{bytes}");
    }

    /// spec 62 §2.1
    #[test]
    fn an_absurdly_long_value_is_cut() {
        let (mut errors, large) = (Errors::default(), "<".repeat(100_000));
        errors.invalid(&Path::root("f"), Shown::Text(&large), "detail");
        errors.invalid(&Path::root("f"), Shown::Json(&[&large]), "detail");
        let reported: Vec<_> = errors.iter().map(|error| &*error.message).collect();
        let json = format!("[\"{}", "\\u003c".repeat(1000));
        let json = format!("Invalid value: {}: detail", cut_after(LONGEST_VALUE, &json));
        assert_eq!(reported, [&*format!("Invalid value: \"{}…\": detail", "<".repeat(512)), &*json]);
    }
}
