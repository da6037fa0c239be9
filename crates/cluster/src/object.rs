//! Names of kinds and objects, and read access to the metadata of raw JSON objects. Objects are [`serde_json::Value`]s,
//! because typed structs would drop unknown fields (spec 10 §11.6). Pure.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// An API group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupVersionKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Version, e.g. `v1`.
    pub version: String,
    /// Kind in upper camel case.
    pub kind: String,
}

/// An API group and a kind, without a version: the key of equivalences and owners.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct GroupKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind in upper camel case, e.g. `ConfigMap`.
    pub kind: String,
}

/// Identity of an object within one cluster, in any version (spec 10 §10.1).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectKey {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Namespace and name of an object whose kind is known from the context.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct NamespacedName {
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Returns `group/version`, or `version` for the core group.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Returns the field at a path, for writing. Absent fields and other values on the path become maps: no panic.
pub fn field_mut<'a>(object: &'a mut Value, path: &[&str]) -> &'a mut Value {
    let mut place = object;
    for field in path {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[*field]; // it is a map by now; indexing adds the field
    }
    place
}

impl GroupVersionKind {
    /// Creates it from its parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Parses the two fields of an object. `apiVersion` is `group/version`, or `version` alone for the core group.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, kind)
    }

    /// Returns the kind of an object, or `None` if `apiVersion` or `kind` is missing, empty or not a string.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |field| object.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        Some(Self::from_api_version(text("apiVersion")?, text("kind")?))
    }

    /// Returns `group/version`, or `version` for the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// Returns it without the version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&self.group, &self.kind)
    }
}

impl fmt::Display for GroupVersionKind {
    /// As discovery errors write it: `group/version, Kind=kind`, or `version, Kind=kind` for the core group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}

impl GroupKind {
    /// Creates it from its parts.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    /// As messages of the API server write it: `Kind.group`, or `Kind` for the core group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.kind) } else { write!(f, "{}.{}", self.kind, self.group) }
    }
}

impl ObjectKey {
    /// Returns group and kind.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&self.group, &self.kind)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.group, self.kind, self.namespace, self.name)
    }
}

impl NamespacedName {
    /// Creates it from its parts; the namespace is empty for cluster scope.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// Returns the name in an object's metadata; missing fields are empty.
    pub fn of(object: &Value) -> Self {
        Self::new(namespace(object), name(object))
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

fn metadata_text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_str).unwrap_or_default()
}

fn metadata_map<'a>(object: &'a Value, field: &str) -> Option<&'a Map<String, Value>> {
    object.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_object)
}

/// `metadata.name`, or empty.
pub fn name(object: &Value) -> &str {
    metadata_text(object, "name")
}

/// `metadata.namespace`, or empty.
pub fn namespace(object: &Value) -> &str {
    metadata_text(object, "namespace")
}

/// `metadata.uid`, or empty.
pub fn uid(object: &Value) -> &str {
    metadata_text(object, "uid")
}

/// `metadata.resourceVersion`, or empty.
pub fn resource_version(object: &Value) -> &str {
    metadata_text(object, "resourceVersion")
}

/// `metadata.generation`; 0 for kinds without it.
pub fn generation(object: &Value) -> i64 {
    object.get("metadata").and_then(|metadata| metadata.get("generation")).and_then(Value::as_i64).unwrap_or_default()
}

/// `metadata.deletionTimestamp`, if the object is being deleted.
pub fn deletion_timestamp(object: &Value) -> Option<&str> {
    Some(metadata_text(object, "deletionTimestamp")).filter(|text| !text.is_empty())
}

/// A label's value.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    metadata_map(object, "labels")?.get(key)?.as_str()
}

/// An annotation's value.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    metadata_map(object, "annotations")?.get(key)?.as_str()
}

/// Returns the merge patch that adds (`held`) or removes one finalizer; `None` if that is so already. Other finalizers
/// keep their order.
pub fn finalizer_patch(object: &Value, finalizer: &str, held: bool) -> Option<Value> {
    if finalizers(object).any(|name| name == finalizer) == held {
        return None;
    }
    let others = finalizers(object).filter(|name| *name != finalizer);
    let finalizers: Vec<&str> = others.chain(held.then_some(finalizer)).collect();
    let finalizers = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
    Some(json!({"metadata": {"finalizers": finalizers}}))
}

/// `metadata.finalizers` in their order.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let list = object.get("metadata").and_then(|metadata| metadata.get("finalizers")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

/// Returns true for a string that means *true*: exactly one of `1 t T true TRUE True` (spec 10 §1).
pub fn truthy(value: Option<&str>) -> bool {
    matches!(value, Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
}
