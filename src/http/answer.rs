//! A request that is being answered, as its connection sees it.

use std::{
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use actix_web::{
    HttpRequest, HttpResponse,
    body::{BodySize, BoxBody, MessageBody},
    http::{ConnectionType, header},
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

// === impl Exchange ===

impl Exchange {
    /// A request came. None if it came over no connection, as in tests.
    pub(crate) fn begin(request: &HttpRequest) -> Option<Self> {
        let course = request.conn_data::<Rc<Course>>()?.clone();
        let busy = course.connection().busy();
        course.enter(Phase::Body);
        let exchange = Self { busy, course };
        let has_body = |name| request.headers().contains_key(name);
        if !has_body(header::CONTENT_LENGTH) && !has_body(header::TRANSFER_ENCODING) {
            exchange.received();
        }
        Some(exchange)
    }

    /// Nothing more of the request comes.
    pub(crate) fn received(&self) {
        self.course.enter(Phase::Judging);
    }

    /// The answer. While the server stops, it says that the connection ends with it.
    pub(crate) fn end(self, mut response: HttpResponse) -> HttpResponse {
        if self.busy.is_stopping() {
            response.head_mut().set_connection_type(ConnectionType::Close);
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
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let is_received = self.course.phase() == Phase::Judging;
        self.course.enter(if is_received { Phase::Head } else { Phase::Rest });
    }
}

// === impl Answer ===

impl MessageBody for Answer {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}
