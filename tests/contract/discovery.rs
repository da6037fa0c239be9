use anyhow::{Result, anyhow};
use gardener_resource_manager::actors::resource_manager::bundle::identity::is_built_in_group;
use http::Method;
use serde_json::{Value, json};

use crate::{
    api::{Answer, Api},
    bodies::definition,
    expect::{absent, equal, holds, includes},
    row::{Row, row},
};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

async fn aggregated(api: &Api, path: &str) -> Result<Answer> {
    api.call(Method::GET, path).header("accept", AGGREGATED).send().await?.code(200)
}

fn version(document: &Answer, group: &str, version: &str) -> Result<Value> {
    let items = document.body["items"].as_array().cloned().unwrap_or_default();
    let item = items.into_iter().find(|item| item["metadata"]["name"].as_str().unwrap_or_default() == group);
    let versions = item.map(|item| item["versions"].clone()).unwrap_or_default();
    let found = versions.as_array().into_iter().flatten().find(|found| found["version"] == version).cloned();
    found.ok_or_else(|| anyhow!("no {group}/{version} in the document"))
}

fn resource(version: &Value, name: &str) -> Result<Value> {
    let found = version["resources"].as_array().into_iter().flatten().find(|found| found["resource"] == name).cloned();
    found.ok_or_else(|| anyhow!("no {name} in {version}"))
}

fn entry(list: &Answer, name: &str) -> Result<Value> {
    let found = list.body["resources"].as_array().into_iter().flatten().find(|found| found["name"] == name).cloned();
    found.ok_or_else(|| anyhow!("no {name} in {}", list.text))
}

pub(crate) fn rows() -> Vec<Row> {
    [documents(), aggregate()].into_iter().flatten().collect()
}

