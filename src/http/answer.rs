//! A request that is being answered, as its connection sees it.

use std::{
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
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

/// A request. Until it is dropped, its connection is busy.
pub(crate) struct Exchange {
    busy: Busy,
    course: Rc<Course>,
}

/// The body of an answer. Until it was handed to the connection, that is busy, and the answer counts as unread.
struct Answer {
    body: BoxBody,
    /// None if it is made while it is read, as a stream of events is.
    _waits: Option<Waits>,
    _exchange: Exchange,
}

impl Exchange {
    /// A request came. None if it came over no connection, as in tests.
    pub(crate) fn begin(request: &HttpRequest) -> Option<Self> {
        let course = request.conn_data::<Rc<Course>>()?.clone();
        let busy = course.connection().busy();
        course.enter(Phase::Body);
        let exchange = Self { busy, course };
        if !has_body(request) {
            exchange.received();
        }
        Some(exchange)
    }

    /// Nothing more of the request comes.
    pub(crate) fn received(&self) {
        self.course.enter(Phase::Judging);
    }

    /// The answer. It says that the connection ends with it while the server stops, or if it did not wait for the whole
    /// request: where the next head begins is not known then, so it could not be bounded.
    pub(crate) fn end(self, mut response: HttpResponse) -> HttpResponse {
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
            BoxBody::new(Answer { body, _waits: waits, _exchange: self })
        })
    }

    fn is_received(&self) -> bool {
        self.course.phase() == Phase::Judging
    }
}

/// Whether something follows the head. The HTTP library takes a length of 0 for none, too.
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
        Pin::new(&mut self.body).poll_next(context)
    }
}
