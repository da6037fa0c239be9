mod texts;

use std::{error::Error as _, time::Duration};

use http::StatusCode;
use kit::quote::cut_within;
use kube::client::AuthError;
use serde::Serialize;
use serde_json::Value;

pub(super) use self::texts::without_objects;
use self::texts::{LEFT_OUT, plain_text, without_content, without_keys};
use crate::{ObjectRef, answers, kubeconfig::credentials_reason, object::GroupVersionKind};

/// The smallest size in bytes that an API server rejects (of all annotations together).
const SMALLEST_LIMIT: usize = 256 * 1024;

/// A failed request. Clonable, so that callers that share a request share its error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The server answered with an error; the text is its own, verbatim (decision 14).
    #[error("{0}")]
    Status(Box<Status>),
    /// The connection failed, or broke before the answer was complete.
    #[error("{message}")]
    Transport {
        /// The chain of causes.
        message: String,
        /// Whether the request may have reached the server.
        sent: bool,
    },
    /// The deadline passed before the answer.
    #[error("the API server did not answer in time")]
    Timeout,
    /// The deadline passed before the request was sent.
    #[error("the request was not sent before its deadline")]
    NotSent,
    /// This process may not write (any more).
    #[error("not sent: {0}")]
    Fenced(&'static str),
    /// The version's own document does not name the kind. Another version may: only
    /// [`ProvedAbsent`](super::ProvedAbsent) proves that the kind is gone.
    #[error("no matches for kind \"{}\" in version \"{}\"", .0.kind, .0.api_version())]
    NoMatch(GroupVersionKind),
    /// Whether the server serves the kind is unknown at present.
    #[error("unable to retrieve the complete list of server APIs: {0}")]
    Discovery(String),
    /// The answer is not what the API promises.
    #[error("cannot decode the answer of the API server: {0}")]
    Decode(String),
    /// The answer is larger than the limit; says why.
    #[error("the answer of the API server is too large: {0}")]
    TooLarge(String),
    /// The request is invalid and was not sent.
    #[error("{0}")]
    BadRequest(String),
}

/// Longest text of an error answer that is kept, in bytes. It goes into logs, conditions and Events, several times over.
const LONGEST_MESSAGE: usize = 32 * 1024;

/// Longest other field of an error answer that is kept, in bytes. Names have 253, paths of fields more.
const LONGEST_FIELD: usize = 4096;

/// Most causes of an error answer that are kept.
const MOST_CAUSES: usize = 256;

/// The error answer of an API server: a `Status` object, or a plain text with an HTTP status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// HTTP status.
    pub code: u16,
    /// Machine-readable reason, e.g. `NotFound`; empty for plain texts and some 500s.
    pub reason: String,
    /// The server's text. A longer text than 32 KiB, the longest in a condition, is cut. Repeated objects are left out.
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
    /// `details.retryAfterSeconds`; 0 if absent.
    pub retry_after_seconds: u64,
    /// The `Retry-After` header.
    pub retry_after: Option<Duration>,
    /// True if the request was about another object than the status names.
    pub of_another: bool,
}

