//! The answer to a review (spec 50 §2.4).

use base64::{Engine as _, prelude::BASE64_STANDARD};
use cluster::Cause;
use serde::Serialize;

use super::{Identity, Refusal};
use crate::webhooks::{exchange::Reply, view::Read};

/// The API server's reaction to a webhook that does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It continues without the webhook.
    Ignore,
    /// It refuses the request.
    Fail,
}

/// The verdict of a webhook on a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewVerdict {
    /// Allowed unchanged.
    Allowed,
    /// Allowed with a patch, a JSON array that is not empty.
    Patched(Vec<u8>),
    /// Allowed unchanged, because the webhook does not handle such objects.
    Unexpected(String),
    /// Denied with this text.
    Denied(String),
    /// Denied with an API status.
    Status(Box<cluster::Status>),
    /// Denied, because the object breaks rules. The text may quote the object.
    Invalid {
        /// The status with a cause for each error, as far as they fit.
        status: Box<cluster::Status>,
        /// Number of errors.
        errors: usize,
    },
    /// No verdict, because a read failed.
    ReadFailed {
        /// The subject of the read.
        read: Read,
        /// `status.message`; the code is 500.
        message: String,
    },
    /// No verdict: a code and a message.
    Errored {
        /// `status.code`.
        code: u16,
        /// `status.message`.
        message: String,
    },
    /// The webhook panicked with this text.
    Panicked(String),
}

/// The outcome of an AdmissionReview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// The request was no AdmissionReview.
    Refused(Refusal),
    /// The review has a verdict.
    Reviewed {
        /// `request.operation`.
        operation: String,
        /// `request.namespace`.
        namespace: String,
        /// `request.name`.
        name: String,
        /// The verdict.
        verdict: ReviewVerdict,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnswerDocument<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'a str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    status: Status<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
}

#[derive(Serialize, Default)]
struct Status<'a> {
    metadata: Empty,
    #[serde(skip_serializing_if = "str::is_empty")]
    status: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'a>>,
    code: u16,
}

#[derive(Serialize, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct Details<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "<[Cause]>::is_empty")]
    causes: &'a [Cause],
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
}

#[derive(Serialize, Default)]
struct Empty {}

/// Returns the HTTP answer to a review. With failurePolicy Ignore, our own errors are HTTP errors, so that the API
/// server ignores them; an `allowed: false` would deny (spec 50, "better" 8).
pub fn reply(identity: &Identity, verdict: &ReviewVerdict, policy: FailurePolicy) -> Reply {
    let panicked;
    let (code, message) = verdict.reported();
    let plain = Status { message, code, ..Status::default() };
    let (allowed, status) = match verdict {
        ReviewVerdict::Allowed | ReviewVerdict::Patched(_) | ReviewVerdict::Unexpected(_) => (true, plain),
        ReviewVerdict::Denied(_) => (false, Status { reason: "Forbidden", ..plain }),
        ReviewVerdict::Status(status) | ReviewVerdict::Invalid { status, errors: _ } => (false, Status::of(status)),
        ReviewVerdict::ReadFailed { .. } | ReviewVerdict::Errored { .. } => (false, plain),
        ReviewVerdict::Panicked(text) => {
            panicked = format!("panic: {text} [recovered]");
            (false, Status { message: &panicked, ..plain })
        }
    };
    if policy == FailurePolicy::Ignore && status.code >= 500 {
        return Reply { status: 500, body: format!("{}\n", status.message).into_bytes() };
    }
    let patch = if let ReviewVerdict::Patched(patch) = verdict { Some(BASE64_STANDARD.encode(patch)) } else { None };
    let patch_type = patch.is_some().then_some("JSONPatch");
    written(identity, Response { uid: &identity.uid, allowed, status, patch, patch_type })
}

fn written(identity: &Identity, response: Response<'_>) -> Reply {
    let document = AnswerDocument { kind: &identity.kind, api_version: &identity.api_version, response };
    Reply::json(&document)
}

impl Refusal {
    /// Returns the HTTP answer: a denial with the known identity of the review.
    pub fn reply(&self) -> Reply {
        let status = Status { message: &self.message, code: self.code, ..Status::default() };
        let response = Response { uid: &self.identity.uid, allowed: false, status, patch: None, patch_type: None };
        written(&self.identity, response)
    }
}

impl ReviewVerdict {
    /// Returns why the review was not allowed, for metrics: one of [`FAILURE_CAUSES`](crate::webhooks::server::metrics::FAILURE_CAUSES).
    pub fn cause(&self) -> Option<&'static str> {
        Some(match self {
            Self::Allowed | Self::Patched(_) | Self::Unexpected(_) => return None,
            Self::Denied(_) => "denied",
            Self::Status(_) => "status",
            Self::Invalid { .. } => "invalid",
            Self::ReadFailed { read: Read::Namespace, .. } => "namespace",
            Self::ReadFailed { read: Read::Autoscalers, .. } => "autoscalers",
            Self::ReadFailed { read: Read::Nodes, .. } => "nodes",
            Self::Errored { code: 400, .. } => "undecodable",
            Self::Errored { .. } => "internal",
            Self::Panicked(_) => "panic",
        })
    }

    /// Returns `status.code` and `status.message`, for logs and counters.
    pub fn reported(&self) -> (u16, &str) {
        match self {
            Self::Allowed | Self::Patched(_) => (200, ""),
            Self::Unexpected(message) => (200, message),
            Self::Denied(message) => (403, message),
            Self::Status(status) | Self::Invalid { status, errors: _ } => (status.code, &status.message),
            Self::ReadFailed { read: _, message } => (500, message),
            Self::Errored { code, message } => (*code, message),
            Self::Panicked(text) => (500, text),
        }
    }
}

impl<'a> Status<'a> {
    fn of(status: &'a cluster::Status) -> Self {
        let cluster::Status { code, reason, message, name, group, kind, uid, causes, .. } = status;
        let retry_after_seconds = Some(status.retry_after_seconds).filter(|seconds| *seconds > 0);
        let details = Details { name, group, kind, uid, causes, retry_after_seconds };
        let details = (details != Details::default()).then_some(details);
        Self { metadata: Empty {}, status: "Failure", message, reason, details, code: *code }
    }
}
