//! Label injection into the objects of a ManagedResource (spec 10 §11.4), and labels that are no strings (§11.5).

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use thiserror::Error;

use super::identity;
use crate::api::resources::keys;

/// A manifest without room for the labels. Names the path, never the value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InjectError {
    /// A value is no map, but must be.
    #[error("failed to inject labels into {path}, is of type {found}, expected a map")]
    NotAMap {
        /// JSON path.
        path: String,
        /// JSON type found.
        found: &'static str,
    },
    /// A label's value is not a string.
    #[error("failed to inject labels into {path}, value of {key:?} is of type {found}, expected a string")]
    NotAString {
        /// JSON path of the labels.
        path: String,
        /// Key of the label.
        key: String,
        /// JSON type found.
        found: &'static str,
    },
    /// `spec.volumeClaimTemplates` is not a list.
    #[error("failed to inject labels into .spec.volumeClaimTemplates, is of type {found}, expected a list")]
    TemplatesNotAList {
        /// JSON type found.
        found: &'static str,
    },
    /// An item of `spec.volumeClaimTemplates` is not a map. Text fixed by spec 10 §11.4.
    #[error("failed to inject labels into .spec.volumeClaimTemplates[{index}], is not a map[string]any")]
    TemplateNotAMap {
        /// Zero-based.
        index: usize,
    },
}

/// The labels to inject: `spec.injectLabels`, overlaid by the managed-by label (spec 10 §11.4).
pub fn labels_to_inject(inject_labels: &BTreeMap<String, String>, managed_by: &str) -> BTreeMap<String, String> {
    let mut labels = inject_labels.clone();
    labels.insert(keys::MANAGED_BY.to_owned(), managed_by.to_owned());
    labels
}

/// Overlays the labels of an object, of its pod template and of its volume claim templates with `labels` (spec 10
/// §11.4). Deviations: `null` counts as absent everywhere, and a `spec.template` of a custom kind that is no map stays
/// as it is. After an error the manifest may be changed in part; it is not applied then.
pub fn inject_labels(manifest: &mut Value, labels: &BTreeMap<String, String>) -> Result<(), InjectError> {
    let custom_kind = !identity::is_built_in_group(&identity::gvk_of(manifest).group);
    inject_into_metadata(manifest, labels)?;

    let Some(spec) = manifest.get_mut("spec").filter(|spec| !spec.is_null()) else { return Ok(()) };
    let spec = map_at(spec, ".spec")?;
    if let Some(template) = spec.get_mut("template").filter(|template| !template.is_null())
        && (template.is_object() || !custom_kind)
    {
        inject_into_template(map_at(template, ".spec.template")?, ".spec.template", labels)?;
    }
    if let Some(templates) = spec.get_mut("volumeClaimTemplates").filter(|templates| !templates.is_null()) {
        let found = type_of(templates);
        let templates = templates.as_array_mut().ok_or(InjectError::TemplatesNotAList { found })?;
        for (index, template) in templates.iter_mut().enumerate() {
            let template = template.as_object_mut().ok_or(InjectError::TemplateNotAMap { index })?;
            inject_into_template(template, &format!(".spec.volumeClaimTemplates[{index}]"), labels)?;
        }
    }
    Ok(())
}

/// Labels or annotations as the rules see them (spec 10 §11.5): `null` is empty; any other non-string empties the map.
pub fn string_map(object: &Value, field: &str) -> BTreeMap<String, String> {
    let entries = object.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_object);
    let text = |value: &Value| if value.is_null() { Some(String::new()) } else { value.as_str().map(str::to_owned) };
    entries
        .into_iter()
        .flatten()
        .map(|(key, value)| Some((key.clone(), text(value)?)))
        .collect::<Option<_>>()
        .unwrap_or_default()
}

fn inject_into_metadata(manifest: &mut Value, labels: &BTreeMap<String, String>) -> Result<(), InjectError> {
    let mut merged = string_map(manifest, "labels");
    merged.extend(labels.clone());
    let root = map_at(manifest, "the object")?;
    let metadata = entry_map(root, "metadata", ".metadata")?;
    metadata.insert("labels".to_owned(), to_value(merged));
    Ok(())
}

fn inject_into_template(
    template: &mut Map<String, Value>,
    path: &str,
    labels: &BTreeMap<String, String>,
) -> Result<(), InjectError> {
    let metadata = entry_map(template, "metadata", &format!("{path}.metadata"))?;
    let path = format!("{path}.metadata.labels");
    let existing = entry_map(metadata, "labels", &path)?;
    if let Some((key, value)) = existing.iter().find(|(_, value)| !value.is_string()) {
        return Err(InjectError::NotAString { path, key: key.clone(), found: type_of(value) });
    }
    existing.extend(labels.iter().map(|(key, value)| (key.clone(), Value::String(value.clone()))));
    Ok(())
}

fn entry_map<'a>(
    parent: &'a mut Map<String, Value>,
    field: &str,
    path: &str,
) -> Result<&'a mut Map<String, Value>, InjectError> {
    let value = parent.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    map_at(value, path)
}

fn map_at<'a>(value: &'a mut Value, path: &str) -> Result<&'a mut Map<String, Value>, InjectError> {
    let found = type_of(value);
    value.as_object_mut().ok_or_else(|| InjectError::NotAMap { path: path.to_owned(), found })
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    }
}

