//! A TCP connection with one file descriptor, which the registry of connections can end from any thread.

use std::{
    io::{self, IoSlice},
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};

use actix_web::rt::net::{ActixStream, Ready, TcpStream};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown, sockopt};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

pub(crate) struct Socket(Arc<TcpStream>);

/// The same connection for those who may end it.
#[derive(Clone)]
pub(crate) struct Grip(Arc<TcpStream>);

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> (Self, Grip) {
        let stream = Arc::new(stream);
        (Self(stream.clone()), Grip(stream))
    }

    fn poll_try(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match write(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.0.peer_addr().ok()
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let room = buf.initialize_unfilled();
        let bytes = loop {
            ready!(self.0.poll_read_ready(cx))?;
            let mut read = None;
            // A read that leaves room has emptied the socket. The error tells tokio, which saves a second call of the system per
            // request; it also keeps an event that arrives meanwhile, because tokio compares with the state before the read.
            let ended = self.0.try_io(Interest::READABLE, || {
                let bytes = recv(&*self.0, &mut *room, RecvFlags::empty())?.0;
                read = Some(bytes);
                let is_empty = (1..room.len()).contains(&bytes);
                if is_empty { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match (read, ended) {
                (Some(bytes), _) => break bytes,
                (None, Err(error))
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                (None, ended) => return Poll::Ready(ended),
            }
        };
        buf.advance(bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_try(cx, |stream| stream.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_try(cx, |stream| stream.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match shutdown(&*self.0, Shutdown::Write).map_err(io::Error::from) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl ActixStream for Socket {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        pin!(self.0.ready(Interest::READABLE)).poll(cx)
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        pin!(self.0.ready(Interest::WRITABLE)).poll(cx)
    }
}

impl Grip {
    pub(super) fn close(&self) {
        shutdown(&*self.0, Shutdown::Both).ok();
    }

    /// Without effect on a connection that has just ended.
    pub(super) fn bound_send_buffer(&self, bytes: usize) {
        sockopt::set_socket_send_buffer_size(&*self.0, bytes).ok();
    }

    /// Closes the reading side. Pending writes still go out.
    pub(super) fn close_input(&self) {
        shutdown(&*self.0, Shutdown::Read).ok();
    }

    /// Whether all received bytes have been read.
    pub(super) fn is_read(&self) -> bool {
        let mut byte = [0];
        !matches!(recv(&*self.0, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT), Ok((_, 1..)))
    }
}
