use anyhow::Result;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    api::Api,
    bodies::failure,
    expect::{absent, equal, holds, includes},
    row::{Row, row},
};

/// A certificate signing request for `O=system:nodes, CN=system:node:n1`, as the API expects it: PEM in base64.
pub(crate) const SIGNING_REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIck1JR1NBZ0VBTURBeEZUQVRCZ05WQkFvTURITjVjM1JsYlRwdWIyUmxjekVYTUJVR0ExVUVBd3dPYzNsegpkR1Z0T201dlpHVTZiakV3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVRMdzN5Y254RnNXK0ZDCm9PNnY2azFKRitpcmRJRDgzKzVaY2xxYmxYcEYwcU5pRWJBc2dLRU8wd241R3NIclFFc2kyL2g4NHo2QlF3TkYKSW8vTG5za1JvQUF3Q2dZSUtvWkl6ajBFQXdJRFNBQXdSUUlnVUx3Qmkxc3Y2WGF5blQ3U2xOZ1Rwd01FLzBnUApXWmdERUk0ZVN6SUh6VGdDSVFEV2JyVG5GcmlvNEw0NHFqdk5iT1FwbUNsQjB5K1gzdHYzUTVka293aUVLQT09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const SELF_REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

pub(crate) fn rows() -> Vec<Row> {
    [tokens(), access(), signing()].into_iter().flatten().collect()
}

async fn account(api: &Api) -> Result<(String, Value)> {
    let accounts = api.at("v1", "serviceaccounts");
    let object = api.create(&accounts, &json!({"metadata": {"name": "sa"}})).await?;
    Ok((format!("{accounts}/sa/token"), object["metadata"]["uid"].clone()))
}

fn tokens() -> Vec<Row> {
    vec![
        row("a token request is answered with a token for the API, valid for an hour", "facts §8", |api| async move {
            let (path, uid) = account(&api).await?;

            let answer = api.post(&path, &json!({})).await?.code(201)?;

            let expected = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
                "metadata": {"name": "sa", "namespace": api.namespace, "uid": uid},
                "spec": {"audiences": ["kubernetes", "gardener"], "expirationSeconds": 3600}});
            includes("answer", &answer.body, &expected)?;
            let token = answer.body["status"]["token"].as_str().unwrap_or_default();
            equal("parts of the token", &json!(token.split('.').count()), &json!(3))?;
            let time = |value: &Value| value.as_str().unwrap_or_default().parse::<Timestamp>();
            let expires = time(&answer.body["status"]["expirationTimestamp"])?;
            let life = expires.duration_since(time(&answer.body["metadata"]["creationTimestamp"])?).as_secs();
            holds((3590..=3610).contains(&life), "an hour", &json!(life))
        })
        .not_for_the_oldest(),
        row("a token request gets the audiences and the time it asks for", "facts §8", |api| async move {
            let (path, _) = account(&api).await?;

            let answer = api
                .post(&path, &json!({"spec": {"audiences": ["other"], "expirationSeconds": 7200}}))
                .await?
                .code(201)?;

            equal(
                "spec",
                &answer.body["spec"],
                &json!({"audiences": ["other"], "expirationSeconds": 7200, "boundObjectRef": null}),
            )
        }),
        row("a token for less than ten minutes is Invalid", "facts §8", |api| async move {
            let (path, _) = account(&api).await?;

            let answer = api.post(&path, &json!({"spec": {"expirationSeconds": 599}})).await?;

            let text = "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes";
            answer.fails(422, "Invalid", &format!("TokenRequest.authentication.k8s.io \"\" is invalid: {text}"))
        }),
        row("a token for a missing ServiceAccount is NotFound", "facts §8", |api| async move {
            let answer = api.post(format!("{}/nope/token", api.at("v1", "serviceaccounts")), &json!({})).await?;

            let details = json!({"name": "nope", "kind": "serviceaccounts"});
            answer.is_status(&failure(404, "NotFound", "serviceaccounts \"nope\" not found", details))
        }),
        row("a token bound to a missing Secret is NotFound", "facts §8", |api| async move {
            let (path, _) = account(&api).await?;
            let reference = json!({"kind": "Secret", "apiVersion": "v1", "name": "nope"});

            let answer = api.post(&path, &json!({"spec": {"boundObjectRef": reference}})).await?;

            answer.fails(404, "NotFound", "secrets \"nope\" not found")
        }),
        row("a token review knows the ServiceAccount of a token", "facts §8", |api| async move {
            let (path, uid) = account(&api).await?;
            let token = api.post(&path, &json!({})).await?.code(201)?.body["status"]["token"].clone();

            let answer = api.post(TOKEN_REVIEWS, &json!({"spec": {"token": token}})).await?.code(201)?;

            let user = json!({"username": format!("system:serviceaccount:{}:sa", api.namespace), "uid": uid});
            includes("status", &answer.body["status"], &json!({"authenticated": true, "user": user}))
        }),
        row(
            "a token review of a bad token has an error, and does not say authenticated",
            "facts §8",
            |api| async move {
                let answer = api.post(TOKEN_REVIEWS, &json!({"spec": {"token": "a.b.c"}})).await?.code(201)?;

                absent(&answer.body, "/status/authenticated")?;
                holds(answer.body["status"]["error"].is_string(), "an error", &answer.body["status"])
            },
        ),
    ]
}

