//! The hashes in the labels of installations (spec 85 A.9). Pure. They miss changes of lists and numbers: no decision
//! may depend on them.

use cluster::object;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// Characters of a hash in a label.
const LENGTH: usize = 16;

/// What ControllerDeployments of an older version had in fields; both count for the hash.
const MIGRATED: [(&str, &str); 2] = [
    ("type", "migration.controllerdeployment.gardener.cloud/type"),
    ("providerConfig", "migration.controllerdeployment.gardener.cloud/providerConfig"),
];

/// Returns the hash of the `spec` of an object; without one, that of an empty object.
pub fn spec_hash(object: &Value) -> Box<str> {
    label_value(object.get("spec"))
}

/// Returns the hash of a ControllerDeployment.
pub fn deployment_hash(deployment: &Value) -> Box<str> {
    let annotations = MIGRATED.map(|(field, key)| (field, json!(object::annotation(deployment, key).unwrap_or(""))));
    let helm = deployment.get("helm").filter(|helm| !helm.is_null()).map(|helm| ("helm", helm.clone()));
    let fields = annotations.into_iter().chain(helm).map(|(field, value)| (field.to_owned(), value));
    label_value(Some(&Value::Object(fields.collect())))
}

fn label_value(value: Option<&Value>) -> Box<str> {
    let mut hash = value.and_then(Value::as_object).map_or_else(|| digest(""), digest_of);
    hash.truncate(LENGTH);
    hash.into()
}

/// Maps are ordered by key.
fn digest_of(fields: &Map<String, Value>) -> String {
    let part = |value: &Value| match value {
        Value::String(text) => digest(text),
        Value::Bool(flag) => digest(&flag.to_string()),
        Value::Object(fields) => digest_of(fields),
        Value::Null | Value::Number(_) | Value::Array(_) => String::new(),
    };
    digest(&fields.values().map(part).collect::<String>())
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 85 A.9, scenario 35
    #[test]
    fn hashes_are_those_of_the_go_implementation() {
        let table = [
            (json!({}), "e3b0c44298fc1c14"),
            (json!({"deployment": {"policy": "Always"}}), "9c7dbe8f62b60dfb"),
            (
                json!({"resources": [1, "x"], "deployment": {"policy": "OnDemand", "deploymentRefs": [{}]}}),
                "61ca93a1782c5fa3",
            ),
            (
                json!({"backup": {"provider": "type8"}, "dns": {"internal": {"type": "type9", "domain": "",
                    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "internal-dns-secret",
                    "namespace": "garden"}}}, "networks": {"pods": "", "services": ""},
                    "provider": {"type": "type11", "region": ""}}),
                "9cebb557b37cc60b",
            ),
            (
                json!({"seedName": "seed", "kubernetes": {}, "provider": {"type": "type6", "workers": [{}]},
                    "networking": {"type": "type3"}, "region": ""}),
                "a1fbf32b9ada7b98",
            ),
        ];
        for (spec, hash) in table {
            assert_eq!(&*spec_hash(&json!({ "spec": spec })), hash, "{spec}");
        }
        assert_eq!(&*spec_hash(&json!({})), "e3b0c44298fc1c14");
    }

    /// spec 85 A.9, scenario 35
    #[test]
    fn hash_of_a_deployment_has_its_migrated_fields() {
        assert_eq!(&*deployment_hash(&json!({ "helm": { "rawChart": "Zm9v" } })), "deb30f197b882cd1");
        assert_eq!(&*deployment_hash(&json!({ "resources": [{}] })), "3b7546ed79e3e5a7");
        let annotated = json!({ "metadata": { "annotations": {
            "migration.controllerdeployment.gardener.cloud/type": "custom" } } });
        assert_ne!(deployment_hash(&annotated), deployment_hash(&json!({})));
    }

    #[test]
    fn hash_of_odd_values_is_stable() {
        for spec in [json!(null), json!([1]), json!("x"), json!(7)] {
            assert_eq!(&*spec_hash(&json!({ "spec": spec })), "e3b0c44298fc1c14");
        }
    }
}
