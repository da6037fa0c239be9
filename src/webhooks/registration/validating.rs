//! The registration of the validating webhooks (spec 60 §4). It exists only for clusters that run control planes.

use serde_json::{Value, json};

use super::Deployment;
use crate::webhooks::validating::{deletion, extensions};

const WRITES: [&str; 2] = ["CREATE", "UPDATE"];

pub(super) fn configuration(deployment: &Deployment, is_served: impl Fn(&str) -> bool) -> Value {
    let definitions = rule("apiextensions.k8s.io", &["v1beta1", "v1"], &["customresourcedefinitions"], &["DELETE"]);
    let protected = json!({ "matchLabels": { "gardener.cloud/deletion-protected": "true" } });
    let mut webhooks = Vec::new();
    if is_served(deletion::PATH) {
        webhooks = vec![
            deployment.validating("crd-deletion-protection", deletion::PATH, &[definitions], &protected),
            deployment.validating("cr-deletion-protection", deletion::PATH, &custom_resources(), &json!({})),
        ];
    }
    let mut kinds = extensions::all().to_vec();
    kinds.dedup_by_key(|extension| extension.kind.kind); // keeps the first path of each kind
    webhooks.extend(kinds.iter().filter(|extension| is_served(extension.path)).map(|extension| {
        let kind = extension.kind;
        let rules = [rule(kind.group, &["v1alpha1"], &[kind.plural], &WRITES)];
        let name = format!("validation.extensions.{}", kind.plural);
        deployment.validating(&name, extension.path, &rules, &json!({}))
    }));
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": deployment.object_name(), "labels": deployment.labels() },
        "webhooks": webhooks,
    })
}

/// Bastions are sent too, and always allowed (spec 60 §2.2).
fn custom_resources() -> [Value; 2] {
    let of_extensions =
        extensions::all().map(|extension| extension.kind).into_iter().filter(|kind| kind.plural != "etcds");
    let plurals: Vec<&str> = of_extensions.map(|kind| kind.plural).collect();
    [
        rule("druid.gardener.cloud", &["v1alpha1"], &["etcds"], &["DELETE"]),
        rule("extensions.gardener.cloud", &["v1alpha1"], &plurals, &["DELETE"]),
    ]
}

fn rule(group: &str, versions: &[&str], resources: &[&str], operations: &[&str]) -> Value {
    json!({ "apiGroups": [group], "apiVersions": versions, "resources": resources, "operations": operations })
}

impl Deployment {
    fn validating(&self, name: &str, path: &str, rules: &[Value], objects: &Value) -> Value {
        json!({
            "name": format!("{name}.resources.gardener.cloud"),
            "clientConfig": self.client_config(path),
            "rules": rules,
            "namespaceSelector": {},
            "objectSelector": objects,
            // In this order: API servers take the first version that they know (spec 50 trap T1).
            "admissionReviewVersions": ["v1beta1", "v1"],
            "failurePolicy": "Fail",
            "matchPolicy": "Exact",
            "sideEffects": "None",
            "timeoutSeconds": 10,
        })
    }
}
