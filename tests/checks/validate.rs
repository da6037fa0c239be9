//! Properties of the validating webhooks: deletion protection (spec 60 §2), and rules of extension objects (spec 62).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gardener_resource_manager::{
    api::config::resource_manager::{Switch, Webhooks},
    webhooks::{
        endpoint::{Account, Conclusion, Endpoint as _, Validating},
        exchange::{Body, JSON, LIMIT, Received},
        knowledge::Manifests,
        registry::{self, WebhookEntry},
        review::{Judged, ReviewVerdict},
        validating::extensions::{self, Extension},
    },
};
use serde_json::{Value, json};

/// The largest answer: 256 KiB of errors, twice, with up to six bytes of JSON for each byte.
const LARGEST: usize = 3 * 1024 * 1024 + 64 * 1024;
const MOST_ERRORS: usize = 100;
/// A text that belongs to a user. It is meaningless, both in Base64 and decoded.
const SECRET: &str = "czNjcmV0LW9mLXRoZS11c2Vy";
const DECODED: &str = "s3cret-of-the-user";
const DELETED: &str = "2026-01-01T00:00:00Z";

/// Where extension objects hold content of users and providers. `*` is any element of a list, `{}` any value of a map.
const CONTENT: [&[&str]; 13] = [
    &["spec", "userData"],
    &["spec", "sshPublicKey"],
    &["spec", "providerConfig"],
    &["spec", "infrastructureProviderStatus"],
    &["spec", "backupBucketProviderStatus"],
    &["spec", "pools", "*", "providerConfig"],
    &["spec", "units", "*", "content"],
    &["spec", "units", "*", "dropIns", "*", "content"],
    &["spec", "files", "*", "content", "inline", "data"],
    &["spec", "criConfig", "containerd", "plugins", "*", "values", "{}"],
    &["status", "extensionUnits", "*", "content"],
    &["status", "extensionUnits", "*", "dropIns", "*", "content"],
    &["status", "extensionFiles", "*", "content", "inline", "data"],
];

pub fn check(body: &[u8]) {
    for webhook in webhooks() {
        let received = received(body.to_vec());
        let conclusion = answered(&webhook, &received);
        assert_eq!(answered(&webhook, &received), conclusion, "{}: the same bytes, the same answer", webhook.path);
        check_answer(&conclusion, webhook.path);
    }
    let Ok(review) = serde_json::from_slice::<Value>(body) else { return };
    let [object, old] = ["object", "oldObject"].map(|field| review["request"][field].clone());
    let operation = review["request"]["operation"].as_str().unwrap_or_default();
    // Objects of other kinds are refused before any rule runs.
    let is_meant = |kind: &str| {
        let says = |object: &Value| object["kind"].as_str().is_none_or(|says| says == kind);
        says(&object) && says(&old)
    };
    for extension in extensions::all().into_iter().filter(|extension| is_meant(extension.kind.kind)) {
        let case = Case { extension, operation, object: &object, old: &old };
        case.check_unknown_fields();
        case.check_content();
        for object in [&object, &old] {
            check_as_manifest(extension, object);
            check_without_change(extension, object);
            check_end(extension, object);
        }
    }
}

struct Case<'a> {
    extension: Extension,
    operation: &'a str,
    object: &'a Value,
    old: &'a Value,
}

impl Case<'_> {
    /// A verdict does not depend on unknown fields. While an Etcd is being deleted all its fields count, so both
    /// objects get the unknown fields. Only the text that lists requested changes may name them.
    fn check_unknown_fields(&self) {
        let judgement = judged(self.extension, self.operation, self.object, self.old);
        let [object, old] = [self.object, self.old].map(|object| with_unknown_fields(object.clone()));
        let with_more = judged(self.extension, self.operation, &object, &old);
        if self.extension.kind.kind == "Etcd" {
            assert_eq!(with_more.code, judgement.code);
        } else {
            assert_eq!(with_more.without_changes(), judgement.without_changes(), "{}", self.extension.path);
        }
    }

    /// Content of users is in no answer, log or metric. Foreign fields of an Etcd are shown with its spec.
    fn check_content(&self) {
        let is_there = |object: &Value| object.to_string().contains(SECRET);
        if self.extension.kind.kind == "Etcd" || is_there(self.object) || is_there(self.old) {
            return;
        }
        let [new, old] = [self.object, self.old].map(|object| with_content(object.clone(), SECRET));
        for (new, old) in [(&new, &old), (&new, self.old), (self.object, &old)] {
            let conclusion = asked(self.extension, self.operation, new, old);
            let answer = String::from_utf8(conclusion.reply.body.clone()).expect("an answer is text");
            for judgement in [answer, format!("{:?}", conclusion.account)] {
                assert!(
                    !judgement.contains(SECRET) && !judgement.contains(DECODED),
                    "{}: {judgement}",
                    self.extension.path
                );
            }
        }
    }
}

