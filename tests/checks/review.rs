//! Properties of the path from the bytes of a review to the bytes of its answer (spec 50 §2).

use base64::{Engine as _, prelude::BASE64_STANDARD};
use cluster::object::GroupVersionKind;
use gardener_resource_manager::webhooks::{
    endpoint::Mutating,
    registry::{self, WebhookEntry},
    review::{Body, Identity, Refusal, Review, ReviewVerdict, attempt, decode, reply},
};
use serde_json::{Map, Value, json};

use super::{mutate::Settings, patch};

const JSON: &str = "application/json";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    pub content_type: String,
    pub body: Vec<u8>,
}

pub fn check(case: &Case) {
    let decoded = decode(&case.whole(), &case.content_type);
    assert_eq!(decode(&case.whole(), &case.content_type), decoded, "the same bytes, the same review");
    case.check_reading();
    match decoded {
        Ok(review) => case.check_answers(&review),
        Err(refusal) => case.check_refusal(&refusal),
    }
}

/// The cluster that every webhook sees. For reviews of the namespace `absent` it is empty.
fn cluster(namespace: &str) -> Settings {
    let settings = json!({
        "empty": namespace == "absent",
        "namespace": {
            "high-availability-config.resources.gardener.cloud/failure-tolerance-type": "zone",
            "high-availability-config.resources.gardener.cloud/zones": "b,a",
        },
        "notReadySeconds": 60,
        "unreachableSeconds": 30,
        "automount": false,
        "expirationSeconds": 43_200,
        "schedulerName": "bin-packing-scheduler",
        "host": "api.example.org",
        "loadBalancing": { "hosts": "a.example.org,b.example.org", "istio-namespace": "istio-ingress" },
        "addresses": ["10.4.0.9", "None"],
        "nodes": [{ "spec": { "taints": [{ "key": "pool", "value": "sys", "effect": "NoExecute" }] } }],
        "nodeSelector": { "pool": "system" },
        "tolerations": [{ "key": "dedicated", "operator": "Exists" }],
    });
    serde_json::from_value(settings).expect("settings")
}

impl Case {
    fn whole(&self) -> Body {
        if self.body.is_empty() { Body::None } else { Body::Whole(self.body.clone().into()) }
    }

    /// If the body is JSON: the decoder reads exactly its fields, and names the right request in a refusal.
    fn check_reading(&self) {
        let Ok(document) = serde_json::from_slice::<Value>(&self.body) else { return };
        let expected = expected(&document);
        if let Ok(review) = decode(&self.whole(), JSON) {
            assert_eq!(Some(review), expected, "the decoded fields are those of the body");
        }
        let bytes = document.to_string().into_bytes();
        let body = Body::Whole(bytes.clone().into());
        assert_eq!(decode(&body, JSON).ok(), expected, "the fields of the body are decoded");
        if expected.is_none() {
            return;
        }

        let echoed = |refused: Result<Review, Refusal>| refused.expect_err("refused").identity;
        let identity = identity(&document).expect("a review has one");
        assert_eq!(echoed(decode(&body, "text/plain")), identity, "a refusal names the request");
        let beginning = bytes[..bytes.len() / 2].to_vec();
        let found = echoed(decode(&Body::TooLarge(beginning.into()), JSON));
        for (found, whole) in parts(found).iter().zip(parts(identity)) {
            assert!(found.is_empty() || *found == whole, "{found} is not {whole}");
        }
    }

    fn check_refusal(&self, refusal: &Refusal) {
        let answer = refusal.reply();
        assert_eq!(answer.status, 200);
        let answer: Value = serde_json::from_slice(&answer.body).expect("an answer is JSON");
        let status = json!({ "metadata": {}, "message": refusal.message, "code": 400 });
        assert_eq!(answer["response"], json!({ "uid": refusal.identity.uid, "allowed": false, "status": status }));
        check_identity(&answer, &refusal.identity);
        if self.body.is_empty() {
            assert_eq!(refusal.message, "request body is empty");
        } else if self.content_type != JSON {
            assert_eq!(refusal.message, format!("contentType={}, expected {JSON}", self.content_type));
        } else {
            check_fault(&refusal.message);
        }
    }

    fn check_answers(&self, review: &Review) {
        let cluster = cluster(&review.namespace);
        for webhook in registry::mutating(&cluster.config()) {
            let verdict = attempt(&*webhook.endpoint.mutator, review, &cluster).expect("all is known");
            let again = attempt(&*webhook.endpoint.mutator, review, &cluster);
            assert_eq!(again.as_ref(), Ok(&verdict), "the same review, the same verdict");
            self.check_answer(&webhook, review, &verdict);
            check_patch(&webhook, review, &verdict, &cluster);
            if !matches!(verdict, ReviewVerdict::Allowed | ReviewVerdict::Patched(_)) {
                let object = review.object.clone().map(|object| veiled(object, false));
                let veiled = attempt(&*webhook.endpoint.mutator, &Review { object, ..review.clone() }, &cluster);
                assert_eq!(veiled.as_ref(), Ok(&verdict), "no text depends on what may be secret");
            }
        }
    }

