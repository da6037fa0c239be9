//! Unique names of immutable Secrets and ConfigMaps (spec 10 §19.2): they hold a checksum, so new content makes a new
//! object. The old object stays for its remaining users; when it has none, the garbage collector deletes it.

use std::{collections::BTreeMap, fmt::Write as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cluster::object::field_mut;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::api::resources::keys::{GARBAGE_COLLECTABLE, GARBAGE_COLLECTABLE_VALUE};

const SUFFIX: usize = 8;

/// An object that cannot get a unique name. Texts have fields and keys, never content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UniqueError {
    /// Neither a Secret nor a ConfigMap.
    #[error("only Secrets and ConfigMaps can have unique names, not {0:?}")]
    Kind(String),
    /// A value is not a string.
    #[error("{field}.{key} is no string")]
    NotText {
        /// `data`, `stringData` or `binaryData`.
        field: &'static str,
        /// Key of the value.
        key: String,
    },
    /// A value is not Base64.
    #[error("{field}.{key} is no Base64 text")]
    NotBase64 {
        /// `data` or `binaryData`.
        field: &'static str,
        /// Key of the value.
        key: String,
    },
    /// The field is not a map.
    #[error("{0} is no map")]
    NotAMap(&'static str),
}

/// SHA-256 of the SHA-256 texts of values, in ascending order of their keys, in lower-case hex. Keys do not count.
pub fn checksum<V: AsRef<[u8]>>(values: impl IntoIterator<Item = V>) -> String {
    let mut whole = Sha256::new();
    for value in values {
        whole.update(sha256_hex(value.as_ref()));
    }
    hex(&whole.finalize())
}

/// Returns the name followed by the first 8 characters of the checksum.
/// ```
/// use gardener_resource_manager::producer::unique;
///
/// assert_eq!(unique::name("settings", &unique::checksum(["data"])), "settings-c8549d3f");
/// ```
pub fn name(name: &str, checksum: &str) -> String {
    let dash = if name.ends_with('-') { "" } else { "-" };
    format!("{name}{dash}{}", checksum.get(..SUFFIX).unwrap_or(checksum))
}

/// Sets name, `immutable` and the label for the garbage collector. Fails, without a change, for invalid objects.
pub fn make_unique(object: &mut Value) -> Result<(), UniqueError> {
    let checksum = checksum(content(object)?.values());
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return Err(UniqueError::NotAMap("metadata"));
    };
    let old = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
    let new = name(old, &checksum);
    metadata.insert("name".to_owned(), new.into());
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    if labels.is_null() {
        *labels = json!({});
    }
    labels
        .as_object_mut()
        .ok_or(UniqueError::NotAMap("metadata.labels"))?
        .insert(GARBAGE_COLLECTABLE.to_owned(), GARBAGE_COLLECTABLE_VALUE.into());
    *field_mut(object, &["immutable"]) = true.into();
    Ok(())
}

/// The content of a Secret (`stringData` over `data`) or a ConfigMap (`data` and `binaryData`), as bytes.
pub(crate) fn content(object: &Value) -> Result<BTreeMap<String, Vec<u8>>, UniqueError> {
    let mut content = BTreeMap::new();
    match (object["apiVersion"].as_str(), object["kind"].as_str().unwrap_or_default()) {
        (Some("v1"), "Secret") => {
            read(object, "data", true, &mut content)?;
            read(object, "stringData", false, &mut content)?;
        }
        (Some("v1"), "ConfigMap") => {
            read(object, "data", false, &mut content)?;
            read(object, "binaryData", true, &mut content)?;
        }
        (_, other) => return Err(UniqueError::Kind(other.to_owned())),
    }
    Ok(content)
}

fn read(
    object: &Value,
    field: &'static str,
    base64: bool,
    into: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), UniqueError> {
    let empty = Map::new();
    let values = match object.get(field) {
        None | Some(Value::Null) => &empty,
        Some(values) => values.as_object().ok_or(UniqueError::NotAMap(field))?,
    };
    for (key, value) in values {
        // The API server reads null as an empty value.
        let text = if value.is_null() { Some("") } else { value.as_str() };
        let text = text.ok_or_else(|| UniqueError::NotText { field, key: key.clone() })?;
        let bytes = if base64 {
            STANDARD.decode(text).map_err(|_| UniqueError::NotBase64 { field, key: key.clone() })?
        } else {
            text.as_bytes().to_vec()
        };
        into.insert(key.clone(), bytes);
    }
    Ok(())
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap_or_default(); // cannot fail
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "labels": {"x": "y"}}, "data": data})
    }

    /// spec 10 §19.2, example
    #[test]
    fn unique_name_suffix_depends_on_the_values() {
        let mut config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
            "data": {"key": "data"}});
        let mut secret = secret(json!({"key": "ZGF0YQ=="}));

        make_unique(&mut config_map).unwrap();
        make_unique(&mut secret).unwrap();

        assert_eq!(config_map["metadata"]["name"], "a-c8549d3f");
        assert_eq!(secret["metadata"]["name"], "a-c8549d3f");
        assert_eq!(secret["immutable"], true);
        let labels = json!({"x": "y", "resources.gardener.cloud/garbage-collectable-reference": "true"});
        assert_eq!(secret["metadata"]["labels"], labels);
    }

    #[test]
    fn unique_name_does_not_double_a_dash() {
        assert_eq!(name("a-", "0123456789"), "a-01234567");
    }

    #[test]
    fn checksum_of_values_is_in_the_order_of_their_keys() {
        let of = |data: Value| checksum(content(&secret(data)).unwrap().values());

        assert_eq!(of(json!({"a": "MQ==", "b": "Mg=="})), of(json!({"c": "MQ==", "d": "Mg=="})));
        assert_ne!(of(json!({"a": "MQ==", "b": "Mg=="})), of(json!({"a": "Mg==", "b": "MQ=="})));
    }

    #[test]
    fn checksum_of_string_data_is_that_of_the_data() {
        let mut object = secret(json!({"a": "MQ==", "b": "Mg=="}));
        object["stringData"] = json!({"b": "x"});

        assert_eq!(content(&object).unwrap(), content(&secret(json!({"a": "MQ==", "b": "eA=="}))).unwrap());
    }

    #[test]
    fn unique_name_error_has_no_content() {
        let table = [
            (secret(json!({"k": "%hidden%"})), "data.k is no Base64 text"),
            (secret(json!({"k": true})), "data.k is no string"),
            (secret(json!("hidden")), "data is no map"),
            (json!({"kind": "Pod"}), "only Secrets and ConfigMaps can have unique names, not \"Pod\""),
        ];

        for (mut object, text) in table {
            let before = object.clone();

            assert_eq!(make_unique(&mut object).unwrap_err().to_string(), text);
            assert_eq!(object, before);
        }
    }
}
