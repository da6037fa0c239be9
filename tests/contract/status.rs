use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    api::{Api, MERGE, version},
    bodies::{config_map, definition, deployment, failure},
    expect::{absent, equal, holds, includes},
    row::{Row, row},
};

pub(crate) fn rows() -> Vec<Row> {
    [built_in(), custom(), scale()].into_iter().flatten().collect()
}

async fn thing(api: &Api) -> Result<String> {
    let group = format!("{}.example.org", api.namespace);
    api.define(&definition(&group, "things", "Thing")).await?;
    let things = api.at(&format!("{group}/v1"), "things");
    let body =
        json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "t"}, "spec": {"a": 1}});
    api.create(&things, &body).await?;
    Ok(format!("{things}/t"))
}

async fn write(api: &Api, path: &str, spec: Value, status: Value) -> Result<Value> {
    let meta = json!({"labels": {"via": "1"}, "annotations": {"via": "1"}});
    Ok(api.patch(path, MERGE, &json!({"metadata": meta, "spec": spec, "status": status})).await?.code(200)?.body)
}

fn built_in() -> Vec<Row> {
    vec![
        row("a write to the object drops its status", "facts §4", |api| async move {
            let path = format!("{}/d", api.at("apps/v1", "deployments"));
            api.create(api.at("apps/v1", "deployments"), &deployment("d")).await?;

            let object = write(&api, &path, json!({"replicas": 2}), json!({"replicas": 3})).await?;

            equal("status", &object["status"], &json!({}))?;
            equal("spec", &object["spec"]["replicas"], &json!(2))
        }),
        row(
            "a write to /status of a Deployment keeps spec and labels, writes annotations, keeps the generation",
            "facts §4",
            |api| async move {
                let path = format!("{}/d/status", api.at("apps/v1", "deployments"));
                let created = api.create(api.at("apps/v1", "deployments"), &deployment("d")).await?;

                let object =
                    write(&api, &path, json!({"replicas": 2}), json!({"observedGeneration": 1, "replicas": 1})).await?;

                equal("status", &object["status"], &json!({"observedGeneration": 1, "replicas": 1}))?;
                equal("spec", &object["spec"], &created["spec"])?;
                absent(&object, "/metadata/labels")?;
                equal("annotations", &object["metadata"]["annotations"], &json!({"via": "1"}))?;
                equal("generation", &object["metadata"]["generation"], &json!(1))?;
                holds(version(&object) != version(&created), "a new version", &object["metadata"])
            },
        ),
        row(
            "a write to /status of a Service keeps spec and writes labels and annotations",
            "facts §4",
            |api| async move {
                let path = format!("{}/s/status", api.at("v1", "services"));
                let body =
                    json!({"metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
                let created = api.create(api.at("v1", "services"), &body).await?;
                let status = json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}});

                let object = write(&api, &path, json!({"sessionAffinity": "ClientIP"}), status).await?;

                equal("spec", &object["spec"], &created["spec"])?;
                let expected = json!({"labels": {"via": "1"}, "annotations": {"via": "1"}});
                includes("metadata", &object["metadata"], &expected)
            },
        ),
        row("a GET of /status is the whole object", "facts §4", |api| async move {
            let created = api.create(api.at("apps/v1", "deployments"), &deployment("d")).await?;

            let answer = api.get(format!("{}/d/status", api.at("apps/v1", "deployments"))).await?.code(200)?;

            equal("object", &answer.body, &created)
        }),
        row("a kind without /status has no such resource", "facts §4", |api| async move {
            api.create_map("a", json!({})).await?;

            let answer = api.put(format!("{}/a/status", api.maps()), &config_map("a", json!({}))).await?;

            let message = "the server could not find the requested resource";
            answer.is_status(&failure(404, "NotFound", message, json!({})))
        }),
        row("a PUT to /status with a stale version is a Conflict", "facts §4", |api| async move {
            let path = format!("{}/d", api.at("apps/v1", "deployments"));
            let mut object = api.create(api.at("apps/v1", "deployments"), &deployment("d")).await?;
            api.patch(&path, MERGE, &json!({"spec": {"replicas": 2}})).await?.code(200)?;
            object["status"] = json!({"replicas": 1});

            let answer = api.put(format!("{path}/status"), &object).await?;

            answer.fails_with(
                409,
                "Conflict",
                "Operation cannot be fulfilled on deployments.apps \"d\": the object has been modified",
            )
        }),
        row("a write to /status that changes nothing keeps the version", "facts §4", |api| async move {
            let path = format!("{}/d/status", api.at("apps/v1", "deployments"));
            api.create(api.at("apps/v1", "deployments"), &deployment("d")).await?;
            let first = api.patch(&path, MERGE, &json!({"status": {"replicas": 1}})).await?.code(200)?;

            let second = api.patch(&path, MERGE, &json!({"status": {"replicas": 1}})).await?.code(200)?;

            equal("object", &second.body, &first.body)
        }),
        row("the phase and conditions of a Node and a Pod are written through /status", "facts §4", |api| async move {
            let node = api.unique("node");
            api.create("/api/v1/nodes", &json!({"metadata": {"name": node}})).await?;
            let conditions =
                json!([{"type": "Ready", "status": "True", "lastHeartbeatTime": null, "lastTransitionTime": null}]);

            let patch = json!({"status": {"conditions": conditions}});
            let answer = api.patch(format!("/api/v1/nodes/{node}/status"), MERGE, &patch).await?.code(200)?;

            equal("conditions", &answer.body["status"]["conditions"], &conditions)
        }),
    ]
}

