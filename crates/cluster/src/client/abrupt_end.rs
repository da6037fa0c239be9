//! Accepts TLS connections that end without a `close_notify`, as Go's client does; many proxies do not send it. We do
//! not need the notice as protection against truncation: the HTTP client checks that a body with a length or with
//! chunks is complete, and truncated JSON in a body that ends with the connection does not parse.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection whose abrupt end is a normal end.
pub(crate) struct AbruptEnd<S>(pub(super) S);

impl<S: AsyncRead + Unpin> AsyncRead for AbruptEnd<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.0).poll_read(cx, buffer)) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            other => Poll::Ready(other),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for AbruptEnd<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

impl<S: Connection> Connection for AbruptEnd<TokioIo<S>> {
    fn connected(&self) -> Connected {
        self.0.inner().connected()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    struct Source(&'static [u8], io::ErrorKind);

    impl AsyncRead for Source {
        fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            if self.0.is_empty() {
                return Poll::Ready(Err(self.1.into()));
            }
            buffer.put_slice(self.0);
            self.0 = &[];
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn tls_connection_closed_without_notice_has_ended() {
        let mut read = Vec::new();

        AbruptEnd(Source(b"{}\n", io::ErrorKind::UnexpectedEof)).read_to_end(&mut read).await.unwrap();

        assert_eq!(read, b"{}\n");
    }

    #[tokio::test]
    async fn tls_connection_that_is_reset_has_failed() {
        let mut read = Vec::new();

        let error =
            AbruptEnd(Source(b"{}\n", io::ErrorKind::ConnectionReset)).read_to_end(&mut read).await.unwrap_err();

        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}
