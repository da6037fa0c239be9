use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    api::{Api, MERGE},
    bodies::definition,
    expect::{absent, equal, holds, includes},
    row::{Row, row},
};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) fn rows() -> Vec<Row> {
    [lifecycle(), objects()].into_iter().flatten().collect()
}

fn group(api: &Api) -> String {
    format!("{}.example.org", api.namespace)
}

fn thing(api: &Api, name: &str, content: Value) -> Value {
    let mut object = content;
    object["apiVersion"] = json!(format!("{}/v1", group(api)));
    object["kind"] = json!("Thing");
    object["metadata"] = json!({"name": name});
    object
}

/// Defines `Thing` with a schema for `spec`: `a` is required (3 characters), n an integer, e an enum, d has a default.
async fn strict(api: &Api) -> Result<String> {
    let mut kind = definition(&group(api), "things", "Thing");
    let properties = json!({"a": {"type": "string", "maxLength": 3}, "n": {"type": "integer"},
        "e": {"type": "string", "enum": ["x", "y"]}, "d": {"type": "string", "default": "dd"}});
    let spec = json!({"type": "object", "required": ["a"], "properties": properties});
    kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}});
    api.define(&kind).await?;
    Ok(api.at(&format!("{}/v1", group(api)), "things"))
}

async fn condition(api: &Api, name: &str, kind: &str) -> Result<Value> {
    let object = api.get(format!("{DEFINITIONS}/{name}")).await?.code(200)?.body;
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == kind);
    found.ok_or_else(|| anyhow::anyhow!("no condition {kind}: {object}"))
}

async fn established(api: &Api, name: &str) -> Result<Value> {
    api.eventually("Established", async || {
        let condition = condition(api, name, "Established").await?;
        equal("status", &condition["status"], &json!("True"))?;
        Ok(condition)
    })
    .await
}

