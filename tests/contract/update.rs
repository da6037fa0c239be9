use http::Method;
use serde_json::json;

use crate::{
    api::{MERGE, version},
    bodies::{config_map, deployment, failure, map_not_found},
    expect::{absent, equal, holds, includes},
    row::{Row, row},
};

pub(crate) fn rows() -> Vec<Row> {
    [versions(), refusals(), nothing(), fields()].into_iter().flatten().collect()
}

fn versions() -> Vec<Row> {
    vec![
        row(
            "a PUT with the current version replaces the object and takes a new version",
            "facts §4",
            |api| async move {
                let mut object = api.create_map("a", json!({})).await?;
                object["data"] = json!({"w": "2"});

                let answer = api.put(format!("{}/a", api.maps()), &object).await?.code(200)?;

                equal("data", &answer.body["data"], &json!({"w": "2"}))?;
                equal("uid", &answer.body["metadata"]["uid"], &object["metadata"]["uid"])?;
                holds(answer.version() != version(&object), "a new version", &answer.body["metadata"])
            },
        ),
        row("a PUT with a stale version is a Conflict", "facts §4", |api| async move {
            let mut object = api.create_map("a", json!({})).await?;
            api.patch(format!("{}/a", api.maps()), MERGE, &json!({"data": {"v": "2"}})).await?.code(200)?;
            object["data"] = json!({"v": "3"});

            let answer = api.put(format!("{}/a", api.maps()), &object).await?;

            let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again";
            answer.is_status(&failure(409, "Conflict", message, json!({"name": "a", "kind": "configmaps"})))
        }),
        row("a stale version is a Conflict even for an invalid object", "facts §4", |api| async move {
            let mut object = api.create_map("a", json!({})).await?;
            api.patch(format!("{}/a", api.maps()), MERGE, &json!({"data": {"v": "2"}})).await?.code(200)?;
            object["metadata"]["finalizers"] = json!(["bad"]);

            let answer = api.put(format!("{}/a", api.maps()), &object).await?;

            answer.fails_with(409, "Conflict", "the object has been modified")
        }),
        row("a PUT with an absent, empty or zero version is unconditional", "facts §4", |api| async move {
            let path = format!("{}/a", api.maps());
            api.create_map("a", json!({})).await?;
            for (value, meta) in
                [("2", json!({})), ("3", json!({"resourceVersion": ""})), ("4", json!({"resourceVersion": "0"}))]
            {
                let mut body = config_map("a", meta);
                body["data"] = json!({"v": value});

                let answer = api.put(&path, &body).await?.code(200)?;

                equal("data", &answer.body["data"], &json!({"v": value}))?;
            }
            Ok(())
        }),
        row("a PUT with a version that is no number is a server error", "facts §4", |api| async move {
            api.create_map("a", json!({})).await?;

            let answer =
                api.put(format!("{}/a", api.maps()), &config_map("a", json!({"resourceVersion": "abc"}))).await?;

            answer.fails_with(500, "", "")
        }),
    ]
}

