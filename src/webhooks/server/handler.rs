//! From an HTTP request to a message to the actor of its webhook, and back.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use actix_web::{
    HttpRequest, HttpResponse,
    body::{BodySize, BoxBody, MessageBody},
    http::{ConnectionType, StatusCode, Version, header},
    web::{self, Bytes, BytesMut},
};
use futures::StreamExt as _;
use tokio::time::{Instant, sleep_until};

use super::{
    actor::Desk,
    load::{InFlight, Overloaded},
};
use crate::{
    api::duration::GoDuration,
    http::connections::{Busy, Connection, Waits},
    webhooks::exchange::{Body, LIMIT, Reply},
};

const TEXT_TYPE: &str = "text/plain; charset=utf-8";
/// Row 2 of spec 50 §2.2, by our own clock.
const TOO_SLOW: &str = "the request body did not arrive in time";

/// What an API server waits for at most, and by default (spec 50 §1).
const LONGEST: Duration = Duration::from_secs(30);
const USUAL: Duration = Duration::from_secs(10);
/// Of the time an API server waits, so much is left for the way of the answer: a tenth, within these bounds.
const MARGIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Room that a body gets on its word: more than most reviews need.
const ROOM: usize = 64 << 10;

/// Spec 70 §11. Only HTTP/2 gets that far.
const MOST_HEADERS: usize = 1 << 20;
/// What HTTP/2 counts for a header beside its name and its value (RFC 9113 §6.5.2).
const HEADER: usize = 32;

/// Of a body that is too large, so much is passed over, so that a client that only sends gets to read the answer.
const PASSED_OVER: usize = 1 << 20;

/// The body of an answer. Until it was handed to the connection, that is busy, and the answer counts as unread.
struct Answer {
    body: BoxBody,
    _waits: Waits,
    _busy: Busy,
}

/// Answers a request to a webhook.
pub(super) async fn answer(desk: &Desk, request: &HttpRequest, payload: web::Payload) -> HttpResponse {
    let begun = Instant::now();
    let busy = busy(request);
    let answering = desk.webhook.statistics.begin(begun);
    let deadline = begun + time_of(request.query_string());
    let reply = match desk.load.enter() {
        _ if size_of_headers(request) > MOST_HEADERS => Ok(headers_too_large()),
        None => Err(Overloaded),
        Some(mut room) => match receive(request, payload, &mut room, deadline).await {
            Ok(body) => desk.ask(body, content_type(request), deadline).await,
            Err(overloaded) => Err(overloaded),
        },
    };
    let response = match reply {
        Ok(reply) => respond(reply),
        Err(Overloaded) => overloaded(),
    };
    answering.end(response.status().as_u16());
    Answer::of(request, response, busy)
}

/// Answers a request to nothing.
pub(super) async fn not_found(request: HttpRequest) -> HttpResponse {
    Answer::of(&request, plain(404, "404 page not found\n"), busy(&request))
}

// === impl Answer ===

impl Answer {
    fn of(request: &HttpRequest, mut response: HttpResponse, busy: Option<Busy>) -> HttpResponse {
        let Some(busy) = busy else { return response };
        if busy.is_stopping() && request.version() < Version::HTTP_2 {
            response.head_mut().set_connection_type(ConnectionType::Close);
            busy.ends_connection();
        }
        response.map_body(|_, body| {
            let bytes = match body.size() {
                BodySize::Sized(bytes) => bytes.try_into().unwrap_or(usize::MAX),
                BodySize::None | BodySize::Stream => 0,
            };
            BoxBody::new(Self { body, _waits: busy.wait(bytes), _busy: busy })
        })
    }
}

impl MessageBody for Answer {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}

// === pieces ===

fn busy(request: &HttpRequest) -> Option<Busy> {
    request.conn_data::<Arc<Connection>>().map(Connection::busy)
}

