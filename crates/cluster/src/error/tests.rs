use serde_json::json;

use super::*;
use crate::Resource;

type Predicate = fn(&ApiError) -> bool;

fn answer(code: u16, body: &Value) -> ApiError {
    let code = StatusCode::from_u16(code).unwrap();
    ApiError::Status(Status::from_answer(code, None, body.to_string().as_bytes(), false).into())
}

fn status(code: u16, reason: &str, kind: &str) -> ApiError {
    answer(code, &json!({"kind": "Status", "reason": reason, "message": "m", "details": {"kind": kind, "name": "n"}}))
}

/// api-facts §1, §2, §4
#[test]
fn answers_are_distinguished() {
    let cases: [(ApiError, &[Predicate]); 8] = [
        (status(404, "NotFound", "configmaps"), &[ApiError::is_not_found]),
        (status(404, "NotFound", "namespaces"), &[ApiError::is_not_found]),
        (status(409, "Conflict", "configmaps"), &[ApiError::is_conflict]),
        (status(409, "AlreadyExists", "configmaps"), &[ApiError::is_already_exists]),
        (status(422, "Invalid", "ConfigMap"), &[ApiError::is_invalid]),
        (status(403, "Forbidden", "configmaps"), &[ApiError::is_forbidden]),
        (status(410, "Expired", ""), &[ApiError::is_expired]),
        (status(500, "InternalError", ""), &[ApiError::outcome_unknown]),
    ];
    let predicates: [Predicate; 8] = [
        ApiError::is_not_found,
        ApiError::is_conflict,
        ApiError::is_already_exists,
        ApiError::is_invalid,
        ApiError::is_forbidden,
        ApiError::is_expired,
        ApiError::is_no_match,
        ApiError::outcome_unknown,
    ];

    for (error, expected) in cases {
        for predicate in predicates {
            let expected = expected.iter().any(|other| std::ptr::fn_addr_eq(*other, predicate));
            assert_eq!(predicate(&error), expected, "{error:?}");
        }
    }
}

/// api-facts §4: the server checks the uid of a patch where it checks what may not change
#[test]
fn conflict_includes_another_uid_in_a_patch() {
    let finding = |field: &str| json!({"reason": "FieldValueInvalid", "message": "Invalid value", "field": field});
    let refused = |causes: Value| {
        answer(422, &json!({"kind": "Status", "reason": "Invalid", "message": "m", "details": {"causes": causes}}))
    };

    let of_uid = refused(json!([finding("metadata.uid"), finding("metadata.uid")]));
    assert_eq!((of_uid.is_conflict(), of_uid.is_invalid()), (true, false));

    for causes in [json!([]), json!([finding("metadata.uid"), finding("spec.a")])] {
        let invalid = refused(causes);
        assert_eq!((invalid.is_conflict(), invalid.is_invalid()), (false, true));
    }
}

/// api-facts §2: a missing kind is not a missing object
#[test]
fn not_found_excludes_an_unknown_path() {
    let text = Status::from_answer(StatusCode::NOT_FOUND, None, b"404 page not found\n", false);
    let generic = json!({"kind": "Status", "reason": "NotFound", "details": {},
        "message": "the server could not find the requested resource"});

    for error in [ApiError::Status(text.into()), answer(404, &generic)] {
        assert!(error.is_not_served() && error.is_unknown_path());
        assert!(!error.is_not_found() && !error.is_no_match());
    }
}

/// decision 38: what a proxy does not know, the API server may
#[test]
fn unknown_path_excludes_the_404_of_a_proxy() {
    let page = Status::from_answer(StatusCode::NOT_FOUND, None, b"<html>404 Not Found</html>", false);
    let error = ApiError::Status(page.into());

    assert!(error.is_not_served());
    assert!(!error.is_unknown_path() && !error.is_not_found());
}

