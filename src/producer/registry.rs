//! Objects → the data of a Secret (spec 10 §19.4).

use std::{collections::BTreeMap, fmt};

use brotli::enc::BrotliEncoderParams;
use cluster::object::{self, GroupVersionKind};
use serde::Serialize;
use serde_json::Value;

use super::yaml;
use crate::api::resources::keys::COMPRESSED_DATA_KEY;

const QUALITY: i32 = 9; // compression quality, from 0 to 11. Names of Secrets depend on it: never change it.
const WINDOW: i32 = 22; // compression window, as a power of two. Names of Secrets depend on it: never change it.

/// Collects the objects of a bundle for a Secret.
/// ```
/// use gardener_resource_manager::producer::Registry;
/// use serde_json::json;
///
/// let mut registry = Registry::default();
/// registry.add(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}))?;
///
/// assert_eq!(registry.data().into_keys().collect::<Vec<_>>(), ["data.yaml.br"]);
/// # Ok::<(), gardener_resource_manager::producer::registry::RegistryError>(())
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    files: BTreeMap<String, File>,
    /// Bytes of all documents.
    size: usize,
}

#[derive(Clone)]
struct File {
    object: Option<Value>,
    yaml: String,
}

/// An object that cannot be part of a bundle.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The same object was added before.
    #[error("duplicate filename in registry: \"{0}\"")]
    Duplicate(String),
    /// A mandatory field is missing or empty.
    #[error("object {object:?} has no {field}")]
    Missing {
        /// File name, as far as it is known.
        object: String,
        /// Path of the field.
        field: &'static str,
    },
    /// The object has no JSON form.
    #[error("cannot serialize object: {0}")]
    Serialize(#[from] serde_json::Error),
}

impl Registry {
    /// Adds anything that serializes to an object; ignores `None`. Fails for duplicates and incomplete objects.
    pub fn add(&mut self, object: &impl Serialize) -> Result<(), RegistryError> {
        let object = serde_json::to_value(object)?;
        if object.is_null() {
            return Ok(());
        }
        let file = file_name(&object);
        let gvk = GroupVersionKind::of(&object);
        let missing = |field| Err(RegistryError::Missing { object: file.clone(), field });
        if gvk.is_none() {
            return missing("apiVersion or kind");
        }
        if object::name(&object).is_empty() {
            return missing("metadata.name");
        }
        if self.files.contains_key(&file) {
            return Err(RegistryError::Duplicate(file));
        }
        let yaml = yaml::document(&object);
        self.insert(file, File { object: Some(object), yaml });
        Ok(())
    }

    /// Adds YAML as it is, one or more documents, and replaces the entry with the same file name.
    pub fn add_serialized(&mut self, file: impl Into<String>, yaml: impl Into<String>) {
        self.insert(file.into(), File { object: None, yaml: yaml.into() });
    }

    fn insert(&mut self, name: String, file: File) {
        self.size += file.yaml.len();
        if let Some(before) = self.files.insert(name, file) {
            self.size -= before.yaml.len();
        }
    }

    /// Returns the bytes of [`Self::yaml`], without line feeds that added text lacks. Makes no text.
    pub fn size(&self) -> usize {
        self.size + self.files.len().saturating_sub(1) * yaml::SEPARATOR.len()
    }

    /// Returns the objects in the order of their file names, without text that was added as it is.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.files.values().filter_map(|file| file.object.as_ref())
    }

    /// Returns the documents, separated by `---`.
    pub fn yaml(&self) -> String {
        yaml::join(self.files.values().map(|file| file.yaml.as_str()))
    }

    /// Returns the compressed documents under `data.yaml.br`. Equal objects give equal bytes, in any order.
    pub fn data(&self) -> BTreeMap<String, Vec<u8>> {
        BTreeMap::from([(COMPRESSED_DATA_KEY.to_owned(), compress(self.yaml().as_bytes()))])
    }
}

impl fmt::Display for Registry {
    /// Leaves out the content of Secrets, and text that was added as it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (name, file)) in self.files.iter().enumerate() {
            let gap = if position > 0 { "\n" } else { "" };
            let is_shown = file.object.as_ref().is_some_and(|object| object["kind"] != "Secret");
            let yaml = if is_shown { file.yaml.as_str() } else { "(left out)\n" };
            write!(f, "{gap}* {name}:\n{yaml}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.files.keys()).finish()
    }
}

/// Returns `<group>/<version>, kind=<kind>__<namespace>__<name>.yaml`, which decides about duplicates and order only.
fn file_name(object: &Value) -> String {
    let GroupVersionKind { group, version, kind } = GroupVersionKind::of(object).unwrap_or_default();
    let kind = format!("{group}/{version}, kind={kind}").to_lowercase();
    format!("{kind}__{}__{}.yaml", object::namespace(object), object::name(object).replace(':', "_"))
}

