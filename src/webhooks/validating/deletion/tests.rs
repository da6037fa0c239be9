use cluster::Status;
use serde_json::{Value, json};

use super::*;
use crate::webhooks::{
    endpoint::{Account, Conclusion, Endpoint as _, Validating, testing::received},
    exchange::{Body, LIMIT, Received},
    testing::TestView,
    validating::{Validator, extensions},
};

const ANNOTATION: &str = "confirmation.gardener.cloud/deletion";

fn webhook() -> Validating {
    Validating { validator: std::sync::Arc::new(DeletionProtection) }
}

fn deletion(plural: &str, old: Value) -> Value {
    let (group, version) = match plural {
        "etcds" => ("druid.gardener.cloud", "v1alpha1"),
        "customresourcedefinitions" => ("apiextensions.k8s.io", "v1"),
        _ => ("extensions.gardener.cloud", "v1alpha1"),
    };
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "DELETE", "name": "x", "namespace": "ns", "oldObject": old,
        "resource": { "group": group, "version": version, "resource": plural },
        "kind": { "group": group, "version": version, "kind": "Any" },
    }})
}

fn marked(value: &str) -> Value {
    json!({ "metadata": { "name": "x", "annotations": { ANNOTATION: value } } })
}

fn with(mut review: Value, field: &str, value: Value) -> Value {
    review["request"][field] = value;
    review
}

fn conclude(review: &Value, view: &TestView) -> Conclusion {
    webhook().answer(&received(review.to_string()), view).expect("no live read is needed")
}

fn answer(review: &Value, view: &TestView) -> Value {
    serde_json::from_slice(&conclude(review, view).reply.body).expect("an answer is JSON")
}

fn reported(review: &Value, view: &TestView) -> String {
    let response = answer(review, view)["response"].take();
    let message = response["status"]["message"].as_str().unwrap_or_default().to_owned();
    match (response["allowed"].as_bool().expect("a boolean"), response["status"]["code"].as_u64().expect("a number")) {
        (true, 200) if message.is_empty() => "allowed".to_owned(),
        (true, 200) => format!("allowed: {message}"),
        (_, code) => format!("{code} {message}"),
    }
}

fn now(review: &Value) -> String {
    reported(review, &TestView::new())
}

fn denied(object: &str) -> String {
    format!("403 {DENIAL}. It is missing, or not true, at \"{object}\"")
}

/// spec 60 scenarios 1, 2, 4; spec 60 §2.2
#[test]
fn deletion_of_protected_resources_needs_a_confirmation() {
    let plurals = PROTECTED.iter().flat_map(|(_, _, plurals)| *plurals);
    for plural in plurals {
        assert_eq!(now(&deletion(plural, json!({ "metadata": { "name": "x" } }))), denied("ns/x"), "{plural}");
        assert_eq!(now(&deletion(plural, marked("True"))), "allowed", "{plural}");
    }
    let mut old = deletion(DEFINITIONS, json!({ "metadata": { "name": "x" } }));
    old["request"]["resource"]["version"] = json!("v1beta1");
    assert_eq!(now(&old), denied("ns/x"));
    let response = answer(&deletion("workers", json!({})), &TestView::new())["response"].take();
    assert_eq!((&response["uid"], &response["status"]["reason"]), (&json!("u"), &json!("Forbidden")));
    assert_eq!(response["status"]["message"], DENIAL);
}

/// spec 60 scenario 3; spec 60 §2.3 step 5
#[test]
fn confirmation_is_a_boolean_and_the_rest_may_be_malformed() {
    for value in TRUTHS {
        assert_eq!(now(&deletion("workers", marked(value))), "allowed", "{value}");
    }
    for value in ["yes", "", "0", "false", "TrUe", " true", "on"] {
        assert_eq!(now(&deletion("workers", marked(value))), denied("ns/x"), "{value}");
    }
    for strange in [
        json!({ "metadata": [] }),
        json!({ "metadata": { "annotations": "true" } }),
        json!({ "metadata": { "annotations": { ANNOTATION: true } } }),
        json!({ "spec": { "metadata": { "annotations": { ANNOTATION: "true" } } } }),
    ] {
        assert!(now(&deletion("workers", strange.clone())).starts_with("403 must have"), "{strange}");
    }
    let strange = json!({ "kind": 5, "spec": [null], "metadata": { "annotations": { ANNOTATION: "t", "other": 1 } } });
    assert_eq!(now(&deletion("workers", strange)), "allowed");
}

