//! From an HTTP request to a message to the actor of its webhook, and back.

use std::time::Duration;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web::{self, Bytes, BytesMut},
};
use futures::StreamExt as _;
use kit::duration::GoDuration;
use process::http::{MOST_HEAD, answer::Exchange};
use tokio::time::{Instant, sleep_until};

use super::{
    actor::Desk,
    load::{InFlight, Overloaded},
};
use crate::webhooks::exchange::{Body, LIMIT, Reply};

const TEXT_TYPE: &str = "text/plain; charset=utf-8";
/// Row 2 of spec 50 §2.2, by our own clock.
const TOO_SLOW: &str = "the request body did not arrive in time";

/// The longest and the default time that an API server waits (spec 50 §1).
const LONGEST: Duration = Duration::from_secs(30);
const USUAL: Duration = Duration::from_secs(10);
/// A tenth of that time, within these bounds, is left for sending the answer.
const MARGIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Largest buffer that is reserved for an announced length: more than most reviews need.
const ROOM: usize = 64 << 10;

/// Bytes of an oversized body that are read and dropped, so that a client that sends everything first gets the answer.
const PASSED_OVER: usize = 1 << 20;

pub(super) async fn answer(desk: &Desk, request: &HttpRequest, payload: web::Payload) -> HttpResponse {
    let begun = Instant::now();
    let exchange = Exchange::begin(request);
    let answering = desk.webhook.statistics.begin(begun);
    let deadline = begun + time_of(request.query_string());
    let reply = match desk.load.enter() {
        _ if size_of_head(request) > MOST_HEAD => Ok(head_too_large()),
        None => Err(Overloaded),
        Some(mut room) => match receive(request, payload, &mut room, deadline).await {
            Ok(body) => {
                if let (Body::None | Body::Whole(_), Some(exchange)) = (&body, &exchange) {
                    exchange.received();
                }
                desk.ask(body, content_type(request), deadline).await
            }
            Err(overloaded) => Err(overloaded),
        },
    };
    let response = match reply {
        Ok(reply) => respond(reply),
        Err(Overloaded) => overloaded(),
    };
    answering.end(response.status().as_u16());
    end(exchange, response)
}

pub(super) async fn not_found(request: HttpRequest) -> HttpResponse {
    end(Exchange::begin(&request), plain(404, "404 page not found\n"))
}

fn end(exchange: Option<Exchange>, response: HttpResponse) -> HttpResponse {
    match exchange {
        Some(exchange) => exchange.end(response),
        None => response,
    }
}

fn plain(status: u16, text: impl Into<String>) -> HttpResponse {
    HttpResponse::build(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
        .insert_header((header::CONTENT_TYPE, TEXT_TYPE))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(text.into())
}

/// API servers retry after this time, within the time of the webhook.
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

/// Returns the time for a request with a query like `timeout=10s` (spec 50, "better" 10).
fn time_of(query: &str) -> Duration {
    let requested = query.split('&').find_map(|pair| pair.strip_prefix("timeout="));
    let requested = requested.and_then(|text| text.parse::<GoDuration>().ok()).and_then(GoDuration::to_std);
    let time = requested.filter(|time| !time.is_zero()).map_or(USUAL, |time| time.min(LONGEST));
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

/// Returns a lower bound of the received bytes: the space between header name and value is unknown.
fn size_of_head(request: &HttpRequest) -> usize {
    let uri = request.uri();
    let scheme = uri.scheme_str().map_or(0, |scheme| scheme.len() + "://".len());
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    let target = scheme + authority + uri.path_and_query().map_or(0, |path| path.as_str().len());
    let line = request.method().as_str().len() + target + "  HTTP/1.1\r\n".len();
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ":\r\n".len());
    line + fields.sum::<usize>()
}

fn head_too_large() -> Reply {
    Reply { status: 431, body: b"the head of the request is too large\n".to_vec() }
}

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

/// An empty chunked body counts as a body.
fn whole(request: &HttpRequest, body: Bytes) -> Body {
    let chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
    if body.is_empty() && !chunked { Body::None } else { Body::Whole(body) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 50, "better" 10
    #[test]
    fn request_deadline_is_the_timeout_of_the_query_minus_a_margin() {
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