    fn check_answer(&self, webhook: &WebhookEntry<Mutating>, review: &Review, verdict: &ReviewVerdict) {
        let answer = reply(&review.identity, verdict, webhook.endpoint.failure_policy);
        assert_eq!(answer.status, 200, "{}", webhook.key);
        assert!(answer.body.len() <= 8192 + 256 * self.body.len(), "{}: {} bytes", webhook.key, answer.body.len());
        let answer: Value = serde_json::from_slice(&answer.body).expect("an answer is JSON");
        check_identity(&answer, &review.identity);
        let response = &answer["response"];
        let (code, message) = verdict.reported();
        assert_eq!(response["status"]["code"], code, "{}", webhook.key);
        assert_eq!(response["status"]["message"].as_str().unwrap_or_default(), message, "{}", webhook.key);
        assert_eq!(response["allowed"], code == 200, "{}", webhook.key);
        let patch = response.get("patch").map(|patch| {
            assert_eq!(response["patchType"], "JSONPatch");
            BASE64_STANDARD.decode(patch.as_str().expect("a patch is a text")).expect("a patch is Base64")
        });
        assert_eq!(response.get("patchType").is_some(), patch.is_some(), "both or none");
        assert_eq!(patch.as_ref(), if let ReviewVerdict::Patched(patch) = verdict { Some(patch) } else { None });
    }
}

impl From<&[u8]> for Case {
    fn from(input: &[u8]) -> Self {
        let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
        let body = input.get(end + 1..).unwrap_or_default().to_vec();
        Self { content_type: String::from_utf8_lossy(&input[..end]).into_owned(), body }
    }
}

/// Spec 50 §2.3 rules 2 and 3.
fn check_identity(answer: &Value, identity: &Identity) {
    let text = |field: &str| answer.get(field).map_or("", |value| value.as_str().expect("a text"));
    assert_eq!([text("apiVersion"), text("kind")], [&identity.api_version, &identity.kind]);
    assert_eq!(answer["response"]["uid"], identity.uid);
}

fn check_fault(message: &str) {
    let fault = message.strip_prefix("couldn't decode the AdmissionReview: ").expect(message);
    let (what, place) = fault.split_once(" at line ").expect(message);
    let (line, column) = place.split_once(", column ").expect(message);
    let known = [
        "a field has the wrong type",
        "unexpected end of JSON",
        "invalid JSON",
        "the object has too many fields",
        "the object is nested too deeply (more than 125 levels)",
    ];
    assert!(known.contains(&what), "{message}");
    assert!(line.parse::<usize>().is_ok() && column.parse::<usize>().is_ok(), "{message}");
}

/// The patch turns the object that was sent into the webhook's object. A second review needs no patch.
fn check_patch(webhook: &WebhookEntry<Mutating>, review: &Review, verdict: &ReviewVerdict, cluster: &Settings) {
    let ReviewVerdict::Patched(patch) = verdict else { return };
    let steps: Value = serde_json::from_slice(patch).expect("a patch is JSON");
    let before = review.object.as_ref().expect("a patched review has an object");
    let after = patch::applied(before, &steps);
    let review = Review { object: Some(after), ..review.clone() };
    assert_eq!(attempt(&*webhook.endpoint.mutator, &review, cluster), Ok(ReviewVerdict::Allowed), "{}", webhook.key);
}

/// Replaces the content of Secrets and of container environments by another text.
fn veiled(value: Value, is_content: bool) -> Value {
    match value {
        Value::String(_) if is_content => "veiled".into(),
        Value::Array(items) => items.into_iter().map(|item| veiled(item, is_content)).collect(),
        Value::Object(fields) => {
            let is_content = |key: &str| is_content || matches!(key, "data" | "stringData" | "value");
            fields.into_iter().map(|(key, value)| (key.clone(), veiled(value, is_content(&key)))).collect()
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

fn expected(document: &Value) -> Option<Review> {
    let request = map(document.as_object()?, "request")?;
    let kind = map(&request, "kind")?;
    let mut identity = identity(document)?;
    if identity.api_version.is_empty() && identity.kind.is_empty() {
        identity.api_version = "admission.k8s.io/v1".to_owned();
        identity.kind = "AdmissionReview".to_owned();
    }
    Some(Review {
        identity,
        kind: GroupVersionKind::new(text(&kind, "group")?, text(&kind, "version")?, text(&kind, "kind")?),
        namespace: text(&request, "namespace")?,
        name: text(&request, "name")?,
        operation: text(&request, "operation")?,
        object: request.get("object").filter(|object| !object.is_null()).cloned(),
    })
}

fn identity(document: &Value) -> Option<Identity> {
    let fields = document.as_object()?;
    let uid = text(&map(fields, "request")?, "uid")?;
    Some(Identity { api_version: text(fields, "apiVersion")?, kind: text(fields, "kind")?, uid })
}

fn parts(identity: Identity) -> [String; 3] {
    [identity.api_version, identity.kind, identity.uid]
}

fn text(fields: &Map<String, Value>, field: &str) -> Option<String> {
    match fields.get(field) {
        None | Some(Value::Null) => Some(String::new()),
        Some(value) => value.as_str().map(str::to_owned),
    }
}

fn map(fields: &Map<String, Value>, field: &str) -> Option<Map<String, Value>> {
    match fields.get(field) {
        None | Some(Value::Null) => Some(Map::new()),
        Some(value) => value.as_object().cloned(),
    }
}
