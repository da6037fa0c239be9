//! A TLS connection as the HTTP library gets it: one of HTTP/2 takes leave of its client when the server stops, and reads nothing
//! while its client takes nothing.
//!
//! The client reads a GOAWAY, sends nothing new, and gets all answers it waits for. When it has shown that it read this, or
//! after [`PATIENCE`], and nothing is open any more, the library reads the end of the connection and closes it. Until the
//! client has closed its side, or for [`LINGER`], what it still sends is thrown away: a socket that is closed before it is
//! read takes answers with it that are still on their way.
//!
//! The HTTP/2 library takes on requests, and keeps their answers, however much it could not write yet. So it gets nothing to
//! read as long as the client does not read, which counts as an unread answer.

#[cfg(test)]
mod tests;

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::frames::Conversation;
use crate::http::connections::{Connection, Waits};

/// So long a client may take to answer to the GOAWAY: several times the way around the earth. An open request has more time.
const PATIENCE: Duration = Duration::from_secs(1);
/// So long a client may take to close its side.
const LINGER: Duration = Duration::from_millis(500);
/// What is read at once while the connection ends.
const PIECE: usize = 4096;

/// A connection.
pub(super) struct Stream<IO> {
    io: IO,
    /// Open, until this is dropped.
    connection: Arc<Connection>,
    /// None if it speaks HTTP/1, which has a header for it.
    farewell: Option<Box<Farewell>>,
    jam: Jam,
}

/// Whether the client takes what is written.
#[derive(Default)]
struct Jam {
    /// It does not.
    waits: Option<Waits>,
    /// The library wanted to read meanwhile.
    wants_to_read: bool,
}

/// How a connection takes leave.
struct Farewell {
    /// None when the time has come.
    stopping: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    conversation: Conversation,
    /// How long we wait for the client to answer.
    patience: Option<Pin<Box<Sleep>>>,
    /// Our words may not be on their way yet.
    unflushed: bool,
    /// Bytes that were received and not read by the library yet.
    kept: BytesMut,
    /// The library has closed it; whether the client is waited for.
    closing: Option<bool>,
    /// How long. Our side is closed.
    linger: Option<Pin<Box<Sleep>>>,
}

// === impl Stream ===

impl<IO> Stream<IO> {
    pub(super) fn http1(io: IO, connection: Arc<Connection>) -> Self {
        Self { io, connection, farewell: None, jam: Jam::default() }
    }

    /// Takes leave when it is told to.
    pub(super) fn http2(io: IO, connection: Arc<Connection>, stopping: CancellationToken) -> Self {
        Self { io, connection, farewell: Some(Box::new(Farewell::when(stopping))), jam: Jam::default() }
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<IO> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { io, farewell, jam, .. } = self.get_mut();
        match farewell {
            Some(_) if jam.waits.is_some() => {
                jam.wants_to_read = true;
                Poll::Pending
            }
            Some(farewell) => farewell.poll_read(io, cx, buf),
            None => Pin::new(io).poll_read(cx, buf),
        }
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<IO> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Self { io, connection, farewell, jam } = self.get_mut();
        let written = match farewell {
            Some(farewell) => farewell.poll_write(io, cx, buf),
            None => Pin::new(io).poll_write(cx, buf),
        };
        jam.look(&written, connection, cx);
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { io, connection, farewell, jam } = self.get_mut();
        let written = match farewell {
            Some(farewell) => farewell.poll_write_vectored(io, cx, bufs),
            None => Pin::new(io).poll_write_vectored(cx, bufs),
        };
        jam.look(&written, connection, cx);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, connection, farewell, jam } = self.get_mut();
        let spoken = farewell.as_mut().map_or(Poll::Ready(Ok(())), |farewell| farewell.poll_speak(io, cx));
        let flushed = match spoken {
            Poll::Ready(Ok(())) => Pin::new(io).poll_flush(cx),
            Poll::Ready(Err(_)) | Poll::Pending => spoken,
        };
        jam.look(&flushed, connection, cx);
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, farewell, .. } = self.get_mut();
        match farewell {
            Some(farewell) => farewell.poll_shutdown(io, cx),
            None => Pin::new(io).poll_shutdown(cx),
        }
    }
}

// === impl Jam ===

impl Jam {
    /// So much came of an attempt to write.
    fn look<T>(&mut self, attempt: &Poll<T>, connection: &Connection, cx: &Context<'_>) {
        if attempt.is_pending() {
            // Its size is not known; the library bounds it.
            self.waits.get_or_insert_with(|| connection.wait(0));
            return;
        }
        if self.waits.take().is_some() && std::mem::take(&mut self.wants_to_read) {
            // The library reads before it writes.
            cx.waker().wake_by_ref();
        }
    }
}

