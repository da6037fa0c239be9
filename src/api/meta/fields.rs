//! Reads and creates fields of raw JSON objects. `null` is the same as absent (spec 50 §2.5 rule 7). A field of the
//! wrong type is a [`WrongType`] with its path; it never shows the value, which may be secret. A webhook calls
//! [`check`] first, so that a wrong type gets an answer of its own, whatever else the webhook would say. Health checks
//! use the same rules.

use serde_json::{Map, Value};

/// A field, e.g. `spec.containers[].env[].name` or `metadata.labels{}`, and its type. `[]` means each item of a list,
/// `{}` each value of a map.
pub type Field = (&'static str, Type);

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A string.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A signed 64-bit integer.
    Integer,
    /// A signed 32-bit integer.
    Integer32,
    /// A map.
    Map,
    /// A list.
    List,
}

/// A field with another type than its kind defines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: expected {expected}, found {found}")]
pub struct WrongType {
    /// The path, e.g. `spec.containers[0].env`.
    pub path: String,
    /// The expected type, e.g. `a list`.
    pub expected: &'static str,
    /// The type found, e.g. `a string`.
    pub found: &'static str,
}

/// Fails at the first of these fields, or of their parents, with a wrong type; they may be absent (spec 50 §2.2 row 7).
pub fn check(object: &Value, fields: &[Field]) -> Result<(), WrongType> {
    fields.iter().try_for_each(|(path, wanted)| check_below(object, path, *wanted))
}

fn check_below(value: &Value, path: &str, wanted: Type) -> Result<(), WrongType> {
    if value.is_null() {
        return Ok(());
    }
    if path.is_empty() {
        return wanted.check(value);
    }
    if let Some(rest) = path.strip_prefix("[]") {
        let items = value.as_array().ok_or_else(|| wrong(&[], "a list", value))?;
        let mut items = items.iter().enumerate();
        return items.try_for_each(|(index, item)| {
            check_below(item, rest, wanted).map_err(|error| error.below(&format!("[{index}]")))
        });
    }
    let map = value.as_object().ok_or_else(|| wrong(&[], "a map", value))?;
    if let Some(rest) = path.strip_prefix("{}") {
        let mut entries = map.iter();
        return entries.try_for_each(|(key, item)| check_below(item, rest, wanted).map_err(|error| error.below(key)));
    }
    let path = path.strip_prefix('.').unwrap_or(path);
    let (field, rest) = path.split_at(path.find(['.', '[', '{']).unwrap_or(path.len()));
    let found = map.get(field).unwrap_or(&Value::Null);
    check_below(found, rest, wanted).map_err(|error| error.below(field))
}

/// Returns the value at a path, or `None` if it or a parent is absent. Fails if a parent is no map.
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

/// Returns the string at a path, or `None` if it is absent. Fails at another type or a parent that is no map.
pub fn text<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a str>, WrongType> {
    let found = value(object, path)?;
    found.map(|found| found.as_str().ok_or_else(|| wrong(path, "a string", found))).transpose()
}

/// Returns the boolean at a path, or `None` if it is absent. Fails at another type or a parent that is no map.
pub fn boolean(object: &Value, path: &[&str]) -> Result<Option<bool>, WrongType> {
    let found = value(object, path)?;
    found.map(|found| found.as_bool().ok_or_else(|| wrong(path, "a boolean", found))).transpose()
}

/// Returns the integer at a path, or `None` if it is absent. Fails at another type or a parent that is no map.
pub fn integer(object: &Value, path: &[&str]) -> Result<Option<i64>, WrongType> {
    let found = value(object, path)?;
    found.map(|found| found.as_i64().ok_or_else(|| wrong(path, "an integer", found))).transpose()
}

/// Returns the list at a path, empty if it is absent. Fails at another type or a parent that is no map.
pub fn list<'a>(object: &'a Value, path: &[&str]) -> Result<&'a [Value], WrongType> {
    match value(object, path)? {
        None => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(wrong(path, "a list", other)),
    }
}

/// Returns the map at a path, or `None` if it is absent. Fails if it or a parent is no map.
pub fn map<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a Map<String, Value>>, WrongType> {
    let found = value(object, path)?;
    found.map(|found| found.as_object().ok_or_else(|| wrong(path, "a map", found))).transpose()
}

/// Returns the map at a path, created with its parents if absent. Fails if it or a parent is no map.
pub fn map_mut<'a>(object: &'a mut Value, path: &[&str]) -> Result<&'a mut Map<String, Value>, WrongType> {
    let mut here = object;
    for (depth, field) in path.iter().enumerate() {
        here = as_map(here, &path[..depth])?.entry(*field).or_insert(Value::Null);
    }
    as_map(here, path)
}

/// Returns the list at a path, created with its parents if absent. Fails at another type or a parent that is no map.
pub fn list_mut<'a>(object: &'a mut Value, path: &[&str]) -> Result<&'a mut Vec<Value>, WrongType> {
    let Some((last, above)) = path.split_last() else { return as_list(object, path) };
    as_list(map_mut(object, above)?.entry(*last).or_insert(Value::Null), path)
}

