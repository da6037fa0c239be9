//! A connection as the HTTP library sees it. The library reads everything that comes: up to 256 KiB of a head, and up
//! to 16 requests ahead, and it limits the time of the first head only. So this stream decides what the library reads.
//! A head has [`MOST_HEAD`] bytes and [`HEAD_TIME`]; beyond, the stream itself answers. After [`TURN`] bytes, other
//! connections get their turn. What remains of a request after its answer has [`LINGER`]. While a request is being
//! answered, only [`AHEAD`] more bytes are read: enough to notice that the client goes away. Nothing is read while the
//! client does not read.

#[cfg(test)]
mod tests;

use std::{
    cell::{Cell, RefCell},
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep, sleep_until},
};

use super::connections::{Connection, Waits};

/// Largest head in bytes, request line included (spec 70 §11).
pub const MOST_HEAD: usize = 16 << 10;
/// Time from the first to the last byte of a head (spec 70 §11).
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(32);
const TURN: usize = 16 << 10;
/// Bytes that the library gets while a request is being answered. TLS needs less than 100 to end a connection.
const AHEAD: usize = 1 << 10;
/// Time for a client that is still sending to read its answer: unread bytes would make the system reset the connection.
const LINGER: Duration = Duration::from_secs(1);
const PIECE: usize = 4096;

const TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

pub(crate) struct Stream<IO> {
    io: IO,
    course: Rc<Course>,
    turn: usize,
    head: Head,
    rest: Option<Pin<Box<Sleep>>>,
    /// Bytes read while requests were being answered, since the last phase that expected bytes.
    ahead: usize,
    /// Set while the client does not read.
    jam: Option<Waits>,
    refusal: Option<Box<Refusal>>,
}

/// Progress of a connection. Its stream and the handlers of its requests share it, on one thread.
pub(crate) struct Course {
    connection: Arc<Connection>,
    phase: Cell<Phase>,
    heads: Cell<u64>,
    /// The library's task, as of its last attempt to read.
    reader: RefCell<Option<Waker>>,
    /// The library must try again in the next phase.
    is_held: Cell<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Head,
    Body,
    /// Nothing until the answer is complete.
    Judging,
    /// The rest of a body that the answer did not wait for. The library discards it as long as the client sends.
    Rest,
}

#[derive(Default)]
struct Head {
    number: u64,
    bytes: usize,
    /// When its first bytes came.
    since: Option<Instant>,
    /// Set while the rest of a head is missing. Most heads come at once and need no timer.
    timer: Option<Pin<Box<Sleep>>>,
}

struct Refusal {
    words: &'static [u8],
    is_said: bool,
    linger: Pin<Box<Sleep>>,
}

impl Course {
    pub(crate) fn new(connection: Arc<Connection>) -> Rc<Self> {
        Rc::new(Self {
            connection,
            phase: Cell::new(Phase::Head),
            heads: Cell::new(0),
            reader: RefCell::default(),
            is_held: Cell::default(),
        })
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    pub(crate) fn closer(&self) -> impl Fn() + Send + 'static {
        let connection = self.connection.clone();
        move || connection.close()
    }

    /// Bounds what the system keeps for the client, in bytes.
    pub(crate) fn bound_send_buffer(&self, bytes: usize) {
        self.connection.bound_send_buffer(bytes);
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.get()
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        if phase == Phase::Head {
            self.heads.set(self.heads.get() + 1);
        }
        if phase == Phase::Rest {
            self.hold(); // the timer starts with an attempt to read, even if nothing comes
        }
        self.go_on();
    }

    fn is_read_by(&self, cx: &Context<'_>) {
        self.reader.replace(Some(cx.waker().clone()));
    }

    /// Lets the library read when the phase is over.
    fn hold(&self) {
        self.is_held.set(true);
    }

    fn go_on(&self) {
        if !self.is_held.take() {
            return;
        }
        if let Some(waker) = &*self.reader.borrow() {
            waker.wake_by_ref();
        }
    }
}

impl<IO> Stream<IO> {
    pub(crate) fn new(io: IO, connection: Arc<Connection>) -> Self {
        let (course, head) = (Course::new(connection), Head::default());
        Self { io, course, turn: 0, head, rest: None, ahead: 0, jam: None, refusal: None }
    }

    pub(crate) fn course(&self) -> &Rc<Course> {
        &self.course
    }

