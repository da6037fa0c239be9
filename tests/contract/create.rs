use http::Method;
use serde_json::json;

use crate::{
    api::{MERGE, root, version},
    bodies::{config_map, definition, deployment, failure},
    expect::{absent, equal, holds, includes},
    row::{Row, row},
};

pub(crate) fn rows() -> Vec<Row> {
    [names(), checks(), fields(), decoding()].into_iter().flatten().collect()
}

fn names() -> Vec<Row> {
    vec![
        row("a create is answered with 201 and the stored object", "facts §0", |api| async move {
            let answer = api.post(api.maps(), &config_map("a", json!({}))).await?.code(201)?;
            let stored = api.get(format!("{}/a", api.maps())).await?.code(200)?;

            equal("the answer is the stored object", &answer.body, &stored.body)?;
            let meta = &answer.body["metadata"];
            includes("identity", meta, &json!({"name": "a", "namespace": api.namespace}))?;
            for field in ["uid", "creationTimestamp", "resourceVersion"] {
                holds(meta[field].as_str().is_some_and(|text| !text.is_empty()), field, meta)?;
            }
            Ok(())
        }),
        row("creating a name that exists is AlreadyExists", "facts §1", |api| async move {
            api.create_map("a", json!({})).await?;

            let answer = api.post(api.maps(), &config_map("a", json!({}))).await?;

            let details = json!({"name": "a", "kind": "configmaps"});
            answer.is_status(&failure(409, "AlreadyExists", "configmaps \"a\" already exists", details))
        }),
        row(
            "creating a name whose object is being deleted is AlreadyExists and says so",
            "facts §1",
            |api| async move {
                api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
                api.delete(format!("{}/a", api.maps())).await?.code(200)?;

                let answer = api.post(api.maps(), &config_map("a", json!({}))).await?;

                let message = "object is being deleted: configmaps \"a\" already exists";
                answer.is_status(&failure(409, "AlreadyExists", message, json!({"name": "a", "kind": "configmaps"})))
            },
        ),
        row("a deleted name can be created again, with another uid", "facts §1", |api| async move {
            let first = api.create_map("a", json!({})).await?;
            api.delete(format!("{}/a", api.maps())).await?.code(200)?;

            let second = api.create_map("a", json!({})).await?;

            holds(first["metadata"]["uid"] != second["metadata"]["uid"], "another uid", &second)
        }),
        row("generateName is cut to 58 characters, gets 5 random ones, and is kept", "facts §1", |api| async move {
            let prefix = "g".repeat(70);

            let object = api.create(api.maps(), &json!({"metadata": {"generateName": prefix}})).await?;

            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            holds(name.len() == 63 && name.starts_with(&"g".repeat(58)), "63 characters", &object["metadata"])?;
            equal("generateName", &object["metadata"]["generateName"], &json!(prefix))
        }),
        row("a name beside a generateName wins", "facts §1", |api| async move {
            let object = api.create_map("a", json!({"generateName": "g-"})).await?;

            equal("name", &object["metadata"]["name"], &json!("a"))
        }),
        row("neither name nor generateName is Invalid", "facts §1", |api| async move {
            let answer = api.post(api.maps(), &json!({"metadata": {}})).await?;

            let text = "name or generateName is required";
            let message = format!("ConfigMap \"\" is invalid: metadata.name: Required value: {text}");
            let cause = json!({"reason": "FieldValueRequired", "message": format!("Required value: {text}"), "field": "metadata.name"});
            answer.is_status(&failure(422, "Invalid", &message, json!({"kind": "ConfigMap", "causes": [cause]})))
        }),
    ]
}