/// Changes each item of the list at a path, if any. Fails at wrong types, and if `change` fails: with the item's path.
pub fn each_mut(
    object: &mut Value,
    path: &[&str],
    mut change: impl FnMut(&mut Value) -> Result<(), WrongType>,
) -> Result<(), WrongType> {
    if value(object, path)?.is_none() {
        return Ok(());
    }
    let mut items = list_mut(object, path)?.iter_mut().enumerate();
    items.try_for_each(|(index, item)| {
        change(item).map_err(|error| error.below(&format!("{}[{index}]", path.join("."))))
    })
}

/// The error for the value found at a path. List items are written as fields, e.g. `containers`, `[0]`.
pub fn wrong(path: &[&str], expected: &'static str, found: &Value) -> WrongType {
    let path = if path.is_empty() { WHOLE.to_owned() } else { path.join(".").replace(".[", "[") };
    WrongType { path, expected, found: type_of(found) }
}

const WHOLE: &str = "the object";

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

impl WrongType {
    /// Returns the error with its path moved below `above`.
    #[must_use]
    pub fn below(mut self, above: &str) -> Self {
        self.path = match self.path.as_str() {
            WHOLE => above.to_owned(),
            element if element.starts_with('[') => format!("{above}{element}"),
            field => format!("{above}.{field}"),
        };
        self
    }
}

impl Type {
    fn check(self, value: &Value) -> Result<(), WrongType> {
        let (matches, expected) = match self {
            Self::Text => (value.is_string(), "a string"),
            Self::Boolean => (value.is_boolean(), "a boolean"),
            Self::Integer => (value.is_i64(), "an integer"),
            Self::Integer32 => (value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()), "a 32-bit integer"),
            Self::Map => (value.is_object(), "a map"),
            Self::List => (value.is_array(), "a list"),
        };
        if matches { Ok(()) } else { Err(wrong(&[], expected, value)) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_are_null_count_as_absent() {
        let object = json!({ "spec": null, "metadata": { "labels": null } });

        assert_eq!(text(&object, &["spec", "schedulerName"]), Ok(None));
        assert_eq!(map(&object, &["metadata", "labels"]), Ok(None));
        assert_eq!(list(&object, &["metadata", "labels"]), Ok(&[][..]));
    }

    #[test]
    fn fields_that_are_absent_are_made_with_their_parents() {
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
        ];

        assert_eq!(
            texts,
            [
                "spec.containers: expected a list, found a string",
                "spec.replicas: expected an integer, found a string",
                "spec.containers: expected a map, found a string",
                "spec.containers: expected a list, found a string",
                "spec.containers[0].env: expected a list, found a boolean",
            ]
        );
    }

    #[test]
    fn fields_are_checked_in_each_element_and_entry() {
        let fields = [("spec.containers[].env[].name", Type::Text), ("metadata.labels{}", Type::Text)];
        let texts = |object| check(&object, &fields).map_err(|error| error.to_string());
        let wrong = |text: &str| Err(text.to_owned());

        for (object, expected) in [
            (json!({}), Ok(())),
            (json!(null), Ok(())),
            (json!({ "spec": { "containers": [null, { "env": null }] } }), Ok(())),
            (json!({ "metadata": { "labels": { "a": "b", "c": null } } }), Ok(())),
            (json!([]), wrong("the object: expected a map, found a list")),
            (json!({ "spec": 1 }), wrong("spec: expected a map, found a number")),
            (json!({ "spec": { "containers": {} } }), wrong("spec.containers: expected a list, found a map")),
            (json!({ "spec": { "containers": ["a"] } }), wrong("spec.containers[0]: expected a map, found a string")),
            (
                json!({ "spec": { "containers": [{}, { "env": [{ "name": 1 }] }] } }),
                wrong("spec.containers[1].env[0].name: expected a string, found a number"),
            ),
            (
                json!({ "metadata": { "labels": { "a": true } } }),
                wrong("metadata.labels.a: expected a string, found a boolean"),
            ),
        ] {
            assert_eq!(texts(object.clone()), expected, "{object}");
        }
    }

    #[test]
    fn list_items_are_changed_or_named_in_the_error() {
        let mut object = json!({ "spec": { "containers": [{}, { "env": 1 }] } });

        let env = |item: &mut Value| list_mut(item, &["env"]).map(|env| env.push(json!("a")));
        let error = each_mut(&mut object, &["spec", "containers"], env).unwrap_err();
        each_mut(&mut object, &["spec", "initContainers"], env).unwrap();

        assert_eq!(error.to_string(), "spec.containers[1].env: expected a list, found a number");
        assert_eq!(object, json!({ "spec": { "containers": [{ "env": ["a"] }, { "env": 1 }] } }));
    }
}