    /// How many bytes the library may read in this phase, apart from its turn.
    fn room(&mut self) -> usize {
        match self.course.phase() {
            Phase::Head => {
                let number = self.course.heads.get();
                if self.head.number != number {
                    self.head = Head { number, ..Head::default() };
                }
                self.ahead = 0;
                MOST_HEAD - self.head.bytes
            }
            Phase::Body | Phase::Rest => {
                self.ahead = 0;
                TURN
            }
            Phase::Judging => AHEAD - self.ahead,
        }
    }

    fn took(&mut self, bytes: usize) {
        self.turn += bytes;
        match self.course.phase() {
            Phase::Head => {
                self.head.bytes += bytes;
                if bytes > 0 {
                    self.head.since.get_or_insert_with(Instant::now);
                }
            }
            Phase::Judging => self.ahead += bytes,
            Phase::Body | Phase::Rest => {}
        }
    }

    fn look<T>(&mut self, attempt: &Poll<T>) {
        if attempt.is_pending() {
            // The size is unknown; the library bounds it.
            self.jam.get_or_insert_with(|| self.course.connection.wait(0));
        } else if self.jam.take().is_some() {
            self.course.go_on();
        }
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Stream<IO> {
    fn is_rest_over(&mut self, cx: &mut Context<'_>) -> bool {
        if self.course.phase() != Phase::Rest {
            self.rest = None;
            return false;
        }
        self.rest.get_or_insert_with(|| Box::pin(sleep(LINGER))).as_mut().poll(cx).is_ready()
    }

    fn refuse(&mut self, words: &'static [u8], cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let refusal = Refusal { words, is_said: false, linger: Box::pin(sleep(LINGER)) };
        self.refusal.insert(Box::new(refusal)).poll(&mut self.io, cx)
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<IO> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(refusal) = &mut this.refusal {
            return refusal.poll(&mut this.io, cx);
        }
        this.course.is_read_by(cx);
        if this.jam.is_some() {
            this.turn = 0;
            this.course.hold();
            return Poll::Pending;
        }
        if this.is_rest_over(cx) {
            return Poll::Ready(Ok(()));
        }
        let room = this.room();
        let is_head = this.course.phase() == Phase::Head;
        if is_head && this.head.since.is_some_and(|since| since.elapsed() >= HEAD_TIME) {
            return this.refuse(TOO_SLOW, cx);
        }
        let room = room.min(TURN - this.turn);
        if room == 0 {
            if this.turn > 0 {
                this.turn = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if is_head {
                return this.refuse(TOO_LARGE, cx);
            }
            this.course.hold();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let read = if buf.remaining() <= room {
            Pin::new(&mut this.io).poll_read(cx, buf)
        } else {
            let mut part = ReadBuf::new(buf.initialize_unfilled_to(room));
            let read = Pin::new(&mut this.io).poll_read(cx, &mut part);
            let bytes = part.filled().len();
            buf.advance(bytes);
            read
        };
        if read.is_pending() {
            this.turn = 0;
            if is_head && this.head.is_late(cx) {
                return this.refuse(TOO_SLOW, cx);
            }
        }
        this.took(buf.filled().len() - before);
        read
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<IO> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write(cx, buf);
        this.look(&written);
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write_vectored(cx, bufs);
        this.look(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.io).poll_flush(cx);
        this.look(&flushed);
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

impl Head {
    /// Whether its time is over; else wakes the reader then.
    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(since) = self.since else { return false };
        self.timer.get_or_insert_with(|| Box::pin(sleep_until(since + HEAD_TIME))).as_mut().poll(cx).is_ready()
    }
}

impl Refusal {
    /// Sends the refusal, and reads until the client closes its side or the time is over.
    fn poll<IO: AsyncRead + AsyncWrite + Unpin>(&mut self, io: &mut IO, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        while !self.words.is_empty() {
            let written = ready!(Pin::new(&mut *io).poll_write(cx, self.words))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.words = &self.words[written..];
        }
        if !self.is_said {
            ready!(Pin::new(&mut *io).poll_flush(cx))?;
            ready!(Pin::new(&mut *io).poll_shutdown(cx))?;
            self.is_said = true;
        }
        loop {
            let mut piece = [0; PIECE];
            let mut piece = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut *io).poll_read(cx, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
