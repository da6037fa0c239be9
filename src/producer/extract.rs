//! From a Secret back to its objects, with the controller's decoder (spec 10 §19.7).

use cluster::object;
use serde_json::Value;

use super::{
    decode::{self, DecodeError, SecretData},
    unique::{self, UniqueError},
};
use crate::api::resources::keys::BROTLI_SUFFIX;

/// A part of a Secret is not a manifest. Texts have keys and positions, never content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// A compressed data key cannot be decompressed, or becomes too large.
    #[error("could not read brotli compressed data from key \"{key}\": {text}")]
    Brotli {
        /// The data key.
        key: String,
        /// What is wrong.
        text: String,
    },
    /// A document is not a manifest.
    #[error("could not decode object: {text} (document {index} of key \"{key}\")")]
    Decode {
        /// The data key.
        key: String,
        /// Zero-based position in the key.
        index: usize,
        /// What is wrong.
        text: String,
    },
    /// The object is not a valid Secret.
    #[error("could not decode object: {0}")]
    NoSecret(#[from] UniqueError),
}

/// Returns all objects of a Secret, by data key and document. Fails at the first document that is not a manifest.
/// ```
/// use gardener_resource_manager::producer::{Registry, SecretBuilder, extract};
/// use serde_json::json;
///
/// let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
/// let mut registry = Registry::default();
/// registry.add(&config_map)?;
/// let secret = SecretBuilder::new("garden", "bundle").data(registry.data()).build();
///
/// assert_eq!(extract::objects(&secret)?, [config_map]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn objects(secret: &Value) -> Result<Vec<Value>, ExtractError> {
    let (namespace, name, data) = (object::namespace(secret), object::name(secret), unique::content(secret)?);
    let decoded = decode::decode([SecretData { namespace, name, data: &data }]);
    match decoded.errors.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(decoded.documents.into_iter().map(|document| document.manifest).collect()),
    }
}

impl From<DecodeError> for ExtractError {
    fn from(error: DecodeError) -> Self {
        let DecodeError { data_key, index, text, .. } = error;
        let key = data_key.to_string();
        let is_compression = text.starts_with("brotli: ") || text.starts_with("decompressed data ");
        if is_compression && key.ends_with(BROTLI_SUFFIX) {
            Self::Brotli { key, text }
        } else {
            Self::Decode { key, index, text }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "ns", "name": "s"}, "stringData": data})
    }

    #[test]
    fn extract_does_not_split_at_a_separator_inside_of_a_text() {
        let yaml = "# nothing\n---\nkind: A\ntext: |\n  a\n  ---\n  b\n---\n---\nkind: B\n";

        let objects = objects(&secret(json!({"b.yaml": "kind: C", "a.yaml": yaml}))).unwrap();

        assert_eq!(objects, [json!({"kind": "A", "text": "a\n---\nb\n"}), json!({"kind": "B"}), json!({"kind": "C"})]);
    }

    #[test]
    fn extract_names_bad_documents_by_key_and_position() {
        let table = [
            (
                json!({"x.br": "hidden"}),
                "could not read brotli compressed data from key \"x.br\": brotli: the stream is corrupt",
            ),
            (
                json!({"x": "kind: A\n---\n- hidden"}),
                "could not decode object: the document is a list and no map (document 1 of key \"x\")",
            ),
            (json!("hidden"), "could not decode object: stringData is no map"),
        ];

        for (data, text) in table {
            let error = objects(&secret(data)).unwrap_err().to_string();

            assert!(error.starts_with(text.split(": the stream").next().unwrap_or_default()), "{error}");
            assert!(!error.contains("hidden"), "{error}");
        }
    }
}