fn access() -> Vec<Row> {
    vec![
        row("an access review of a user without rights is not allowed", "facts §8", |api| async move {
            let attributes = json!({"verb": "get", "resource": "pods", "namespace": api.namespace});

            let body = json!({"spec": {"user": api.unique("bob"), "resourceAttributes": attributes}});
            let answer = api.post(ACCESS_REVIEWS, &body).await?.code(201)?;

            equal("allowed", &answer.body["status"]["allowed"], &json!(false))
        }),
        row("an access review of a member of system:masters is allowed", "facts §8", |api| async move {
            let attributes = json!({"verb": "get", "resource": "pods", "namespace": api.namespace});

            let body = json!({"spec": {"user": "x", "groups": ["system:masters"], "resourceAttributes": attributes}});
            let answer = api.post(ACCESS_REVIEWS, &body).await?.code(201)?;

            equal("allowed", &answer.body["status"]["allowed"], &json!(true))
        }),
        row("a review of the own access is about the client", "facts §8", |api| async move {
            let attributes = json!({"verb": "*", "group": "*", "resource": "*"});

            let answer =
                api.post(SELF_REVIEWS, &json!({"spec": {"resourceAttributes": attributes}})).await?.code(201)?;

            equal("allowed", &answer.body["status"]["allowed"], &json!(true))?;
            equal("spec", &answer.body["spec"], &json!({"resourceAttributes": attributes}))
        }),
        row("a review of the own access without attributes is Invalid", "facts §8", |api| async move {
            let answer = api.post(SELF_REVIEWS, &json!({"spec": {}})).await?;

            answer.fails_with(422, "Invalid", ".authorization.k8s.io \"\" is invalid: ")
        }),
        row("an access review without attributes is Invalid", "facts §8", |api| async move {
            let answer = api.post(ACCESS_REVIEWS, &json!({"spec": {"user": "bob"}})).await?;

            answer.fails_with(422, "Invalid", ".authorization.k8s.io \"\" is invalid: ")
        }),
        row(
            "a Forbidden error names what is forbidden, by cluster, namespace and name",
            "facts §10",
            |api| async move {
                let (maps, user) = (api.maps(), "impersonate-user");
                let namespace = &api.namespace;
                let table = [
                    (
                        Method::GET,
                        "/api/v1/configmaps".to_owned(),
                        String::new(),
                        "list",
                        "at the cluster scope".to_owned(),
                    ),
                    (Method::GET, maps.clone(), String::new(), "list", format!("in the namespace \"{namespace}\"")),
                    (
                        Method::GET,
                        format!("{maps}/x"),
                        "x".to_owned(),
                        "get",
                        format!("in the namespace \"{namespace}\""),
                    ),
                    (
                        Method::DELETE,
                        format!("{maps}/x"),
                        "x".to_owned(),
                        "delete",
                        format!("in the namespace \"{namespace}\""),
                    ),
                ];
                for (method, path, name, verb, place) in table {
                    let answer = api.call(method, path).header(user, "bob").send().await?;
                    let what = if name.is_empty() { "configmaps".to_owned() } else { format!("configmaps \"{name}\"") };
                    let text = format!(
                        "{what} is forbidden: User \"bob\" cannot {verb} resource \"configmaps\" in API group \"\" {place}"
                    );
                    let details = if name.is_empty() {
                        json!({"kind": "configmaps"})
                    } else {
                        json!({"name": name, "kind": "configmaps"})
                    };
                    answer.is_status(&failure(403, "Forbidden", &text, details))?;
                }
                Ok(())
            },
        ),
    ]
}

