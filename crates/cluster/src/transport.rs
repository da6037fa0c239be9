//! HTTP: one exchange with the server, and its repetition by the rules of `retry`.

use std::{rc::Rc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, Method, Request, Response,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER},
};
use kit::{Deadline, json};
use kube::client::Body;
use serde_json::Value;
use tokio::time::timeout_at;
use tracing::{Instrument as _, Span, field};

use super::{
    AnswerRoom, ApiError, RequestObserver, Status, WriteGuard,
    answers::{self, LARGEST_ANSWER, LARGEST_ERROR, Share},
    contact::Contact,
    request_scheduler::Permit,
    retry::Attempts,
    slim::Slim,
    warnings::Warnings,
};

pub(super) const JSON: &str = "application/json";
pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";

pub(super) struct Transport {
    pub(super) client: kube::Client,
    pub(super) host: String,
    pub(super) observer: Rc<dyn RequestObserver>,
    pub(super) warnings: Warnings,
    /// What the last request that ended or was given up says of the server.
    pub(super) contact: Contact,
    pub(super) room: AnswerRoom,
}

/// One request. Not printable, because its body may be a Secret.
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) uri: String,
    pub(super) accept: &'static str,
    pub(super) content_type: &'static str,
    pub(super) body: Bytes,
    /// The request is about a Secret: quoted values do not get into error texts.
    pub(super) secret: bool,
    pub(super) headers: HeaderMap,
}

pub(super) struct Answer {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    _share: Share,
}

/// What a request holds while it is in flight.
#[derive(Default)]
pub(super) struct Admission {
    pub(super) _permit: Option<Permit>,
    pub(super) guard: Option<WriteGuard>,
}

impl Transport {
    /// Sends a call until it succeeds or `retry` gives up. Calls `admit` before each attempt; in between holds nothing.
    pub(super) async fn perform(
        &self,
        call: &Call,
        deadline: Deadline,
        admit: impl AsyncFn() -> Result<Admission, ApiError>,
    ) -> Result<Answer, ApiError> {
        let mut attempts = Attempts::default();
        loop {
            let result = match self.attempt(call, deadline, &admit).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(wait) = attempts.again(call.is_read(), &result, deadline.left()) else { return Err(result) };
            tracing::debug!(method = %call.method, uri = call.uri, error = %result, wait = ?wait, "request is repeated");
            tokio::time::sleep(wait).await;
        }
    }

    /// As [`Self::perform`], without request scheduler and fence.
    pub(super) async fn perform_at_once(&self, call: &Call, deadline: Deadline) -> Result<Answer, ApiError> {
        self.perform(call, deadline, async || Ok(Admission::default())).await
    }

    async fn attempt(
        &self,
        call: &Call,
        deadline: Deadline,
        admit: &impl AsyncFn() -> Result<Admission, ApiError>,
    ) -> Result<Answer, ApiError> {
        let admission = timeout_at(deadline.0, admit()).await.map_err(|_| ApiError::NotSent)??;
        if deadline.is_over() {
            admission.confirmed();
            return Err(ApiError::NotSent);
        }
        let result = timeout_at(deadline.0, self.exchange(call)).await.unwrap_or_else(|_| {
            self.contact.not_answered(&ApiError::Timeout);
            Err(ApiError::Timeout)
        });
        if result.as_ref().err().is_none_or(|error| !error.outcome_unknown()) {
            admission.confirmed();
        }
        result
    }

    async fn exchange(&self, call: &Call) -> Result<Answer, ApiError> {
        let (parts, body) = self.open(call, None).await?.into_parts();
        let mut share = self.room.share();
        let body = answers::read(body, LARGEST_ANSWER, &mut share).await?;
        Ok(Answer { headers: parts.headers, body, _share: share })
    }

    /// Sends a call once, and returns at the head of a successful answer. `encoding` replaces `Accept-Encoding`.
    pub(super) async fn open(&self, call: &Call, encoding: Option<&'static str>) -> Result<Response<Body>, ApiError> {
        let request = call.request(encoding)?;
        let span = call.span(&self.host);
        let result = self.client.send(request).instrument(span.clone()).await;
        let code = result.as_ref().ok().map(|response| response.status().as_u16());
        self.observer.finished(call.method.as_str(), &self.host, code);
        if let Some(code) = code {
            self.contact.answered(code);
            span.record("http.response.status_code", code);
        }
        let response = result.map_err(|error| ApiError::from_client(&error));
        let response = response.inspect_err(|error| self.contact.not_answered(error))?;
        self.warnings.log(&self.host, response.headers(), call.secret);
        if response.status().is_success() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        // The status code is enough without a body.
        let body = answers::read(body, LARGEST_ERROR, &mut self.room.share()).await.unwrap_or_default();
        let status = Status::from_answer(parts.status, retry_after(&parts.headers), &body, call.secret);
        Err(ApiError::Status(status.into()))
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

impl Call {
    pub(super) fn read(uri: String) -> Self {
        Self::new(Method::GET, uri)
    }

    pub(super) fn new(method: Method, uri: String) -> Self {
        let (body, headers) = (Bytes::new(), HeaderMap::new());
        Self { method, uri, accept: JSON, content_type: JSON, body, secret: false, headers }
    }

    pub(super) fn accepting(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    pub(super) fn with_body(self, content_type: &'static str, body: &Value) -> Self {
        // Writing JSON into memory cannot fail.
        Self { content_type, body: serde_json::to_vec(body).unwrap_or_default().into(), ..self }
    }

    pub(super) fn about_secret(self, secret: bool) -> Self {
        Self { secret, ..self }
    }

    /// Its span, named as OpenTelemetry names requests. The query is left out, because selectors may be long.
    fn span(&self, host: &str) -> Span {
        tracing::debug_span!(
            "request",
            http.request.method = self.method.as_str(),
            server.address = host,
            url.path = self.uri.split('?').next(),
            http.response.status_code = field::Empty,
        )
    }

    pub(super) fn is_read(&self) -> bool {
        self.method == Method::GET
    }

    fn request(&self, encoding: Option<&'static str>) -> Result<Request<Body>, ApiError> {
        let mut request = Request::builder().method(&self.method).uri(&self.uri).header(ACCEPT, self.accept);
        if !self.body.is_empty() {
            request = request.header(CONTENT_TYPE, self.content_type);
        }
        if let Some(encoding) = encoding {
            request = request.header(ACCEPT_ENCODING, encoding);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Body::from(self.body.clone())).map_err(|error| ApiError::BadRequest(error.to_string()))
    }
}

impl Answer {
    pub(super) fn json(&self) -> Result<Value, ApiError> {
        answers::check_values(&self.body)?;
        json::from_slice(&self.body).map_err(|error| ApiError::Decode(error.to_string()))
    }

    pub(super) fn slim(&self) -> Result<Value, ApiError> {
        answers::check_values(&self.body)?;
        let read: Result<Slim, _> = json::from_slice(&self.body);
        read.map(|slim| slim.0).map_err(|error| ApiError::Decode(error.to_string()))
    }
}

impl Admission {
    fn confirmed(self) {
        self.guard.into_iter().for_each(WriteGuard::confirmed);
    }
}
