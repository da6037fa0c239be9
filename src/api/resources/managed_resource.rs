//! A ManagedResource as this program reads it (spec 10 §2). Decisions use the typed view. A write sends the raw object
//! with a new status ([`with_status`]), so that fields unknown to this program survive.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use cluster::object::{GroupKind, GroupVersionKind, NamespacedName, ObjectKey, truthy};
use kit::json;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::keys;
use crate::api::meta::conditions::{self, Condition};

/// A ManagedResource.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct ManagedResource {
    /// Name, version, labels, annotations.
    #[serde(deserialize_with = "null_is_default")]
    pub metadata: Metadata,
    /// The desired state.
    #[serde(deserialize_with = "null_is_default")]
    pub spec: ManagedResourceSpec,
    /// The reported state.
    #[serde(deserialize_with = "null_is_default")]
    pub status: ManagedResourceStatus,
}

/// The metadata that decisions need.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Identity of this object; a new object of the same name has another.
    pub uid: String,
    /// Version for optimistic locking; opaque.
    pub resource_version: String,
    /// Increases with each change of the spec, and when deletion begins.
    pub generation: i64,
    /// When deletion was requested (RFC 3339), if it was.
    pub deletion_timestamp: Option<String>,
    /// Finalizers, in the order of the object.
    #[serde(deserialize_with = "null_is_default")]
    pub finalizers: Vec<String>,
    /// Labels.
    #[serde(deserialize_with = "null_is_default")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(deserialize_with = "null_is_default")]
    pub annotations: BTreeMap<String, String>,
}

/// `spec` (spec 10 §2.3).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedResourceSpec {
    /// Responsibility class; see [`super::class`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Secrets of the same namespace that hold the manifests, in processing order.
    #[serde(deserialize_with = "null_is_default")]
    pub secret_refs: Vec<SecretRef>,
    /// Labels added to every object.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub inject_labels: BTreeMap<String, String>,
    /// Replace labels instead of merging them.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "is_default")]
    pub force_overwrite_labels: bool,
    /// Replace annotations instead of merging them.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "is_default")]
    pub force_overwrite_annotations: bool,
    /// Leave all objects in the target cluster when the ManagedResource is deleted.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "is_default")]
    pub keep_objects: bool,
    /// Further sets of equivalent groups and kinds.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub equivalences: Vec<Vec<GroupKind>>,
    /// Delete the PersistentVolumeClaims of a StatefulSet together with it.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "is_default")]
    pub delete_persistent_volume_claims: bool,
}

/// A Secret in the ManagedResource's namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretRef {
    /// Name of the Secret.
    pub name: String,
}

/// `status` (spec 10 §2.4).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedResourceStatus {
    /// In order; other programs own some of them.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Generation of the last complete reconcile.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "is_default")]
    pub observed_generation: i64,
    /// The objects that belong to the ManagedResource.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceRef>,
    /// Checksum of the last complete set of manifests (spec 10 §9.5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets_data_checksum: Option<String>,
}

/// An object that belongs to a ManagedResource. Empty fields are omitted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceRef {
    /// `group/version`, or `version` for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Never set by this program.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Never set by this program.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Never set by this program.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field_path: String,
    /// The labels that were applied.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The annotations of the manifest.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The object does not fit the schema of a ManagedResource.
