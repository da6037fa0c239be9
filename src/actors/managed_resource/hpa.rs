//! Which objects are scaled by a HorizontalPodAutoscaler (spec 10 §11.2).

use std::collections::BTreeSet;

use serde_json::Value;
use thiserror::Error;

use super::identity::{self, Equivalences};
use crate::api::object::{self, NamespacedName, ObjectKey};

/// The objects that autoscalers scale.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScaledObjects {
    /// Index keys.
    keys: BTreeSet<ObjectKey>,
}

/// An autoscaler whose target cannot be understood. It is passed over with a warning: a broken one of an end user must
/// not block every bundle (a deviation).
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

/// The key of what an autoscaler (of any version) scales.
pub fn target(autoscaler: &Value) -> Result<ObjectKey, BrokenAutoscaler> {
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

// === impl ScaledObjects ===

impl ScaledObjects {
    /// Collects the targets of all autoscalers; the broken ones come back for a warning.
    pub fn of<'a>(autoscalers: impl IntoIterator<Item = &'a Value>) -> (Self, Vec<BrokenAutoscaler>) {
        let mut scaled = Self::default();
        let mut broken = Vec::new();
        for autoscaler in autoscalers {
            match target(autoscaler) {
                Ok(key) => {
                    scaled.keys.insert(key);
                }
                Err(error) => broken.push(error),
            }
        }
        (scaled, broken)
    }

    /// Whether an autoscaler scales the object, under its own or an equivalent group and kind. Then its live replicas
    /// count.
    pub fn contains(&self, key: &ObjectKey, equivalences: &Equivalences) -> bool {
        self.keys.contains(key) || equivalences.of_key(key).any(|other| self.keys.contains(&other))
    }
}

impl FromIterator<ObjectKey> for ScaledObjects {
    fn from_iter<T: IntoIterator<Item = ObjectKey>>(keys: T) -> Self {
        Self { keys: keys.into_iter().collect() }
    }
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
    fn a_target_is_found_under_equivalent_groups_in_the_autoscalers_namespace() {
        let (scaled, broken) = ScaledObjects::of(&[autoscaler("a", "apps/v1")]);
        let equivalences = Equivalences::predefined();
        let contains = |group: &str, namespace: &str, name: &str| {
            scaled.contains(&identity::index_key(group, "Deployment", namespace, name), &equivalences)
        };

        assert!(broken.is_empty());
        assert!(contains("apps", "ns", "web"));
        assert!(contains("extensions", "ns", "web"));
        assert!(!contains("apps", "other", "web"));
        assert!(!contains("apps", "ns", "db"));
        assert!(!contains("g.io", "ns", "web"));
    }

    /// spec 10 scenario 40
    #[test]
    fn a_broken_autoscaler_is_passed_over_and_named() {
        let (scaled, broken) = ScaledObjects::of(&[autoscaler("bad", "a/b/c"), autoscaler("good", "apps/v1")]);

        assert_eq!(scaled.keys.len(), 1);
        assert_eq!(broken.len(), 1);
        assert_eq!(
            broken[0].to_string(),
            "invalid API version in scaleTargetReference of HorizontalPodAutoscaler 'ns/bad': unexpected GroupVersion string: a/b/c"
        );
    }

    #[test]
    fn the_core_group_is_an_api_version_without_slash() {
        assert_eq!(target(&autoscaler("a", "v1")).unwrap().group, "");
    }
}