fn check_as_manifest(extension: Extension, object: &Value) {
    if object.is_null() {
        return;
    }
    let offline = match extension.check(object) {
        Ok(checked) => checked.errors.iter().map(|error| (error.field.clone(), error.message.clone())).collect(),
        Err(message) => vec![(String::new(), message)],
    };
    let judgement = judged(extension, "CREATE", object, &Value::Null);
    assert_eq!(judgement.kept(), offline, "{}", extension.path);
}

/// An update that changes nothing breaks exactly the rules that the object breaks when it is created.
fn check_without_change(extension: Extension, object: &Value) {
    if object.is_null() || !object["metadata"]["deletionTimestamp"].is_null() {
        return;
    }
    let (created, updated) =
        (judged(extension, "CREATE", object, &Value::Null), judged(extension, "UPDATE", object, object));
    if created.errors.len() >= MOST_ERRORS || updated.errors.len() >= MOST_ERRORS {
        return;
    }
    let of_updates = |(field, message): &(String, String)| {
        field == "metadata.resourceVersion" && message.ends_with("must be specified for an update")
    };
    let [created, updated] = [created, updated].map(|judgement| BTreeSet::from_iter(judgement.errors));
    let updated: BTreeSet<_> = updated.into_iter().filter(|error| !of_updates(error)).collect();
    assert_eq!(updated, created, "{}", extension.path);
}

/// The last finalizer of a readable object in deletion can be removed: no rule of spec or status prevents it.
fn check_end(extension: Extension, object: &Value) {
    if !object["metadata"].is_object() {
        return;
    }
    let mut old = object.clone();
    old["metadata"]["deletionTimestamp"] = json!(DELETED);
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    let judgement = judged(extension, "UPDATE", &new, &old);
    for (field, message) in judgement.errors.iter().filter(|_| judgement.code == 422) {
        let is_rest = field.is_empty() && message.starts_with("and ");
        assert!(is_rest || field.starts_with("metadata."), "{}: {field}: {message}", extension.path);
    }
}

/// What an answer says: fields and messages of its causes, or its only message without a field.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Judgement {
    code: u16,
    errors: Vec<(String, String)>,
}

impl Judgement {
    fn kept(&self) -> Vec<(String, String)> {
        let is_rest = |(field, message): &(String, String)| field.is_empty() && message.starts_with("and ");
        self.errors.iter().filter(|error| !is_rest(error)).cloned().collect()
    }

    fn without_changes(&self) -> Vec<(String, String)> {
        let without = |(field, message): &(String, String)| match message.split_once("Requested changes: ") {
            Some((known, _)) if field == "spec" => (field.clone(), known.to_owned()),
            _ => (field.clone(), message.clone()),
        };
        self.errors.iter().map(without).collect()
    }
}

fn webhooks() -> Vec<WebhookEntry<Validating>> {
    let config =
        Webhooks { crd_deletion_protection: Switch::ON, extension_validation: Switch::ON, ..Webhooks::default() };
    registry::validating(&config)
}

fn received(body: Vec<u8>) -> Received {
    let body = match body.len() {
        0 => Body::None,
        LIMIT.. => Body::TooLarge(body.into()),
        _ => Body::Whole(body.into()),
    };
    Received { body, content_type: JSON.to_owned() }
}

/// The cluster is empty: no rule of an extension reads it.
fn answered(webhook: &WebhookEntry<Validating>, received: &Received) -> Conclusion {
    let nothing = Manifests::new(&[], BTreeMap::new());
    webhook.endpoint.answer(received, &nothing).expect("nothing can be read")
}