#[derive(Debug, thiserror::Error)]
#[error("cannot read ManagedResource")]
pub struct ReadError(#[from] serde_json::Error);

impl ManagedResource {
    /// Reads the raw object; ignores unknown fields. An unreadable status counts as empty, so that it is written anew.
    pub fn from_value(raw: &Value) -> Result<Self, ReadError> {
        match Self::deserialize(raw) {
            Ok(read) => Ok(read),
            Err(error) if raw.get("status").is_some() => Self::without_status(raw.clone()).map_err(|_| error.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the names of its Secrets, each once: a user may name one thousands of times.
    pub fn secret_names(&self) -> impl Iterator<Item = &str> {
        let mut seen = BTreeSet::new();
        self.spec.secret_refs.iter().map(|reference| reference.name.as_str()).filter(move |name| seen.insert(*name))
    }

    /// As [`Self::from_value`], from JSON text.
    pub fn from_slice(raw: &[u8]) -> Result<Self, ReadError> {
        json::from_slice(raw).or_else(|_| Self::from_value(&json::from_slice(raw)?))
    }

    fn without_status(mut raw: Value) -> serde_json::Result<Self> {
        if let Some(fields) = raw.as_object_mut() {
            fields.remove("status");
        }
        Self::deserialize(raw)
    }

    /// Namespace and name.
    pub fn key(&self) -> NamespacedName {
        NamespacedName::new(&self.metadata.namespace, &self.metadata.name)
    }

    /// Returns true with the ignore annotation; any truthy value counts (spec 10 §18, trap 1).
    pub fn is_ignored(&self) -> bool {
        truthy(self.annotation(keys::IGNORE))
    }

    /// Returns true if deletion was requested.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// An annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.get(key).map(String::as_str)
    }

    /// The condition of a type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        conditions::find(&self.status.conditions, kind)
    }
}

impl ResourceRef {
    /// A reference without labels and annotations.
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Group and kind.
    pub fn group_kind(&self) -> GroupKind {
        self.group_version_kind().group_kind()
    }

    /// Group, version and kind.
    pub fn group_version_kind(&self) -> GroupVersionKind {
        GroupVersionKind::from_api_version(&self.api_version, &self.kind)
    }

    /// Returns the key of the object, with its effective namespace (spec 10 §10.1). References are sorted by the key's
    /// text. The derived order of [`ObjectKey`] is another one.
    pub fn key(&self) -> ObjectKey {
        let GroupKind { group, kind } = self.group_kind();
        let namespace = effective_namespace(&self.kind, &self.namespace).to_owned();
        ObjectKey { group, kind, namespace, name: self.name.clone() }
    }
}

impl fmt::Display for ResourceRef {
    /// `<apiVersion>/<kind>/<effective namespace>/<name>`, as in messages (spec 10 §10.1).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespace = effective_namespace(&self.kind, &self.namespace);
        write!(f, "{}/{}/{namespace}/{}", self.api_version, self.kind, self.name)
    }
}

/// The namespace, or `default` if it is empty and the kind is not `Namespace` (spec 10 §1).
pub fn effective_namespace<'a>(kind: &str, namespace: &'a str) -> &'a str {
    if namespace.is_empty() && kind != "Namespace" { "default" } else { namespace }
}

/// Returns the raw object with this status: the body of a `PUT` on the `status` subresource. Unknown fields of the raw
/// status stay, and so does the text of each unchanged condition and reference.
pub fn with_status(raw: Value, status: &ManagedResourceStatus) -> Value {
    let mut object = raw;
    let Some(fields) = object.as_object_mut() else { return object };
    let mut target = match fields.remove("status") {
        Some(Value::Object(status)) => status,
        _ => Map::new(),
    };

    replace_list(&mut target, "conditions", &status.conditions);
    replace_list(&mut target, "resources", &status.resources);
    match status.observed_generation {
        0 => target.remove("observedGeneration"),
        generation => target.insert("observedGeneration".to_owned(), generation.into()),
    };
    match &status.secrets_data_checksum {
        None => target.remove("secretsDataChecksum"),
        Some(checksum) => target.insert("secretsDataChecksum".to_owned(), checksum.as_str().into()),
    };

    fields.insert("status".to_owned(), Value::Object(target));
    object
}

fn replace_list<T>(status: &mut Map<String, Value>, field: &str, items: &[T])
where
    T: Serialize + PartialEq + for<'de> Deserialize<'de>,
{
    let old = match status.remove(field) {
        Some(Value::Array(old)) => old,
        _ => Vec::new(),
    };
    if items.is_empty() {
        return;
    }

    let mut old: Vec<_> = old.into_iter().map(|value| (T::deserialize(&value).ok(), Some(value))).collect();
    let mut search_from = 0;
    let new = items.iter().map(|item| {
        // Lists keep their order, so a search that starts at the last match is short.
        let found = (search_from..old.len()).find(|&index| old[index].0.as_ref() == Some(item));
        match found.and_then(|index| old[index].1.take().map(|value| (index, value))) {
            Some((index, value)) => {
                search_from = index + 1;
                value
            }
            None => serde_json::to_value(item).unwrap_or_default(),
        }
    });
    let new = new.collect();
    status.insert(field.to_owned(), Value::Array(new));
}

fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw() -> Value {
        json!({
            "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {
                "namespace": "ns", "name": "mr", "uid": "u", "resourceVersion": "7", "generation": 3,
                "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["b", "a"], "labels": null,
                "annotations": {"resources.gardener.cloud/ignore": "t"}, "managedFields": [{"manager": "x"}]
            },
            "spec": {
                "class": "seed", "secretRefs": [{"name": "s1"}, {"name": "s2"}], "injectLabels": {"a": "b"},
                "keepObjects": true, "equivalences": [[{"group": "g", "kind": "K"}]], "forceOverwriteLabels": null,
                "unknown": 1
            },
            "status": {
                "conditions": [{"type": "ResourcesHealthy", "status": "True", "reason": "R", "message": "m",
                    "lastTransitionTime": null, "lastUpdateTime": "2026-01-01T00:00:00Z", "extra": "kept"}],
                "observedGeneration": 2, "future": {"x": 1}, "secretsDataChecksum": "abc",
                "resources": [
                    {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": "a", "labels": {"l": "1"}},
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "1", "extra": "kept"}
                ]
            }
        })
    }

    #[test]
    fn managed_resource_fields_are_read_and_unknown_fields_ignored() {
        let mr = ManagedResource::from_value(&raw()).unwrap();

        assert_eq!(mr.key(), NamespacedName::new("ns", "mr"));
        assert_eq!((mr.metadata.uid.as_str(), mr.metadata.resource_version.as_str()), ("u", "7"));
        assert_eq!((mr.metadata.generation, mr.is_deleting(), mr.is_ignored()), (3, true, true));
        assert_eq!(mr.metadata.finalizers, ["b", "a"]);
        assert_eq!(mr.spec.class.as_deref(), Some("seed"));
        assert_eq!(mr.spec.secret_refs[1].name, "s2");
        assert_eq!(mr.spec.equivalences, [[GroupKind::new("g", "K")]]);
        assert!(mr.spec.keep_objects && !mr.spec.force_overwrite_labels);
        assert_eq!(mr.status.observed_generation, 2);
        assert_eq!(mr.status.secrets_data_checksum.as_deref(), Some("abc"));
        assert_eq!(mr.status.resources[1].uid, "1");
        assert_eq!(mr.condition("ResourcesHealthy").unwrap().reason, "R");
        assert_eq!(ManagedResource::from_slice(raw().to_string().as_bytes()).unwrap(), mr);
    }

    #[test]
    fn managed_resource_without_fields_is_all_defaults() {
        assert_eq!(ManagedResource::from_value(&json!({})).unwrap(), ManagedResource::default());
        assert_eq!(
            ManagedResource::from_value(&json!({"spec": null, "status": null, "metadata": null})).unwrap(),
            ManagedResource::default()
        );
    }

    #[test]
    fn managed_resource_field_of_another_type_is_an_error() {
        assert!(ManagedResource::from_value(&json!({"spec": {"secretRefs": "x"}})).is_err());
    }

    #[test]
    fn status_written_back_unchanged_changes_nothing() {
        let mr = ManagedResource::from_value(&raw()).unwrap();

        assert_eq!(with_status(raw(), &mr.status), raw());
    }

    #[test]
    fn status_keeps_unknown_fields_when_changed() {
        let mut status = ManagedResource::from_value(&raw()).unwrap().status;
        status.resources.remove(0);
        status.resources.push(ResourceRef { kind: "Secret".to_owned(), ..ResourceRef::default() });
        status.conditions.clear();
        status.secrets_data_checksum = None;
        status.observed_generation = 3;

        let written = with_status(raw(), &status);

        let expected = json!({
            "observedGeneration": 3, "future": {"x": 1},
            "resources": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "1", "extra": "kept"}, {"kind": "Secret"}
            ]
        });
        assert_eq!(written["status"], expected);
        assert_eq!(written["metadata"], raw()["metadata"]);
    }

    #[test]
    fn status_is_added_if_there_was_none() {
        let status = ManagedResourceStatus { observed_generation: 1, ..ManagedResourceStatus::default() };

        assert_eq!(
            with_status(json!({"metadata": {}}), &status),
            json!({"metadata": {}, "status": {"observedGeneration": 1}})
        );
    }

    #[test]
    fn a_ref_is_named_by_its_effective_namespace() {
        for (api_version, kind, namespace, name, key, display) in [
            ("v1", "ConfigMap", "ns", "a", "/ConfigMap/ns/a", "v1/ConfigMap/ns/a"),
            ("apps/v1", "Deployment", "ns", "b", "apps/Deployment/ns/b", "apps/v1/Deployment/ns/b"),
            ("x.y/v1", "ClusterRole", "", "c", "x.y/ClusterRole/default/c", "x.y/v1/ClusterRole/default/c"),
            ("v1", "Namespace", "", "d", "/Namespace//d", "v1/Namespace//d"),
        ] {
            let reference = ResourceRef::new(api_version, kind, namespace, name);

            assert_eq!(reference.key().to_string(), key);
            assert_eq!(reference.to_string(), display);
        }
    }
}
