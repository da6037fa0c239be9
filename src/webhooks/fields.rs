//! Fields of raw JSON objects, read and made. `null` is the same as absent (spec 50 §2.5 rule 7).
//!
//! A field of another type than expected is a [`WrongType`] that names its path; the value itself is never told, it may be
//! anybody's secret.

use serde_json::{Map, Value};

/// A field that has another type than its kind defines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: expected {expected}, found {found}")]
pub struct WrongType {
    /// The path, e.g. `spec.containers[0].env`.
    pub path: String,
    /// What it should be, e.g. `a list`.
    pub expected: &'static str,
    /// What it is, e.g. `a string`.
    pub found: &'static str,
}

/// How the path of an object itself is written.
const WHOLE: &str = "the object";

// === impl WrongType ===

impl WrongType {
    /// The same error, of an object that is found at a place of a larger one, e.g. `spec.containers[0]`.
    #[must_use]
    pub fn inside(self, place: &str) -> Self {
        let path = if self.path == WHOLE { place.to_owned() } else { format!("{place}.{}", self.path) };
        Self { path, ..self }
    }
}

/// The value at a path of maps; `None` when it or one above is absent.
///
/// # Errors
/// When one above is no map.
pub fn value<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a Value>, WrongType> {
    let mut here = object;
    for (depth, field) in path.iter().enumerate() {
        let map = match here {
            Value::Object(map) => map,
            Value::Null => return Ok(None),
            other => return Err(wrong(&path[..depth], "a map", other)),
        };
        match map.get(*field) {
            None => return Ok(None),
            Some(value) => here = value,
        }
    }
    Ok((!here.is_null()).then_some(here))
}

/// The string at a path; `None` when it is absent.
///
/// # Errors
/// When it is no string, or one above is no map.
pub fn text<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a str>, WrongType> {
    let found = value(object, path)?;
    found.map(|found| found.as_str().ok_or_else(|| wrong(path, "a string", found))).transpose()
}

/// The boolean at a path; `None` when it is absent.
///
/// # Errors
/// When it is no boolean, or one above is no map.
pub fn boolean(object: &Value, path: &[&str]) -> Result<Option<bool>, WrongType> {
    let found = value(object, path)?;
    found.map(|found| found.as_bool().ok_or_else(|| wrong(path, "a boolean", found))).transpose()
}

/// The integer at a path; `None` when it is absent.
///
/// # Errors
/// When it is no integer, or one above is no map.
pub fn integer(object: &Value, path: &[&str]) -> Result<Option<i64>, WrongType> {
    let found = value(object, path)?;
    found.map(|found| found.as_i64().ok_or_else(|| wrong(path, "an integer", found))).transpose()
}

/// The list at a path; empty when it is absent.
///
/// # Errors
/// When it is no list, or one above is no map.
pub fn list<'a>(object: &'a Value, path: &[&str]) -> Result<&'a [Value], WrongType> {
    match value(object, path)? {
        None => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(wrong(path, "a list", other)),
    }
}

/// The map at a path; `None` when it is absent.
///
/// # Errors
/// When it or one above is no map.
pub fn map<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a Map<String, Value>>, WrongType> {
    let found = value(object, path)?;
    found.map(|found| found.as_object().ok_or_else(|| wrong(path, "a map", found))).transpose()
}

/// The map at a path, made with all above it where it is absent.
///
/// # Errors
/// When it or one above is no map.
pub fn map_mut<'a>(object: &'a mut Value, path: &[&str]) -> Result<&'a mut Map<String, Value>, WrongType> {
    let mut here = object;
    for (depth, field) in path.iter().enumerate() {
        here = as_map(here, &path[..depth])?.entry(*field).or_insert(Value::Null);
    }
    as_map(here, path)
}

/// The list at a path, made with all above it where it is absent.
///
/// # Errors
/// When it is no list, or one above is no map.
pub fn list_mut<'a>(object: &'a mut Value, path: &[&str]) -> Result<&'a mut Vec<Value>, WrongType> {
    let Some((last, above)) = path.split_last() else { return as_list(object, path) };
    as_list(map_mut(object, above)?.entry(*last).or_insert(Value::Null), path)
}

/// The error of a value that is found at a path. Elements of lists are written as fields, e.g. `containers`, `[0]`.
pub fn wrong(path: &[&str], expected: &'static str, found: &Value) -> WrongType {
    let path = if path.is_empty() { WHOLE.to_owned() } else { path.join(".").replace(".[", "[") };
    WrongType { path, expected, found: type_of(found) }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

fn as_map<'a>(value: &'a mut Value, path: &[&str]) -> Result<&'a mut Map<String, Value>, WrongType> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => Ok(map),
        other => Err(wrong(path, "a map", other)),
    }
}

fn as_list<'a>(value: &'a mut Value, path: &[&str]) -> Result<&'a mut Vec<Value>, WrongType> {
    if value.is_null() {
        *value = Value::Array(Vec::new());
    }
    match value {
        Value::Array(items) => Ok(items),
        other => Err(wrong(path, "a list", other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_null_counts_as_absent() {
        let object = json!({ "spec": null, "metadata": { "labels": null } });

        assert_eq!(text(&object, &["spec", "schedulerName"]), Ok(None));
        assert_eq!(map(&object, &["metadata", "labels"]), Ok(None));
        assert_eq!(list(&object, &["metadata", "labels"]), Ok(&[][..]));
    }

    #[test]
    fn what_is_absent_is_made_with_all_above_it() {
        let mut object = json!({ "metadata": { "labels": null } });

        map_mut(&mut object, &["metadata", "labels"]).unwrap().insert("a".into(), json!("b"));
        list_mut(&mut object, &["spec", "volumes"]).unwrap().push(json!(1));

        assert_eq!(object, json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "volumes": [1] } }));
    }

    #[test]
    fn a_field_of_the_wrong_type_is_named_without_its_value() {
        let mut object = json!({ "spec": { "containers": "hidden", "replicas": "2" } });

        let texts = [
            list(&object, &["spec", "containers"]).unwrap_err().to_string(),
            integer(&object, &["spec", "replicas"]).unwrap_err().to_string(),
            text(&object, &["spec", "containers", "name"]).unwrap_err().to_string(),
            list_mut(&mut object, &["spec", "containers"]).unwrap_err().to_string(),
            wrong(&["spec", "containers", "[0]", "env"], "a list", &json!(true)).to_string(),
            text(&json!({ "name": 1 }), &["name"]).unwrap_err().inside("spec.containers[1]").to_string(),
            text(&json!("hidden"), &["name"]).unwrap_err().inside("spec.containers[1]").to_string(),
        ];

        assert_eq!(
            texts,
            [
                "spec.containers: expected a list, found a string",
                "spec.replicas: expected an integer, found a string",
                "spec.containers: expected a map, found a string",
                "spec.containers: expected a list, found a string",
                "spec.containers[0].env: expected a list, found a boolean",
                "spec.containers[1].name: expected a string, found a number",
                "spec.containers[1]: expected a map, found a string",
            ]
        );
    }
}
