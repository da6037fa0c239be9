//! The life of one request, from its head to the last byte of its answer.

use std::{
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use actix_web::{
    HttpRequest, HttpResponse,
    body::{BodySize, BoxBody, MessageBody},
    http::{
        ConnectionType,
        header::{self, HeaderValue},
    },
    web::Bytes,
};

use super::{
    connections::{Busy, Waits},
    stream::{Course, Phase},
};

/// The HTTP library copies what it gets into the connection's buffer, however large. It takes no piece more while that
/// buffer has 32 KiB.
const PIECE: usize = 32 << 10;

/// A request. Its connection is busy until this is dropped.
pub struct Exchange {
    busy: Busy,
    course: Rc<Course>,
}

/// The body of an answer, in pieces. The connection is busy, and the answer unread, until the last piece has been handed
/// over.
struct Answer {
    body: BoxBody,
    /// What is left of a part of the body.
    rest: Bytes,
    /// `None` if the body is generated while it is read, as event streams are.
    waits: Option<Waits>,
    _exchange: Exchange,
}

impl Exchange {
    /// Registers a request. Returns `None` if it has no connection, as in tests.
    pub fn begin(request: &HttpRequest) -> Option<Self> {
        let course = request.conn_data::<Rc<Course>>()?.clone();
        let busy = course.connection().busy();
        course.enter(Phase::Body);
        let exchange = Self { busy, course };
        if !has_body(request) {
            exchange.received();
        }
        Some(exchange)
    }

    /// The body was read to its end.
    pub fn received(&self) {
        self.course.enter(Phase::Judging);
    }

    /// Completes the answer. It ends the connection if the server stops, or if the request was not read to its end: the
    /// position of the next head is unknown then, and the head could not be bounded.
    pub fn end(self, mut response: HttpResponse) -> HttpResponse {
        let is_stopping = self.busy.is_stopping();
        if is_stopping || !self.is_received() {
            response.head_mut().set_connection_type(ConnectionType::Close);
        }
        if is_stopping {
            self.busy.ends_connection();
        }
        response.map_body(|_, body| {
            let waits = match body.size() {
                BodySize::Sized(bytes) => Some(self.busy.wait(bytes.try_into().unwrap_or(usize::MAX))),
                BodySize::None => Some(self.busy.wait(0)),
                BodySize::Stream => None,
            };
            BoxBody::new(Answer { body, rest: Bytes::new(), waits, _exchange: self })
        })
    }

    fn is_received(&self) -> bool {
        self.course.phase() == Phase::Judging
    }
}

/// Whether a body follows the head. The HTTP library also treats length 0 as no body.
fn has_body(request: &HttpRequest) -> bool {
    let headers = request.headers();
    let is_zero = |length: &HeaderValue| length.to_str().is_ok_and(|length| length.trim().parse() == Ok(0_u64));
    headers.contains_key(header::TRANSFER_ENCODING) || !headers.get(header::CONTENT_LENGTH).is_none_or(is_zero)
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.course.enter(if self.is_received() { Phase::Head } else { Phase::Rest });
    }
}

impl MessageBody for Answer {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_next(context)) {
                Some(Ok(part)) if part.len() > PIECE => self.rest = part,
                other => return Poll::Ready(other),
            }
        }
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        let left = self.rest.len();
        if let Some(waits) = &mut self.waits {
            waits.goes_on(left);
        }
        Poll::Ready(Some(Ok(piece)))
    }
}
