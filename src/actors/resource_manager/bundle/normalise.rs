//! The real namespace of a manifest (spec 10 §9.3).

use cluster::object::{self, ObjectKey};
use serde_json::{Map, Value};

use super::identity;
use crate::api::resources::managed_resource::effective_namespace;

/// Whether objects of a kind live in namespaces, from discovery of the target cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// They live in namespaces.
    Namespaced,
    /// They do not live in namespaces.
    Cluster,
    /// The kind is not served, or discovery failed.
    Unknown,
}

/// Sets the namespace by the scope of the kind (spec 10 §9.3). `metadata` that is no map stays: it fails later.
pub fn normalise_namespace(manifest: &mut Value, scope: Scope) {
    let kind = manifest.get("kind").and_then(Value::as_str).unwrap_or_default();
    let namespace = match scope {
        Scope::Cluster => String::new(),
        Scope::Namespaced if object::namespace(manifest).is_empty() => "default".to_owned(),
        Scope::Namespaced => object::namespace(manifest).to_owned(),
        Scope::Unknown => effective_namespace(kind, object::namespace(manifest)).to_owned(),
    };

    let Some(root) = manifest.as_object_mut() else { return };
    let metadata = root.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return };
    if namespace.is_empty() {
        metadata.remove("namespace");
    } else {
        metadata.insert("namespace".to_owned(), Value::String(namespace));
    }
}

/// Returns the key that a recorded object would have if its scope had been known then (spec 10 §11.8). A reference to a
/// cluster-scoped custom object may have a namespace from the time before its kind was served. Taken literally, it
/// would be another object than that of today's manifest, and be pruned. The same holds for a namespaced kind called
/// `Namespace`, which was recorded without a namespace then.
pub fn scope_normalised_key(key: ObjectKey, scope: Scope) -> ObjectKey {
    match scope {
        Scope::Cluster => identity::index_key(&key.group, &key.kind, "", &key.name),
        Scope::Namespaced if key.namespace.is_empty() => ObjectKey { namespace: "default".to_owned(), ..key },
        Scope::Namespaced | Scope::Unknown => key,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// spec 10 §9.3, scenario 6
    #[test]
    fn the_namespace_follows_the_scope() {
        let table = [
            ("ConfigMap", Scope::Namespaced, None, Some("default")),
            ("ConfigMap", Scope::Namespaced, Some("foo"), Some("foo")),
            ("ConfigMap", Scope::Namespaced, Some(""), Some("default")),
            ("ClusterRole", Scope::Cluster, Some("foo"), None),
            ("ClusterRole", Scope::Cluster, None, None),
            ("Thing", Scope::Unknown, None, Some("default")),
            ("Thing", Scope::Unknown, Some("foo"), Some("foo")),
            ("Namespace", Scope::Unknown, None, None),
            ("Namespace", Scope::Unknown, Some("foo"), Some("foo")),
        ];

        for (kind, scope, before, after) in table {
            let mut manifest = json!({"kind": kind, "metadata": {"name": "a"}});
            if let Some(namespace) = before {
                manifest["metadata"]["namespace"] = json!(namespace);
            }

            normalise_namespace(&mut manifest, scope);

            let namespace = manifest["metadata"].get("namespace").and_then(Value::as_str);
            assert_eq!(namespace, after, "{kind} {scope:?} {before:?}");
        }
    }

    /// spec 10 §11.8
    #[test]
    fn a_reference_recorded_before_discovery_has_the_key_that_it_would_have_now() {
        let key = |kind, namespace: &str| ObjectKey {
            namespace: namespace.to_owned(),
            ..identity::index_key("g.io", kind, "", "a")
        };

        for (recorded, scope, expected) in [
            (key("Thing", "foo"), Scope::Cluster, key("Thing", "default")),
            (key("Thing", "foo"), Scope::Namespaced, key("Thing", "foo")),
            (key("Thing", "foo"), Scope::Unknown, key("Thing", "foo")),
            (key("Namespace", "foo"), Scope::Cluster, key("Namespace", "")),
            (key("Namespace", ""), Scope::Namespaced, key("Namespace", "default")),
            (key("Namespace", "foo"), Scope::Namespaced, key("Namespace", "foo")),
            (key("Namespace", ""), Scope::Unknown, key("Namespace", "")),
        ] {
            assert_eq!(scope_normalised_key(recorded.clone(), scope), expected, "{recorded} {scope:?}");
        }
    }
}
