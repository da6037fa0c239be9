//! The API server refuses forbidden deletions and invalid objects with the program's own error texts.

use anyhow::{Result, ensure};
use gardener_resource_manager::webhooks::registration;
use http::Method;
use serde_json::{Value, json};

use super::{LIMIT, NAMESPACE, Rig, dry};
use crate::support::eventually;

const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONFIRMATION: &str = "confirmation.gardener.cloud/deletion";

fn infrastructures() -> String {
    format!("/apis/extensions.gardener.cloud/v1alpha1/namespaces/{NAMESPACE}/infrastructures")
}

fn infrastructure(name: &str, region: &str) -> Value {
    json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Infrastructure",
        "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": { "type": "local", "region": region, "secretRef": { "name": "cloudprovider", "namespace": NAMESPACE } },
    })
}

fn definition() -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "infrastructures.extensions.gardener.cloud",
            "labels": { "gardener.cloud/deletion-protected": "true" },
        },
        "spec": {
            "group": "extensions.gardener.cloud", "scope": "Namespaced",
            "names": { "kind": "Infrastructure", "plural": "infrastructures", "singular": "infrastructure" },
            "versions": [{ "name": "v1alpha1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    })
}

/// spec 60 scenarios 1, 2, 4, 8, 9; spec 60 §4, spec 62 §2.2
#[tokio::test]
async fn extension_objects_are_stored_if_valid_and_deleted_if_confirmed() -> Result<()> {
    let rig =
        Rig::with(json!({ "crdDeletionProtection": { "enabled": true }, "extensionValidation": { "enabled": true } }))
            .await?;
    let collection = infrastructures();
    rig.admin.create(DEFINITIONS, &definition()).await?;
    eventually("the kind is served", LIMIT, async || rig.admin.list(&collection).await.map(drop)).await?;
    let deployment = rig.deployment(&[], &rig.grm.authority().pem()?);
    let mut configuration = registration::validating(&deployment, |_| true).unwrap_or_default();
    rig.address(&mut configuration);
    rig.admin.create(VALIDATING, &configuration).await?;

    let nameless = infrastructure("a", "");
    eventually("invalid objects are refused", LIMIT, async || {
        let (code, answer) = rig.admin.send(Method::POST, &dry(&collection), Some(&nameless)).await?;
        let message = answer["message"].as_str().unwrap_or_default();
        let expected = "is invalid: spec.region: Required value: field is required";
        ensure!(code == 422 && message.ends_with(expected), "{code} {answer}");
        ensure!(answer["details"]["causes"][0]["field"] == "spec.region", "{answer}");
        Ok(())
    })
    .await?;
    for name in ["a", "b"] {
        rig.admin.create(&collection, &infrastructure(name, "r")).await?;
    }
    let moved = json!({ "spec": { "region": "elsewhere" } });
    let (code, answer) = rig.admin.send(Method::PATCH, &format!("{collection}/a"), Some(&moved)).await?;
    let message = answer["message"].as_str().unwrap_or_default();
    ensure!(
        code == 422 && message.contains(r#"spec.region: Invalid value: "elsewhere": field is immutable"#),
        "{answer}"
    );

    let refused = async |path: &str, object: &str| {
        let (code, answer) = rig.admin.send(Method::DELETE, path, None).await?;
        let message = answer["message"].as_str().unwrap_or_default();
        let sentence = r#"must have a "confirmation.gardener.cloud/deletion" annotation to delete"#;
        ensure!(code == 403 && message.contains(sentence) && message.contains(object), "{code} {answer}");
        anyhow::Ok(())
    };
    let confirmed = json!({ "metadata": { "annotations": { CONFIRMATION: "true" } } });
    refused(&format!("{collection}/a"), "admission/a").await?;
    rig.admin.merge(&format!("{collection}/a"), &confirmed).await?;
    refused(&collection, "admission/b").await?;
    ensure!(rig.admin.list(&collection).await?.len() == 2, "no object of the collection is deleted");
    rig.admin.merge(&format!("{collection}/b"), &confirmed).await?;
    let (code, answer) = rig.admin.send(Method::DELETE, &collection, None).await?;
    ensure!(code == 200, "{code} {answer}");
    ensure!(rig.admin.list(&collection).await?.is_empty(), "all objects of the collection are deleted");

    let path = format!("{DEFINITIONS}/infrastructures.extensions.gardener.cloud");
    refused(&path, "infrastructures.extensions.gardener.cloud").await?;
    rig.admin.merge(&path, &confirmed).await?;
    let (code, answer) = rig.admin.send(Method::DELETE, &path, None).await?;
    ensure!(code == 200, "{code} {answer}");
    Ok(())
}
