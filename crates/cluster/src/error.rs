//! What can go wrong with a request, and what the callers ask of it.

mod texts;

use std::{error::Error as _, time::Duration};

use http::StatusCode;
use serde_json::Value;

pub(super) use self::texts::without_objects;
use self::texts::{LEFT_OUT, plain_text, without_content, without_keys};
use crate::{
    answers,
    object::{GroupKind, GroupVersionKind},
};

/// A request did not succeed. Clonable, so that those who share a request share its error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The server answered with an error; the text is its own, verbatim (decision 14).
    #[error("{0}")]
    Status(Box<Status>),
    /// The connection failed, or broke before the whole answer was here.
    #[error("{message}")]
    Transport {
        /// The chain of causes.
        message: String,
        /// Whether the request may have reached the server.
        sent: bool,
    },
    /// The deadline came before the answer.
    #[error("the API server did not answer in time")]
    Timeout,
    /// The deadline came before the request was sent.
    #[error("the request was not sent before its deadline")]
    NotSent,
    /// This process may not write (any more).
    #[error("not sent: {0}")]
    Fenced(&'static str),
    /// The server does not serve the kind in this version.
    #[error("no matches for kind \"{}\" in version \"{}\"", .0.kind, .0.api_version())]
    NoMatch(GroupVersionKind),
    /// The server does not serve the kind in any version.
    #[error("no matches for kind \"{}\" in group \"{}\"", .0.kind, .0.group)]
    NoKind(GroupKind),
    /// Whether the server serves the kind cannot be told at present.
    #[error("unable to retrieve the complete list of server APIs: {0}")]
    Discovery(String),
    /// The answer is not what the API promises.
    #[error("cannot decode the answer of the API server: {0}")]
    Decode(String),
    /// The answer is larger than what is read; says why.
    #[error("the answer of the API server is too large: {0}")]
    TooLarge(String),
    /// The request makes no sense; it was not sent.
    #[error("{0}")]
    BadRequest(String),
}

/// The error answer of an API server: a `Status` object, or a plain text with an HTTP status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// HTTP status.
    pub code: u16,
    /// Machine-readable reason, e.g. `NotFound`; empty for plain texts and some 500s.
    pub reason: String,
    /// The server's text, verbatim; parts that repeat a whole object are left out.
    pub message: String,
    /// `details.kind`: the resource, or the kind for validation errors (api-facts §0); empty for plain texts.
    pub kind: String,
    /// `details.name`.
    pub name: String,
    /// `details.group`.
    pub group: String,
    /// `details.uid`.
    pub uid: String,
    /// `details.causes`.
    pub causes: Vec<Cause>,
    /// `details.retryAfterSeconds`; 0 if there is none.
    pub retry_after_seconds: u64,
    /// The `Retry-After` header.
    pub retry_after: Option<Duration>,
}

/// One finding of an error answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cause {
    /// E.g. `FieldValueInvalid`, `NamespaceTerminating`.
    pub reason: String,
    /// The text without the field.
    pub message: String,
    /// Path of the field, e.g. `spec.clusterIPs[0]`.
    pub field: String,
}

// === impl ApiError ===

