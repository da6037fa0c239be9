//! The answer to a SubjectAccessReview (spec 61 §1.2).

use std::borrow::Cow;

use serde::Serialize;

use super::{Decision, Ruling, review::KIND};
use crate::webhooks::exchange::Reply;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnswerDocument<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'a str,
    metadata: Empty,
    spec: Empty,
    status: AnswerStatus<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnswerStatus<'a> {
    allowed: bool,
    #[serde(skip_serializing_if = "is_false")]
    denied: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    evaluation_error: Cow<'a, str>,
}

#[derive(Serialize)]
struct Empty {}

const VERSION: &str = "authorization.k8s.io/v1";

/// Returns the HTTP answer: always 200, with the version and kind of its review, if it has any.
pub fn reply(api_version: &str, kind: &str, ruling: &Ruling) -> Reply {
    let (api_version, kind) =
        if api_version.is_empty() && kind.is_empty() { (VERSION, KIND) } else { (api_version, kind) };
    let mut status = AnswerStatus { allowed: false, denied: false, reason: "", evaluation_error: Cow::Borrowed("") };
    match ruling {
        Ruling::Decided(Decision::Allow) => status.allowed = true,
        Ruling::Decided(Decision::Deny(reason)) => (status.denied, status.reason) = (true, reason),
        Ruling::Decided(Decision::NoOpinion) => {}
        Ruling::Failed { code, message } => status.evaluation_error = format!("{code} {message}").into(),
        Ruling::Panicked(text) => status.evaluation_error = format!("500 panic: {text} [recovered]").into(),
    }
    let document = AnswerDocument { kind, api_version, metadata: Empty {}, spec: Empty {}, status };
    Reply::json(&document)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde expects this signature")]
fn is_false(value: &bool) -> bool {
    !*value
}