fn asked(extension: Extension, operation: &str, object: &Value, old: &Value) -> Conclusion {
    let review = json!({ "request": { "uid": "u", "operation": operation, "object": object, "oldObject": old } });
    let endpoint = Validating { validator: Arc::new(extension) };
    let webhook = WebhookEntry { key: "extensionValidation", path: extension.path, reads: Vec::new(), endpoint };
    let conclusion = answered(&webhook, &received(review.to_string().into_bytes()));
    check_answer(&conclusion, extension.path);
    conclusion
}

fn judged(extension: Extension, operation: &str, object: &Value, old: &Value) -> Judgement {
    match asked(extension, operation, object, old).account {
        Account::Admission(Judged::Reviewed { verdict, .. }, _) => {
            let (code, message) = verdict.reported();
            let errors = match &verdict {
                ReviewVerdict::Invalid { status, .. } => {
                    let causes = status.causes.iter();
                    causes.map(|cause| (cause.field.clone(), cause.message.clone())).collect()
                }
                _ if message.is_empty() => Vec::new(),
                _ => vec![(String::new(), message.to_owned())],
            };
            Judgement { code, errors }
        }
        other => panic!("{}: {other:?}", extension.path),
    }
}

/// The answer is an AdmissionReview of bounded size that contains the findings.
fn check_answer(conclusion: &Conclusion, path: &str) {
    let Conclusion { reply, account: Account::Admission(judged, validated) } = conclusion else {
        panic!("{path}: {conclusion:?}");
    };
    assert_eq!(reply.status, 200, "{path}");
    assert!(reply.body.len() <= LARGEST, "{path}: {} bytes", reply.body.len());
    let answer: Value = serde_json::from_slice(&reply.body).expect("an answer is JSON");
    let response = &answer["response"];
    let Judged::Reviewed { verdict, .. } = judged else {
        assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(400)), "{path}");
        return;
    };
    assert!(!matches!(verdict, ReviewVerdict::Panicked(_)), "{path}: {verdict:?}");
    let (code, message) = verdict.reported();
    assert_eq!(response["status"]["code"], code, "{path}");
    assert_eq!(response["status"]["message"].as_str().unwrap_or_default(), message, "{path}");
    assert_eq!(response["allowed"], code == 200, "{path}");
    assert!(response.get("patch").is_none(), "{path}: validation changes nothing");
    let ReviewVerdict::Invalid { status, errors } = verdict else { return };
    assert!(validated.as_ref().is_some_and(|validated| validated.is_denied), "{path}");
    assert_eq!((status.code, &*status.reason), (422, "Invalid"), "{path}");
    let causes = &status.causes;
    assert!(!causes.is_empty() && causes.len() <= MOST_ERRORS + 1, "{path}: {} causes", causes.len());
    let kept = causes.iter().filter(|cause| !cause.field.is_empty());
    assert!(kept.clone().count() <= *errors, "{path}: {errors} errors");
    for cause in kept {
        assert!(message.contains(&format!("{}: {}", cause.field, cause.message)), "{path}: {cause:?}");
    }
}

fn with_unknown_fields(mut object: Value) -> Value {
    for place in ["", "/spec", "/status", "/spec/secretRef", "/spec/pools/0", "/spec/files/0"] {
        if let Some(Value::Object(fields)) = object.pointer_mut(place) {
            fields.insert("x-unknown".to_owned(), json!({ "a": [1, "b"] }));
        }
    }
    object
}

/// Sets this text wherever content of users is. A value of another type stays: the error names its expected type.
fn with_content(mut object: Value, text: &str) -> Value {
    for place in CONTENT {
        replace(&mut object, place, text);
    }
    object
}

fn replace(value: &mut Value, place: &[&str], text: &str) {
    match (place, value) {
        ([], value @ Value::String(_)) => *value = text.into(),
        ([], Value::Object(fields)) => fields.values_mut().for_each(|value| replace(value, &[], text)),
        (["{}", rest @ ..], Value::Object(fields)) => fields.values_mut().for_each(|value| replace(value, rest, text)),
        (["*", rest @ ..], Value::Array(items)) => items.iter_mut().for_each(|item| replace(item, rest, text)),
        ([field, rest @ ..], Value::Object(fields)) => {
            if let Some(value) = fields.get_mut(*field) {
                replace(value, rest, text);
            }
        }
        _ => {}
    }
}
