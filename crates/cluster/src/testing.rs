//! A scripted API server, for the tests of this crate and of those above it.

#![allow(clippy::unwrap_used, reason = "only tests are built with it")]

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use jiff::Timestamp;
use kit::{Clock, Deadline, Priority, Random};
use kube::client::Body;
use serde_json::Value;

use super::{AnswerRoom, Cluster, ClusterEnv, ClusterLabel, ClusterOptions, Context, Fence, RequestObserver, Resource};

/// A request that the server received.
#[derive(Debug, Clone)]
pub struct Seen {
    /// `METHOD path?query`.
    pub line: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body; null if it is missing or not JSON.
    pub body: Value,
}

/// What the server does with a request.
pub enum Reply {
    /// Answers.
    Answer(Box<Response<Answered>>),
    /// Breaks the connection.
    Broken,
    /// Does the rest after this time.
    Late(Duration, Box<Reply>),
}

/// A body that may break.
pub type Answered = UnsyncBoxBody<Bytes, std::io::Error>;
type Script = Box<dyn FnMut(&Seen) -> Reply + Send>;

/// A server that calls a closure; clones share the recorded requests.
#[derive(Clone)]
pub struct Server {
    script: Arc<Mutex<Script>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// Records the calls of an observer.
#[derive(Default)]
pub struct Recorded(pub RefCell<Vec<String>>);

impl Server {
    /// Creates a server that calls `script` for each request.
    pub fn new(script: impl FnMut(&Seen) -> Reply + Send + 'static) -> Self {
        Self { script: Arc::new(Mutex::new(Box::new(script))), seen: Arc::default() }
    }

    /// Replaces the script.
    pub fn replace(&self, script: impl FnMut(&Seen) -> Reply + Send + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    /// Returns `METHOD path?query` of all requests so far.
    pub fn lines(&self) -> Vec<String> {
        self.requests().into_iter().map(|seen| seen.line).collect()
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns a cluster without limits and without leader election.
    pub fn cluster(&self) -> Cluster {
        self.cluster_with(Fence::open(), Rc::new(super::NoObserver))
    }

    /// Returns a cluster without limits.
    pub fn cluster_with(&self, fence: Fence, observer: Rc<dyn RequestObserver>) -> Cluster {
        let options = ClusterOptions {
            label: ClusterLabel::may_be_down("target"),
            host: "api:443".into(),
            qps: -1.0,
            burst: 0,
            namespaces: Vec::new(),
        };
        let start: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let env = ClusterEnv {
            clock: Clock::starting_at(start),
            random: Random::seeded(1),
            fence,
            room: AnswerRoom::default(),
        };
        Cluster::new(kube::Client::new(self.clone(), "default"), options, env, observer)
    }
}

impl tower::Service<Request<Body>> for Server {
    type Response = Response<Answered>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let seen = Seen {
                line: format!("{} {}", parts.method, parts.uri),
                headers: parts.headers,
                body: serde_json::from_slice(&body).unwrap_or_default(),
            };
            this.seen.lock().unwrap().push(seen.clone());
            let mut reply = (this.script.lock().unwrap())(&seen);
            loop {
                match reply {
                    Reply::Answer(answer) => return Ok(*answer),
                    Reply::Broken => return Err("connection reset by peer".into()),
                    Reply::Late(delay, then) => {
                        tokio::time::sleep(delay).await;
                        reply = *then;
                    }
                }
            }
        })
    }
}

impl RequestObserver for Recorded {
    fn finished(&self, method: &str, host: &str, code: Option<u16>) {
        self.0.borrow_mut().push(format!("{method} {host} {code:?}"));
    }

    fn request_scheduler(&self, _: ClusterLabel, _: usize, _: usize, _: usize) {}
}

/// Returns an answer with a JSON body.
pub fn json(code: u16, body: &Value) -> Reply {
    answer(code, &[("content-type", "application/json")], body.to_string())
}

/// Returns an answer with a plain text.
pub fn text(code: u16, body: &str) -> Reply {
    answer(code, &[("content-type", "text/plain")], body.to_owned())
}

/// Returns an answer.
pub fn answer(code: u16, headers: &[(&str, &str)], body: String) -> Reply {
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::builder().status(code);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    Reply::Answer(Box::new(response.body(body).unwrap()))
}

/// Returns an answer whose body comes in pieces, or breaks.
pub fn pieces(pieces: Vec<Result<String, &'static str>>) -> Reply {
    let frame = |piece: Result<String, &'static str>| match piece {
        Ok(text) => Ok(Frame::data(Bytes::from(text))),
        Err(error) => Err(std::io::Error::other(error)),
    };
    let frames = futures::stream::iter(pieces.into_iter().map(frame));
    Reply::Answer(Box::new(Response::new(StreamBody::new(frames).boxed_unsync())))
}

/// Returns an answer with a `Status`.
pub fn status(code: u16, reason: &str, message: &str) -> Reply {
    let details = serde_json::json!({"name": "a", "kind": "configmaps"});
    json(
        code,
        &serde_json::json!({"kind": "Status", "status": "Failure", "reason": reason, "message": message,
        "details": details, "code": code}),
    )
}

/// Delays a reply.
pub fn late(seconds: u64, then: Reply) -> Reply {
    Reply::Late(Duration::from_secs(seconds), Box::new(then))
}

/// Returns the context of a request with a deadline of a minute.
pub fn ctx() -> Context {
    Context::new(Priority::High, Deadline::after(Duration::from_secs(60)), "test")
}

/// Returns the resource of ConfigMaps.
pub fn config_maps() -> Resource {
    Resource::new("", "v1", "ConfigMap", "configmaps", true)
}

/// Returns a server that answers each watch with these pieces.
pub fn reply_watch(all: Vec<Result<String, &'static str>>) -> Server {
    Server::new(move |_| pieces(all.clone()))
}