fn refusals() -> Vec<Row> {
    vec![
        row("a PUT with a foreign uid is a Conflict, also with a stale version", "facts §4", |api| async move {
            let object = api.create_map("a", json!({})).await?;
            let foreign = "00000000-0000-0000-0000-000000000000";
            for stale in ["", "1"] {
                let body = config_map("a", json!({"uid": foreign, "resourceVersion": stale}));

                let answer = api.put(format!("{}/a", api.maps()), &body).await?;

                let key = format!("/registry/configmaps/{}/a", api.namespace);
                let stored = object["metadata"]["uid"].as_str().unwrap_or_default();
                let error = format!(
                    "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {foreign}, UID in object meta: {stored}"
                );
                let message = format!("Operation cannot be fulfilled on configmaps \"a\": {error}");
                answer.is_status(&failure(409, "Conflict", &message, json!({"name": "a", "kind": "configmaps"})))?;
            }
            Ok(())
        }),
        row("a PUT of a missing object is NotFound", "facts §4", |api| async move {
            let answer = api.put(format!("{}/a", api.maps()), &config_map("a", json!({}))).await?;

            answer.is_status(&map_not_found("a"))
        }),
        row("a PUT under another name is BadRequest", "facts §4", |api| async move {
            api.create_map("a", json!({})).await?;

            let answer = api.put(format!("{}/a", api.maps()), &config_map("b", json!({}))).await?;

            let message = "the name of the object (b) does not match the name on the URL (a)";
            answer.fails(400, "BadRequest", message)
        }),
        row("a PUT in another namespace is BadRequest", "facts §4", |api| async move {
            api.create_map("a", json!({})).await?;

            let answer = api.put(format!("{}/a", api.maps()), &config_map("a", json!({"namespace": "other"}))).await?;

            let message = "the namespace of the provided object does not match the namespace sent on the request";
            answer.fails(400, "BadRequest", message)
        }),
        row("a PUT that sets deletionTimestamp is Invalid", "facts §4", |api| async move {
            let mut object = api.create_map("a", json!({})).await?;
            object["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");

            let answer = api.put(format!("{}/a", api.maps()), &object).await?;

            answer.fails_with(422, "Invalid", "metadata.deletionTimestamp: Invalid value: ")
        }),
        row("a PUT of an object with a new finalizer while it is deleting is Invalid", "facts §4", |api| async move {
            api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
            let mut object = api.delete(format!("{}/a", api.maps())).await?.code(200)?.body;
            object["metadata"]["finalizers"] = json!(["a.b/c", "a.b/e"]);

            let answer = api.put(format!("{}/a", api.maps()), &object).await?;

            let text = "no new finalizers can be added if the object is being deleted, found new finalizers []string{\"a.b/e\"}";
            answer.fails_with(422, "Invalid", &format!("metadata.finalizers: Forbidden: {text}"))
        }),
        row("a deleting object can be changed otherwise", "facts §4", |api| async move {
            api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
            let mut object = api.delete(format!("{}/a", api.maps())).await?.code(200)?.body;
            object["data"] = json!({"v": "2"});

            let answer = api.put(format!("{}/a", api.maps()), &object).await?.code(200)?;

            equal("data", &answer.body["data"], &json!({"v": "2"}))
        }),
    ]
}

fn nothing() -> Vec<Row> {
    vec![
        row("a PUT that changes nothing keeps the version", "facts §4", |api| async move {
            let object = api.create_map("a", json!({})).await?;

            let answer = api.put(format!("{}/a", api.maps()), &object).await?.code(200)?;

            equal("object", &answer.body, &object)
        }),
        row("a PUT that changes nothing keeps the version, for any sender", "facts §4", |api| async move {
            let object = api.create_map("a", json!({})).await?;

            let call = api.call(Method::PUT, format!("{}/a", api.maps())).header("user-agent", "another/1");
            let answer = call.json(&object).send().await?.code(200)?;

            equal("object", &answer.body, &object)
        }),
        row("a PUT without managedFields that changes nothing keeps the version", "facts §4", |api| async move {
            let object = api.create_map("a", json!({})).await?;
            let mut body = object.clone();
            if let Some(meta) = body["metadata"].as_object_mut() {
                meta.remove("managedFields");
            }

            let answer = api.put(format!("{}/a", api.maps()), &body).await?.code(200)?;

            equal("object", &answer.body, &object)
        }),
        row("a PUT of the manifest, which only lacks defaults, keeps the version", "facts §4", |api| async move {
            let deployments = api.at("apps/v1", "deployments");
            let object = api.create(&deployments, &deployment("d")).await?;

            let answer = api.put(format!("{deployments}/d"), &deployment("d")).await?.code(200)?;

            equal("object", &answer.body, &object)
        }),
        row(
            "the first write of a PersistentVolumeClaim that changes nothing takes a new version, the second not",
            "facts §4",
            |api| async move {
                let claims = api.at("v1", "persistentvolumeclaims");
                let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
                let created = api.create(&claims, &json!({"metadata": {"name": "p"}, "spec": spec})).await?;

                let first = api.patch(format!("{claims}/p"), MERGE, &json!({})).await?.code(200)?;
                let second = api.patch(format!("{claims}/p"), MERGE, &json!({})).await?.code(200)?;

                holds(version(&created) != first.version(), "a new version", &first.body["metadata"])?;
                equal("no further one", &json!(second.version()), &json!(first.version()))
            },
        ),
        row("a dry run of a PUT shows the result and stores nothing", "facts §1", |api| async move {
            let object = api.create_map("a", json!({})).await?;
            let mut body = object.clone();
            body["data"] = json!({"v": "dry"});

            let answer = api.put(format!("{}/a?dryRun=All", api.maps()), &body).await?.code(200)?;

            equal("data", &answer.body["data"], &json!({"v": "dry"}))?;
            let stored = api.get(format!("{}/a", api.maps())).await?.code(200)?;
            equal("stored", &stored.body, &object)
        }),
    ]
}

