//! The HTTP contract of spec 61 §1, without HTTP.

use bytes::Bytes;
use cluster::Status;
use serde_json::{Value, json};

use super::*;
use crate::webhooks::{
    endpoint::{
        Account, Authorizing, Endpoint as _,
        testing::{answer, authorizing, json as parsed, received, reported},
    },
    exchange::{Body, JSON, LIMIT, Received},
    server::metrics::{DECIDED_RESOURCES, DECISIONS},
    testing::TestView,
};

struct Scripted(fn(&Attributes<'_>) -> Result<Decision, Failure>);

impl Authorizer for Scripted {
    fn decide(&self, attributes: &Attributes<'_>, _: &dyn View) -> Result<Decision, Failure> {
        (self.0)(attributes)
    }

    fn topic(&self, _: &Attributes<'_>) -> &'static str {
        "pods"
    }

    fn logger(&self) -> &'static str {
        "test"
    }
}

fn witness() -> Authorizing {
    authorizing(Scripted(|attributes| {
        let Attributes { user, groups, action } = attributes;
        let action = match action {
            Action::Resource(action) => {
                let ResourceAction { verb, namespace, group, resource, subresource, name, field_selector: _ } = action;
                format!("{verb} {group}/{resource}/{subresource} {namespace}/{name}")
            }
            Action::Path(PathAction { verb, path }) => format!("{verb} path {path}"),
            Action::None => "nothing".to_owned(),
        };
        Ok(Decision::Deny(format!("{user} [{}] {action}", groups.join(" "))))
    }))
}

fn answered(body: Body, content_type: &str) -> Value {
    let received = Received { body, content_type: content_type.to_owned() };
    parsed(&witness().answer(&received, &TestView::new()).unwrap())
}

fn whole(text: &str) -> Body {
    Body::Whole(Bytes::from(text.to_owned()))
}

/// spec 61 §1.1, §1.3; scenario 31
#[test]
fn malformed_review_is_answered_with_an_error_inside_of_http_200() {
    let table = [
        (Body::None, "", "422 request body is empty"),
        (Body::Broken("connection reset".into()), "", "400 connection reset"),
        (Body::TooLarge(Bytes::from_static(b"{")), "", "413 request entity is too large; limit is 7340032 bytes"),
        (whole("{}"), "text/plain", "400 contentType=text/plain, expected application/json"),
        (
            whole("{}"),
            "application/json; charset=utf-8",
            "400 contentType=application/json; charset=utf-8, expected application/json",
        ),
        (whole("{"), JSON, "400 couldn't decode the SubjectAccessReview: unexpected end of JSON at line 1, column 1"),
        (whole(""), JSON, "400 couldn't decode the SubjectAccessReview: unexpected end of JSON at line 1, column 0"),
        (whole("hush"), JSON, "400 couldn't decode the SubjectAccessReview: invalid JSON at line 1, column 1"),
        (
            whole(r#"{"spec": {"user": ["hush"]}}"#),
            JSON,
            "400 couldn't decode the SubjectAccessReview: a field has the wrong type at line 1, column 19",
        ),
        (
            whole(r#"{"spec": {"groups": "hush"}}"#),
            JSON,
            "400 couldn't decode the SubjectAccessReview: the groups are not a list of strings",
        ),
    ];

    for (body, content_type, expected) in table {
        let answer = answered(body, content_type);
        assert_eq!(reported(&answer), format!("error: {expected}"));
        assert_eq!(answer["apiVersion"], "authorization.k8s.io/v1", "{answer}");
        assert_eq!(answer["kind"], "SubjectAccessReview", "{answer}");
    }
    assert_eq!(LIMIT, 7_340_032);
}

/// spec 61 §1.1, §1.2, §11.11; scenario 30
#[test]
fn groups_are_read_by_version_and_the_answer_has_the_version_of_the_review() {
    let spec = r#""spec": {"user": "u", "groups": ["new", null], "group": ["old"], "resourceAttributes": {}}"#;
    let wrong = r#""spec": {"user": "u", "groups": ["new"], "group": 5}"#;
    let table = [
        (format!(r#"{{"apiVersion": "authorization.k8s.io/v1", {spec}}}"#), "u [new ] ", "authorization.k8s.io/v1", ""),
        (
            format!(r#"{{{spec}, "apiVersion": "authorization.k8s.io/v1beta1", "kind": "K"}}"#),
            "u [old] ",
            "authorization.k8s.io/v1beta1",
            "K",
        ),
        (format!(r#"{{"apiVersion": "x/v9", "kind": "Y", {spec}}}"#), "u [new ] ", "x/v9", "Y"),
        (format!(r#"{{"kind": null, {spec}}}"#), "u [new ] ", "authorization.k8s.io/v1", "SubjectAccessReview"),
        (format!(r#"{{"kind": "Y", {wrong}}}"#), "u [new] ", "", "Y"),
    ];

    for (body, expected, version, kind) in table {
        let answer = answered(whole(&body), JSON);
        assert!(reported(&answer).starts_with(&format!("deny: {expected}")), "{answer}");
        let text = |field: &str| answer.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        assert_eq!((text("apiVersion"), text("kind")), (version.to_owned(), kind.to_owned()), "{body}");
    }
}

/// spec 61 §2
#[test]
fn attributes_are_decoded_from_a_review() {
    let resource = json!({
        "verb": "get", "namespace": "ns", "group": "g", "version": "v1", "resource": "rs", "subresource": "s", "name": "n",
        "labelSelector": 5, "later": [{}],
    });
    let table = [
        (
            json!({"spec": {"user": "u\n", "uid": 5, "extra": [], "resourceAttributes": resource}}),
            "u\n [] get g/rs/s ns/n",
        ),
        (json!({"spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}}), " [] get path /x"),
        (json!({"spec": {"resourceAttributes": null, "nonResourceAttributes": null}}), " [] nothing"),
        (json!({"spec": {"user": null, "groups": null}}), " [] nothing"),
        (json!({"spec": null, "status": 5}), " [] nothing"),
        (json!({}), " [] nothing"),
    ];

    for (review, expected) in table {
        assert_eq!(reported(&answer(&witness(), &TestView::new(), &review)), format!("deny: {expected}"), "{review}");
    }
    for list in ["[]", r#"["authorization.k8s.io/v1"]"#, r#"{"spec": []}"#, r#"{"spec": {"resourceAttributes": []}}"#] {
        assert!(reported(&answered(whole(list), JSON)).contains("a field has the wrong type"), "{list}");
    }
}

/// spec 61 §1.2, §1.3
#[test]
fn answers_distinguish_decisions_errors_and_panics() {
    let timeout = || Status { code: 504, reason: "Timeout".into(), message: "late".into(), ..Status::default() };
    let table: [(Authorizing, &str, &str); 6] = [
        (authorizing(Scripted(|_| Ok(Decision::Allow))), "allow", "allow"),
        (authorizing(Scripted(|_| Ok(Decision::Deny(String::new())))), "deny", "deny"),
        (authorizing(Scripted(|_| Ok(Decision::Deny("so".into())))), "deny: so", "deny"),
        (authorizing(Scripted(|_| Ok(Decision::NoOpinion))), "no opinion", "no_opinion"),
        (authorizing(Scripted(|_| Err(Failure::Denied("no cache".into())))), "error: 500 no cache", "error"),
        (authorizing(Scripted(|_| panic!("at the disco"))), "error: 500 panic: at the disco [recovered]", "error"),
    ];

    for (authorizing, expected, outcome) in table {
        let answer = authorizing.answer(&received("{}"), &TestView::new()).unwrap();
        assert_eq!(reported(&parsed(&answer)), expected);
        let Account::Authorization(Authorized { topic, ruling, .. }) = answer.account else {
            panic!("no authorization")
        };
        assert_eq!(ruling.outcome(), outcome);
        assert!(DECISIONS.contains(&outcome) && DECIDED_RESOURCES.contains(&topic));
    }
    let late = Failure::Status(Box::new(timeout()));
    assert_eq!(late.text(), "late");
    let given_up = witness().give_up(&received("{}"), "asked again");
    assert_eq!(reported(&parsed(&given_up)), "error: 500 asked again");
    let given_up = witness().give_up(&received("{"), "asked again");
    assert!(reported(&parsed(&given_up)).starts_with("error: 400 "));
}

/// A body of 7 MiB has room for millions of items, each of which would take ten times its text.
#[test]
fn lists_with_too_many_items_are_refused() {
    let groups = |count: usize| format!(r#"{{"spec": {{"groups": [{}]}}}}"#, vec!["\"\""; count].join(","));
    let required = |count: usize| {
        let list = vec!["{}"; count].join(",");
        format!(r#"{{"spec": {{"resourceAttributes": {{"fieldSelector": {{"requirements": [{list}]}}}}}}}}"#)
    };

    for body in [groups(text::MOST_ITEMS), required(text::MOST_ITEMS)] {
        assert!(reported(&answered(whole(&body), JSON)).starts_with("deny"));
    }
    for body in [groups(text::MOST_ITEMS + 1), required(text::MOST_ITEMS + 1)] {
        assert!(reported(&answered(whole(&body), JSON)).starts_with("error: 400 "));
    }
}
