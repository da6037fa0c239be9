//! What kube-controller-manager does: garbage collection and the deletion of namespaces.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    api::{Api, MERGE},
    expect::{absent, equal, holds},
    row::{Row, row},
};

async fn family(api: &Api, block: bool, finalizers: Value) -> Result<()> {
    let owner = api.create_map("owner", json!({})).await?;
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"], "blockOwnerDeletion": block});
    api.create_map("dependent", json!({"ownerReferences": [reference], "finalizers": finalizers})).await?;
    Ok(())
}

pub(crate) fn rows() -> Vec<Row> {
    let rows = vec![
        row("after a Background deletion the dependents are deleted", "facts §6", |api| async move {
            family(&api, false, json!([])).await?;

            api.delete_with(format!("{}/owner", api.maps()), &json!({"propagationPolicy": "Background"}))
                .await?
                .code(200)?;

            api.get(format!("{}/owner", api.maps())).await?.code(404)?;
            api.becomes(&format!("{}/dependent", api.maps()), 404).await?;
            Ok(())
        }),
        row("a Foreground deletion ends after the dependents", "facts §6", |api| async move {
            family(&api, true, json!(["a.b/c"])).await?;
            let (owner, dependent) = (format!("{}/owner", api.maps()), format!("{}/dependent", api.maps()));

            api.delete_with(&owner, &json!({"propagationPolicy": "Foreground"})).await?.code(200)?;

            api.eventually("the dependent is deleting", async || {
                let object = api.get(&dependent).await?.code(200)?.body;
                ensure!(object["metadata"]["deletionTimestamp"].is_string(), "not deleting: {object}");
                Ok(())
            })
            .await?;
            let waiting = api.get(&owner).await?.code(200)?.body;
            equal("finalizers", &waiting["metadata"]["finalizers"], &json!(["foregroundDeletion"]))?;
            api.patch(&dependent, MERGE, &json!({"metadata": {"finalizers": null}})).await?.code(200)?;
            api.becomes(&owner, 404).await?;
            api.get(&dependent).await?.code(404)?;
            Ok(())
        }),
        row("an Orphan deletion removes the owner reference", "facts §6", |api| async move {
            family(&api, false, json!([])).await?;

            api.delete_with(format!("{}/owner", api.maps()), &json!({"propagationPolicy": "Orphan"}))
                .await?
                .code(200)?;

            api.becomes(&format!("{}/owner", api.maps()), 404).await?;
            let dependent = api.get(format!("{}/dependent", api.maps())).await?.code(200)?.body;
            absent(&dependent, "/metadata/ownerReferences")
        }),
        row("an object whose owner is absent is deleted", "facts §6", |api| async move {
            let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "00000000-0000-0000-0000-000000000001"});
            api.create_map("dependent", json!({"ownerReferences": [owner]})).await?;

            api.becomes(&format!("{}/dependent", api.maps()), 404).await?;
            Ok(())
        }),
        row("the contents of a deleted Namespace are deleted", "facts §6", |api| async move {
            api.create_map("a", json!({})).await?;
            let path = format!("/api/v1/namespaces/{}", api.namespace);

            api.delete(&path).await?.code(200)?;

            api.becomes(&path, 404).await?;
            api.get(format!("{}/a", api.maps())).await?.code(404)?;
            Ok(())
        }),
        row("a finalizer holds a deleted Namespace, and its conditions say so", "facts §6", |api| async move {
            api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
            let path = format!("/api/v1/namespaces/{}", api.namespace);

            api.delete(&path).await?.code(200)?;

            let object = api
                .eventually("the condition NamespaceFinalizersRemaining", async || {
                    let object = api.get(&path).await?.code(200)?.body;
                    ensure!(object.to_string().contains("NamespaceFinalizersRemaining"), "not yet: {object}");
                    Ok(object)
                })
                .await?;
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let remaining = conditions.iter().find(|condition| condition["type"] == "NamespaceContentRemaining");
            let message = remaining.map(|condition| condition["message"].to_string()).unwrap_or_default();
            holds(message.contains("configmaps. has 1 resource instances"), "what remains", &json!(conditions))?;
            api.patch(format!("{}/a", api.maps()), MERGE, &json!({"metadata": {"finalizers": null}}))
                .await?
                .code(200)?;
            api.becomes(&path, 404).await?;
            Ok(())
        }),
        row("the deletion of an unused PersistentVolumeClaim ends", "facts §6", |api| async move {
            let claims = api.at("v1", "persistentvolumeclaims");
            let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
            api.create(&claims, &json!({"metadata": {"name": "p"}, "spec": spec})).await?;

            api.delete(format!("{claims}/p")).await?.code(200)?;

            api.becomes(&format!("{claims}/p"), 404).await?;
            Ok(())
        }),
        row("a new Namespace gets a ServiceAccount and the CA", "facts §9", |api| async move {
            api.becomes(&format!("{}/default", api.at("v1", "serviceaccounts")), 200).await?;
            api.becomes(&format!("{}/kube-root-ca.crt", api.maps()), 200).await?;
            Ok(())
        }),
    ];
    rows.into_iter().map(Row::with_controllers).collect()
}
