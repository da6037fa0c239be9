//! Annotations that name the immutable Secrets and ConfigMaps an object refers to (spec 10 §19.3). The garbage collector
//! leaves alone what is named.

use std::collections::BTreeMap;

use super::unique::sha256_hex;
use crate::api::{keys::REFERENCE_PREFIX, managed_resource::SecretRef};

/// What is referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// The key of the annotation that names an object; its value is the name.
///
/// ```
/// use gardener_resource_manager::producer::references::{ReferenceKind, annotation_key};
///
/// assert_eq!(
///     annotation_key(ReferenceKind::Secret, "managedresource-demo-0a1b2c3d"),
///     "reference.resources.gardener.cloud/secret-5befeaee"
/// );
/// ```
pub fn annotation_key(kind: ReferenceKind, name: &str) -> String {
    let kind = match kind {
        ReferenceKind::ConfigMap => "configmap",
        ReferenceKind::Secret => "secret",
    };
    format!("{REFERENCE_PREFIX}{kind}-{}", &sha256_hex(name.as_bytes())[..8])
}

/// Exchanges all reference annotations of a ManagedResource for those of its `secretRefs`; stale ones disappear.
pub fn refresh(annotations: &mut BTreeMap<String, String>, secret_refs: &[SecretRef]) {
    annotations.retain(|key, _| !key.starts_with(REFERENCE_PREFIX));
    let wanted = secret_refs.iter().filter(|reference| !reference.name.is_empty());
    annotations.extend(
        wanted.map(|reference| (annotation_key(ReferenceKind::Secret, &reference.name), reference.name.clone())),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 10 §19.3, example
    #[test]
    fn only_present_references_have_an_annotation() {
        let stale = annotation_key(ReferenceKind::Secret, "old");
        let mut annotations = BTreeMap::from([(stale, "old".to_owned()), ("other".to_owned(), "kept".to_owned())]);

        refresh(&mut annotations, &[SecretRef { name: "managedresource-demo-0a1b2c3d".to_owned() }]);

        let expected = [
            ("other", "kept"),
            ("reference.resources.gardener.cloud/secret-5befeaee", "managedresource-demo-0a1b2c3d"),
        ];
        assert_eq!(annotations, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn kinds_have_keys_of_their_own() {
        assert!(annotation_key(ReferenceKind::ConfigMap, "a").contains("/configmap-"));
    }
}
