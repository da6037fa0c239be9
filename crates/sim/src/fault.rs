//! Faults between a client and the API server. The test decides for each request and event. It sees facts of the
//! request only, so that a repeated run has the same faults.

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::sync::Notify;

use super::{request::RequestInfo, status::Failure};

/// What happens to a request.
#[derive(Debug, Clone, Default)]
pub enum Fault {
    /// No fault.
    #[default]
    None,
    /// Nothing is stored; the client gets this.
    FailBefore(Seen),
    /// Nothing is stored; the client gets this after a delay, e.g. because a webhook does not answer.
    FailLate(Duration, Seen),
    /// The request is carried out, but the client gets this.
    FailAfterCommit(Seen),
    /// The request is carried out after this delay.
    Delay(Duration),
    /// The request is carried out at once; the answer is delayed.
    DelayAnswer(Duration),
    /// Nothing is stored and no answer comes.
    Hang,
    /// The request is carried out, but no answer comes.
    HangAfterCommit,
    /// The client's process ends before the request is carried out: see [`Process`].
    CrashClient,
    /// The client's process ends right after the request was carried out.
    CrashClientAfterCommit,
    /// A get or list is answered from this revision (or the oldest known one), as by a lagging API server.
    ReadAsOf(u64),
    /// A watch ends after this many events (bookmarks count). Other requests are not affected.
    BreakWatch {
        /// Events that are still delivered.
        after_events: u64,
        /// How the watch ends.
        end: WatchEnd,
    },
}

/// Invalid answers: no JSON, wrong shapes, a `Status` about another object, items that are no objects.
pub const NONSENSE: [&str; 11] = [
    "[]",
    "\"x\"",
    "null",
    "{}",
    "<html>",
    r#"{"metadata": []}"#,
    r#"{"kind": "Lease", "metadata": "x", "spec": "x"}"#,
    r#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}"#,
    r#"{"kind": "List", "apiVersion": "v1", "metadata": {}, "items": "x"}"#,
    r#"{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": [7, "x", [], null, {}]}"#,
    r#"{"type": "ADDED", "object": []}"#,
];

/// What a client gets instead of the answer.
#[derive(Debug, Clone)]
pub enum Seen {
    /// This answer.
    Answer(Failure),
    /// A broken connection.
    Disconnect,
}

/// How a watch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEnd {
    /// Cleanly, as at its timeout.
    Close,
    /// With a broken connection.
    Disconnect,
    /// It stays open and silent.
    Hang,
    /// With the event that reports an expired version.
    Expired,
}

/// An event on its way to one watch.
#[derive(Debug, Clone)]
pub struct EventInfo {
    /// Number of the watch's request.
    pub watch: u64,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub event: &'static str,
    /// API group.
    pub group: String,
    /// Plural name.
    pub resource: String,
    /// Empty for cluster scope.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Revision of the change.
    pub revision: u64,
    /// User agent of the watch.
    pub user_agent: String,
}

/// What happens to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventFault {
    /// It is delivered.
    #[default]
    Deliver,
    /// It is lost.
    Drop,
    /// It is delivered twice.
    Duplicate,
    /// It is delivered after the event that follows it.
    Swap,
}

/// One run of a client program. A crash silences its clients of all simulators for ever; the test then drops them.
#[derive(Clone, Default)]
pub struct Process {
    inner: Arc<ProcessState>,
}

#[derive(Default)]
struct ProcessState {
    crashed: AtomicBool,
    notify: Notify,
}

pub(super) type FaultFunction = Box<dyn FnMut(&RequestInfo) -> Fault + Send>;

pub(super) type EventFaultFunction = Box<dyn FnMut(&EventInfo) -> EventFault + Send>;

impl Seen {
    /// An answer with a `Status` body. `reason` may be empty, as some proxies send it.
    pub fn status(code: u16, reason: &str, message: &str) -> Self {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": reason, "details": {}, "code": code,
        });
        let body = super::encode::to_vec(&body).into();
        Self::Answer(Failure { code, body, content_type: "application/json", retry_after: None })
    }

    /// Success with this body, e.g. of something that is no API server.
    pub fn body(body: &str) -> Self {
        let body = body.to_owned().into();
        Self::Answer(Failure { code: 200, body, content_type: "application/json", retry_after: None })
    }

    /// One of the [`NONSENSE`] bodies.
    pub fn nonsense(number: usize) -> Self {
        Self::body(NONSENSE[number % NONSENSE.len()])
    }

    /// 401: the token is not valid, or no longer valid.
    pub fn unauthorized() -> Self {
        Self::Answer(Failure::unauthorized())
    }

    /// 403: the user may not make this request.
    pub fn forbidden(info: &RequestInfo) -> Self {
        let group = &info.group;
        let resource = &info.resource;
        let dot = if group.is_empty() { "" } else { "." };
        let name = if info.name.is_empty() { String::new() } else { format!(" \"{}\"", info.name) };
        let place = match info.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace \"{namespace}\""),
        };
        let message = format!(
            "{resource}{dot}{group}{name} is forbidden: User \"{}\" cannot {} resource \"{resource}\" in API group \
             \"{group}\" {place}",
            info.user, info.verb
        );
        Self::status(403, "Forbidden", &message)
    }

    /// 409: another client wrote in between.
    pub fn conflict(info: &RequestInfo) -> Self {
        let dot = if info.group.is_empty() { "" } else { "." };
        let message = format!(
            "Operation cannot be fulfilled on {}{dot}{} \"{}\": the object has been modified; please apply your changes to \
             the latest version and try again",
            info.resource, info.group, info.name
        );
        Self::status(409, "Conflict", &message)
    }

    /// 429 of an overloaded server: plain text, with `Retry-After: 1`.
    pub fn too_many_requests() -> Self {
        Self::Answer(Failure::too_many_requests())
    }

    /// 429 of a custom kind whose storage is not ready right after the start of the server.
    pub fn storage_initializing() -> Self {
        let text = "storage is (re)initializing";
        match Self::status(429, "TooManyRequests", text) {
            Self::Answer(failure) => Self::Answer(Failure { retry_after: Some(1), ..failure }),
            Self::Disconnect => Self::Disconnect,
        }
    }

    /// 500 with this message.
    pub fn internal_error(message: &str) -> Self {
        Self::status(500, "InternalError", message)
    }

    /// 503 of a load balancer without servers.
    pub fn unavailable() -> Self {
        Self::Answer(Failure::service_unavailable_text())
    }

    /// 504: the server gave up waiting; the request may have been carried out.
    pub fn timeout() -> Self {
        let text = "Timeout: request did not complete within the allotted timeout";
        Self::status(504, "Timeout", text)
    }
}

impl Process {
    /// A running process.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the process.
    pub fn crash(&self) {
        self.inner.crashed.store(true, Ordering::SeqCst);
        self.inner.notify.notify_waiters();
    }

    /// Returns true if the process has ended.
    pub fn is_crashed(&self) -> bool {
        self.inner.crashed.load(Ordering::SeqCst)
    }

    /// Waits until the process has ended.
    pub async fn crashed(&self) {
        loop {
            let notified = self.inner.notify.notified();
            if self.is_crashed() {
                return;
            }
            notified.await;
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("crashed", &self.is_crashed()).finish()
    }
}

pub(super) fn disconnected() -> tower::BoxError {
    Box::new(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by the simulator"))
}