fn checks() -> Vec<Row> {
    vec![
        row("a missing namespace is NotFound", "facts §1", |api| async move {
            let gone = api.unique("gone");

            let answer = api.post(format!("/api/v1/namespaces/{gone}/configmaps"), &config_map("a", json!({}))).await?;

            let details = json!({"name": gone, "kind": "namespaces"});
            answer.is_status(&failure(404, "NotFound", &format!("namespaces \"{gone}\" not found"), details))
        }),
        row("the namespace is checked before the object is validated", "facts §1", |api| async move {
            let path = format!("/api/v1/namespaces/{}/configmaps", api.unique("gone"));

            let answer = api.post(path, &config_map("NOT valid", json!({}))).await?;

            answer.fails_with(404, "NotFound", "not found")
        }),
        row("the body is decoded before the namespace is checked", "facts §1", |api| async move {
            let path = format!("/api/v1/namespaces/{}/configmaps", api.unique("gone"));

            let answer = api.call(Method::POST, path).body("application/json", "{bad").send().await?;

            answer.fails_with(400, "BadRequest", "the object provided is unrecognized (must be of type ConfigMap)")
        }),
        row("the object is validated before its name is looked up", "facts §1", |api| async move {
            api.create(api.at("apps/v1", "deployments"), &deployment("d")).await?;
            let mut invalid = deployment("d");
            invalid["spec"]["replicas"] = json!(-1);

            let answer = api.post(api.at("apps/v1", "deployments"), &invalid).await?;

            answer.fails_with(422, "Invalid", "spec.replicas")
        }),
        row("another namespace in the body than in the path is BadRequest", "facts §1", |api| async move {
            let answer = api.post(api.maps(), &config_map("a", json!({"namespace": "other"}))).await?;

            let text = "the namespace of the provided object does not match the namespace sent on the request";
            answer.is_status(&failure(400, "BadRequest", text, json!(null)))
        }),
        row("a namespace on a cluster-scoped object is dropped", "facts §1", |api| async move {
            let body = json!({"metadata": {"name": api.unique("role"), "namespace": "other"}});

            let object = api.create(format!("{}/clusterroles", root("rbac.authorization.k8s.io/v1")), &body).await?;

            absent(&object, "/metadata/namespace")
        }),
        row("a namespaced built-in kind at the cluster path is MethodNotAllowed", "facts §1", |api| async move {
            let answer = api.post("/api/v1/configmaps", &config_map("a", json!({}))).await?;

            let message = "the server does not allow this method on the requested resource";
            answer.is_status(&failure(405, "MethodNotAllowed", message, json!({})))
        }),
        row("a namespaced custom kind at the cluster path is a plain 404", "facts §1", |api| async move {
            let group = format!("{}.example.org", api.namespace);
            api.define(&definition(&group, "things", "Thing")).await?;
            let body = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "t"}});

            let answer = api.post(format!("/apis/{group}/v1/things"), &body).await?;

            answer.is_text(404, "404 page not found\n")
        }),
        row("a resourceVersion in a create is a server error", "facts §1", |api| async move {
            let answer = api.post(api.maps(), &config_map("a", json!({"resourceVersion": "5"}))).await?;

            answer.fails(500, "", "resourceVersion should not be set on objects to be created")
        }),
    ]
}

fn fields() -> Vec<Row> {
    vec![
        row("uid, creationTimestamp and deletionTimestamp of the sender are ignored", "facts §1", |api| async move {
            let past = "2001-01-01T00:00:00Z";
            let sent = json!({"uid": "x", "creationTimestamp": past, "deletionTimestamp": past});

            let object = api.create_map("a", sent).await?;

            let meta = &object["metadata"];
            holds(meta["uid"] != "x" && meta["creationTimestamp"] != past, "the server's own values", meta)?;
            absent(&object, "/metadata/deletionTimestamp")
        }),
        row("a generation that is sent is kept where the kind does not manage it", "facts §1", |api| async move {
            let map = api.create_map("a", json!({"generation": 7})).await?;
            let mut body = deployment("d");
            body["metadata"]["generation"] = json!(7);
            let deployment = api.create(api.at("apps/v1", "deployments"), &body).await?;

            let got = json!([map["metadata"]["generation"], deployment["metadata"]["generation"]]);
            equal("generation of ConfigMap and Deployment", &got, &json!([7, 1]))
        }),
        row("a status that is sent is dropped where there is a status subresource", "facts §1", |api| async move {
            let mut body = deployment("d");
            body["status"] = json!({"replicas": 3});

            let object = api.create(api.at("apps/v1", "deployments"), &body).await?;

            equal("status", &object["status"], &json!({}))
        }),
        row("a status that is sent is kept for custom kinds without the subresource", "facts §1", |api| async move {
            let group = format!("{}.example.org", api.namespace);
            let mut kind = definition(&group, "plains", "Plain");
            kind["spec"]["versions"][0]["subresources"] = json!(null);
            api.define(&kind).await?;
            let body = json!({"apiVersion": format!("{group}/v1"), "kind": "Plain", "metadata": {"name": "t"}, "status": {"a": 1}});

            let object = api.create(api.at(&format!("{group}/v1"), "plains"), &body).await?;

            equal("status", &object["status"], &json!({"a": 1}))
        }),
        row("a dry run answers like a create, without a version, and stores nothing", "facts §1", |api| async move {
            let answer =
                api.post(format!("{}?dryRun=All", api.maps()), &config_map("a", json!({}))).await?.code(201)?;

            absent(&answer.body, "/metadata/resourceVersion")?;
            api.get(format!("{}/a", api.maps())).await?.code(404)?;
            Ok(())
        }),
        row(
            "versions are one counter for all kinds, and every write takes a higher one",
            "facts §0",
            |api| async move {
                let map = api.create_map("a", json!({})).await?;
                let secret = api.create(api.at("v1", "secrets"), &json!({"metadata": {"name": "s"}})).await?;
                let patch = json!({"data": {"v": "2"}});
                let changed = api.patch(format!("{}/a", api.maps()), MERGE, &patch).await?.code(200)?;

                let numbers =
                    [&map, &secret, &changed.body].map(|object| version(object).parse::<u64>().unwrap_or_default());
                holds(numbers[0] > 0 && numbers[0] < numbers[1] && numbers[1] < numbers[2], "rising", &json!(numbers))
            },
        ),
    ]
}