// === impl Farewell ===

impl Farewell {
    fn when(stopping: CancellationToken) -> Self {
        Self {
            stopping: Some(Box::pin(stopping.cancelled_owned())),
            conversation: Conversation::new(),
            patience: None,
            unflushed: false,
            kept: BytesMut::new(),
            closing: None,
            linger: None,
        }
    }

    /// Looks whether the time has come, and whether the client had its time. The library reads whenever it waits for anything,
    /// so its task is woken for both.
    fn look_at_time(&mut self, cx: &mut Context<'_>) {
        if is_due(&mut self.stopping, cx) {
            self.conversation.leave();
            self.patience = Some(Box::pin(sleep(PATIENCE)));
        }
        if is_due(&mut self.patience, cx) {
            self.conversation.stop_waiting();
        }
    }

    /// Says what is to be said now.
    fn poll_speak<IO: AsyncWrite + Unpin>(&mut self, io: &mut IO, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.look_at_time(cx);
        loop {
            let words = self.conversation.words();
            if words.is_empty() {
                break;
            }
            let written = ready!(Pin::new(&mut *io).poll_write(cx, words))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.conversation.said(written);
            self.unflushed = true;
        }
        if self.unflushed {
            ready!(Pin::new(io).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_read<IO: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        io: &mut IO,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // While the client takes nothing, reading goes on.
        if let Poll::Ready(Err(error)) = self.poll_speak(io, cx) {
            return Poll::Ready(Err(error));
        }
        if !self.conversation.is_leaving() {
            let before = buf.filled().len();
            ready!(Pin::new(io).poll_read(cx, buf))?;
            self.conversation.received(&buf.filled()[before..]);
            return Poll::Ready(Ok(()));
        }
        loop {
            if !self.kept.is_empty() {
                let part = self.kept.split_to(self.kept.len().min(buf.remaining()));
                buf.put_slice(&part);
                return Poll::Ready(Ok(()));
            }
            if self.conversation.is_over() {
                return Poll::Ready(Ok(()));
            }
            let mut piece = [0; PIECE];
            let mut piece = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut *io).poll_read(cx, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.conversation.filter(piece.filled(), &mut self.kept);
        }
    }

    fn poll_write<IO: AsyncWrite + Unpin>(
        &mut self,
        io: &mut IO,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_speak(io, cx))?;
        let bytes = &bytes[..self.conversation.turn(bytes)];
        let written = ready!(Pin::new(io).poll_write(cx, bytes))?;
        self.sent(&bytes[..written], cx);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored<IO: AsyncWrite + Unpin>(
        &mut self,
        io: &mut IO,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_speak(io, cx))?;
        if self.conversation.wants_turn() {
            let first = bufs.iter().find(|buf| !buf.is_empty());
            return self.poll_write(io, cx, first.map_or(&[], |buf| buf));
        }
        let written = ready!(Pin::new(io).poll_write_vectored(cx, bufs))?;
        let mut rest = written;
        for buf in bufs {
            let part = rest.min(buf.len());
            self.sent(&buf[..part], cx);
            rest -= part;
        }
        Poll::Ready(Ok(written))
    }

    fn sent(&mut self, bytes: &[u8], cx: &Context<'_>) {
        self.conversation.sent(bytes);
        if self.conversation.is_over() {
            // The library looked for input before it wrote this, and is to find the end of it.
            cx.waker().wake_by_ref();
        }
    }

    fn poll_shutdown<IO: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        io: &mut IO,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let lingers = match self.closing {
            Some(lingers) => lingers,
            None => {
                ready!(self.poll_speak(io, cx))?;
                let lingers = self.conversation.is_leaving();
                self.conversation.close();
                *self.closing.insert(lingers)
            }
        };
        if self.linger.is_none() {
            ready!(self.poll_speak(io, cx))?;
            ready!(Pin::new(&mut *io).poll_shutdown(cx))?;
        }
        if !lingers {
            return Poll::Ready(Ok(()));
        }
        let linger = self.linger.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        while linger.as_mut().poll(cx).is_pending() {
            let mut piece = [0; PIECE];
            let mut piece = ReadBuf::new(&mut piece);
            let read = ready!(Pin::new(&mut *io).poll_read(cx, &mut piece));
            if read.is_err() || piece.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

// === pieces ===

/// Takes what is awaited away when it has come.
fn is_due<F: Future<Output = ()>>(awaited: &mut Option<Pin<Box<F>>>, cx: &mut Context<'_>) -> bool {
    let is_due = awaited.as_mut().is_some_and(|awaited| awaited.as_mut().poll(cx).is_ready());
    if is_due {
        *awaited = None;
    }
    is_due
}