fn signing() -> Vec<Row> {
    vec![
        row("a signing request gets the name of its sender, whatever it says", "facts §8", |api| async move {
            let object = request(&api).await?;

            equal("username", &object["spec"]["username"], &json!("admin"))?;
            equal("status", &object["status"], &json!({}))
        }),
        row("an approval is written through /approval and gets its times", "facts §8", |api| async move {
            let object = request(&api).await?;
            let path = format!("{REQUESTS}/{}", api.unique("csr"));

            let answer = approve(&api, object, &["Approved"]).await?.code(200)?;

            let conditions = &answer.body["status"]["conditions"];
            includes(
                "conditions",
                conditions,
                &json!([{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]),
            )?;
            holds(conditions[0]["lastTransitionTime"].is_string(), "a time", conditions)?;
            let stored = api.get(path).await?.code(200)?;
            equal("stored", &stored.body, &answer.body)
        }),
        row("approved and denied at once is Invalid", "facts §8", |api| async move {
            let object = request(&api).await?;

            approve(&api, object, &["Approved", "Denied"]).await?.fails_with(422, "Invalid", "status.conditions")
        }),
        row("an approval cannot be taken back", "facts §8", |api| async move {
            let object = request(&api).await?;
            let approved = approve(&api, object, &["Approved"]).await?.code(200)?.body;

            let answer = approve(&api, approved, &[]).await?;

            let text = "updates may not remove a condition of type \"Approved\"";
            answer.fails_with(422, "Invalid", &format!("status.conditions: Forbidden: {text}"))
        }),
        row("an approval through /status is Invalid", "facts §8", |api| async move {
            let mut object = request(&api).await?;
            object["status"] = json!({"conditions": [{"type": "Approved", "status": "True"}]});

            let answer = api.put(format!("{REQUESTS}/{}/status", api.unique("csr")), &object).await?;

            answer.fails_with(422, "Invalid", "updates may not add a condition of type \"Approved\"")
        }),
        row("an approval with a stale version is a Conflict", "facts §8", |api| async move {
            let object = request(&api).await?;
            approve(&api, object.clone(), &["Approved"]).await?.code(200)?;

            approve(&api, object, &["Denied"]).await?.fails_with(409, "Conflict", "the object has been modified")
        }),
    ]
}

async fn request(api: &Api) -> Result<Value> {
    let spec = json!({"request": SIGNING_REQUEST, "signerName": "example.org/signer", "usages": ["client auth"], "username": "forged"});
    api.create(REQUESTS, &json!({"metadata": {"name": api.unique("csr")}, "spec": spec})).await
}

async fn approve(api: &Api, mut object: Value, conditions: &[&str]) -> Result<crate::api::Answer> {
    let conditions =
        conditions.iter().map(|kind| json!({"type": kind, "status": "True", "reason": "r", "message": "m"}));
    object["status"]["conditions"] = conditions.collect();
    api.put(format!("{REQUESTS}/{}/approval", api.unique("csr")), &object).await
}
