//! Objects as YAML, the same text for the same object, always (spec 10 §19.4).
//!
//! Block style, keys sorted by their bytes, two blanks for each level, lists not indented under their key. A string is
//! written plain only if every dialect takes it for a string: names of immutable Secrets depend on this text, and readers
//! of YAML 1.1 see booleans and numbers in surprising places. The order and the rules must never change.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// One level.
const STEP: usize = 2;
/// Parsers limit the length of a key that stands before its colon to 1024 characters.
const LONGEST_SIMPLE_KEY: usize = 500;
/// Plain words that some dialect takes for something else than a string, in lower case.
const WORDS: [&str; 9] = ["y", "yes", "n", "no", "true", "false", "on", "off", "null"];

/// One document, which ends with a newline and begins without a separator.
///
/// ```
/// use gardener_resource_manager::producer::yaml;
///
/// let text = yaml::document(&serde_json::json!({"kind": "ConfigMap", "data": {"enabled": "yes", "level": "info"}}));
///
/// assert_eq!(text, "data:\n  enabled: \"yes\"\n  level: info\nkind: ConfigMap\n");
/// ```
pub fn document(value: &Value) -> String {
    let mut text = String::new();
    node(&mut text, value, 0);
    text
}

/// Several documents, with `---` between them.
pub fn stream<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let documents: Vec<String> = values.into_iter().map(document).collect();
    join(documents.iter().map(String::as_str))
}

/// Puts documents behind one another: each ends with a newline, and `---` stands between them.
pub(super) fn join<'a>(documents: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for document in documents {
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(document);
        if !document.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

/// A value whose first line is indented already.
fn node(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => map(text, fields, indent),
        Value::Array(items) if !items.is_empty() => list(text, items, indent),
        scalar => {
            self::scalar(text, scalar, indent);
            text.push('\n');
        }
    }
}

fn map(text: &mut String, fields: &Map<String, Value>, indent: usize) {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| key.as_bytes());
    for (position, (key, value)) in fields.into_iter().enumerate() {
        if position > 0 {
            blanks(text, indent);
        }
        let is_long = key.len() > LONGEST_SIMPLE_KEY;
        if is_long {
            text.push_str("? ");
            quoted(text, key);
            text.push('\n');
            blanks(text, indent);
        } else if is_plain(key) {
            text.push_str(key);
        } else {
            quoted(text, key);
        }
        text.push(':');
        match value {
            Value::Array(items) if !items.is_empty() && !is_long => below(text, value, indent),
            Value::Array(items) if !items.is_empty() => below(text, value, indent + STEP),
            Value::Object(fields) if !fields.is_empty() => below(text, value, indent + STEP),
            scalar => {
                text.push(' ');
                node(text, scalar, indent + STEP);
            }
        }
    }
}

fn list(text: &mut String, items: &[Value], indent: usize) {
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            blanks(text, indent);
        }
        text.push_str("- ");
        node(text, item, indent + STEP);
    }
}

fn below(text: &mut String, value: &Value, indent: usize) {
    text.push('\n');
    blanks(text, indent);
    node(text, value, indent);
}

fn blanks(text: &mut String, count: usize) {
    text.extend(std::iter::repeat_n(' ', count));
}

// === scalars ===

/// A scalar, or an empty list or map. `indent` is that of the lines of a block.
fn scalar(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::String(value) if is_plain(value) => text.push_str(value),
        Value::String(value) if is_block(value) => block(text, value, indent),
        Value::String(value) => quoted(text, value),
        Value::Array(_) => text.push_str("[]"),
        Value::Object(_) => text.push_str("{}"),
    }
}

/// Whether the text is a string in every dialect as it stands.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let begins_well = bytes.first().is_some_and(|&first| first.is_ascii_alphabetic() || first == b'/');
    let fits = |(position, &byte): (usize, &u8)| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'/' | b'@' | b'+' | b'=' | b'(' | b')' => true,
        b' ' => bytes.get(position + 1).is_some_and(|next| *next != b' '),
        b':' => bytes.get(position + 1).is_some_and(|next| *next != b' '),
        _ => false,
    };
    begins_well && bytes.iter().enumerate().all(fits) && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

