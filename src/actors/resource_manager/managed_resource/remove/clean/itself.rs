//! Which objects a ManagedResource may need itself, by their names (spec 10 §13.7). Uids tell whether it does.

use cluster::object::{NamespacedName, ObjectKey};

use crate::api::resources::{keys, managed_resource::ManagedResource};

pub(crate) fn is_managed_resource(key: &ObjectKey) -> bool {
    key.group == keys::GROUP && key.kind == keys::KIND
}

/// Returns true if the object has the name of a Secret that the ManagedResource reads its manifests from.
pub(crate) fn is_named_secret(mr: &ManagedResource, bundle: &NamespacedName, key: &ObjectKey) -> bool {
    key.group.is_empty()
        && key.kind == "Secret"
        && key.namespace == bundle.namespace
        && mr.spec.secret_refs.iter().any(|secret| secret.name == key.name)
}

pub(crate) fn is_namespace_of(bundle: &NamespacedName, key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "Namespace" && key.name == bundle.namespace
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::actors::resource_manager::bundle::identity::index_key;

    /// spec 10 §13.7
    #[test]
    fn own_objects_are_secrets_and_namespace_of_the_core_group_only() {
        let mr = json!({"metadata": {"namespace": "ns", "name": "mr"}, "spec": {"secretRefs": [{"name": "s"}]}});
        let mr = ManagedResource::from_value(&mr).unwrap();
        let bundle = NamespacedName::new("ns", "mr");
        for (group, kind, namespace, name, secret, own) in [
            ("", "Secret", "ns", "s", true, false),
            ("", "Secret", "other", "s", false, false),
            ("", "Secret", "ns", "t", false, false),
            ("", "ConfigMap", "ns", "s", false, false),
            ("g.io", "Secret", "ns", "s", false, false),
            ("", "Namespace", "", "ns", false, true),
            ("", "Namespace", "", "other", false, false),
            ("g.io", "Namespace", "", "ns", false, false),
        ] {
            let key = index_key(group, kind, namespace, name);

            assert_eq!(is_named_secret(&mr, &bundle, &key), secret, "{key}");
            assert_eq!(is_namespace_of(&bundle, &key), own, "{key}");
            assert!(!is_managed_resource(&key), "{key}");
        }
        assert!(is_managed_resource(&index_key(keys::GROUP, keys::KIND, "ns", "mr")));
    }
}
