//! Lenient reads of foreign JSON: fields that are absent, null or of another type read as empty (spec 80 §10).

use serde_json::Value;

/// Returns the text at a JSON pointer, or an empty text.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the entries of the list at a JSON pointer, or none.
pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}