/// Whether several lines can be shown as they are.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let line_fits = |line: &str| line.is_empty() || (!line.starts_with('\t') && !line.trim().is_empty());
    text.contains('\n')
        && !body.is_empty()
        && !body.starts_with([' ', '\n', '\t'])
        && !body.ends_with('\n')
        && text.chars().all(|character| character == '\n' || character == '\t' || is_printable(character))
        && body.split('\n').all(line_fits)
}

/// `|` with one newline at the end, `|-` without.
fn block(text: &mut String, value: &str, indent: usize) {
    let body = value.strip_suffix('\n');
    text.push_str(if body.is_some() { "|" } else { "|-" });
    for line in body.unwrap_or(value).split('\n') {
        text.push('\n');
        if !line.is_empty() {
            blanks(text, indent);
            text.push_str(line);
        }
    }
}

fn quoted(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            character if is_printable(character) => text.push(character),
            // Nothing above the first plane is unprintable here, so four digits are enough.
            character => write!(text, "\\u{:04x}", u32::from(character)).unwrap_or_default(),
        }
    }
    text.push('"');
}

fn is_printable(character: char) -> bool {
    let special = matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    !character.is_control() && !special
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::bundle::decode::{self, SecretData};

    fn read_back(text: &str) -> Value {
        let data = BTreeMap::from([("k".to_owned(), text.as_bytes().to_vec())]);
        let decoded = decode::decode([SecretData { namespace: "", name: "", data: &data }]);
        assert!(decoded.errors.is_empty(), "{:?}\n{text}", decoded.errors);
        decoded.documents.into_iter().next().map(|document| document.manifest).unwrap_or_default()
    }

    #[test]
    fn the_layout_is_pinned() {
        let value = json!({
            "kind": "Example", "apiVersion": "g.io/v1",
            "metadata": {"name": "a", "annotations": {"on": "off", "1": "0777", "empty": ""}},
            "spec": {
                "list": [{"name": "x", "args": ["--a=b", "- c"]}, ["nested", ["deep"]], [], {}, null, 1.5, -2, true],
                "image": "registry.io/a:v1.2", "time": "2026-01-01", "script": "#!/bin/sh\n\nexec\ta  b\n",
                "short": "no end\nof line", "odd": " leading", "control": "a\u{7}b\u{2028}", "percent": "50%",
            },
        });

        let expected = r##"apiVersion: g.io/v1
kind: Example
metadata:
  annotations:
    "1": "0777"
    empty: ""
    "on": "off"
  name: a
spec:
  control: "a\u0007b\u2028"
  image: registry.io/a:v1.2
  list:
  - args:
    - "--a=b"
    - "- c"
    name: x
  - - nested
    - - deep
  - []
  - {}
  - null
  - 1.5
  - -2
  - true
  odd: " leading"
  percent: "50%"
  script: |
    #!/bin/sh

    exec	a  b
  short: |-
    no end
    of line
  time: "2026-01-01"
"##;
        assert_eq!(document(&value), expected);
        assert_eq!(read_back(expected), value);
    }

    #[test]
    fn a_key_that_is_too_long_for_its_line_is_read_back() {
        let key = "k".repeat(3000);
        let value = json!({"a": {key.as_str(): [1, {"b": "c"}]}, "z": {key.as_str(): {"x": "y"}, "b": 1}});

        assert_eq!(read_back(&document(&value)), value);
    }

    #[test]
    fn documents_are_separated_but_not_ended_by_a_line_of_dashes() {
        assert_eq!(stream([&json!({"a": 1}), &json!({"b": 2})]), "a: 1\n---\nb: 2\n");
        assert_eq!(join(["a: 1", "b: 2\n"]), "a: 1\n---\nb: 2\n");
    }

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>(),
            "[ \t\n:#\\-?|>'\"{}\\[\\],&*!%@`a-z0-9.~=]{0,12}",
            "(?i)y|yes|n|no|true|false|on|off|null|~|t|f|<<|=|\\.inf|\\.nan|1e3|0x1f|0o7|1_000|12:30:45",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1000.0..1000.0f64)
                .prop_filter("whole numbers become integers", |f| f.fract() != 0.0)
                .prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_controllers_decoder_reads_back_what_was_written(value in values()) {
            let object = json!({"value": value});

            let text = document(&object);

            prop_assert_eq!(read_back(&text), object, "{}", text);
        }
    }
}