fn lifecycle() -> Vec<Row> {
    vec![
        row("before its definition a kind is a plain 404, afterwards it is served", "facts §7", |api| async move {
            let things = api.at(&format!("{}/v1", group(&api)), "things");
            api.get(&things).await?.is_text(404, "404 page not found\n")?;

            api.create(DEFINITIONS, &definition(&group(&api), "things", "Thing")).await?;

            let list = api.becomes(&things, 200).await?;
            let expected = json!({"kind": "ThingList", "apiVersion": format!("{}/v1", group(&api)), "items": []});
            includes("list", &list.body, &expected)
        }),
        row("a new definition has no conditions, and gets its stored version", "facts §7", |api| async move {
            let object = api.create(DEFINITIONS, &definition(&group(&api), "things", "Thing")).await?;

            let expected =
                json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]});
            equal("status", &object["status"], &expected)?;
            equal("conversion", &object["spec"]["conversion"], &json!({"strategy": "None"}))
        }),
        row("a definition becomes Established", "facts §7", |api| async move {
            let name = format!("things.{}", group(&api));
            api.create(DEFINITIONS, &definition(&group(&api), "things", "Thing")).await?;

            let established = established(&api, &name).await?;

            equal("reason", &established["reason"], &json!("InitialNamesAccepted"))?;
            let accepted = condition(&api, &name, "NamesAccepted").await?;
            includes("NamesAccepted", &accepted, &json!({"status": "True", "reason": "NoConflicts"}))
        }),
        row("a list kind that is taken is not accepted", "facts §7", |api| async move {
            api.define(&definition(&group(&api), "things", "Thing")).await?;
            let mut second = definition(&group(&api), "others", "Other");
            second["spec"]["names"]["listKind"] = json!("ThingList");
            api.create(DEFINITIONS, &second).await?;

            let name = format!("others.{}", group(&api));
            let condition =
                api.eventually("NamesAccepted", async || condition(&api, &name, "NamesAccepted").await).await?;

            includes("NamesAccepted", &condition, &json!({"status": "False", "reason": "ListKindConflict"}))
        }),
        row(
            "a definition is Invalid with another name than plural.group, without a schema, and for *.k8s.io",
            "facts §7",
            |api| async move {
                let mut name = definition(&group(&api), "things", "Thing");
                name["metadata"]["name"] = json!("other");
                api.post(DEFINITIONS, &name).await?.fails_with(422, "Invalid", "metadata.name")?;
                let mut schema = definition(&group(&api), "things", "Thing");
                schema["spec"]["versions"][0]["schema"] = json!(null);
                api.post(DEFINITIONS, &schema).await?.fails_with(422, "Invalid", "schema")?;
                let protected = definition(&format!("{}.k8s.io", api.namespace), "things", "Thing");
                api.post(DEFINITIONS, &protected).await?.fails_with(422, "Invalid", "api-approved.kubernetes.io")
            },
        ),
        row("the scope of an established definition is immutable", "facts §4", |api| async move {
            let name = format!("things.{}", group(&api));
            api.define(&definition(&group(&api), "things", "Thing")).await?;
            // It is served a moment before the condition says so.
            established(&api, &name).await?;

            let answer =
                api.patch(format!("{DEFINITIONS}/{name}"), MERGE, &json!({"spec": {"scope": "Cluster"}})).await?;

            answer.fails_with(422, "Invalid", "spec.scope: Invalid value: \"Cluster\": field is immutable")
        }),
        row("an object of a defined kind takes a finalizer without a domain", "facts §1", |api| async move {
            let things = strict(&api).await?;
            let mut object = thing(&api, "a", json!({"spec": {"a": "x"}}));
            object["metadata"]["finalizers"] = json!(["gardener"]);
            let answer = api.post(&things, &object).await?.code(201)?;
            equal("finalizers", &answer.body["metadata"]["finalizers"], &json!(["gardener"]))?;
            api.patch(format!("{things}/a"), MERGE, &json!({"metadata": {"finalizers": null}})).await?.code(200)?;
            Ok(())
        }),
        row("a deleted definition deletes its objects and respects their finalizers", "facts §7", |api| async move {
            let things = api.at(&format!("{}/v1", group(&api)), "things");
            api.define(&definition(&group(&api), "things", "Thing")).await?;
            api.create(&things, &thing(&api, "free", json!({}))).await?;
            api.create(&things, &thing(&api, "held", json!({}))).await?;
            api.patch(format!("{things}/held"), MERGE, &json!({"metadata": {"finalizers": ["a.b/c"]}}))
                .await?
                .code(200)?;

            let path = format!("{DEFINITIONS}/things.{}", group(&api));
            let answer = api.delete(&path).await?.code(200)?;
            let finalizers = json!(["customresourcecleanup.apiextensions.k8s.io"]);
            equal("finalizers", &answer.body["metadata"]["finalizers"], &finalizers)?;
            api.becomes(&format!("{things}/free"), 404).await?;
            let held =
                api.eventually("held is deleting", async || deleting(&api, &format!("{things}/held")).await).await?;
            equal("finalizers", &held["metadata"]["finalizers"], &json!(["a.b/c"]))?;
            let late = api.post(&things, &thing(&api, "late", json!({}))).await?;
            late.fails_with(403, "Forbidden", "create not allowed while custom resource definition is terminating")?;

            api.patch(format!("{things}/held"), MERGE, &json!({"metadata": {"finalizers": null}})).await?.code(200)?;
            api.becomes(&path, 404).await?;
            api.eventually("a plain 404", async || api.get(&things).await?.is_text(404, "404 page not found\n")).await
        })
        .not_for_the_oldest(),
    ]
}

async fn deleting(api: &Api, path: &str) -> Result<Value> {
    let object = api.get(path).await?.code(200)?.body;
    ensure!(object["metadata"]["deletionTimestamp"].is_string(), "not deleting: {object}");
    Ok(object)
}