pub(super) fn to_value(map: BTreeMap<String, String>) -> Value {
    Value::Object(map.into_iter().map(|(key, value)| (key, Value::String(value))).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels() -> BTreeMap<String, String> {
        let inject = BTreeMap::from([
            ("foo".to_owned(), "bar".to_owned()),
            ("resources.gardener.cloud/managed-by".to_owned(), "me".to_owned()),
        ]);
        labels_to_inject(&inject, "gardener")
    }

    fn wanted() -> Value {
        json!({"foo": "bar", "resources.gardener.cloud/managed-by": "gardener"})
    }

    /// spec 10 scenario 13
    #[test]
    fn labels_go_to_the_object_its_pod_template_and_its_volume_claim_templates() {
        let mut stateful_set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a", "labels": {"foo": "old", "own": "1"}},
            "spec": {
                "selector": {"matchLabels": {"app": "a"}},
                "template": {"metadata": {"labels": {"app": "a"}}, "spec": {}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}}, {}],
            },
        });

        inject_labels(&mut stateful_set, &labels()).unwrap();

        assert_eq!(
            stateful_set["metadata"]["labels"],
            json!({"foo": "bar", "own": "1", "resources.gardener.cloud/managed-by": "gardener"})
        );
        assert_eq!(
            stateful_set["spec"]["template"]["metadata"]["labels"],
            json!({"app": "a", "foo": "bar", "resources.gardener.cloud/managed-by": "gardener"})
        );
        assert_eq!(stateful_set["spec"]["volumeClaimTemplates"][0]["metadata"]["labels"], wanted());
        assert_eq!(stateful_set["spec"]["volumeClaimTemplates"][1]["metadata"]["labels"], wanted());
        assert_eq!(stateful_set["spec"]["selector"], json!({"matchLabels": {"app": "a"}}));
    }

    /// spec 10 scenario 13
    #[test]
    fn labels_are_not_injected_into_the_job_template_of_a_cron_job() {
        let template = json!({"spec": {"template": {"metadata": {"labels": {"app": "a"}}}}});
        let mut cron_job = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"},
            "spec": {"jobTemplate": template}});

        inject_labels(&mut cron_job, &labels()).unwrap();

        assert_eq!(cron_job["spec"]["jobTemplate"], template);
        assert_eq!(cron_job["metadata"]["labels"], wanted());
    }

    /// spec 10 §11.4
    #[test]
    fn label_injection_errors_name_the_path() {
        let table = [
            (json!({"spec": "x"}), "failed to inject labels into .spec, is of type string, expected a map"),
            (
                json!({"spec": {"template": 1}}),
                "failed to inject labels into .spec.template, is of type number, expected a map",
            ),
            (
                json!({"spec": {"template": {"metadata": []}}}),
                "failed to inject labels into .spec.template.metadata, is of type list, expected a map",
            ),
            (
                json!({"spec": {"template": {"metadata": {"labels": "x"}}}}),
                "failed to inject labels into .spec.template.metadata.labels, is of type string, expected a map",
            ),
            (
                json!({"spec": {"template": {"metadata": {"labels": {"a": true}}}}}),
                "failed to inject labels into .spec.template.metadata.labels, value of \"a\" is of type boolean, expected a string",
            ),
            (
                json!({"spec": {"volumeClaimTemplates": {}}}),
                "failed to inject labels into .spec.volumeClaimTemplates, is of type map, expected a list",
            ),
            (
                json!({"spec": {"volumeClaimTemplates": [{}, 1]}}),
                "failed to inject labels into .spec.volumeClaimTemplates[1], is not a map[string]any",
            ),
        ];

        for (mut manifest, text) in table {
            manifest["apiVersion"] = json!("apps/v1");

            let error = inject_labels(&mut manifest, &labels()).unwrap_err();

            assert_eq!(error.to_string(), text);
        }
    }

    /// spec 10 §11.4, deviation
    #[test]
    fn label_injection_takes_null_for_absent() {
        let table = [
            (json!({"spec": null}), json!(null)),
            (json!({"spec": {"template": null}}), json!({"template": null})),
            (json!({"spec": {"volumeClaimTemplates": null}}), json!({"volumeClaimTemplates": null})),
            (
                json!({"spec": {"template": {"metadata": null}}}),
                json!({"template": {"metadata": {"labels": wanted()}}}),
            ),
            (
                json!({"spec": {"template": {"metadata": {"labels": null}}}}),
                json!({"template": {"metadata": {"labels": wanted()}}}),
            ),
        ];

        for (mut manifest, spec) in table {
            inject_labels(&mut manifest, &labels()).unwrap();

            assert_eq!(manifest["spec"], spec);
        }
    }

    /// spec 10 §11.4, deviation
    #[test]
    fn a_custom_kind_may_have_a_template_that_is_no_map() {
        let mut manifest = json!({"apiVersion": "g.io/v1", "kind": "Mail", "spec": {"template": "Dear {}"}});

        inject_labels(&mut manifest, &labels()).unwrap();

        assert_eq!(manifest["spec"]["template"], json!("Dear {}"));
        assert_eq!(manifest["metadata"]["labels"], wanted());
    }

    /// spec 10 §11.5
    #[test]
    fn labels_with_a_value_that_is_no_string_count_as_absent() {
        let manifest = json!({"metadata": {
            "labels": {"a": "1", "b": null},
            "annotations": {"x": "1", "resources.gardener.cloud/ignore": true},
        }});

        assert_eq!(
            string_map(&manifest, "labels"),
            BTreeMap::from([("a".into(), "1".into()), ("b".into(), "".into())])
        );
        assert!(string_map(&manifest, "annotations").is_empty());
    }
}
