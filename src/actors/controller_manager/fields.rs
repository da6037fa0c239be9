//! Lenient reads of foreign JSON: fields that are absent, null or of another type read as empty (spec 80 §10). And times as
//! they are written.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Go's zero time in seconds: a time that is not set.
const GO_ZERO: i64 = -62_135_596_800;

/// Returns the text at a JSON pointer, or an empty text.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the entries of the list at a JSON pointer, or none.
pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the time at a JSON pointer; `None` if it is not set or unreadable.
pub(super) fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer).parse().ok().filter(|time: &Timestamp| time.as_second() != GO_ZERO)
}

/// Returns a time without the part of a second: times in a status have whole seconds (spec 80 §16.1).
pub(super) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Returns the value without fields that are null or empty, at any depth: null, absent and empty are equal (spec 80
/// §10 A12). Entries of lists keep their places.
pub(super) fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), without_empty(value)));
            fields.filter(|(_, value)| !is_empty(value)).collect::<Map<_, _>>().into()
        }
        Value::Array(entries) => entries.iter().map(without_empty).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(entries) => entries.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn time_is_none_if_it_is_not_set_or_unreadable() {
        let object = json!({ "zero": "0001-01-01T00:00:00Z", "null": null, "odd": 5, "text": "soon", "set": "2026-08-21T17:55:55.5Z" });

        for pointer in ["/zero", "/null", "/odd", "/text", "/absent"] {
            assert_eq!(time(&object, pointer), None, "{pointer}");
        }
        assert_eq!(time(&object, "/set"), "2026-08-21T17:55:55.5Z".parse().ok());
    }

    /// spec 80 §10 A12
    #[test]
    fn empty_fields_are_left_out_at_any_depth() {
        let value = json!({ "a": null, "b": [], "c": { "d": {} }, "e": [null, { "f": [] }, 0, ""], "g": false });

        assert_eq!(without_empty(&value), json!({ "e": [null, {}, 0, ""], "g": false }));
    }
}