fn objects() -> Vec<Row> {
    vec![
        row("an object is validated by the schema", "facts §7", |api| async move {
            let things = strict(&api).await?;
            let table = [
                (json!({}), "spec: Required value"),
                (json!({"spec": {}}), "spec.a: Required value"),
                (json!({"spec": {"a": "long"}}), "spec.a: Too long: may not be more than 3 bytes"),
                (
                    json!({"spec": {"a": "b", "n": "x"}}),
                    "spec.n: Invalid value: \"string\": spec.n in body must be of type integer: \"string\"",
                ),
                (
                    json!({"spec": {"a": "b", "e": "z"}}),
                    "spec.e: Unsupported value: \"z\": supported values: \"x\", \"y\"",
                ),
            ];
            for (content, text) in table {
                let answer = api.post(&things, &thing(&api, "t", content)).await?;
                answer.fails(422, "Invalid", &format!("Thing.{} \"t\" is invalid: {text}", group(&api)))?;
            }
            Ok(())
        }),
        row("unknown fields of a custom object are pruned with a warning", "facts §7", |api| async move {
            let things = strict(&api).await?;

            let answer = api.post(&things, &thing(&api, "t", json!({"spec": {"a": "b", "zz": 1}}))).await?.code(201)?;

            absent(&answer.body, "/spec/zz")?;
            equal(
                "Warning",
                &json!(answer.header_values("warning")),
                &json!(["299 - \"unknown field \\\"spec.zz\\\"\""]),
            )
        }),
        row("unknown fields are kept where the schema says so", "facts §7", |api| async move {
            api.define(&definition(&group(&api), "things", "Thing")).await?;
            let things = api.at(&format!("{}/v1", group(&api)), "things");

            let object = api.create(&things, &thing(&api, "t", json!({"spec": {"zz": {"y": [1]}}, "top": 1}))).await?;

            equal("kept", &json!([object["spec"], object["top"]]), &json!([{"zz": {"y": [1]}}, 1]))
        }),
        row("defaults of the schema are filled in", "facts §7", |api| async move {
            let things = strict(&api).await?;

            let object = api.create(&things, &thing(&api, "t", json!({"spec": {"a": "b"}}))).await?;

            equal("spec", &object["spec"], &json!({"a": "b", "d": "dd"}))
        }),
        row(
            "another version in the body than in the path is BadRequest, another kind Invalid",
            "facts §7",
            |api| async move {
                let things = strict(&api).await?;
                let group = group(&api);
                let mut version = thing(&api, "t", json!({"spec": {"a": "b"}}));
                version["apiVersion"] = json!(format!("{group}/v2"));
                let text = format!(
                    "the API version in the data ({group}/v2) does not match the expected API version ({group}/v1)"
                );
                api.post(&things, &version).await?.fails(400, "BadRequest", &text)?;

                let mut kind = thing(&api, "t", json!({"spec": {"a": "b"}}));
                kind["kind"] = json!("Thong");
                api.post(&things, &kind).await?.fails_with(
                    422,
                    "Invalid",
                    "kind: Invalid value: \"Thong\": must be Thing",
                )
            },
        ),
        row("an object can be read in each served version", "facts §7", |api| async move {
            let mut kind = definition(&group(&api), "things", "Thing");
            let mut second = kind["spec"]["versions"][0].clone();
            second["name"] = json!("v2");
            second["storage"] = json!(false);
            kind["spec"]["versions"] = json!([kind["spec"]["versions"][0], second]);
            api.define(&kind).await?;
            let path = |version: &str| api.at(&format!("{}/{version}", group(&api)), "things");
            let created = api.create(path("v1"), &thing(&api, "t", json!({"spec": {"a": 1}}))).await?;

            let answer = api.get(format!("{}/t", path("v2"))).await?.code(200)?;

            equal("apiVersion", &answer.body["apiVersion"], &json!(format!("{}/v2", group(&api))))?;
            equal("spec", &answer.body["spec"], &json!({"a": 1}))?;
            equal("uid", &answer.body["metadata"]["uid"], &created["metadata"]["uid"])
        }),
        row("a definition that is applied again as it was keeps its version", "facts §4", |api| async move {
            let name = format!("things.{}", group(&api));
            api.define(&definition(&group(&api), "things", "Thing")).await?;
            established(&api, &name).await?;
            let object = api.get(format!("{DEFINITIONS}/{name}")).await?.code(200)?.body;
            let mut manifest = definition(&group(&api), "things", "Thing");
            manifest["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();

            let answer = api.put(format!("{DEFINITIONS}/{name}"), &manifest).await?.code(200)?;

            equal("version", &answer.body["metadata"]["resourceVersion"], &object["metadata"]["resourceVersion"])?;
            holds(answer.body["status"] == object["status"], "the status stays", &answer.body["status"])
        }),
    ]
}
