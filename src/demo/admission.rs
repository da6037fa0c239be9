//! The part of an API server that calls mutating webhooks: reviews over TLS, and patches that come back.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{Method, Request, header};
use json_patch::PatchOperation;
use kube::Client;
use serde_json::{Value, json};

use super::Missed;

/// The user and the place of a new object.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewPod<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) user: &'a str,
}

/// What a webhook changed.
#[derive(Debug)]
pub(super) struct Mutated {
    pub(super) object: Value,
    /// A line per operation of the patch.
    pub(super) changes: Vec<String>,
}

/// Asks the webhook at `path` about a Pod that is being created, and applies its patch.
pub(super) async fn mutate(client: &Client, path: &str, about: NewPod<'_>, pod: &Value) -> Result<Mutated, Missed> {
    let expected = format!("the webhook {path} allows Pod {}", about.name);
    let failed = |found: String| Missed::new(&expected, found);
    let request = Request::builder().method(Method::POST).uri(format!("{path}?timeout=10s"));
    let request = request.header(header::CONTENT_TYPE, "application/json").body(review(about, pod).to_string().into());
    let answer = client.request(request.map_err(|error| failed(error.to_string()))?).await;
    let answer: Value = answer.map_err(|error| failed(error.to_string()))?;
    apply(pod, &answer["response"]).map_err(failed)
}

fn review(about: NewPod<'_>, pod: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "6d4c1f0e-0000-4000-8000-000000000001",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
            "requestResource": {"group": "", "version": "v1", "resource": "pods"},
            "name": about.name, "namespace": about.namespace, "operation": "CREATE",
            "userInfo": {"username": about.user, "groups": ["system:authenticated"]},
            "object": pod, "oldObject": null, "dryRun": false,
        },
    })
}

/// Fails with the text of a denial, or if the patch does not apply.
fn apply(pod: &Value, response: &Value) -> Result<Mutated, String> {
    if response["allowed"] != true {
        return Err(format!("denied: {}", response["status"]["message"].as_str().unwrap_or("without a message")));
    }
    let patch = BASE64_STANDARD.decode(response["patch"].as_str().unwrap_or_default());
    let patch = patch.map_err(|error| format!("a patch that is no base64: {error}"))?;
    let patch = if patch.is_empty() { b"[]".to_vec() } else { patch };
    let operations: Vec<PatchOperation> =
        serde_json::from_slice(&patch).map_err(|error| format!("a patch that is no JSON patch: {error}"))?;
    let mut object = pod.clone();
    json_patch::patch(&mut object, &operations).map_err(|error| format!("a patch that does not apply: {error}"))?;
    Ok(Mutated { object, changes: operations.iter().map(line).collect() })
}

fn line(operation: &PatchOperation) -> String {
    match operation {
        PatchOperation::Add(add) => format!("add {} {}", add.path, add.value),
        PatchOperation::Replace(replace) => format!("replace {} {}", replace.path, replace.value),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admission_applies_the_patch_of_a_webhook() {
        let patch = BASE64_STANDARD.encode(r#"[{"op":"add","path":"/spec","value":{"a":1}}]"#);

        let mutated = apply(&json!({"kind": "Pod"}), &json!({"allowed": true, "patch": patch})).unwrap();

        assert_eq!(mutated.object, json!({"kind": "Pod", "spec": {"a": 1}}));
        assert_eq!(mutated.changes, [r#"add /spec {"a":1}"#]);
    }

    #[test]
    fn admission_changes_nothing_without_a_patch() {
        let mutated = apply(&json!({"kind": "Pod"}), &json!({"allowed": true})).unwrap();

        assert_eq!((mutated.object, mutated.changes.len()), (json!({"kind": "Pod"}), 0));
    }

    #[test]
    fn admission_reports_a_denial_and_an_unusable_patch() {
        let denied = json!({"allowed": false, "status": {"message": "no"}});
        let missing = BASE64_STANDARD.encode(r#"[{"op":"remove","path":"/spec"}]"#);

        for (response, expected) in [
            (denied, "denied: no"),
            (json!({"allowed": true, "patch": "%"}), "no base64"),
            (json!({"allowed": true, "patch": BASE64_STANDARD.encode("{}")}), "no JSON patch"),
            (json!({"allowed": true, "patch": missing}), "does not apply"),
        ] {
            let error = apply(&json!({"kind": "Pod"}), &response).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
