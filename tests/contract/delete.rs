use anyhow::Result;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    api::{Answer, Api, root, version},
    bodies::{deployment, failure, map_not_found, pod},
    expect::{absent, equal, holds, includes},
    row::{Row, row},
};

pub(crate) fn rows() -> Vec<Row> {
    [answers(), preconditions(), policies(), pods(), collections()].into_iter().flatten().collect()
}

fn gone(object: &Value, plural: &str) -> Value {
    let meta = &object["metadata"];
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": meta["name"], "kind": plural, "uid": meta["uid"]}})
}

fn answers() -> Vec<Row> {
    vec![
        row(
            "an object without finalizers is gone at once, and a Status says so",
            "architecture §5",
            |api| async move {
                let object = api.create_map("a", json!({})).await?;

                let answer = api.delete(format!("{}/a", api.maps())).await?.code(200)?;

                equal("answer", &answer.body, &gone(&object, "configmaps"))?;
                api.get(format!("{}/a", api.maps())).await?.is_status(&map_not_found("a"))
            },
        ),
        row("the Status of a kind in a group names the group", "facts §6", |api| async move {
            let deployments = api.at("apps/v1", "deployments");
            let object = api.create(&deployments, &deployment("d")).await?;

            let answer = api.delete(format!("{deployments}/d")).await?.code(200)?;

            let mut expected = gone(&object, "deployments");
            expected["details"]["group"] = json!("apps");
            equal("answer", &answer.body, &expected)
        }),
        row(
            "an object with finalizers stays, and is answered with its deletionTimestamp",
            "architecture §5",
            |api| async move {
                let object = api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;

                let answer = api.delete(format!("{}/a", api.maps())).await?.code(200)?;

                let meta = &answer.body["metadata"];
                holds(meta["deletionTimestamp"].is_string(), "deletionTimestamp", meta)?;
                equal("grace", &meta["deletionGracePeriodSeconds"], &json!(0))?;
                holds(answer.version() != version(&object), "a new version", meta)?;
                let stored = api.get(format!("{}/a", api.maps())).await?.code(200)?;
                equal("stored", &stored.body, &answer.body)
            },
        ),
        row("deletion raises the generation of kinds that have one", "facts §4", |api| async move {
            let deployments = api.at("apps/v1", "deployments");
            let mut body = deployment("d");
            body["metadata"]["finalizers"] = json!(["a.b/c"]);
            api.create(&deployments, &body).await?;

            let answer = api.delete(format!("{deployments}/d")).await?.code(200)?;

            equal("generation", &answer.body["metadata"]["generation"], &json!(2))
        }),
        row("a second DELETE of a deleting object changes nothing", "facts §6", |api| async move {
            api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
            let first = api.delete(format!("{}/a", api.maps())).await?.code(200)?;

            let second = api.delete(format!("{}/a", api.maps())).await?.code(200)?;

            equal("answer", &second.body, &first.body)
        }),
        row("a missing object is NotFound, with preconditions too", "facts §6", |api| async move {
            let path = format!("{}/a", api.maps());

            api.delete(&path).await?.is_status(&map_not_found("a"))?;
            api.delete_with(&path, &json!({"preconditions": {"uid": "1"}})).await?.is_status(&map_not_found("a"))
        }),
    ]
}

