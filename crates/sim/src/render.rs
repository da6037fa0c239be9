//! Stored objects as JSON text: in the asked-for version, as metadata only, as items of a list, as events.
//!
//! An object's text without its first two fields is made once ([`Object::tail`]); what differs between a GET, a list
//! item and an event is put in front of it.

use jiff::Timestamp;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::{storage::Object, table};

/// What of an object is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// All of it.
    Full,
    /// `PartialObjectMetadata`: type and metadata only.
    Metadata,
    /// A row of a table.
    Row(Timestamp),
}

/// All but the type of an object.
struct Untyped<'a>(&'a Map<String, Value>);

impl Serialize for Untyped<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0.iter().filter(|(key, _)| *key != "apiVersion" && *key != "kind") {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// The JSON of `value` behind `apiVersion`, `kind` and the opening brace.
pub(super) fn tail(value: &Value) -> Vec<u8> {
    let mut text = match value.as_object() {
        Some(map) => to_vec(&Untyped(map)),
        None => b"{}".to_vec(),
    };
    text.remove(0);
    text
}

/// `value` as JSON. Values made of JSON have string keys only, so this cannot fail.
pub(super) fn to_vec(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// JSON text with line feeds and indentation, as for people.
pub(super) fn indent(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', depth * 2));
    };
    let text = text.trim_ascii_end();
    for (index, &byte) in text.iter().enumerate() {
        let is_empty = matches!(text.get(index + 1), Some(b'}' | b']'));
        match byte {
            _ if in_string => {
                in_string = escaped || byte != b'"';
                escaped = !escaped && byte == b'\\';
                out.push(byte);
            }
            b'"' => {
                in_string = true;
                out.push(byte);
            }
            b'{' | b'[' => {
                depth += 1;
                out.push(byte);
                if !is_empty {
                    line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if !matches!(text[index - 1], b'{' | b'[') {
                    line(&mut out, depth);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => out.push(byte),
        }
    }
    out
}

/// Writes the start of an object, up to and without what follows its type.
fn head(out: &mut Vec<u8>, api_version: &str, kind: &str, empty: bool) {
    out.extend_from_slice(b"{\"kind\":");
    out.extend(to_vec(&kind));
    out.extend_from_slice(b",\"apiVersion\":");
    out.extend(to_vec(&api_version));
    if !empty {
        out.push(b',');
    }
}

/// Writes an object with its type.
pub(super) fn object(out: &mut Vec<u8>, object: &Object, api_version: &str, kind: &str, form: Form) {
    match form {
        Form::Full => {
            let tail = object.tail();
            head(out, api_version, kind, tail.len() == 1);
            out.extend_from_slice(tail);
        }
        Form::Metadata => metadata(out, &object.value, None),
        Form::Row(now) => table::row(out, &object.value, now),
    }
}

/// Writes a built-in kind's object as lists have it: without its type.
pub(super) fn untyped(out: &mut Vec<u8>, object: &Object) {
    out.push(b'{');
    out.extend_from_slice(object.tail());
}

/// Writes any value with its type, `revision` in place of its own where given.
pub(super) fn value(
    out: &mut Vec<u8>,
    value: &Value,
    api_version: &str,
    kind: &str,
    form: Form,
    revision: Option<u64>,
) {
    match (form, revision) {
        (Form::Metadata, _) => metadata(out, value, revision),
        (Form::Row(now), _) => table::row(out, value, now),
        (Form::Full, None) => {
            let tail = tail(value);
            head(out, api_version, kind, tail.len() == 1);
            out.extend(tail);
        }
        (Form::Full, Some(revision)) => {
            let mut copy = value.clone();
            if let Some(metadata) = copy.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("resourceVersion".into(), revision.to_string().into());
            }
            self::value(out, &copy, api_version, kind, form, None);
        }
    }
}

/// Writes the `PartialObjectMetadata` of `value`.
fn metadata(out: &mut Vec<u8>, value: &Value, revision: Option<u64>) {
    head(out, "meta.k8s.io/v1", "PartialObjectMetadata", false);
    out.extend_from_slice(b"\"metadata\":");
    match (value.get("metadata"), revision) {
        (Some(Value::Object(metadata)), Some(revision)) => {
            let mut metadata = metadata.clone();
            metadata.insert("resourceVersion".into(), revision.to_string().into());
            out.extend(to_vec(&metadata));
        }
        (Some(metadata), _) => out.extend(to_vec(metadata)),
        (None, _) => out.extend_from_slice(b"{}"),
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn indented_text_says_the_same() {
        let value = json!({"a": [1, {"b": "x \" \\ {"}], "c": {}, "d": [], "e": null});

        let text = indent(&to_vec(&value));

        assert_eq!(text, serde_json::to_vec_pretty(&value).unwrap());
    }
}