fn custom() -> Vec<Row> {
    vec![
        row("a write to a custom object drops its status and raises the generation", "facts §4", |api| async move {
            let path = thing(&api).await?;

            let object = write(&api, &path, json!({"a": 2}), json!({"s": 1})).await?;

            absent(&object, "/status")?;
            equal("generation", &object["metadata"]["generation"], &json!(2))
        }),
        row(
            "a write to /status of a custom object writes status and no metadata at all",
            "facts §4",
            |api| async move {
                let path = thing(&api).await?;

                let object = write(&api, &format!("{path}/status"), json!({"a": 2}), json!({"s": 1})).await?;

                equal("spec and status", &json!([object["spec"], object["status"]]), &json!([{"a": 1}, {"s": 1}]))?;
                absent(&object, "/metadata/labels")?;
                absent(&object, "/metadata/annotations")?;
                equal("generation", &object["metadata"]["generation"], &json!(1))
            },
        ),
        row("a PUT to /status of a custom object without a version is Invalid", "facts §4", |api| async move {
            let path = thing(&api).await?;
            let mut object = api.get(&path).await?.code(200)?.body;
            object["metadata"]["resourceVersion"] = json!(null);
            object["status"] = json!({"s": 1});

            let answer = api.put(format!("{path}/status"), &object).await?;

            answer.fails_with(
                422,
                "Invalid",
                "metadata.resourceVersion: Invalid value: 0: must be specified for an update",
            )
        })
        .not_for_the_oldest(),
        row(
            "a status that is too large for the database is refused, and nothing of it is stored",
            "facts §10",
            |api| async move {
                let path = thing(&api).await?;
                for (size, text) in [
                    (1_600_000, "etcdserver: request is too large"),
                    (2_900_000, "trying to send message larger than max"),
                ] {
                    let mut object = api.get(&path).await?.code(200)?.body;
                    object["status"] = json!({"s": "x".repeat(size)});

                    let answer = api.put(format!("{path}/status"), &object).await?.code(500)?;

                    let message = answer.body["message"].as_str().unwrap_or_default();
                    holds(message.contains(text), "the text of the database", &json!(message))?;
                }
                absent(&api.get(&path).await?.code(200)?.body, "/status")
            },
        ),
        row("/status of a custom kind without it is NotFound by name", "facts §4", |api| async move {
            let group = format!("{}.example.org", api.namespace);
            let mut kind = definition(&group, "plains", "Plain");
            kind["spec"]["versions"][0]["subresources"] = json!(null);
            api.define(&kind).await?;
            let plains = api.at(&format!("{group}/v1"), "plains");
            api.create(
                &plains,
                &json!({"apiVersion": format!("{group}/v1"), "kind": "Plain", "metadata": {"name": "t"}}),
            )
            .await?;

            let answer = api.patch(format!("{plains}/t/status"), MERGE, &json!({"status": {"s": 1}})).await?;

            let message = format!("plains.{group} \"t\" not found");
            answer.is_status(&failure(
                404,
                "NotFound",
                &message,
                json!({"name": "t", "group": group, "kind": "plains"}),
            ))
        }),
    ]
}

fn scale() -> Vec<Row> {
    vec![row("/scale shows and sets the replicas, and raises the generation", "facts §8", |api| async move {
        let path = format!("{}/d", api.at("apps/v1", "deployments"));
        let created = api.create(api.at("apps/v1", "deployments"), &deployment("d")).await?;

        let answer = api.get(format!("{path}/scale")).await?.code(200)?;
        let meta = &created["metadata"];
        let expected = json!({"kind": "Scale", "apiVersion": "autoscaling/v1",
                "metadata": {"name": "d", "namespace": api.namespace, "uid": meta["uid"], "resourceVersion": meta["resourceVersion"], "creationTimestamp": meta["creationTimestamp"]},
                "spec": {"replicas": 1}, "status": {"replicas": 0, "selector": "a=b"}});
        equal("scale", &answer.body, &expected)?;

        api.patch(format!("{path}/scale"), MERGE, &json!({"spec": {"replicas": 3}})).await?.code(200)?;
        let object = api.get(&path).await?.code(200)?.body;
        let got = json!([object["spec"]["replicas"], object["metadata"]["generation"]]);
        equal("replicas and generation", &got, &json!([3, 2]))
    })]
}