fn preconditions() -> Vec<Row> {
    vec![
        row("a DELETE with the right uid and version is done", "architecture §5", |api| async move {
            let object = api.create_map("a", json!({})).await?;
            let meta = &object["metadata"];
            let options = json!({"preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}});

            let answer = api.delete_with(format!("{}/a", api.maps()), &options).await?.code(200)?;

            equal("answer", &answer.body, &gone(&object, "configmaps"))
        }),
        row("a DELETE with another uid is a Conflict", "architecture §5", |api| async move {
            let object = api.create_map("a", json!({})).await?;
            let options = json!({"preconditions": {"uid": "1", "resourceVersion": "1"}});

            let answer = api.delete_with(format!("{}/a", api.maps()), &options).await?;

            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            let text = format!(
                "the UID in the precondition (1) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            );
            let message = format!("Operation cannot be fulfilled on ConfigMap \"a\": {text}");
            answer.is_status(&failure(409, "Conflict", &message, json!({"name": "a", "kind": "ConfigMap"})))
        }),
        row("a DELETE with another version is a Conflict", "architecture §5", |api| async move {
            let object = api.create_map("a", json!({})).await?;
            let options = json!({"preconditions": {"uid": object["metadata"]["uid"], "resourceVersion": "1"}});

            let answer = api.delete_with(format!("{}/a", api.maps()), &options).await?;

            let text = format!(
                "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({}). The object might have been modified",
                version(&object)
            );
            let message = format!("Operation cannot be fulfilled on ConfigMap \"a\": {text}");
            answer.is_status(&failure(409, "Conflict", &message, json!({"name": "a", "kind": "ConfigMap"})))
        }),
        row("preconditions hold for a deleting object too", "architecture §5", |api| async move {
            api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
            api.delete(format!("{}/a", api.maps())).await?.code(200)?;

            let answer = api.delete_with(format!("{}/a", api.maps()), &json!({"preconditions": {"uid": "1"}})).await?;

            answer.fails_with(409, "Conflict", "the UID in the precondition (1) does not match the UID in record")
        }),
    ]
}

async fn leaves(api: &Api, policy: &str, finalizer: &str) -> Result<()> {
    for (name, parameter) in [("body", false), ("parameter", true)] {
        api.create_map(name, json!({})).await?;
        let path = format!("{}/{name}", api.maps());
        let answer: Answer = if parameter {
            api.delete(format!("{path}?propagationPolicy={policy}")).await?
        } else {
            api.delete_with(&path, &json!({"propagationPolicy": policy})).await?
        };
        let meta = &answer.code(200)?.body["metadata"];
        equal("finalizers", &meta["finalizers"], &json!([finalizer]))?;
        holds(meta["deletionTimestamp"].is_string(), "deletionTimestamp", meta)?;
    }
    Ok(())
}

fn policies() -> Vec<Row> {
    vec![
        row(
            "Foreground leaves the finalizer foregroundDeletion, with or without dependents",
            "facts §6",
            |api| async move { leaves(&api, "Foreground", "foregroundDeletion").await },
        ),
        row(
            "Orphan leaves the finalizer orphan",
            "facts §6",
            |api| async move { leaves(&api, "Orphan", "orphan").await },
        ),
        row("Foreground may be asked for while an object is deleting", "facts §6", |api| async move {
            let path = format!("{}/a", api.maps());
            api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
            api.delete(&path).await?.code(200)?;

            let answer = api.delete_with(&path, &json!({"propagationPolicy": "Foreground"})).await?.code(200)?;

            let finalizers = &answer.body["metadata"]["finalizers"];
            equal("finalizers", finalizers, &json!(["a.b/c", "foregroundDeletion"]))
        }),
        row("Background is the default of ConfigMaps", "facts §6", |api| async move {
            let object = api.create_map("a", json!({})).await?;

            let answer =
                api.delete_with(format!("{}/a", api.maps()), &json!({"propagationPolicy": "Background"})).await?;

            equal("answer", &answer.code(200)?.body, &gone(&object, "configmaps"))
        }),
        row("Orphan is the default of Jobs, with a warning", "facts §6", |api| async move {
            let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
            let body = json!({"metadata": {"name": "j"}, "spec": {"suspend": true, "template": template}});
            api.create(api.at("batch/v1", "jobs"), &body).await?;

            let answer = api.delete(format!("{}/j", api.at("batch/v1", "jobs"))).await?.code(200)?;

            equal("finalizers", &answer.body["metadata"]["finalizers"], &json!(["orphan"]))?;
            holds(!answer.header("warning").is_empty(), "a warning", &answer.body)
        }),
        row("an unknown policy is Invalid", "facts §6", |api| async move {
            api.create_map("a", json!({})).await?;

            let answer = api.delete_with(format!("{}/a", api.maps()), &json!({"propagationPolicy": "Bogus"})).await?;

            let text = "propagationPolicy: Unsupported value: \"Bogus\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
            answer.fails_with(422, "Invalid", &format!("DeleteOptions.meta.k8s.io \"\" is invalid: {text}"))
        }),
        row("a dry run of a DELETE deletes nothing", "facts §6", |api| async move {
            api.create_map("a", json!({})).await?;

            api.delete(format!("{}/a?dryRun=All", api.maps())).await?.code(200)?;

            api.get(format!("{}/a", api.maps())).await?.code(200)?;
            Ok(())
        }),
    ]
}

fn pods() -> Vec<Row> {
    vec![
        row("a Pod on a node is deleted in the future, after its grace period", "facts §6", |api| async move {
            let created = api.create(api.at("v1", "pods"), &pod("p", "n1")).await?;

            let answer = api.delete(format!("{}/p", api.at("v1", "pods"))).await?.code(200)?;

            let meta = &answer.body["metadata"];
            equal("grace", &meta["deletionGracePeriodSeconds"], &json!(30))?;
            let time = |value: &Value| value.as_str().unwrap_or_default().parse::<Timestamp>();
            let ahead =
                time(&meta["deletionTimestamp"])?.duration_since(time(&created["metadata"]["creationTimestamp"])?);
            holds((30..40).contains(&ahead.as_secs()), "30 s after now", meta)
        }),
        row("a Pod on a node is gone at once with a grace period of zero", "facts §6", |api| async move {
            api.create(api.at("v1", "pods"), &pod("p", "n1")).await?;
            let path = format!("{}/p", api.at("v1", "pods"));

            api.delete_with(&path, &json!({"gracePeriodSeconds": 0})).await?.code(200)?;

            api.get(&path).await?.code(404)?;
            Ok(())
        }),
        row("a Pod without a node is gone at once", "facts §6", |api| async move {
            api.create(api.at("v1", "pods"), &pod("p", "")).await?;
            let path = format!("{}/p", api.at("v1", "pods"));

            api.delete(&path).await?.code(200)?;

            api.get(&path).await?.code(404)?;
            Ok(())
        }),
    ]
}

fn collections() -> Vec<Row> {
    vec![
        row(
            "deleting a collection answers with the list as it was, and obeys the selector",
            "facts §6",
            |api| async move {
                api.create_map("a", json!({"labels": {"l": "1"}})).await?;
                api.create_map("b", json!({"labels": {"l": "1"}, "finalizers": ["a.b/c"]})).await?;
                api.create_map("c", json!({})).await?;

                let answer = api.delete(format!("{}?labelSelector=l%3D1", api.maps())).await?.code(200)?;

                includes("list", &answer.body, &json!({"kind": "ConfigMapList"}))?;
                equal("names", &json!(answer.names()), &json!(["a", "b"]))?;
                absent(&answer.body, "/items/1/metadata/deletionTimestamp")?;
                let left = api.get(api.maps()).await?.code(200)?;
                equal("left", &json!(left.names()), &json!(["b", "c"]))?;
                holds(left.body["items"][0]["metadata"]["deletionTimestamp"].is_string(), "b is deleting", &left.body)
            },
        ),
        row(
            "a collection of all namespaces, and Namespaces, cannot be deleted at once",
            "facts §6",
            |api| async move {
                let message = "the server does not allow this method on the requested resource";
                for path in ["/api/v1/configmaps", "/api/v1/namespaces"] {
                    api.delete(path).await?.is_status(&failure(405, "MethodNotAllowed", message, json!({})))?;
                }
                Ok(())
            },
        ),
        row("cluster-scoped objects are deleted by name", "facts §6", |api| async move {
            let roles = format!("{}/clusterroles", root("rbac.authorization.k8s.io/v1"));
            let name = api.unique("role");
            api.create(&roles, &json!({"metadata": {"name": name}})).await?;

            api.delete(format!("{roles}/{name}")).await?.code(200)?;

            api.get(format!("{roles}/{name}")).await?.fails_with(
                404,
                "NotFound",
                "clusterroles.rbac.authorization.k8s.io",
            )
        }),
    ]
}
