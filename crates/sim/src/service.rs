//! The transport of a `kube::Client`: requests in, answers out, faults in between.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::{HeaderValue, Response, header};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use tokio::time::sleep;
use tower::BoxError;

use super::{
    ClientOptions, Shared,
    body::LARGEST_BODY,
    encode,
    fault::{Fault, Process, Seen, WatchEnd, disconnected},
    request::{Request, Target},
    route::Reply,
    state::{Answer, Refusal},
    status::Failure,
};

const PATIENCE: Duration = Duration::from_secs(3); // how long a read waits for a future version

#[derive(Clone)]
pub(super) struct ApiService {
    pub(super) shared: Arc<Shared>,
    pub(super) seat: Arc<ClientOptions>,
}

type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

impl tower::Service<http::Request<Body>> for ApiService {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let request = self.shared.arrive(&parts, &self.seat);
        self.clone().answer(request, body).boxed()
    }
}

impl ApiService {
    async fn answer(self, mut request: Request, body: Body) -> Result<Response<ResponseBody>, BoxError> {
        let process = &self.seat.process;
        if process.is_crashed() {
            return Ok(never(process).await);
        }
        request.body = body.collect().await?.to_bytes();
        let latency = self.shared.latency;
        if !latency.is_zero() {
            sleep(latency).await;
        }

        let fault = self.shared.fault(&request.info);
        let mut read_as_of = None;
        let mut planned_end: Option<(u64, WatchEnd)> = None;
        match &fault {
            Fault::FailBefore(seen) => return self.show(&request, seen),
            Fault::FailLate(delay, seen) => {
                sleep(*delay).await;
                return self.show(&request, seen);
            }
            Fault::Delay(delay) => sleep(*delay).await,
            Fault::Hang => return Ok(never(process).await),
            Fault::CrashClient => {
                process.crash();
                return Ok(never(process).await);
            }
            Fault::ReadAsOf(revision) => read_as_of = Some(*revision),
            Fault::BreakWatch { after_events, end } => planned_end = Some((*after_events, *end)),
            Fault::None
            | Fault::FailAfterCommit(_)
            | Fault::DelayAnswer(_)
            | Fault::HangAfterCommit
            | Fault::CrashClientAfterCommit => {}
        }
        if process.is_crashed() {
            return Ok(never(process).await);
        }

        let outcome = self.carry_out(&request, read_as_of).await;
        match &fault {
            Fault::FailAfterCommit(seen) => return self.show(&request, seen),
            Fault::DelayAnswer(delay) => sleep(*delay).await,
            Fault::HangAfterCommit => return Ok(never(process).await),
            Fault::CrashClientAfterCommit => {
                process.crash();
                return Ok(never(process).await);
            }
            Fault::None
            | Fault::FailBefore(_)
            | Fault::FailLate(..)
            | Fault::Delay(_)
            | Fault::Hang
            | Fault::CrashClient
            | Fault::ReadAsOf(_)
            | Fault::BreakWatch { .. } => {}
        }
        if process.is_crashed() {
            return Ok(never(process).await);
        }
        match outcome {
            Ok(Reply::Body(answer)) => {
                self.shared.record_answer(request.info.number, answer.code);
                respond(&request, answer)
            }
            Ok(Reply::Watch(plan)) => {
                self.shared.record_answer(request.info.number, 200);
                let stream = plan.into_stream(self.shared.clone(), process.clone(), &request, planned_end);
                let body = BodyExt::boxed_unsync(StreamBody::new(stream));
                Ok(Response::builder().header(header::CONTENT_TYPE, "application/json").body(body)?)
            }
            Err(failure) => self.show(&request, &Seen::Answer(failure)),
        }
    }

    /// Runs the handler. A read of a future version waits for it.
    async fn carry_out(&self, request: &Request, read_as_of: Option<u64>) -> Result<Reply, Failure> {
        if request.body.len() > LARGEST_BODY {
            return Err(Failure::too_large(LARGEST_BODY));
        }
        let mut waited = false;
        loop {
            let outcome = self.shared.state().handle(request, read_as_of);
            match outcome {
                Ok(reply) => return Ok(reply),
                Err(Refusal::Failure(failure)) => return Err(failure),
                Err(Refusal::NotYet { revision }) if waited => {
                    return Err(Failure::version_in_future(revision, self.shared.state().storage.revision()));
                }
                Err(Refusal::NotYet { .. }) => {
                    waited = true;
                    sleep(PATIENCE).await;
                }
            }
        }
    }

    fn show(&self, request: &Request, seen: &Seen) -> Result<Response<ResponseBody>, BoxError> {
        match seen {
            Seen::Disconnect => {
                self.shared.record_answer(request.info.number, 0);
                Err(disconnected())
            }
            Seen::Answer(failure) => {
                self.shared.record_answer(request.info.number, failure.code);
                let mut answer = Answer::json(failure.code, failure.body.clone());
                answer.content_type = failure.content_type.to_owned();
                answer.headers.extend(failure.retry_after.map(|seconds| ("retry-after", seconds.to_string())));
                respond(request, answer)
            }
        }
    }
}

async fn never(_process: &Process) -> Response<ResponseBody> {
    std::future::pending().await
}

fn respond(request: &Request, mut answer: Answer) -> Result<Response<ResponseBody>, BoxError> {
    if request.is_pretty() && answer.content_type.starts_with("application/json") && request.target != Target::Version {
        let mut indented = encode::indent(&answer.body);
        indented.push(b'\n');
        answer.body = indented.into();
    }
    let full = Full::new(answer.body).map_err(|never: Infallible| match never {});
    let mut response = Response::builder().status(answer.code).header(header::CONTENT_TYPE, answer.content_type);
    for (name, value) in answer.headers {
        response = response.header(name, HeaderValue::from_str(&value)?);
    }
    Ok(response.body(BodyExt::boxed_unsync(full))?)
}
