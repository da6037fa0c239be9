use serde_json::json;

use crate::{
    api::MERGE,
    bodies::{config_map, failure},
    expect::{absent, equal, holds, includes},
    row::{Row, row},
};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        row("a Namespace gets its label, finalizer and phase", "facts §9", |api| async move {
            let name = api.unique("b");

            let object = api.create("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await?;

            equal("labels", &object["metadata"]["labels"], &json!({"kubernetes.io/metadata.name": name}))?;
            equal("spec", &object["spec"], &json!({"finalizers": ["kubernetes"]}))?;
            equal("status", &object["status"], &json!({"phase": "Active"}))
        }),
        row("deleting a Namespace answers with the object, Terminating", "facts §6", |api| async move {
            let answer = api.delete(format!("/api/v1/namespaces/{}", api.namespace)).await?.code(200)?;

            equal("phase", &answer.body["status"]["phase"], &json!("Terminating"))?;
            holds(answer.body["metadata"]["deletionTimestamp"].is_string(), "deletionTimestamp", &answer.body)?;
            absent(&answer.body, "/metadata/deletionGracePeriodSeconds")
        }),
        row("a terminating Namespace refuses new objects", "architecture §5", |api| async move {
            api.delete(format!("/api/v1/namespaces/{}", api.namespace)).await?.code(200)?;

            let answer = api.post(api.maps(), &config_map("late", json!({}))).await?;

            let namespace = &api.namespace;
            let text = format!("unable to create new content in namespace {namespace} because it is being terminated");
            let cause = json!({"reason": "NamespaceTerminating", "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace"});
            let details = json!({"name": "late", "kind": "configmaps", "causes": [cause]});
            answer.is_status(&failure(403, "Forbidden", &format!("configmaps \"late\" is forbidden: {text}"), details))
        }),
        row(
            "a terminating Namespace is checked before the name is looked up and the object validated",
            "architecture §5",
            |api| async move {
                api.create_map("a", json!({})).await?;
                api.delete(format!("/api/v1/namespaces/{}", api.namespace)).await?.code(200)?;

                let part = "because it is being terminated";
                api.post(api.maps(), &config_map("a", json!({}))).await?.fails_with(403, "Forbidden", part)?;
                api.post(api.maps(), &config_map("b", json!({"finalizers": ["bad"]}))).await?.fails_with(
                    403,
                    "Forbidden",
                    part,
                )
            },
        ),
        row("objects of a terminating Namespace may change and go", "facts §1", |api| async move {
            api.create_map("a", json!({})).await?;
            api.delete(format!("/api/v1/namespaces/{}", api.namespace)).await?.code(200)?;
            let path = format!("{}/a", api.maps());

            api.patch(&path, MERGE, &json!({"data": {"v": "2"}})).await?.code(200)?;
            api.delete(&path).await?.code(200)?;
            Ok(())
        }),
        row(
            "without its finalizer a deleted Namespace is gone, and its contents stay readable",
            "facts §6",
            |api| async move {
                api.create_map("a", json!({})).await?;
                let path = format!("/api/v1/namespaces/{}", api.namespace);
                let mut object = api.delete(&path).await?.code(200)?.body;
                object["spec"] = json!({"finalizers": []});

                api.put(format!("{path}/finalize"), &object).await?.code(200)?;

                api.get(&path).await?.fails(404, "NotFound", &format!("namespaces \"{}\" not found", api.namespace))?;
                api.get(format!("{}/a", api.maps())).await?.code(200)?;
                Ok(())
            },
        ),
        row("the namespaces default and kube-system cannot be deleted", "facts §6", |api| async move {
            for name in ["default", "kube-system"] {
                api.becomes(&format!("/api/v1/namespaces/{name}"), 200).await?;
                let answer = api.delete(format!("/api/v1/namespaces/{name}")).await?;

                let message = format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
                answer.is_status(&failure(403, "Forbidden", &message, json!({"name": name, "kind": "namespaces"})))?;
            }
            Ok(())
        }),
        row("a Namespace has no generation, and its spec keeps the finalizer on a PUT", "facts §4", |api| async move {
            let path = format!("/api/v1/namespaces/{}", api.namespace);
            let mut object = api.get(&path).await?.code(200)?.body;
            absent(&object, "/metadata/generation")?;
            object["spec"] = json!({"finalizers": []});

            let answer = api.put(&path, &object).await?.code(200)?;

            includes("spec", &answer.body["spec"], &json!({"finalizers": ["kubernetes"]}))
        }),
    ]
}