/// spec 10 §13.1; facts §2: the answer names resource and object
#[test]
fn not_found_excludes_a_404_about_another_object() {
    let at = Resource::new("", "v1", "ConfigMap", "configmaps", true).at("ns", "n");
    for (kind, name, expected) in [
        ("configmaps", "n", true),
        ("ConfigMap", "n", true),
        ("configmaps", "other", false),
        ("secrets", "n", false),
        ("configmaps", "", false),
        ("", "n", false),
    ] {
        let details = json!({"kind": kind, "name": name});
        let body = json!({"kind": "Status", "reason": "NotFound", "message": "m", "details": details});

        assert_eq!(answer(404, &body).about(&at).is_not_found(), expected, "{kind} {name}");
    }
}

#[test]
fn error_text_is_the_servers() {
    let body = json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": "configmaps \"x\" not found"});

    assert_eq!(answer(404, &body).to_string(), "configmaps \"x\" not found");

    let plain = Status::from_answer(StatusCode::SERVICE_UNAVAILABLE, None, b"service unavailable\n", false);
    assert_eq!(plain.to_string(), "service unavailable");
    let empty = Status::from_answer(StatusCode::BAD_GATEWAY, None, b"", false);
    assert_eq!(empty.to_string(), "the API server answered 502 Bad Gateway");
}

/// api-facts §5: the message contains the whole object
#[test]
fn error_text_leaves_out_an_object() {
    let message = r#" "" is invalid: patch: Invalid value: "{\"data\":{\"password\":\"c2VjcmV0\"}}": illegal base64"#;
    let repeated = r#"Invalid value: "{\"data\":{\"password\":\"c2VjcmV0\"}}": illegal base64"#;
    let cause = json!({"reason": "FieldValueInvalid", "message": repeated, "field": "patch"});
    let body = json!({"kind": "Status", "reason": "Invalid", "message": message, "details": {"causes": [cause]}});

    let error = answer(422, &body);

    assert_eq!(error.to_string(), " \"\" is invalid: patch: Invalid value: (left out)");
    assert!(!format!("{error:?}").contains("c2VjcmV0"));
}

