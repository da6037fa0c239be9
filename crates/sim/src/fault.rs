//! Faults: what can go wrong between a client and the API server, decided by the test for each request and event.
//!
//! A fault function sees facts of the request only, so the same run meets the same faults again.

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
    /// Nothing.
    #[default]
    None,
    /// Nothing is stored, and the client sees this.
    FailBefore(Seen),
    /// Nothing is stored, and the client sees this so much later: a webhook that does not answer in time, for instance.
    FailLate(Duration, Seen),
    /// The request is carried out, but the client sees this.
    FailAfterCommit(Seen),
    /// The request is carried out this much later.
    Delay(Duration),
    /// The request is carried out at once, the answer comes this much later.
    DelayAnswer(Duration),
    /// Nothing is stored and no answer ever comes.
    Hang,
    /// The request is carried out, but no answer ever comes.
    HangAfterCommit,
    /// The client's process ends before the request is carried out: see [`Process`].
    CrashClient,
    /// The client's process ends right after the request was carried out.
    CrashClientAfterCommit,
    /// A get or list is answered from the state at this revision, as from an API server that lags behind; the oldest
    /// known state if the revision has expired. Other requests are not affected.
    ReadAsOf(u64),
    /// A watch ends like this after so many events (bookmarks count). Other requests are not affected.
    BreakWatch {
        /// Events that are still delivered.
        after_events: u64,
        /// What comes then.
        end: WatchEnd,
    },
}

/// Answers that are none: no JSON, no object, an object of the wrong shape, a word of the server about something else, and
/// items that are no objects.
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

/// What a client sees instead of the answer.
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
    /// Not at all: it stays open and silent.
    Hang,
    /// With the event that says that its version has expired.
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
    /// Who watches.
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
    /// It is delivered after the one that follows it.
    Swap,
}

/// One life of a client program. A crash silences all its clients, also those of other simulators: their requests and
/// watches never end, as the program that would read them is gone. The test then drops them.
#[derive(Clone, Default)]
pub struct Process {
    inner: Arc<ProcessState>,
}

#[derive(Default)]
struct ProcessState {
    crashed: AtomicBool,
    notify: Notify,
}

/// The fault function of a simulator.
pub(super) type FaultFunction = Box<dyn FnMut(&RequestInfo) -> Fault + Send>;

/// The event fault function of a simulator.
pub(super) type EventFaultFunction = Box<dyn FnMut(&EventInfo) -> EventFault + Send>;

impl Seen {
    /// An answer with a `Status` body. `reason` may be empty, as in those of some proxies.
    pub fn status(code: u16, reason: &str, message: &str) -> Self {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": reason, "details": {}, "code": code,
        });
        let body = super::encode::to_vec(&body).into();
        Self::Answer(Failure { code, body, content_type: "application/json", retry_after: None })
    }

    /// Success, with this body: what something that is no API server may answer.
    pub fn body(body: &str) -> Self {
        let body = body.to_owned().into();
        Self::Answer(Failure { code: 200, body, content_type: "application/json", retry_after: None })
    }

    /// One of the [`NONSENSE`] bodies.
    pub fn nonsense(number: usize) -> Self {
        Self::body(NONSENSE[number % NONSENSE.len()])
    }

    /// 401: the token is not (or no longer) good.
    pub fn unauthorized() -> Self {
        Self::Answer(Failure::unauthorized())
    }

    /// 403: the right to make this request is missing.
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

    /// 409: somebody else wrote in between.
    pub fn conflict(info: &RequestInfo) -> Self {
        let dot = if info.group.is_empty() { "" } else { "." };
        let message = format!(
            "Operation cannot be fulfilled on {}{dot}{} \"{}\": the object has been modified; please apply your changes to \
             the latest version and try again",
            info.resource, info.group, info.name
        );
        Self::status(409, "Conflict", &message)
    }

    /// 429 of a server that has too much to do: plain text, with `Retry-After: 1`.
    pub fn too_many_requests() -> Self {
        Self::Answer(Failure::too_many_requests())
    }

    /// 429 of a custom kind right after the start of the server: its storage is being set up.
    pub fn storage_initializing() -> Self {
        let text = "storage is (re)initializing";
        match Self::status(429, "TooManyRequests", text) {
            Self::Answer(failure) => Self::Answer(Failure { retry_after: Some(1), ..failure }),
            Self::Disconnect => Self::Disconnect,
        }
    }

    /// 500.
    pub fn internal_error(message: &str) -> Self {
        Self::status(500, "InternalError", message)
    }

    /// 503, as from a load balancer without servers.
    pub fn unavailable() -> Self {
        Self::Answer(Failure::service_unavailable_text())
    }

    /// 504: the server gave up waiting; whether the request was carried out is not known.
    pub fn timeout() -> Self {
        let text = "Timeout: request did not complete within the allotted timeout";
        Self::status(504, "Timeout", text)
    }
}

impl Process {
    /// A process that runs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends it.
    pub fn crash(&self) {
        self.inner.crashed.store(true, Ordering::SeqCst);
        self.inner.notify.notify_waiters();
    }

    /// Whether it has ended.
    pub fn is_crashed(&self) -> bool {
        self.inner.crashed.load(Ordering::SeqCst)
    }

    /// Waits until it has ended.
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

/// The error of a broken connection.
pub(super) fn disconnected() -> tower::BoxError {
    Box::new(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by the simulator"))
}
