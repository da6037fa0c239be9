//! The contract of spec 50 §2.2 to §2.4, without HTTP.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use cluster::{Cause, Status};
use serde_json::{Value, json};

use super::*;
use crate::{
    api::{config::resource_manager::HighAvailabilityConfig, meta::field::MOST_VALUES},
    webhooks::{
        mutating::{Mutation, Mutator, Request, high_availability::HighAvailability},
        server::metrics::FAILURE_CAUSES,
        testing::TestView,
        view::{Failure, Lookup, Read, View},
    },
};

const JSON: &str = "application/json";

struct Scripted {
    mutate: fn(&mut Value) -> Result<Mutation, Failure>,
    takes: Option<(&'static str, &'static str)>,
}

fn scripted(mutate: fn(&mut Value) -> Result<Mutation, Failure>) -> Scripted {
    Scripted { mutate, takes: Some(("", "Pod")) }
}

impl Mutator for Scripted {
    fn mutate(&self, object: &mut Value, _: &Request<'_>, _: &dyn View) -> Result<Mutation, Failure> {
        (self.mutate)(object)
    }

    fn takes(&self) -> Option<(&'static str, &'static str)> {
        self.takes
    }
}

struct Witness;

impl Mutator for Witness {
    fn mutate(&self, object: &mut Value, request: &Request<'_>, _: &dyn View) -> Result<Mutation, Failure> {
        let Request { kind, namespace, name, operation } = request;
        *object = json!(format!("{operation} {kind} {namespace}/{name}"));
        Ok(Mutation::Done)
    }

    fn takes(&self) -> Option<(&'static str, &'static str)> {
        None
    }
}

fn body(review: &Value) -> Body {
    Body::Whole(Bytes::from(review.to_string()))
}

fn review_of(version: &str, operation: &str, object: Value) -> Value {
    json!({"apiVersion": version, "kind": "AdmissionReview", "request": {
        "uid": "7c1f", "kind": {"group": "apps", "version": "v1", "kind": "ReplicaSet"}, "operation": operation,
        "namespace": "ns", "name": "n", "object": object,
    }})
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"futureField": 7}})
}

fn answer(mutator: &dyn Mutator, policy: FailurePolicy, review: &Value) -> (u16, Value) {
    let review = decode(&body(review), JSON).unwrap();
    let verdict = attempt(mutator, &review, &TestView::new()).unwrap();
    let reply = reply(&review.identity, &verdict, policy);
    let text = || Value::from(String::from_utf8_lossy(&reply.body).into_owned());
    (reply.status, serde_json::from_slice(&reply.body).unwrap_or_else(|_| text()))
}

fn answer_to_pod(mutate: fn(&mut Value) -> Result<Mutation, Failure>) -> Value {
    let review = review_of("admission.k8s.io/v1", "CREATE", pod());
    let (status, answer) = answer(&scripted(mutate), FailurePolicy::Fail, &review);
    assert_eq!(status, 200);
    answer["response"].clone()
}

fn labelled(object: &mut Value) -> Result<Mutation, Failure> {
    object["metadata"]["labels"] = json!({"a/b": "c"});
    Ok(Mutation::Done)
}

fn refused(body: &Body, content_type: &str) -> Value {
    let reply = decode(body, content_type).unwrap_err().reply();
    assert_eq!(reply.status, 200);
    serde_json::from_slice(&reply.body).unwrap()
}

/// spec 50 §2.2 rows 1 to 4, scenarios 3, 4 and 5
#[test]
fn malformed_review_is_refused_in_the_order_of_the_table() {
    let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
    let table = [
        (Body::None, "", 400, "request body is empty"),
        (Body::Broken("connection reset".into()), "", 400, "connection reset"),
        (Body::TooLarge(bytes("{")), "", 413, "request entity is too large; limit is 7340032 bytes"),
        (Body::Whole(bytes("{")), "", 400, "contentType=, expected application/json"),
        (
            Body::Whole(bytes("{}")),
            "application/json; charset=utf-8",
            400,
            "contentType=application/json; charset=utf-8, expected application/json",
        ),
    ];

    for (body, content_type, code, message) in table {
        let status = json!({"metadata": {}, "message": message, "code": code});
        let expected = json!({"response": {"uid": "", "allowed": false, "status": status}});
        assert_eq!(refused(&body, content_type), expected, "{body:?}");
    }
}

