use http::Method;
use serde_json::{Value, json};

use crate::{
    api::MERGE,
    bodies::{config_map, deployment},
    expect::{absent, equal, holds, includes},
    row::{Row, row},
};

fn owners(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| json!([entry["manager"], entry["operation"], entry["subresource"]])).collect()
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        row("the manager is the user agent up to its first slash", "facts §10", |api| async move {
            let call = api.call(Method::POST, api.maps()).header("user-agent", "tester/v1 (linux)");

            let object = call.json(&config_map("a", json!({"labels": {"l": "1"}}))).send().await?.code(201)?.body;

            let entry = &object["metadata"]["managedFields"][0];
            let fields = json!({"f:data": {".": {}, "f:v": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}});
            let expected = json!({"manager": "tester", "operation": "Update", "apiVersion": "v1", "time": entry["time"],
                "fieldsType": "FieldsV1", "fieldsV1": fields});
            equal("entry", entry, &expected)
        }),
        row("the parameter fieldManager wins over the user agent", "facts §10", |api| async move {
            let call = api.call(Method::POST, format!("{}?fieldManager=named", api.maps()));

            let answer =
                call.header("user-agent", "tester/v1").json(&config_map("a", json!({}))).send().await?.code(201)?;

            equal("owners", &owners(&answer.body), &json!([["named", "Update", null]]))
        }),
        row("each manager has an entry with the fields it changed last", "facts §10", |api| async move {
            let path = format!("{}/a", api.maps());
            api.post(format!("{}?fieldManager=one", api.maps()), &config_map("a", json!({}))).await?.code(201)?;

            let patch = json!({"data": {"w": "2"}});
            let object = api.patch(format!("{path}?fieldManager=two"), MERGE, &patch).await?.code(200)?.body;

            equal("owners", &owners(&object), &json!([["one", "Update", null], ["two", "Update", null]]))?;
            let entries = &object["metadata"]["managedFields"];
            equal("of the first", &entries[0]["fieldsV1"], &json!({"f:data": {".": {}, "f:v": {}}}))?;
            equal("of the second", &entries[1]["fieldsV1"], &json!({"f:data": {"f:w": {}}}))
        }),
        row("a field changes its owner with its value", "facts §10", |api| async move {
            let path = format!("{}/a", api.maps());
            api.post(format!("{}?fieldManager=one", api.maps()), &config_map("a", json!({}))).await?.code(201)?;

            let patch = json!({"data": {"v": "2"}});
            let object = api.patch(format!("{path}?fieldManager=two"), MERGE, &patch).await?.code(200)?.body;

            let entries = &object["metadata"]["managedFields"];
            includes("second", &entries[1], &json!({"manager": "two", "fieldsV1": {"f:data": {"f:v": {}}}}))?;
            absent(&entries[0], "/fieldsV1/f:data/f:v")
        }),
        row("a write to /status has an entry of its own", "facts §10", |api| async move {
            let path = format!("{}/d", api.at("apps/v1", "deployments"));
            let create = format!("{}?fieldManager=one", api.at("apps/v1", "deployments"));
            api.post(create, &deployment("d")).await?.code(201)?;

            let patch = json!({"status": {"replicas": 1}});
            let answer = api.patch(format!("{path}/status?fieldManager=one"), MERGE, &patch).await?.code(200)?;

            equal("owners", &owners(&answer.body), &json!([["one", "Update", null], ["one", "Update", "status"]]))?;
            let entries = &answer.body["metadata"]["managedFields"];
            equal("fields", &entries[1]["fieldsV1"], &json!({"f:status": {"f:replicas": {}}}))
        }),
        row("defaults belong to the writer", "architecture §6", |api| async move {
            let create = format!("{}?fieldManager=one", api.at("apps/v1", "deployments"));

            let object = api.post(create, &deployment("d")).await?.code(201)?.body;

            let spec = json!({"f:replicas": {}, "f:revisionHistoryLimit": {}, "f:progressDeadlineSeconds": {}});
            includes("fields", &object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"], &spec)
        }),
        row("lists with keys are named by their keys", "architecture §6", |api| async move {
            let create = format!("{}?fieldManager=one", api.at("apps/v1", "deployments"));

            let object = api.post(create, &deployment("d")).await?.code(201)?.body;

            let container = json!({"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}}});
            let spec = json!({"f:template": {"f:spec": {"f:containers": container}}});
            includes("fields", &object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"], &spec)
        }),
        row("allocated fields have no owner", "architecture §6", |api| async move {
            let body = json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});

            let object = api.create(api.at("v1", "services"), &body).await?;

            let fields = &object["metadata"]["managedFields"][0]["fieldsV1"];
            holds(fields["f:spec"]["f:type"] == json!({}), "f:type is owned", fields)?;
            absent(fields, "/f:spec/f:clusterIP")?;
            absent(fields, "/f:spec/f:clusterIPs")?;
            let port = &fields["f:spec"]["f:ports"]["k:{\"port\":80,\"protocol\":\"TCP\"}"];
            holds(port["f:port"] == json!({}), "f:port is owned", fields)?;
            absent(port, "/f:nodePort")
        }),
        row("managedFields sent as an empty list stay away on later updates", "facts §10", |api| async move {
            let path = format!("{}/a", api.maps());
            let mut object = api.create_map("a", json!({})).await?;
            object["metadata"]["managedFields"] = json!([]);

            let emptied = api.put(&path, &object).await?.code(200)?;
            let changed = api.patch(&path, MERGE, &json!({"data": {"v": "2"}})).await?.code(200)?;

            absent(&emptied.body, "/metadata/managedFields")?;
            absent(&changed.body, "/metadata/managedFields")
        }),
    ]
}