fn compress(text: &[u8]) -> Vec<u8> {
    let params = BrotliEncoderParams { quality: QUALITY, lgwin: WINDOW, size_hint: text.len(), ..Default::default() };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut &*text, &mut compressed, &params).unwrap_or_default();
    compressed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::producer::{SecretBuilder, extract, unique::sha256_hex};

    fn config_map(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns", "name": name},
            "data": {"enabled": "yes", "script": "a\nb\n"}})
    }

    fn role() -> Value {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:x"}})
    }

    fn registry() -> Registry {
        let mut registry = Registry::default();
        registry.add(&role()).unwrap();
        registry.add(&config_map("b")).unwrap();
        registry.add(&config_map("a")).unwrap();
        registry.add(&None::<Value>).unwrap();
        registry
    }

    /// spec 10 §19.4
    #[test]
    fn registry_names_files_by_type_namespace_and_name() {
        let registry = registry();

        let files: Vec<_> = registry.files.keys().collect();
        let expected = [
            "/v1, kind=configmap__ns__a.yaml",
            "/v1, kind=configmap__ns__b.yaml",
            "rbac.authorization.k8s.io/v1, kind=clusterrole____system_x.yaml",
        ];
        assert_eq!(files, expected);
        assert_eq!(registry.objects().map(object::name).collect::<Vec<_>>(), ["a", "b", "system:x"]);
    }

    /// Names of Secrets depend on these bytes. If this test fails, the next release would rename the bundles of every
    /// producer: find out what changed (the YAML, or the encoder of the `brotli` crate) and undo it.
    #[test]
    fn registry_bytes_are_pinned() {
        let registry = registry();
        let mut other_order = Registry::default();
        for object in [config_map("a"), role(), config_map("b")] {
            other_order.add(&object).unwrap();
        }
        let mut large = Registry::default();
        for index in 0..500 {
            large.add(&config_map(&format!("object-{}", index * 7919 % 500))).unwrap();
        }

        let hash = |registry: &Registry| sha256_hex(&registry.data()[COMPRESSED_DATA_KEY]);
        assert_eq!(registry.data(), other_order.data());
        let yaml = sha256_hex(registry.yaml().as_bytes());
        assert_eq!(
            [yaml, hash(&registry), hash(&large), hash(&Registry::default())],
            [
                "55dff7ec0c504b7a963cab22f1f53dcba37f19e16285ff57554dec5e2f3fb657",
                "d4d011a4381841153d624f4729a2053009fe4bf2f2ddd8dd07e9c364603c4200",
                "cd7faf500ef2c33483a06b799e6a3ac8dd5b56faf390430eb883415548f09bd0",
                "41b805ea7ac014e23556e98bb374702a08344268f92489a02f0880849394a1e4",
            ]
        );
    }

    #[test]
    fn registry_data_is_read_back() {
        let registry = registry();

        let objects = extract::objects(&SecretBuilder::new("ns", "secret").data(registry.data()).build()).unwrap();

        assert_eq!(objects.iter().collect::<Vec<_>>(), registry.objects().collect::<Vec<_>>());
    }

    #[test]
    fn registry_refuses_duplicate_and_incomplete_objects_by_name() {
        let mut registry = registry();

        let duplicate = registry.add(&config_map("a")).unwrap_err();
        let nameless = registry.add(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}})).unwrap_err();
        let typeless = registry.add(&json!({"kind": "Pod", "metadata": {"name": "a"}})).unwrap_err();

        assert_eq!(duplicate.to_string(), "duplicate filename in registry: \"/v1, kind=configmap__ns__a.yaml\"");
        assert_eq!(nameless.to_string(), "object \"/v1, kind=pod____.yaml\" has no metadata.name");
        assert_eq!(typeless.to_string(), "object \"/, kind=____a.yaml\" has no apiVersion or kind");
    }

    #[test]
    fn registry_text_replaces_the_same_file_and_ends_with_a_newline() {
        let mut registry = Registry::default();
        registry.add_serialized("b.yaml", "b: 1");
        registry.add_serialized("a.yaml", "a: 1\n");
        registry.add_serialized("b.yaml", "b: 2");

        assert_eq!(registry.yaml(), "a: 1\n---\nb: 2\n");
        assert_eq!(registry.size(), "a: 1\n---\nb: 2".len());
    }

    #[test]
    fn registry_debug_text_leaves_secrets_out() {
        let mut registry = Registry::default();
        registry
            .add(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "aGlk"}}))
            .unwrap();
        registry.add(&role()).unwrap();

        let text = format!("{registry} {registry:?}");

        assert!(text.starts_with("* /v1, kind=secret____s.yaml:\n(left out)\n\n* rbac"), "{text}");
        assert!(!text.contains("aGlk"));
    }
}