/// One finding of an error answer. Empty fields are not written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Cause {
    /// E.g. `FieldValueInvalid`, `NamespaceTerminating`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The text without the field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Path of the field, e.g. `spec.clusterIPs[0]`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl ApiError {
    /// The server's answer, if there was one.
    pub fn status(&self) -> Option<&Status> {
        if let Self::Status(status) = self { Some(status) } else { None }
    }

    /// HTTP status of the answer.
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    fn is_answer(&self, code: u16, reason: &str) -> bool {
        self.status().is_some_and(|status| status.code == code && status.reason == reason)
    }

    /// The object (or for a creation its namespace) does not exist: the answer names it (facts §2). False if the *kind*
    /// is not served or the answer is about another object, because then nothing is known of this one.
    pub fn is_not_found(&self) -> bool {
        let names_it = |status: &Status| !status.kind.is_empty() && !status.name.is_empty() && !status.of_another;
        self.is_answer(404, "NotFound") && self.status().is_some_and(names_it)
    }

    /// A 404 that names no object: the server may not serve group, version or resource (any more), or a proxy does not
    /// know the path. It proves nothing; [`Discovery::look_up`](super::Discovery::look_up) does.
    pub fn is_not_served(&self) -> bool {
        let of_path = |status: &Status| status.kind.is_empty() && status.name.is_empty();
        self.status().is_some_and(|status| status.code == 404 && of_path(status))
    }

    /// An API server's own text for an unknown path (facts §2), not a proxy's.
    pub(super) fn is_unknown_path(&self) -> bool {
        let is_own = |status: &Status| status.reason == "NotFound" || status.message == "404 page not found";
        self.is_not_served() && self.status().is_some_and(is_own)
    }

    /// Marks a 404 that names another object than `at` and so says nothing of this one. Admission webhooks cause such.
    pub(super) fn about(self, at: &ObjectRef) -> Self {
        let Self::Status(mut status) = self else { return self };
        let is_kind = |kind: &str| status.kind.eq_ignore_ascii_case(kind);
        let names_it = status.name == at.name && (is_kind(&at.resource.plural) || is_kind(&at.resource.kind));
        status.of_another = !names_it;
        Self::Status(status)
    }

    /// The text after that of [`Self::Discovery`].
    pub(super) fn into_discovery_text(self) -> String {
        if let Self::Discovery(text) = self { text } else { self.to_string() }
    }

    /// Somebody else changed the object, or a precondition failed; not [`Self::is_already_exists`]. A uid in a patch is
    /// a precondition, too, although the server calls a different uid an invalid change (api-facts §4).
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

    /// The API server or its database accepts no object of `size` bytes (facts §10). `Too long` is also a text about
    /// fields: it counts only for objects above the smallest limit for a whole object.
    pub fn is_too_large(&self, size: usize) -> bool {
        let of_database = ["etcdserver: request is too large", "trying to send message larger than max"];
        self.status().is_some_and(|status| match status.code {
            413 => true,
            422 => size > SMALLEST_LIMIT && status.message.contains("Too long"),
            _ => of_database.iter().any(|text| status.message.contains(text)),
        })
    }

    /// Rights are missing, an admission plugin or webhook denies, or the namespace is terminating.
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// The credentials are not accepted.
    pub fn is_unauthorized(&self) -> bool {
        self.code() == Some(401)
    }

    /// The kind is not served in this version: [`Self::NoMatch`].
    pub fn is_no_match(&self) -> bool {
        matches!(self, Self::NoMatch(_))
    }

    /// A page token or the version of a watch is too old: start again with a list.
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(|status| status.code == 410 || matches!(status.reason.as_str(), "Expired" | "Gone"))
    }

    /// The server is overloaded, or asks to slow down.
    pub fn is_too_many_requests(&self) -> bool {
        self.code() == Some(429)
    }

    /// Returns true if a failed write may have happened: *maybe done* (contract rule 7).
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Timeout | Self::Decode(_) | Self::TooLarge(_) => true,
            Self::Transport { sent, .. } => *sent,
            Self::Status(status) => status.code >= 500,
            Self::NotSent | Self::Fenced(_) | Self::NoMatch(_) | Self::Discovery(_) | Self::BadRequest(_) => false,
        }
    }

    /// Converts an error of kube's own methods. `secret`: about a Secret, so quoted values are left out.
    pub fn of_kube(error: &kube::Error, secret: bool) -> Self {
        match error {
            kube::Error::Api(status) => {
                let object = serde_json::to_value(status).unwrap_or_default();
                Self::Status(Status::from_object(&object, secret).into())
            }
            // The parser's text quotes the input.
            kube::Error::SerdeError(error) => Self::Decode(format!("line {} column {}", error.line(), error.column())),
            other => Self::from_client(other),
        }
    }

    pub(super) fn from_client(error: &kube::Error) -> Self {
        if let Some(error) = credentials_error(error) {
            return Self::Transport { message: credentials_reason(error), sent: false };
        }
        let text = error.to_string();
        let mut message = text.strip_prefix("ServiceError: ").unwrap_or(&text).to_owned(); // of the layers in kube
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

/// Returns why a request got no credentials. The texts of the errors around it repeat the output of a credential plugin.
fn credentials_error(error: &kube::Error) -> Option<&AuthError> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<AuthError>() {
            return Some(error);
        }
        next = error.source();
    }
    None
}

impl Status {
    pub(super) fn from_answer(code: StatusCode, retry_after: Option<Duration>, body: &[u8], secret: bool) -> Self {
        let mut status = match answers::status_in(body) {
            Some(value) => Self::from_object(&value, secret),
            None => Self { message: plain_text(code, body), ..Self::default() },
        };
        status.code = code.as_u16();
        status.retry_after = retry_after;
        status
    }

    /// Parses a `Status` object, e.g. of a watch's ERROR event.
    pub(super) fn from_object(value: &Value, secret: bool) -> Self {
        let cut = |value: &Value, longest: usize| cut_within(longest, value.as_str().unwrap_or_default()).into_owned();
        let text = |value: &Value| cut(value, LONGEST_FIELD);
        let message = |value: &Value| cut(value, LONGEST_MESSAGE);
        let details = &value["details"];
        let cause = |cause: &Value| Cause {
            reason: text(&cause["reason"]),
            message: match cause["field"].as_str() {
                Some("patch") => LEFT_OUT.into(), // the whole object again
                // The text is about a field, so it may quote content.
                Some(_) | None if secret => without_content(&message(&cause["message"]), false),
                Some(_) | None => without_objects(&message(&cause["message"]), false),
            },
            field: if secret { without_keys(&text(&cause["field"])) } else { text(&cause["field"]) },
        };
        Self {
            code: value["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap_or_default(),
            reason: text(&value["reason"]),
            message: without_objects(&message(&value["message"]), secret),
            kind: text(&details["kind"]),
            name: text(&details["name"]),
            group: text(&details["group"]),
            uid: text(&details["uid"]),
            retry_after_seconds: details["retryAfterSeconds"].as_u64().unwrap_or_default(),
            causes: details["causes"].as_array().into_iter().flatten().take(MOST_CAUSES).map(cause).collect(),
            retry_after: None,
            of_another: false,
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests;