/// spec 50 §2.2 row 5
#[test]
fn undecodable_review_is_refused_without_quoting_it() {
    let table = [
        (r#"{"request": {"uid": "#, "unexpected end of JSON at line 1, column 20"),
        (r#"{"request": secret}"#, "invalid JSON at line 1, column 13"),
        (r#"{"request": "secret"}"#, "a field has the wrong type at line 1, column 20"),
        ("", "unexpected end of JSON at line 1, column 0"),
        ("null", "a field has the wrong type at line 1, column 4"),
    ];

    for (text, fault) in table {
        let answer = refused(&Body::Whole(Bytes::from(text)), JSON);
        let status = &answer["response"]["status"];
        assert_eq!(status["code"], 400, "{text}");
        assert_eq!(status["message"], format!("couldn't decode the AdmissionReview: {fault}"), "{text}");
    }
}

/// spec 50 §2.2 row 5
#[test]
fn lists_are_no_reviews() {
    let version = r#""admission.k8s.io/v1", "AdmissionReview""#;
    for text in [
        format!(r#"[{version}, {{"uid": "7c1f"}}]"#),
        r#"{"request": ["7c1f", null, "ns", "n", "CREATE", {}]}"#.to_owned(),
        r#"{"request": {"uid": "7c1f", "kind": ["apps", "v1", "Deployment"]}}"#.to_owned(),
    ] {
        let answer = refused(&Body::Whole(Bytes::from(text)), JSON);
        let message = answer["response"]["status"]["message"].as_str().unwrap();
        assert!(message.starts_with("couldn't decode the AdmissionReview: a field has the wrong type"), "{message}");
    }
}

/// Each field may take a hundred times the memory of its text.
#[test]
fn object_with_too_many_fields_is_refused() {
    let body = |items: usize| {
        let items = vec!["{}"; items].join(",");
        let text = format!(r#"{{"request": {{"uid": "7c1f", "oldObject": [{items}], "object": {{"a": [{items}]}}}}}}"#);
        Body::Whole(Bytes::from(text))
    };
    let most = MOST_VALUES - 2; // the object itself and the list

    assert!(decode(&body(most), JSON).is_ok());

    let answer = refused(&body(most + 1), JSON);
    let status = &answer["response"]["status"];
    assert_eq!((&answer["response"]["uid"], &status["code"]), (&json!("7c1f"), &json!(400)));
    let message = status["message"].as_str().unwrap();
    let expected = "couldn't decode the AdmissionReview: the object has too many fields at line 1, column ";
    assert!(message.starts_with(expected), "{message}");
}

/// spec 50 §2.2 row 5
#[test]
fn object_nested_too_deeply_is_refused_with_that_reason() {
    let body = |levels: usize| {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        Body::Whole(Bytes::from(format!(r#"{{"request": {{"uid": "7c1f", "object": {{"a": {open}{close}}}}}}}"#)))
    };

    assert!(decode(&body(125), JSON).is_ok());

    let answer = refused(&body(126), JSON);
    let message = answer["response"]["status"]["message"].as_str().unwrap();
    let expected = "couldn't decode the AdmissionReview: the object is nested too deeply (more than 125 levels) at line 1, column ";
    assert!(message.starts_with(expected), "{message}");
}

/// spec 50, "better" 9
#[test]
fn refusal_repeats_the_readable_identity_of_the_review() {
    // in the order in which API servers write it
    let cut =
        r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"7c1f","object":{"a":[1,"#;
    let whole = format!("{cut}2]}}}}}}");
    let cut = Bytes::from(cut);
    let v1 = "admission.k8s.io/v1";
    let table = [
        (Body::TooLarge(cut.clone()), JSON, v1, "7c1f"),
        (Body::Whole(cut), JSON, v1, "7c1f"),
        (Body::Whole(Bytes::from(whole)), "text/plain", v1, "7c1f"),
        (Body::Whole(Bytes::from_static(br#"{"request": {"uid": "u", "name": 5}}"#)), JSON, "", "u"),
        (Body::Whole(Bytes::from_static(br#"{"request": {"uid": 5}}"#)), JSON, "", ""),
        (Body::Whole(Bytes::from_static(br#"{"kind": null, "request": {"uid": "u"}}"#)), "", "", "u"),
        (Body::Whole(Bytes::from_static(br#"{"request": null, "apiVersion": "v"}"#)), "", "v", ""),
    ];

    for (body, content_type, version, uid) in table {
        let answer = refused(&body, content_type);
        assert_eq!(answer["response"]["uid"], uid, "{answer}");
        assert_eq!(answer.get("apiVersion").and_then(Value::as_str).unwrap_or_default(), version, "{answer}");
    }
}

/// spec 50 §2.2 rows 6 and 7, scenario 6
#[test]
fn undecodable_object_is_an_error_with_the_uid() {
    let status = |object| {
        let review = review_of("admission.k8s.io/v1", "CREATE", object);
        let (_, answer) = answer(&scripted(|_| Ok(Mutation::Done)), FailurePolicy::Fail, &review);
        assert_eq!(answer["response"]["uid"], "7c1f");
        answer["response"]["status"].clone()
    };

    let missing = json!({"metadata": {}, "message": "there is no content to decode", "code": 400});
    assert_eq!(status(Value::Null), missing);
    let others = [
        json!({"apiVersion": "apps/v1", "kind": "Deployment"}),
        json!({"apiVersion": "apps/v1", "kind": "Pod"}),
        json!({"kind": "Service"}),
        json!([]),
        json!("Pod"),
    ];
    for other in others {
        assert_eq!(status(other.clone())["code"], 400, "{other}");
    }
    for pod in [json!({}), json!({"kind": "Pod"}), json!({"apiVersion": "v1", "kind": "Pod"})] {
        assert_eq!(status(pod.clone())["code"], 200, "{pod}");
    }
}

/// spec 51 §2.4, §3, scenarios 35 and 36
#[test]
fn high_availability_webhook_sees_every_review() {
    let status = |kind: &str, namespace: &str, operation, object| {
        let mut review = review_of("admission.k8s.io/v1", operation, object);
        review["request"]["kind"]["kind"] = json!(kind);
        review["request"]["namespace"] = json!(namespace);
        let config = HighAvailabilityConfig {
            default_not_ready_toleration_seconds: None,
            default_unreachable_toleration_seconds: None,
        };
        let review = decode(&body(&review), JSON).unwrap();
        let view = TestView::new().namespace("ns", []);
        let verdict = attempt(&HighAvailability(config), &review, &view).unwrap();
        let reply = reply(&review.identity, &verdict, FailurePolicy::Fail);
        serde_json::from_slice::<Value>(&reply.body).unwrap()["response"]["status"].take()
    };

    let denied = |message| json!({"metadata": {}, "message": message, "reason": "Forbidden", "code": 403});
    let missing = json!({"metadata": {}, "message": "Namespace \"zz\" not found", "code": 500});
    let unexpected = json!({"metadata": {}, "message": "unexpected resource: ReplicaSet.apps", "code": 200});
    for operation in ["CREATE", "DELETE"] {
        assert_eq!(status("Deployment", "ns", operation, Value::Null), denied("there is no content to decode"));
        assert_eq!(status("Deployment", "zz", operation, Value::Null), missing);
        for object in [Value::Null, json!({}), json!([]), pod()] {
            assert_eq!(status("ReplicaSet", "ns", operation, object), unexpected);
        }
        let no_map = denied("the object: expected a map, found a list");
        assert_eq!(status("Deployment", "ns", operation, json!([])), no_map);
    }
}

/// spec 50 §2.6: an UPDATE is processed like a CREATE, a dry run like any other.
#[test]
fn other_fields_of_a_review_make_no_difference() {
    let review = review_of("admission.k8s.io/v1", "CREATE", pod());
    let expected = answer(&scripted(labelled), FailurePolicy::Fail, &review);
    let table = [
        ("operation", json!("UPDATE")),
        ("operation", json!("CONNECT")),
        ("dryRun", json!(true)),
        ("name", Value::Null),
        ("oldObject", pod()),
        ("options", json!({"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions", "dryRun": ["All"]})),
        ("userInfo", json!({"username": "u", "groups": ["g"]})),
        ("future", json!([1])),
    ];

    for (field, value) in table {
        let mut other = review.clone();
        other["request"][field] = value;

        assert_eq!(answer(&scripted(labelled), FailurePolicy::Fail, &other), expected, "{other}");
    }
}

/// spec 50 §2.6: namespace, name and kind are those of the request, after conversion by `matchPolicy: Equivalent`.
#[test]
fn namespace_name_and_kind_are_those_of_the_request_not_the_object() {
    let mut object = pod();
    object["metadata"] = json!({"name": "other", "namespace": "other"});
    let mut review = review_of("admission.k8s.io/v1", "UPDATE", object);
    review["request"]["requestKind"] = json!({"group": "extensions", "version": "v1beta1", "kind": "Other"});

    let (_, answer) = answer(&Witness, FailurePolicy::Fail, &review);

    let patch = BASE64_STANDARD.decode(answer["response"]["patch"].as_str().unwrap()).unwrap();
    let asked = &serde_json::from_slice::<Value>(&patch).unwrap()[0]["value"];
    assert_eq!(asked, "UPDATE apps/v1, Kind=ReplicaSet ns/n");
}

/// spec 50 §2.3, scenarios 1 and 2
#[test]
fn answer_has_version_kind_and_uid_of_its_review() {
    let table = [
        (
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
            "admission.k8s.io/v1",
            "AdmissionReview",
        ),
        (
            json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}),
            "admission.k8s.io/v1beta1",
            "AdmissionReview",
        ),
        (json!({"apiVersion": "admission.k8s.io/v2", "kind": "Other"}), "admission.k8s.io/v2", "Other"),
        (json!({}), "admission.k8s.io/v1", "AdmissionReview"),
        (json!({"kind": "AdmissionReview"}), "", "AdmissionReview"),
        (json!({"apiVersion": "admission.k8s.io/v1"}), "admission.k8s.io/v1", ""),
    ];

    for (mut review, version, kind) in table {
        review["request"] = json!({"uid": "7c1f", "object": pod()});
        let (_, answer) = answer(&scripted(labelled), FailurePolicy::Fail, &review);
        let text = |field: &str| answer.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        assert_eq!((text("apiVersion").as_str(), text("kind").as_str()), (version, kind), "{review}");
        assert_eq!(answer["response"]["uid"], "7c1f");
    }
}

/// spec 50 §2.4, scenarios 2, 9 and 10
#[test]
fn patch_is_sent_only_for_a_change() {
    let patched = answer_to_pod(labelled);
    let patch = BASE64_STANDARD.decode(patched["patch"].as_str().unwrap()).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&patch).unwrap(),
        json!([{"op": "add", "path": "/metadata/labels", "value": {"a/b": "c"}}])
    );
    let status = json!({"metadata": {}, "code": 200});
    assert_eq!(
        (&patched["patchType"], &patched["allowed"], &patched["status"]),
        (&json!("JSONPatch"), &json!(true), &status)
    );

    let unchanged = answer_to_pod(|_| Ok(Mutation::Done));
    assert_eq!(unchanged, json!({"uid": "7c1f", "allowed": true, "status": status}));
}

/// spec 50 §2.4, scenario 7
#[test]
fn deletion_is_allowed_unseen() {
    let review = review_of("admission.k8s.io/v1", "DELETE", Value::Null);

    let (_, answer) = answer(&scripted(|_| Err(Failure::Denied("seen".into()))), FailurePolicy::Fail, &review);

    let status = json!({"metadata": {}, "code": 200});
    assert_eq!(answer["response"], json!({"uid": "7c1f", "allowed": true, "status": status}));
}

/// spec 50 §2.4, the denial bodies; scenario 11
#[test]
fn failures_are_denials_of_these_forms() {
    type Failing = fn(&mut Value) -> Result<Mutation, Failure>;
    let table: [(Failing, Value); 7] = [
        (
            |_| Err(Failure::Denied("no".into())),
            json!({"metadata": {}, "message": "no", "reason": "Forbidden", "code": 403}),
        ),
        (
            |_| Err(Failure::not_found("ServiceAccount", "dns")),
            json!({"metadata": {}, "status": "Failure", "message": "ServiceAccount \"dns\" not found",
                "reason": "NotFound", "details": {"name": "dns", "kind": "ServiceAccount"}, "code": 404}),
        ),
        (
            |_| {
                let (reason, message) = ("Timeout".to_owned(), "Timeout: x".to_owned());
                Err(Failure::Status(Box::new(Status { code: 504, reason, message, ..Status::default() })))
            },
            json!({"metadata": {}, "status": "Failure", "message": "Timeout: x", "reason": "Timeout", "code": 504}),
        ),
        (
            |_| {
                let causes =
                    vec![Cause { reason: "R".into(), message: "m".into(), field: "spec.a".into() }, Cause::default()];
                let [name, group, kind, uid] = ["n", "g", "k", "u"].map(str::to_owned);
                let [reason, message] = ["TooManyRequests", "later"].map(str::to_owned);
                let (code, retry_after_seconds) = (429, 7);
                let status = Status {
                    code,
                    reason,
                    message,
                    name,
                    group,
                    kind,
                    uid,
                    causes,
                    retry_after_seconds,
                    ..Status::default()
                };
                Err(Failure::Status(Box::new(status)))
            },
            json!({"metadata": {}, "status": "Failure", "message": "later", "reason": "TooManyRequests", "code": 429,
                "details": {"name": "n", "group": "g", "kind": "k", "uid": "u", "retryAfterSeconds": 7,
                    "causes": [{"reason": "R", "message": "m", "field": "spec.a"}, {}]}}),
        ),
        (
            |_| Err(Failure::Errored { code: 500, message: "broken".into() }),
            json!({"metadata": {}, "message": "broken", "code": 500}),
        ),
        (
            |_| panic!("at the {}", "disco"),
            json!({"metadata": {}, "message": "panic: at the disco [recovered]", "code": 500}),
        ),
        (|_| panic!("plain"), json!({"metadata": {}, "message": "panic: plain [recovered]", "code": 500})),
    ];

    for (failing, status) in table {
        let answer = answer_to_pod(failing);
        assert_eq!(answer, json!({"uid": "7c1f", "allowed": false, "status": status}));
    }
}

/// spec 50, "better" 8
#[test]
fn ignored_failures_are_http_errors_and_denials_are_reviews() {
    let review = review_of("admission.k8s.io/v1", "CREATE", pod());
    let ignored = |mutate| answer(&scripted(mutate), FailurePolicy::Ignore, &review);

    assert_eq!(ignored(|_| panic!("x")), (500, json!("panic: x [recovered]\n")));
    assert_eq!(ignored(|_| Err(Failure::Errored { code: 500, message: "x".into() })), (500, json!("x\n")));
    let (status, denied) = ignored(|_| Err(Failure::Errored { code: 400, message: "x".into() }));
    assert_eq!((status, &denied["response"]["allowed"]), (200, &json!(false)));
}

/// spec 51, "better" 11
#[test]
fn each_failure_has_a_cause_that_metrics_know() {
    let failed = |read| ReviewVerdict::ReadFailed { read, message: String::new() };
    let errored = |code| ReviewVerdict::Errored { code, message: String::new() };
    let Failure::Status(status) = Failure::not_found("ServiceAccount", "x") else { panic!("no status") };
    let table = [
        (ReviewVerdict::Denied(String::new()), "denied"),
        (ReviewVerdict::Status(status.clone()), "status"),
        (ReviewVerdict::Invalid { status, errors: 1 }, "invalid"),
        (failed(Read::Namespace), "namespace"),
        (failed(Read::Autoscalers), "autoscalers"),
        (failed(Read::Nodes), "nodes"),
        (errored(400), "undecodable"),
        (errored(500), "internal"),
        (ReviewVerdict::Panicked(String::new()), "panic"),
    ];

    assert_eq!(table.clone().map(|(_, cause)| cause), FAILURE_CAUSES);
    for (verdict, cause) in table {
        assert_eq!(verdict.cause(), Some(cause));
    }
    for verdict in
        [ReviewVerdict::Allowed, ReviewVerdict::Patched(Vec::new()), ReviewVerdict::Unexpected(String::new())]
    {
        assert_eq!(verdict.cause(), None);
    }
}

#[test]
fn request_for_a_live_read_is_no_verdict() {
    let review = decode(&body(&review_of("admission.k8s.io/v1", "CREATE", pod())), JSON).unwrap();
    let looking = scripted(|_| Err(Failure::ReadLive(Lookup::Autoscalers("istio".into()))));

    assert_eq!(attempt(&looking, &review, &TestView::new()), Err(Lookup::Autoscalers("istio".into())));
}