fn fields() -> Vec<Row> {
    vec![
        row("a PUT without labels, annotations, finalizers and owners removes them", "facts §4", |api| async move {
            let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "00000000-0000-0000-0000-000000000001"});
            let meta = json!({"labels": {"l": "1"}, "annotations": {"a": "1"}, "finalizers": ["a.b/c"], "ownerReferences": [owner]});
            api.create_map("a", meta).await?;

            let answer = api.put(format!("{}/a", api.maps()), &config_map("a", json!({}))).await?.code(200)?;

            for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
                absent(&answer.body, &format!("/metadata/{field}"))?;
            }
            Ok(())
        }),
        row(
            "a PUT without finalizers removes the finalizer of a PersistentVolumeClaim",
            "facts §4",
            |api| async move {
                let claims = api.at("v1", "persistentvolumeclaims");
                let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
                let body = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "p"}, "spec": spec});
                api.create(&claims, &body).await?;

                let answer = api.put(format!("{claims}/p"), &body).await?.code(200)?;

                absent(&answer.body, "/metadata/finalizers")
            },
        ),
        row("creationTimestamp and generation of a PUT are ignored", "facts §4", |api| async move {
            let deployments = api.at("apps/v1", "deployments");
            let object = api.create(&deployments, &deployment("d")).await?;
            let mut body = object.clone();
            body["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
            body["metadata"]["generation"] = json!(9);
            body["metadata"]["deletionTimestamp"] = json!(null);

            let answer = api.put(format!("{deployments}/d"), &body).await?.code(200)?;

            let expected = json!({"generation": 1, "creationTimestamp": object["metadata"]["creationTimestamp"]});
            includes("metadata", &answer.body["metadata"], &expected)
        }),
        row("the name label of a Namespace comes back", "facts §4", |api| async move {
            let path = format!("/api/v1/namespaces/{}", api.namespace);
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": api.namespace}});

            let answer = api.put(path, &body).await?.code(200)?;

            let expected = json!({"kubernetes.io/metadata.name": api.namespace});
            equal("labels", &answer.body["metadata"]["labels"], &expected)
        }),
        row("a Job without its generated selector and labels is Invalid", "facts §4", |api| async move {
            let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
            let body = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"suspend": true, "template": template}});
            api.create(api.at("batch/v1", "jobs"), &body).await?;

            let answer = api.put(format!("{}/j", api.at("batch/v1", "jobs")), &body).await?;

            answer.fails_with(422, "Invalid", "spec.selector")
        }),
        row("an object changes only in the namespace of the path", "facts §4", |api| async move {
            let other = api.unique("b");
            api.create("/api/v1/namespaces", &json!({"metadata": {"name": other}})).await?;
            let twin =
                api.create(format!("/api/v1/namespaces/{other}/configmaps"), &config_map("a", json!({}))).await?;
            api.create_map("a", json!({})).await?;

            api.patch(format!("{}/a", api.maps()), MERGE, &json!({"data": {"v": "2"}})).await?.code(200)?;

            let stored = api.get(format!("/api/v1/namespaces/{other}/configmaps/a")).await?.code(200)?;
            equal("the twin", &stored.body, &twin)
        }),
    ]
}