fn decoding() -> Vec<Row> {
    vec![
        row("a field of the wrong JSON type is BadRequest and names the field", "facts §1", |api| async move {
            let mut body = deployment("d");
            body["spec"]["replicas"] = json!("x");

            let answer = api.post(api.at("apps/v1", "deployments"), &body).await?;

            let message = "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32";
            answer.is_status(&failure(400, "BadRequest", message, json!(null)))
        }),
        row("an unknown field is dropped with a warning", "facts §1", |api| async move {
            let mut body = deployment("d");
            body["spec"]["bar"] = json!(1);

            let answer = api.post(api.at("apps/v1", "deployments"), &body).await?.code(201)?;

            absent(&answer.body, "/spec/bar")?;
            equal(
                "Warning",
                &json!(answer.header_values("warning")),
                &json!(["299 - \"unknown field \\\"spec.bar\\\"\""]),
            )
        }),
        row("an unknown field is dropped silently with fieldValidation=Ignore", "facts §1", |api| async move {
            let mut body = deployment("d");
            body["spec"]["bar"] = json!(1);

            let path = format!("{}?fieldValidation=Ignore", api.at("apps/v1", "deployments"));
            let answer = api.post(path, &body).await?.code(201)?;

            equal("Warning", &json!(answer.header_values("warning")), &json!([]))
        }),
        row("an unknown field is BadRequest with fieldValidation=Strict", "facts §1", |api| async move {
            let mut body = deployment("d");
            body["spec"]["bar"] = json!(1);

            let path = format!("{}?fieldValidation=Strict", api.at("apps/v1", "deployments"));
            let answer = api.post(path, &body).await?;

            let message = "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: unknown field \"spec.bar\"";
            answer.is_status(&failure(400, "BadRequest", message, json!(null)))
        }),
        row("another kind in the body than in the path is BadRequest", "facts §1", |api| async move {
            let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});

            let answer = api.post(api.maps(), &body).await?;

            answer.fails_with(400, "BadRequest", "Secret in version \"v1\" cannot be handled as a ConfigMap")
        }),
        row("a body without kind and apiVersion is taken for built-in kinds", "facts §1", |api| async move {
            let object = api.create(api.maps(), &json!({"metadata": {"name": "a"}})).await?;

            includes("completed", &object, &json!({"kind": "ConfigMap", "apiVersion": "v1"}))
        }),
        row("a body without kind is BadRequest for custom kinds", "facts §1", |api| async move {
            let group = format!("{}.example.org", api.namespace);
            api.define(&definition(&group, "things", "Thing")).await?;

            let answer =
                api.post(api.at(&format!("{group}/v1"), "things"), &json!({"metadata": {"name": "t"}})).await?;

            let message = "the object provided is unrecognized (must be of type Thing): Object 'Kind' is missing in";
            answer.fails_with(400, "BadRequest", message)
        }),
        row("broken and empty JSON are BadRequest", "facts §1", |api| async move {
            for body in ["{bad", ""] {
                let answer = api.call(Method::POST, api.maps()).body("application/json", body).send().await?;
                answer.fails_with(
                    400,
                    "BadRequest",
                    "the object provided is unrecognized (must be of type ConfigMap)",
                )?;
            }
            Ok(())
        }),
        row("an unknown content type is UnsupportedMediaType", "facts §1", |api| async move {
            let body = config_map("a", json!({})).to_string();

            let answer = api.call(Method::POST, api.maps()).body("text/plain", &body).send().await?;

            let message = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml";
            answer.fails_with(415, "UnsupportedMediaType", message)
        }),
    ]
}