impl ApiError {
    /// The server's answer, if there was one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            Self::Transport { .. }
            | Self::Timeout
            | Self::NotSent
            | Self::Fenced(_)
            | Self::NoMatch(_)
            | Self::NoKind(_)
            | Self::Discovery(_)
            | Self::Decode(_)
            | Self::TooLarge(_)
            | Self::BadRequest(_) => None,
        }
    }

    /// HTTP status of the answer.
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    fn is_answer(&self, code: u16, reason: &str) -> bool {
        self.status().is_some_and(|status| status.code == code && status.reason == reason)
    }

    /// The object (or for a creation its namespace) does not exist. Not true when the *kind* is not served: then nothing
    /// is known of the object.
    pub fn is_not_found(&self) -> bool {
        self.is_answer(404, "NotFound") && !self.is_not_served()
    }

    /// The server knows no such path: the group, version or resource is not served (any more) (api-facts §2).
    pub fn is_not_served(&self) -> bool {
        let of_path = |status: &Status| status.kind.is_empty() && status.name.is_empty();
        self.status().is_some_and(|status| status.code == 404 && of_path(status))
    }

    /// Somebody else changed the object, or a precondition did not hold; not [`Self::is_already_exists`]. A uid in a patch
    /// is a precondition too, although the server calls another one an invalid change (api-facts §4).
    pub fn is_conflict(&self) -> bool {
        self.is_answer(409, "Conflict") || self.is_of_another_uid()
    }

    fn is_of_another_uid(&self) -> bool {
        let of_uid = |status: &Status| status.causes.iter().all(|cause| cause.field == "metadata.uid");
        self.is_answer(422, "Invalid")
            && self.status().is_some_and(|status| !status.causes.is_empty() && of_uid(status))
    }

    /// A creation found an object of that name.
    pub fn is_already_exists(&self) -> bool {
        self.is_answer(409, "AlreadyExists")
    }

    /// The object breaks a validation rule; not [`Self::is_conflict`].
    pub fn is_invalid(&self) -> bool {
        self.is_answer(422, "Invalid") && !self.is_of_another_uid()
    }

    /// Rights are missing, an admission plugin or webhook denies, or the namespace is terminating.
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// The credentials are not accepted.
    pub fn is_unauthorized(&self) -> bool {
        self.code() == Some(401)
    }

    /// The kind is not served, as far as discovery or the server's answer tell.
    pub fn is_no_match(&self) -> bool {
        matches!(self, Self::NoMatch(_) | Self::NoKind(_)) || self.is_not_served()
    }

    /// A page token or the version of a watch is too old: start again with a list.
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(|status| status.code == 410 || matches!(status.reason.as_str(), "Expired" | "Gone"))
    }

    /// The server is overloaded, or asks to slow down.
    pub fn is_too_many_requests(&self) -> bool {
        self.code() == Some(429)
    }

    /// Creations are refused because the namespace is being deleted.
    pub fn is_namespace_terminating(&self) -> bool {
        let terminating = |status: &Status| status.causes.iter().any(|cause| cause.reason == "NamespaceTerminating");
        self.status().is_some_and(terminating)
    }

    /// Whether a write may have happened although it failed: *maybe done* (contract rule 7).
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Timeout | Self::Decode(_) | Self::TooLarge(_) => true,
            Self::Transport { sent, .. } => *sent,
            Self::Status(status) => status.code >= 500,
            Self::NotSent
            | Self::Fenced(_)
            | Self::NoMatch(_)
            | Self::NoKind(_)
            | Self::Discovery(_)
            | Self::BadRequest(_) => false,
        }
    }

    /// From an error of a client's own methods, which do not use this module's transport. `secret`: the request was about
    /// a Secret, so quoted values are left out.
    pub fn of_kube(error: &kube::Error, secret: bool) -> Self {
        match error {
            kube::Error::Api(status) => {
                let object = serde_json::to_value(status).unwrap_or_default();
                Self::Status(Status::from_object(&object, secret).into())
            }
            // The parser's text names what it found.
            kube::Error::SerdeError(error) => Self::Decode(format!("line {} column {}", error.line(), error.column())),
            other => Self::from_client(other),
        }
    }

    /// From an error of the HTTP client.
    pub(super) fn from_client(error: &kube::Error) -> Self {
        let mut message = error.to_string();
        let mut sent = true;
        let mut cause = error.source();
        while let Some(error) = cause {
            if error.downcast_ref::<hyper_util::client::legacy::Error>().is_some_and(|error| error.is_connect()) {
                sent = false;
            }
            let text = error.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            cause = error.source();
        }
        Self::Transport { message, sent }
    }
}

// === impl Status ===

impl Status {
    /// From an answer that is no success. `secret`: the request was about a Secret, so quoted values are left out.
    pub(super) fn from_answer(code: StatusCode, retry_after: Option<Duration>, body: &[u8], secret: bool) -> Self {
        let mut status = match answers::status_in(body) {
            Some(value) => Self::from_object(&value, secret),
            None => Self { message: plain_text(code, body), ..Self::default() },
        };
        status.code = code.as_u16();
        status.retry_after = retry_after;
        status
    }