/// spec 60 scenarios 5, 6
#[test]
fn deletion_of_unprotected_resources_is_allowed() {
    let not = "allowed: resource is not deletion-protected";
    for plural in ["bastions", "clusters", "etcds/status", "", "Workers"] {
        assert_eq!(now(&deletion(plural, json!({}))), not, "{plural}");
    }
    let resource = json!({ "group": "extensions.gardener.cloud", "version": "v1", "resource": "workers" });
    assert_eq!(now(&with(deletion("workers", json!({})), "resource", resource)), not);
    assert_eq!(now(&with(deletion("workers", json!({})), "resource", json!(null))), not);
}

/// spec 60 scenario 7
#[test]
fn deletion_protection_allows_all_other_operations() {
    for operation in [json!("UPDATE"), json!("CREATE"), json!("CONNECT"), json!("delete"), json!(null)] {
        let review = with(deletion("workers", json!({})), "operation", operation);
        assert_eq!(now(&review), "allowed: operation is not DELETE");
    }
}

/// spec 60 scenarios 15, 16; spec 60 §2.3 step 3
#[test]
fn deletion_without_an_object_is_an_error() {
    let none = "500 no object found in admission request";
    assert_eq!(now(&deletion("workers", json!(null))), none);
    assert_eq!(now(&with(deletion("workers", json!(null)), "object", json!(null))), none);
    assert_eq!(now(&with(deletion("workers", json!(null)), "object", marked("1"))), "allowed");
    assert_eq!(now(&with(deletion("workers", json!({})), "object", marked("1"))), format!("403 {DENIAL}"));
    for broken in [json!("text"), json!(5), json!([]), json!(true)] {
        assert_eq!(now(&deletion("workers", broken)), "500 couldn't decode the object: it is not a map");
    }
}

/// spec 60 scenarios 8, 9, 10; spec 60 §2.4
#[test]
fn collection_deletion_needs_the_confirmation_of_all_objects() {
    let all = with(deletion("infrastructures", marked("true")), "name", json!(""));
    let (confirmed, mixed) = (TestView::new(), TestView::new().unconfirmed("ns", "other"));

    assert_eq!(reported(&all, &confirmed), "allowed");
    assert_eq!(reported(&all, &mixed), denied("ns/other"));
    assert_eq!(reported(&with(all.clone(), "oldObject", json!(null)), &confirmed), "allowed");
    assert_eq!(confirmed.reads(), ["infrastructures of \"ns\"", "infrastructures of \"ns\""]);

    assert_eq!(
        reported(&with(all.clone(), "oldObject", json!("text")), &mixed),
        denied("ns/other"),
        "it is passed over"
    );
    let unconfirmed = with(all, "oldObject", json!({ "metadata": { "name": "x" } }));
    let untouched = TestView::new();
    assert_eq!(reported(&unconfirmed, &untouched), denied("ns/x"));
    assert!(untouched.reads().is_empty(), "the object of the request says enough");
}

/// spec 60 scenario 12; spec 60 §2.3 step 3
#[test]
fn collection_deletion_lists_only_labelled_definitions_of_all_namespaces() {
    let review = with(deletion(DEFINITIONS, json!(null)), "name", json!(""));
    let review = review.to_string();
    let received = received(review);
    let review = crate::webhooks::validating::decode(&received, Extent::Confirmation).unwrap();

    let listed = collection(&review);

    assert_eq!(listed.label_selector, Some("gardener.cloud/deletion-protected=true"));
    assert_eq!((&*listed.group, &*listed.namespace), ("apiextensions.k8s.io", ""));
}