/// Texts of a kube-apiserver (the values made up), and of webhooks.
#[test]
fn secret_error_text_keeps_names_only() {
    let long = "x".repeat(254);
    let table = [
        (r#"secrets "a" not found"#, r#"secrets "a" not found"#),
        (
            r#"secrets "a" is forbidden: User "system:serviceaccount:ns:me" cannot get resource "secrets" in API group "" in the namespace "ns""#,
            r#"secrets "a" is forbidden: User "system:serviceaccount:ns:me" cannot get resource "secrets" in API group "" in the namespace "ns""#,
        ),
        (
            r#"Secret "a" is invalid: data[hunter2]: Invalid value: "hunter2": a valid config key must consist of"#,
            r#"Secret "a" is invalid: data[(left out)]: Invalid value: (left out): a valid config key must consist of"#,
        ),
        (
            r#"Secret "a" is invalid: type: Invalid value: "hunter2": field is immutable"#,
            r#"Secret "a" is invalid: type: Invalid value: (left out): field is immutable"#,
        ),
        (r#"strict decoding error: unknown field "data.hunter2""#, "strict decoding error: unknown field (left out)"),
        (
            r#"admission webhook "w.example.com" denied the request: namespace "hunter2" is too short"#,
            r#"admission webhook "w.example.com" denied the request: namespace (left out) is too short"#,
        ),
        (
            r#"admission webhook "w.example.com": data[hunter2] is missing"#,
            r#"admission webhook "w.example.com": data[(left out)] is missing"#,
        ),
        (r#"a "hunter2\" x"#, "a (left out)"),
        (&format!(r#"User "{long}" x"#), "User (left out) x"),
    ];

    for (message, expected) in table {
        assert_eq!(without_objects(message, true), expected);
        assert_eq!(without_objects(message, false), message);
    }
}

/// spec 00 decision 14: an object is left out, and the text before it is masked like any other text.
#[test]
fn error_text_is_cut_at_the_first_repeated_object() {
    let no_kind = r#"Object 'Kind' is missing in '{"a":1}'; patch: Invalid value: "x""#;
    let several = r#"Secret "a" is invalid: [data[hunter2]: Invalid value: "hunter2", patch: Invalid value: "{}"]"#;

    for secret in [false, true] {
        assert_eq!(without_objects(no_kind, secret), "Object 'Kind' is missing in (left out)");
    }
    let expected =
        r#"Secret "a" is invalid: [data[(left out)]: Invalid value: (left out), patch: Invalid value: (left out)"#;
    assert_eq!(without_objects(several, true), expected);
}

#[test]
fn error_cause_leaves_out_an_object_of_secrets_too() {
    let message = r#"Object 'Kind' is missing in '{"data":{},"hunter":2}'"#;
    let body = json!({"kind": "Status", "details": {"causes": [{"message": message, "field": "a"}]}});

    for secret in [false, true] {
        assert_eq!(Status::from_object(&body, secret).causes[0].message, "Object 'Kind' is missing in (left out)");
    }
}

#[test]
fn secret_error_causes_hold_no_values_and_no_data_keys() {
    let cause =
        json!({"reason": "FieldValueInvalid", "message": "Invalid value: \"hunter2\"", "field": "data[hunter2]"});
    let body = json!({"kind": "Status", "reason": "Invalid", "message": "m", "details": {"causes": [cause]}});

    let status = Status::from_object(&body, true);

    assert!(!format!("{status:?}").contains("hunter2"), "{status:?}");
    assert!(format!("{:?}", Status::from_object(&body, false)).contains("hunter2"));
}

#[test]
fn no_match_has_the_text_of_the_specification() {
    let versioned = ApiError::NoMatch(GroupVersionKind::new("g.io", "v1", "X"));

    assert_eq!(versioned.to_string(), "no matches for kind \"X\" in version \"g.io/v1\"");
}

#[test]
fn status_keeps_all_details() {
    let details = json!({"group": "apps", "uid": "u", "retryAfterSeconds": 7});
    let status = Status::from_object(&json!({"kind": "Status", "details": details}), false);

    assert_eq!((status.group.as_str(), status.uid.as_str(), status.retry_after_seconds), ("apps", "u", 7));
}

/// facts §10, spec 10 §9.7
#[test]
fn too_large_objects_are_recognised_by_code_or_text() {
    let of_object = "ManagedResource \"a\" is invalid: []: Too long: may not be more than 1048576 bytes";
    let of_field =
        "ManagedResource \"a\" is invalid: status.conditions[0].message: Too long: may not be longer than 32768";
    for (code, size, message, expected) in [
        (413, 1, "Request entity too large: limit is 3145728", true),
        (422, 1 << 20, of_object, true),
        (422, 1 << 20, "ManagedResource \"a\" is invalid: spec: Invalid value", false),
        (422, 100_000, of_field, false),
        (500, 1, "etcdserver: request is too large", true),
        (500, 1, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2 vs. 1)", true),
        (500, 1 << 20, "etcdserver: request timed out", false),
    ] {
        let error = answer(code, &json!({ "kind": "Status", "message": message }));

        assert_eq!(error.is_too_large(size), expected, "{code} {message}");
    }
}

/// A broken API server must not fill the memory and the log (spec 70 §8).
#[test]
fn long_error_answer_is_cut() {
    let long = "m".repeat(3_900_000);
    let cause = json!({ "reason": long, "message": long, "field": long });
    let details = json!({ "name": long, "causes": vec![cause; 1000] });
    for secret in [false, true] {
        let body = json!({ "kind": "Status", "message": long, "reason": long, "details": details });
        let status = Status::from_object(&body, secret);

        let longest =
            [&status.message, &status.reason, &status.name, &status.causes[0].message, &status.causes[0].field]
                .map(|text| text.len());
        assert_eq!((longest, status.causes.len()), ([32_768, 4096, 4096, 32_768, 4096], 256));
    }
}