    /// From a `Status` object, e.g. of a watch's ERROR event.
    pub(super) fn from_object(value: &Value, secret: bool) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let details = &value["details"];
        let cause = |cause: &Value| Cause {
            reason: text(&cause["reason"]),
            message: match cause["field"].as_str() {
                Some("patch") => LEFT_OUT.into(), // the whole object again
                // A text about a field, which is content.
                Some(_) | None if secret => without_content(&text(&cause["message"]), false),
                Some(_) | None => without_objects(&text(&cause["message"]), false),
            },
            field: if secret { without_keys(&text(&cause["field"])) } else { text(&cause["field"]) },
        };
        Self {
            code: value["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap_or_default(),
            reason: text(&value["reason"]),
            message: without_objects(&text(&value["message"]), secret),
            kind: text(&details["kind"]),
            name: text(&details["name"]),
            group: text(&details["group"]),
            uid: text(&details["uid"]),
            retry_after_seconds: details["retryAfterSeconds"].as_u64().unwrap_or_default(),
            causes: details["causes"].as_array().into_iter().flatten().map(cause).collect(),
            retry_after: None,
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Predicate = fn(&ApiError) -> bool;

    fn answer(code: u16, body: &Value) -> ApiError {
        let code = StatusCode::from_u16(code).unwrap();
        ApiError::Status(Status::from_answer(code, None, body.to_string().as_bytes(), false).into())
    }

    fn status(code: u16, reason: &str, kind: &str) -> ApiError {
        answer(
            code,
            &json!({"kind": "Status", "reason": reason, "message": "m", "details": {"kind": kind, "name": "n"}}),
        )
    }

    /// api-facts §1, §2, §4
    #[test]
    fn answers_are_told_apart() {
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
    fn another_uid_in_a_patch_is_a_conflict_and_nothing_invalid() {
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
    fn an_unknown_path_is_no_missing_object() {
        let text = Status::from_answer(StatusCode::NOT_FOUND, None, b"404 page not found\n", false);
        let generic = json!({"kind": "Status", "reason": "NotFound", "details": {},
            "message": "the server could not find the requested resource"});

        for error in [ApiError::Status(text.into()), answer(404, &generic)] {
            assert!(error.is_no_match());
            assert!(!error.is_not_found());
        }
    }

    #[test]
    fn the_text_is_the_servers() {
        let body =
            json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": "configmaps \"x\" not found"});

        assert_eq!(answer(404, &body).to_string(), "configmaps \"x\" not found");

        let plain = Status::from_answer(StatusCode::SERVICE_UNAVAILABLE, None, b"service unavailable\n", false);
        assert_eq!(plain.to_string(), "service unavailable");
        let empty = Status::from_answer(StatusCode::BAD_GATEWAY, None, b"", false);
        assert_eq!(empty.to_string(), "the API server answered 502 Bad Gateway");
    }

    /// api-facts §5: the whole object stands in the message
    #[test]
    fn an_object_in_a_message_is_left_out() {
        let message =
            r#" "" is invalid: patch: Invalid value: "{\"data\":{\"password\":\"c2VjcmV0\"}}": illegal base64"#;
        let repeated = r#"Invalid value: "{\"data\":{\"password\":\"c2VjcmV0\"}}": illegal base64"#;
        let cause = json!({"reason": "FieldValueInvalid", "message": repeated, "field": "patch"});
        let body = json!({"kind": "Status", "reason": "Invalid", "message": message, "details": {"causes": [cause]}});

        let error = answer(422, &body);

        assert_eq!(error.to_string(), " \"\" is invalid: patch: Invalid value: (left out)");
        assert!(!format!("{error:?}").contains("c2VjcmV0"));
    }

    /// Texts of a kube-apiserver (the values made up), and of webhooks.
    #[test]
    fn of_messages_about_secrets_only_names_stay() {
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
            (
                r#"strict decoding error: unknown field "data.hunter2""#,
                "strict decoding error: unknown field (left out)",
            ),
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

    /// spec 00 decision 14: an object is left out, and what stands before it is masked like any other text.
    #[test]
    fn a_repeated_object_is_left_out_from_its_first_mention_on() {
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
    fn an_object_in_a_cause_is_left_out_of_secrets_too() {
        let message = r#"Object 'Kind' is missing in '{"data":{},"hunter":2}'"#;
        let body = json!({"kind": "Status", "details": {"causes": [{"message": message, "field": "a"}]}});

        for secret in [false, true] {
            assert_eq!(Status::from_object(&body, secret).causes[0].message, "Object 'Kind' is missing in (left out)");
        }
    }

    #[test]
    fn causes_about_secrets_hold_no_values_and_no_data_keys() {
        let cause =
            json!({"reason": "FieldValueInvalid", "message": "Invalid value: \"hunter2\"", "field": "data[hunter2]"});
        let body = json!({"kind": "Status", "reason": "Invalid", "message": "m", "details": {"causes": [cause]}});

        let status = Status::from_object(&body, true);

        assert!(!format!("{status:?}").contains("hunter2"), "{status:?}");
        assert!(format!("{:?}", Status::from_object(&body, false)).contains("hunter2"));
    }

    #[test]
    fn a_terminating_namespace_is_seen_in_the_causes() {
        let causes = json!([{"reason": "NamespaceTerminating", "message": "m", "field": "metadata.namespace"}]);
        let error = answer(403, &json!({"kind": "Status", "reason": "Forbidden", "details": {"causes": causes}}));

        assert!(error.is_namespace_terminating());
        assert!(error.is_forbidden());
    }

    #[test]
    fn kinds_that_are_not_served_have_the_texts_of_the_specification() {
        let versioned = ApiError::NoMatch(GroupVersionKind::new("g.io", "v1", "X"));
        let any = ApiError::NoKind(GroupKind::new("g.io", "X"));

        assert_eq!(versioned.to_string(), "no matches for kind \"X\" in version \"g.io/v1\"");
        assert_eq!(any.to_string(), "no matches for kind \"X\" in group \"g.io\"");
    }

    #[test]
    fn all_details_of_a_status_are_kept() {
        let details = json!({"group": "apps", "uid": "u", "retryAfterSeconds": 7});
        let status = Status::from_object(&json!({"kind": "Status", "details": details}), false);

        assert_eq!((status.group.as_str(), status.uid.as_str(), status.retry_after_seconds), ("apps", "u", 7));
    }
}
