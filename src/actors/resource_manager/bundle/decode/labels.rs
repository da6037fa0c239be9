//! Labels and annotations that are no strings (spec 10 §11.5).

use std::fmt;

use serde_json::Value;

use crate::actors::resource_manager::bundle::identity::display_of_object;

/// A manifest lost its labels or annotations, because one of them is no string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelWarning {
    /// The object: `<apiVersion>/<kind>/<effective namespace>/<name>`.
    pub object: String,
    /// `labels` or `annotations`.
    pub field: &'static str,
    /// The first key whose value is no string; empty if the field itself is no map.
    pub key: String,
}

/// Keeps only strings in `metadata.labels` and `metadata.annotations`: a null becomes empty, and a map with any other
/// value is dropped. As in upstream, an unquoted `true` disables every annotation; the warning shows it.
pub(super) fn normalise(manifest: &mut Value) -> Vec<LabelWarning> {
    let mut dropped = Vec::new();
    let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) else { return Vec::new() };
    for field in ["labels", "annotations"] {
        let key = match metadata.get_mut(field) {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => {
                map.values_mut()
                    .filter(|value| value.is_null())
                    .for_each(|value| *value = Value::String(String::new()));
                map.iter().find(|(_, value)| !value.is_string()).map(|(key, _)| key.clone())
            }
            Some(_) => Some(String::new()),
        };
        if let Some(key) = key {
            metadata.remove(field);
            dropped.push((field, key));
        }
    }
    dropped.into_iter().map(|(field, key)| LabelWarning { object: display_of_object(manifest), field, key }).collect()
}

impl fmt::Display for LabelWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, field, key } = self;
        write!(f, "metadata.{field} of \"{object}\" are ignored: the value of \"{key}\" is no string")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_with_a_value_that_is_no_string_are_dropped_and_the_key_is_named() {
        let mut manifest = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "labels": {"l": "1"}, "annotations": {"a": "x", "b": true, "c": 1}}
        });

        let warnings = normalise(&mut manifest);

        assert_eq!(manifest["metadata"], json!({"name": "a", "labels": {"l": "1"}}));
        let expected = LabelWarning { object: "v1/ConfigMap/default/a".into(), field: "annotations", key: "b".into() };
        assert_eq!(warnings, [expected]);
        assert_eq!(
            warnings[0].to_string(),
            "metadata.annotations of \"v1/ConfigMap/default/a\" are ignored: the value of \"b\" is no string"
        );
    }

    #[test]
    fn label_of_null_becomes_an_empty_string() {
        let mut manifest = json!({"metadata": {"labels": {"a": null, "b": "x"}, "annotations": null}});

        assert_eq!(normalise(&mut manifest), []);
        assert_eq!(manifest, json!({"metadata": {"labels": {"a": "", "b": "x"}, "annotations": null}}));
    }

    #[test]
    fn labels_that_are_no_map_are_dropped() {
        let mut manifest = json!({"metadata": {"labels": ["a"], "annotations": "b"}});

        assert_eq!(normalise(&mut manifest).len(), 2);
        assert_eq!(manifest, json!({"metadata": {}}));
        assert_eq!(normalise(&mut json!({"metadata": 1})), []);
        assert_eq!(normalise(&mut json!({})), []);
    }
}