/// A short text.
fn plain(status: u16, text: impl Into<String>) -> HttpResponse {
    HttpResponse::build(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
        .insert_header((header::CONTENT_TYPE, TEXT_TYPE))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(text.into())
}

/// API servers send a request again after this, within the time of the webhook.
fn overloaded() -> HttpResponse {
    let mut response = plain(429, "too many requests\n");
    response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    response
}

fn respond(reply: Reply) -> HttpResponse {
    match reply.status {
        200 => HttpResponse::Ok().content_type("application/json").body(reply.body),
        status => plain(status, String::from_utf8_lossy(&reply.body)),
    }
}

fn content_type(request: &HttpRequest) -> String {
    let value = request.headers().get(header::CONTENT_TYPE);
    value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}

/// The time for a request whose query is `timeout=10s` (spec 50, "better" 10).
fn time_of(query: &str) -> Duration {
    let told = query.split('&').find_map(|pair| pair.strip_prefix("timeout="));
    let told = told.and_then(|text| text.parse::<GoDuration>().ok()).and_then(GoDuration::to_std);
    let time = told.filter(|time| !time.is_zero()).map_or(USUAL, |time| time.min(LONGEST));
    time.saturating_sub((time / 10).clamp(MARGIN.0, MARGIN.1))
}

/// Rows 1 to 3 of spec 50 §2.2.
async fn receive(
    request: &HttpRequest,
    mut payload: web::Payload,
    room: &mut InFlight,
    deadline: Instant,
) -> Result<Body, Overloaded> {
    let mut receiving = room.receive();
    let mut body = BytesMut::with_capacity(announced(request).min(ROOM));
    loop {
        let chunk = tokio::select! {
            biased;
            () = receiving.given_up.cancelled() => return Err(Overloaded),
            chunk = payload.next() => chunk,
            () = sleep_until(deadline) => return Ok(Body::Broken(TOO_SLOW.to_owned())),
        };
        match chunk {
            None => return Ok(whole(request, body.freeze())),
            Some(Err(error)) => return Ok(Body::Broken(error.to_string())),
            Some(Ok(chunk)) => {
                if !receiving.grow(chunk.len()) {
                    return Err(Overloaded);
                }
                body.extend_from_slice(&chunk);
            }
        }
        if body.len() >= LIMIT {
            pass_over(&mut payload, deadline).await;
            return Ok(Body::TooLarge(body.freeze()));
        }
    }
}

fn size_of_headers(request: &HttpRequest) -> usize {
    let headers = request.headers().iter();
    headers.map(|(name, value)| name.as_str().len() + value.len() + HEADER).sum()
}

fn headers_too_large() -> Reply {
    Reply { status: 431, body: b"the headers of the request are too large\n".to_vec() }
}

/// `Content-Length`; 0 if there is none.
fn announced(request: &HttpRequest) -> usize {
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    length.unwrap_or_default()
}

async fn pass_over(payload: &mut web::Payload, deadline: Instant) {
    let mut bytes = 0;
    while bytes < PASSED_OVER {
        let chunk = tokio::select! {
            biased;
            chunk = payload.next() => chunk,
            () = sleep_until(deadline) => return,
        };
        let Some(Ok(chunk)) = chunk else { return };
        bytes += chunk.len();
    }
}

/// An empty body that came in chunks is a body.
fn whole(request: &HttpRequest, body: Bytes) -> Body {
    let chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
    if body.is_empty() && !chunked { Body::None } else { Body::Whole(body) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 50, "better" 10
    #[test]
    fn a_request_has_the_time_of_its_query_without_a_margin() {
        let millis = |query| time_of(query).as_millis();

        assert_eq!(millis("timeout=10s"), 9000);
        assert_eq!(millis("timeout=2s"), 1800);
        assert_eq!(millis("a=b&timeout=500ms"), 400);
        assert_eq!(millis("timeout=1h"), 29_000);
        for unusable in ["", "timeout=", "timeout=x", "timeout=-1s", "timeout=0s", "other=1"] {
            assert_eq!(millis(unusable), 9000, "{unusable}");
        }
    }
}
