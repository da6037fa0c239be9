//! Checks the fields of built-in kinds. Their table is generated from the types of `k8s-openapi`
//! (`tests/built_in_fields.rs`).
//!
//! An API server drops an unknown field and answers with a warning. A newer one may know the field. So an unknown field
//! is a warning. A value of another type is refused, so it is an error.

use std::{collections::BTreeMap, sync::LazyLock};

use cluster::object::GroupVersionKind;
use serde_json::Value;

use super::Issues;
use crate::api::meta::field::Path;

static TABLE: LazyLock<BuiltInTable> = LazyLock::new(|| BuiltInTable::parse(include_str!("built_in_fields.txt")));

const DEPTH: usize = 100; // levels that are checked

/// The built-in kinds with the fields of their types.
struct BuiltInTable {
    /// Version of Kubernetes.
    version: &'static str,
    /// By API version and kind.
    kinds: BTreeMap<(&'static str, &'static str), BuiltInKind>,
    types: BTreeMap<&'static str, BTreeMap<&'static str, &'static str>>,
}

/// A built-in kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BuiltInKind {
    /// Whether its objects have a namespace.
    pub(super) is_namespaced: bool,
    type_name: &'static str,
}

impl BuiltInTable {
    fn parse(text: &'static str) -> Self {
        let mut table = Self { version: "", kinds: BTreeMap::new(), types: BTreeMap::new() };
        for line in text.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next()) {
                (Some("version"), Some(version)) => table.version = version,
                (Some("kind"), Some(api_version)) => {
                    if let (Some(kind), Some(scope), Some(type_name)) = (words.next(), words.next(), words.next()) {
                        let known = BuiltInKind { is_namespaced: scope == "namespace", type_name };
                        table.kinds.insert((api_version, kind), known);
                    }
                }
                (Some("type"), Some(name)) => {
                    table.types.insert(name, words.filter_map(|word| word.split_once(':')).collect());
                }
                _ => {}
            }
        }
        table
    }
}

/// Returns the built-in kind of a manifest in exactly its version.
pub(super) fn kind(manifest: &Value) -> Option<BuiltInKind> {
    let text = |field: &str| manifest.get(field).and_then(Value::as_str);
    TABLE.kinds.get(&(text("apiVersion")?, text("kind")?)).copied()
}

/// Whether objects of a built-in kind have a namespace, in whatever version.
pub(super) fn is_namespaced(gvk: &GroupVersionKind) -> Option<bool> {
    let group = |api_version: &'static str| api_version.split_once('/').map_or("", |(group, _)| group);
    let known = TABLE.kinds.iter().find(|((version, kind), _)| group(version) == gvk.group && *kind == gvk.kind);
    known.map(|(_, known)| known.is_namespaced)
}

/// Finds unknown fields and values of another type.
pub(super) fn fields(manifest: &Value, kind: BuiltInKind, issues: &mut Issues) {
    if let Some(fields) = manifest.as_object() {
        for (field, value) in fields {
            entry(kind.type_name, value, &Path::root(field), field, DEPTH, issues);
        }
    }
}

/// Checks one field of a type. `left`: levels that are checked.
fn entry(type_name: &str, value: &Value, path: &Path<'_>, field: &str, left: usize, issues: &mut Issues) {
    match TABLE.types.get(type_name).map(|fields| fields.get(field)) {
        Some(Some(wanted)) => check(wanted, value, path, left, issues),
        Some(None) => {
            let what = || format!("{path} is not known in Kubernetes {}, so the API server drops it", TABLE.version);
            issues.warning(what, "correct the name, or leave it out");
        }
        None => {}
    }
}

/// Checks a value against a type: `[]` a list, `{}` a map, `?` a value or a list of values, a scalar, or a type's name.
fn check(wanted: &str, value: &Value, path: &Path<'_>, depth: usize, issues: &mut Issues) {
    if value.is_null() || depth == 0 {
        return;
    }
    let left = depth - 1;
    let mut wrong = |what: &str, remedy: &str| issues.error(|| format!("{path} is no {what}"), remedy);
    if let Some(item) = wanted.strip_prefix("[]") {
        let Some(items) = value.as_array() else { return wrong("list", "write it as a list") };
        for (position, value) in items.iter().enumerate() {
            check(item, value, &path.at(position), left, issues);
        }
    } else if let Some(of_entries) = wanted.strip_prefix("{}") {
        let Some(entries) = value.as_object() else { return wrong("map", "write it as a map") };
        for (key, value) in entries {
            check(of_entries, value, &path.child(key), left, issues);
        }
    } else if let Some(one) = wanted.strip_prefix('?') {
        match value {
            Value::Object(_) => check(one, value, path, left, issues),
            Value::Array(items) if items.iter().all(Value::is_object) => {
                for (position, value) in items.iter().enumerate() {
                    check(one, value, &path.at(position), left, issues);
                }
            }
            _ => {}
        }
    } else if let Some(what) = scalar(wanted) {
        let (fits, remedy) = match wanted {
            "string" => (value.is_string(), "quote the value"),
            "boolean" => (value.is_boolean(), "write true or false, without quotes"),
            "int32" => (value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()), "write a whole number"),
            "int64" => (value.is_i64(), "write a whole number"),
            "number" => (value.is_number(), "write a number, without quotes"),
            "quantity" => (value.is_string() || value.is_number(), "write it as \"500m\" or \"1Gi\""),
            "int-or-string" => (value.is_string() || value.is_i64(), "write a whole number, or a string"),
            _ => (true, ""),
        };
        if !fits {
            wrong(what, remedy);
        }
    } else {
        let Some(fields) = value.as_object() else { return wrong("map", "write it as a map") };
        for (field, value) in fields {
            entry(wanted, value, &path.child(field), field, left, issues);
        }
    }
}

/// Returns what a scalar type is called in a finding; `None` for a type with fields.
fn scalar(wanted: &str) -> Option<&'static str> {
    Some(match wanted {
        "string" => "string",
        "boolean" => "boolean",
        "int32" => "whole number of 32 bits",
        "int64" => "whole number",
        "number" => "number",
        "quantity" => "quantity",
        "int-or-string" => "whole number or string",
        "any" => "value",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_table_has_a_type_for_each_kind_and_each_field() {
        assert!(TABLE.kinds.len() > 50 && TABLE.version.starts_with("1."), "{}", TABLE.version);
        for kind in TABLE.kinds.values() {
            assert!(TABLE.types.contains_key(kind.type_name), "{kind:?}");
        }
        for wanted in TABLE.types.values().flat_map(BTreeMap::values) {
            let name = wanted.trim_start_matches(['[', ']', '{', '}', '?']);
            assert!(scalar(name).is_some() || TABLE.types.contains_key(name), "{wanted}");
        }
    }

    #[test]
    fn built_in_kinds_know_whether_they_have_a_namespace() {
        let of = |group: &str, version: &str, kind: &str| is_namespaced(&GroupVersionKind::new(group, version, kind));

        assert_eq!(of("", "v1", "ConfigMap"), Some(true));
        assert_eq!(of("policy", "v1beta1", "PodDisruptionBudget"), Some(true));
        assert_eq!(of("rbac.authorization.k8s.io", "v1", "ClusterRole"), Some(false));
        assert_eq!(of("example.org", "v1", "ConfigMap"), None);
    }
}