/// spec 60 scenario 12; spec 60 §2.3 step 3
#[test]
fn collection_deletion_ignores_a_definition_without_the_label() {
    let labelled = |labels: Value| {
        let old = json!({ "metadata": { "name": "x", "labels": labels } });
        with(with(deletion(DEFINITIONS, old), "name", json!("")), "namespace", json!(""))
    };
    for labels in [json!({}), json!(null), json!({ PROTECTION: "false" }), json!([PROTECTION])] {
        let others = TestView::new();
        assert_eq!(reported(&labelled(labels), &others), "allowed");
        assert_eq!(others.reads().len(), 1, "those with the label are listed");
    }
    assert_eq!(now(&labelled(json!({ PROTECTION: "true" }))), denied("x"));
    let single = with(labelled(json!({})), "name", json!("x"));
    assert_eq!(now(&single), denied("x"), "a single one is not asked for its label");
}

/// spec 60 §2.3 step 5
#[test]
fn deletion_of_a_large_or_deep_confirmed_object_is_allowed() {
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let many = format!("[{}0]", "0,".repeat(60_000));
    let object = format!(
        r#"{{"spec":{deep},"status":{many},"metadata":{{"managedFields":{many},"name":"x","annotations":{{"{ANNOTATION}":"true","a":{deep}}}}}}}"#
    );
    let review = deletion("workers", json!("PLACE")).to_string().replace(r#""PLACE""#, &object);

    let conclusion = webhook().answer(&received(review), &TestView::new()).expect("no live read is needed");

    let answer: Value = serde_json::from_slice(&conclusion.reply.body).unwrap();
    assert_eq!(answer["response"]["allowed"], true, "{answer}");
}

/// spec 60 scenarios 13, 14, 22; spec 60 §2.3 step 4
#[test]
fn deletion_is_allowed_unread_only_after_a_404() {
    let review = with(deletion("workers", json!(null)), "name", json!(""));
    let failing = |failure: Failure| reported(&review, &TestView::new().failing("workers of \"ns\"", failure));
    let status = |code, message: &str| {
        Failure::Status(Box::new(Status { code, message: message.to_owned(), ..Status::default() }))
    };

    assert_eq!(failing(status(404, "gone")), "allowed: object was not found");
    assert_eq!(failing(status(403, "workers is forbidden")), "500 workers is forbidden");
    assert_eq!(failing(Failure::Errored { code: 500, message: "too slow".into() }), "500 too slow");
    assert_eq!(failing(Failure::Denied("no connection".into())), "500 no connection");
}

/// spec 60 scenario 17
#[test]
fn answer_has_version_and_uid_of_the_request() {
    let mut review = deletion("workers", marked("1"));
    review["apiVersion"] = json!("admission.k8s.io/v1beta1");
    let answer = answer(&review, &TestView::new());
    assert_eq!((&answer["apiVersion"], &answer["response"]["uid"]), (&json!("admission.k8s.io/v1beta1"), &json!("u")));
    for empty in ["{}", "null", r#"{"request":null}"#] {
        let conclusion = webhook().answer(&received(empty), &TestView::new()).unwrap();
        let answer: Value = serde_json::from_slice(&conclusion.reply.body).unwrap();
        assert_eq!(
            (&answer["apiVersion"], &answer["kind"]),
            (&json!("admission.k8s.io/v1"), &json!("AdmissionReview"))
        );
    }
}

/// spec 60 scenarios 18, 19; spec 60 §1.1
#[test]
fn malformed_review_is_refused_inside_of_http_200() {
    let body = |text: &'static str| Body::Whole(bytes::Bytes::from_static(text.as_bytes()));
    let json_type = "application/json";
    let table = [
        (Body::None, json_type, 400, "request body is empty"),
        (Body::Broken("cut off".into()), json_type, 400, "cut off"),
        (
            Body::TooLarge(vec![b' '; LIMIT].into()),
            json_type,
            413,
            "request entity is too large; limit is 7340032 bytes",
        ),
        (
            body("{}"),
            "application/json; charset=utf-8",
            400,
            "contentType=application/json; charset=utf-8, expected application/json",
        ),
        (body("{"), json_type, 400, "couldn't decode the AdmissionReview: unexpected end of JSON at line 1, column 1"),
        (
            body("[]"),
            json_type,
            400,
            "couldn't decode the AdmissionReview: a field has the wrong type at line 1, column 2",
        ),
    ];
    for (body, content_type, code, message) in table {
        let conclusion =
            webhook().answer(&Received { body, content_type: content_type.into() }, &TestView::new()).unwrap();
        let answer: Value = serde_json::from_slice(&conclusion.reply.body).unwrap();
        assert_eq!(conclusion.reply.status, 200);
        let status = &answer["response"]["status"];
        assert_eq!((status["code"].as_u64(), &status["message"]), (Some(code), &json!(message)));
        assert_eq!((&answer["response"]["uid"], &answer["response"]["allowed"]), (&json!(""), &json!(false)));
        assert_eq!(answer.get("apiVersion"), None);
    }
}

/// spec 60 scenario 23; spec 60 §4.1
#[test]
fn etcds_are_validated_under_both_paths() {
    let paths: Vec<_> = extensions::all().into_iter().filter(|extension| extension.kind.kind == "Etcd").collect();
    let valid = json!({ "request": { "operation": "CREATE", "object": {
        "metadata": { "name": "main", "namespace": "garden" }, "spec": { "backup": { "store": { "prefix": "garden/main" } } },
    }}});
    assert_eq!(paths.len(), 2);
    for extension in paths {
        let webhook = Validating { validator: std::sync::Arc::new(extension) };
        let conclusion = webhook.answer(&received(valid.to_string()), &TestView::new()).unwrap();
        let answer: Value = serde_json::from_slice(&conclusion.reply.body).unwrap();
        assert_eq!(answer["response"]["allowed"], true, "{}", extension.path);
    }
}

/// spec 60 scenario 24
#[test]
fn dry_run_makes_no_difference() {
    assert_eq!(now(&with(deletion("networks", json!({})), "dryRun", json!(true))), format!("403 {DENIAL}"));
}

/// spec 60 scenario 25
#[test]
fn panic_of_a_webhook_is_answered() {
    struct Panicking;

    impl Validator for Panicking {
        fn judge(&self, _: &Review<'_>, _: &dyn View) -> Result<Judgement, Failure> {
            panic!("of a test")
        }

        fn account(&self, _: &Review<'_>, _: &Judgement) -> Validated {
            panic!("of a test")
        }
    }

    let webhook = Validating { validator: std::sync::Arc::new(Panicking) };
    let conclusion = webhook.answer(&received(deletion("workers", json!({})).to_string()), &TestView::new()).unwrap();

    let answer: Value = serde_json::from_slice(&conclusion.reply.body).unwrap();
    let status = &answer["response"]["status"];
    assert_eq!((&answer["response"]["uid"], &status["code"]), (&json!("u"), &json!(500)));
    assert_eq!(status["message"], "panic: of a test [recovered]");
}

/// spec 60 §2.5
#[test]
fn log_data_of_a_deletion_names_the_deciding_object() {
    let reported = |review: &Value, view: &TestView| match conclude(review, view).account {
        Account::Admission(_, Some(validated)) => validated,
        other => panic!("{other:?}"),
    };
    let single = reported(&deletion("workers", marked("1")), &TestView::new());
    let object = |name| NamespacedName::new("ns", name);
    let of_x = Deletion { is_collection: false, object: object("x"), is_confirmed: Some(true) };
    assert_eq!(single, Validated { resource: "workers", is_denied: false, deletion: Some(of_x) });

    let all = with(deletion("workers", marked("1")), "name", json!(""));
    let denied = |name| {
        let deletion = Some(Deletion { is_collection: true, object: object(name), is_confirmed: Some(false) });
        Validated { resource: "workers", is_denied: true, deletion }
    };
    let other = TestView::new().unconfirmed("ns", "y");
    assert_eq!(reported(&all, &other), denied("y"), "what is not confirmed is another object than that of the request");
    assert_eq!(reported(&with(all.clone(), "oldObject", json!(null)), &other), denied("y"));
    let unconfirmed = with(all.clone(), "oldObject", json!({ "metadata": { "name": "x" } }));
    assert_eq!(reported(&unconfirmed, &other), denied("x"), "the object of the request comes first");
    let allowed = Deletion { is_collection: true, object: object("x"), is_confirmed: Some(true) };
    assert_eq!(reported(&all, &TestView::new()).deletion, Some(allowed));

    let none = Validated { resource: "other", is_denied: false, deletion: None };
    assert_eq!(reported(&deletion("bastions", json!({})), &TestView::new()), none);
    assert_eq!(reported(&with(deletion("workers", json!({})), "operation", json!("UPDATE")), &TestView::new()), none);
}