fn documents() -> Vec<Row> {
    vec![
        row("/api and /api/v1 have no apiVersion", "facts §7", |api| async move {
            let versions = api.get("/api").await?.code(200)?;
            includes("/api", &versions.body, &json!({"kind": "APIVersions", "versions": ["v1"]}))?;
            absent(&versions.body, "/apiVersion")?;

            let resources = api.get("/api/v1").await?.code(200)?;
            includes("/api/v1", &resources.body, &json!({"kind": "APIResourceList", "groupVersion": "v1"}))?;
            absent(&resources.body, "/apiVersion")
        }),
        row("/apis lists groups with their versions", "facts §7", |api| async move {
            let answer = api.get("/apis").await?.code(200)?;

            includes("/apis", &answer.body, &json!({"kind": "APIGroupList", "apiVersion": "v1"}))?;
            let apps = answer.body["groups"].as_array().into_iter().flatten().find(|group| group["name"] == "apps");
            let version = json!({"groupVersion": "apps/v1", "version": "v1"});
            let expected = json!({"name": "apps", "versions": [version], "preferredVersion": version});
            equal("apps", &json!(apps), &expected)
        }),
        row(
            "all groups are built in, except custom groups and those of aggregated APIs",
            "facts §7",
            |api| async move {
                let answer = api.get("/apis").await?.code(200)?;

                let groups = answer.body["groups"].as_array().into_iter().flatten();
                let names =
                    groups.filter_map(|group| group["name"].as_str()).filter(|name| !name.ends_with(".example.org"));
                let unknown: Vec<&str> = names.filter(|name| !is_built_in_group(name)).collect();
                holds(unknown.is_empty(), "no group that the program takes for a custom group", &json!(unknown))
            },
        ),
        row(
            "a group version lists its resources, subresources as entries of their own",
            "facts §7",
            |api| async move {
                let answer = api.get("/apis/apps/v1").await?.code(200)?;

                includes(
                    "list",
                    &answer.body,
                    &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1"}),
                )?;
                let deployments = entry(&answer, "deployments")?;
                let verbs = json!(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]);
                let expected = json!({"singularName": "deployment", "namespaced": true, "kind": "Deployment", "verbs": verbs, "shortNames": ["deploy"], "categories": ["all"]});
                includes("deployments", &deployments, &expected)?;
                let scale = json!({"namespaced": true, "kind": "Scale", "group": "autoscaling", "version": "v1", "verbs": ["get", "patch", "update"]});
                includes("scale", &entry(&answer, "deployments/scale")?, &scale)?;
                let status = json!({"kind": "Deployment", "verbs": ["get", "patch", "update"]});
                includes("status", &entry(&answer, "deployments/status")?, &status)
            },
        ),
        row("Namespaces have no deletecollection, and finalize is update only", "facts §7", |api| async move {
            let answer = api.get("/api/v1").await?.code(200)?;

            let verbs = json!(["create", "delete", "get", "list", "patch", "update", "watch"]);
            includes("namespaces", &entry(&answer, "namespaces")?, &json!({"namespaced": false, "verbs": verbs}))?;
            includes("finalize", &entry(&answer, "namespaces/finalize")?, &json!({"verbs": ["update"]}))
        }),
        row("a definition appears in the group's documents", "facts §7", |api| async move {
            let group = format!("{}.example.org", api.namespace);
            api.define(&definition(&group, "things", "Thing")).await?;

            let list = api.becomes(&format!("/apis/{group}/v1"), 200).await?;
            let verbs = json!(["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]);
            includes(
                "things",
                &entry(&list, "things")?,
                &json!({"kind": "Thing", "namespaced": true, "verbs": verbs}),
            )?;
            let document = api.becomes(&format!("/apis/{group}"), 200).await?;
            let version = json!({"groupVersion": format!("{group}/v1"), "version": "v1"});
            includes("group", &document.body, &json!({"kind": "APIGroup", "name": group, "versions": [version]}))
        }),
        row("an unserved group is a plain 404", "facts §7", |api| async move {
            api.get("/apis/nope.example.org").await?.is_text(404, "404 page not found\n")?;
            api.get("/apis/nope.example.org/v1").await?.is_text(404, "404 page not found\n")
        }),
        row("the version document names the release", "facts §0", |api| async move {
            let answer = api.get("/version").await?.code(200)?;

            let text = |field: &str| answer.body[field].as_str().unwrap_or_default().to_owned();
            let expected = format!("v{}.{}.", text("major"), text("minor"));
            holds(text("gitVersion").starts_with(&expected), "gitVersion, major and minor agree", &answer.body)
        }),
        row("probes answer ok", "facts §10", |api| async move {
            for path in ["/healthz", "/livez", "/readyz"] {
                api.get(path).await?.is_text(200, "ok")?;
            }
            Ok(())
        }),
    ]
}

fn aggregate() -> Vec<Row> {
    vec![
        row("the aggregated document repeats its type and has a tag", "facts §7", |api| async move {
            for path in ["/api", "/apis"] {
                let answer = aggregated(&api, path).await?;

                equal("Content-Type", &json!(answer.header("content-type")), &json!(AGGREGATED))?;
                holds(!answer.header("etag").is_empty(), "a tag", &json!(null))?;
                let expected = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"});
                includes("document", &answer.body, &expected)?;
            }
            Ok(())
        }),
        row("an unchanged aggregated document is a 304", "facts §7", |api| async move {
            let tag = aggregated(&api, "/api").await?.header("etag");

            let call = api.call(Method::GET, "/api").header("accept", AGGREGATED).header("if-none-match", &tag);
            call.send().await?.code(304)?;
            Ok(())
        }),
        row(
            "the core group has no name, and built-in kinds an empty group and version",
            "facts §7",
            |api| async move {
                let answer = aggregated(&api, "/api").await?;

                let core = version(&answer, "", "v1")?;
                equal("freshness", &core["freshness"], &json!("Current"))?;
                let expected = json!({"resource": "configmaps", "responseKind": {"group": "", "version": "", "kind": "ConfigMap"},
                "scope": "Namespaced", "singularResource": "configmap", "shortNames": ["cm"],
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]});
                equal("configmaps", &resource(&core, "configmaps")?, &expected)?;
                equal("namespaces", &resource(&core, "namespaces")?["scope"], &json!("Cluster"))
            },
        ),
        row("subresources are inside of their resource", "facts §7", |api| async move {
            let answer = aggregated(&api, "/apis").await?;

            let deployments = resource(&version(&answer, "apps", "v1")?, "deployments")?;
            let names: Vec<_> = deployments["subresources"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|sub| sub["subresource"].clone())
                .collect();
            equal("subresources", &json!(names), &json!(["scale", "status"]))?;
            let scale = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
            equal("scale", &deployments["subresources"][0]["responseKind"], &scale)
        }),
        row(
            "a definition appears in the aggregated document, with its group and version",
            "facts §7",
            |api| async move {
                let group = format!("{}.example.org", api.namespace);
                api.define(&definition(&group, "things", "Thing")).await?;

                let found = api
                    .eventually("things are discovered", async || {
                        resource(&version(&aggregated(&api, "/apis").await?, &group, "v1")?, "things")
                    })
                    .await?;

                let expected = json!({"resource": "things", "scope": "Namespaced", "singularResource": "thing",
                "responseKind": {"group": group, "version": "v1", "kind": "Thing"}});
                includes("things", &found, &expected)
            },
        ),
        row(
            "an APIService without a backend is 503, and Stale in the aggregated document",
            "facts §7",
            |api| async move {
                let group = format!("{}.example.org", api.namespace);
                let spec = json!({"group": group, "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
                "insecureSkipTLSVerify": true, "service": {"namespace": "none", "name": "none"}});
                let body = json!({"metadata": {"name": format!("v1.{group}")}, "spec": spec});
                api.create("/apis/apiregistration.k8s.io/v1/apiservices", &body).await?;

                let down = api.becomes(&format!("/apis/{group}/v1/things"), 503).await?;
                down.is_text(503, "service unavailable\n")?;
                let stale = api
                    .eventually("the group is Stale", async || {
                        let found = version(&aggregated(&api, "/apis").await?, &group, "v1")?;
                        equal("freshness", &found["freshness"], &json!("Stale"))?;
                        Ok(found)
                    })
                    .await?;
                absent(&stale, "/resources")
            },
        ),
        row("the aggregated form of another version alone is NotAcceptable", "facts §7", |api| async move {
            let accept = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

            api.call(Method::GET, "/apis").header("accept", accept).send().await?.code(406)?;
            Ok(())
        })
        .not_for_the_oldest(),
    ]
}
