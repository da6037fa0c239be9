//! Which objects a HorizontalPodAutoscaler scales (spec 10 §11.2).

use cluster::object::{self, GroupKind, NamespacedName, ObjectKey};
use serde_json::Value;
use thiserror::Error;

use super::identity;

/// An autoscaler whose target cannot be read. It is skipped with a warning: an end user's broken autoscaler must not
/// block every ManagedResource (a deviation).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "invalid API version in scaleTargetReference of HorizontalPodAutoscaler '{}/{}': unexpected GroupVersion string: {api_version}",
    autoscaler.namespace, autoscaler.name
)]
pub struct BrokenAutoscaler {
    /// The autoscaler.
    pub autoscaler: NamespacedName,
    /// Its `spec.scaleTargetRef.apiVersion`.
    pub api_version: String,
}

/// The key of the object that an autoscaler (of any version) scales.
pub fn scale_target(autoscaler: &Value) -> Result<ObjectKey, BrokenAutoscaler> {
    let reference = autoscaler.pointer("/spec/scaleTargetRef");
    let text = |field| reference.and_then(|target| target.get(field)).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("apiVersion");
    let group = match api_version.split('/').collect::<Vec<_>>()[..] {
        [_version] => "",
        [group, _version] => group,
        _ => {
            let autoscaler = NamespacedName::of(autoscaler);
            return Err(BrokenAutoscaler { autoscaler, api_version: api_version.to_owned() });
        }
    };
    Ok(identity::index_key(group, text("kind"), object::namespace(autoscaler), text("name")))
}

/// Returns true if an autoscaler's replicas count for a kind (spec 10 §12.5).
pub fn is_scalable(kind: &GroupKind) -> bool {
    matches!(kind.group.as_str(), "apps" | "extensions") && matches!(kind.kind.as_str(), "Deployment" | "StatefulSet")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn autoscaler(name: &str, api_version: &str) -> Value {
        json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"namespace": "ns", "name": name},
            "spec": {"scaleTargetRef": {"apiVersion": api_version, "kind": "Deployment", "name": "web"}},
        })
    }

    /// spec 10 scenario 14
    #[test]
    fn a_target_is_in_the_namespace_of_its_autoscaler() {
        let expected = identity::index_key("apps", "Deployment", "ns", "web");

        assert_eq!(scale_target(&autoscaler("a", "apps/v1")), Ok(expected));
    }

    /// spec 10 scenario 40
    #[test]
    fn a_broken_autoscaler_is_named() {
        assert_eq!(
            scale_target(&autoscaler("bad", "a/b/c")).unwrap_err().to_string(),
            "invalid API version in scaleTargetReference of HorizontalPodAutoscaler 'ns/bad': unexpected GroupVersion string: a/b/c"
        );
    }

    /// spec 10 §12.5
    #[test]
    fn autoscaler_protects_replicas_of_deployments_and_stateful_sets_only() {
        for (group, kind, protected) in [
            ("apps", "Deployment", true),
            ("extensions", "Deployment", true),
            ("apps", "StatefulSet", true),
            ("extensions", "StatefulSet", true),
            ("apps", "ReplicaSet", false),
            ("", "ReplicationController", false),
            ("g.io", "Deployment", false),
        ] {
            assert_eq!(is_scalable(&GroupKind::new(group, kind)), protected, "{group}/{kind}");
        }
    }

    #[test]
    fn the_core_group_is_an_api_version_without_slash() {
        assert_eq!(scale_target(&autoscaler("a", "v1")).unwrap().group, "");
    }
}
