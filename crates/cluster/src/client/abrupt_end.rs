//! Accepts TLS connections that end without a `close_notify`, as Go's client does; many proxies do not send it. We do
//! not need the notice as protection against truncation: the HTTP client checks that a body with a length or with
//! chunks is complete, and truncated JSON in a body that ends with the connection does not parse.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower::Service;

/// Wraps a connector: its connections treat an abrupt end as a normal end.
#[derive(Clone)]
pub(crate) struct AbruptEnd<C>(pub(super) C);

pub(crate) struct Stream<S>(S);

impl<C> Service<Uri> for AbruptEnd<C>
where
    C: Service<Uri>,
    C::Future: Send + 'static,
{
    type Response = TokioIo<Stream<TokioIo<C::Response>>>;
    type Error = C::Error;
    type Future = BoxFuture<'static, Result<Self::Response, C::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let connecting = self.0.call(server);
        Box::pin(async move { Ok(TokioIo::new(Stream(TokioIo::new(connecting.await?)))) })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.0).poll_read(cx, buffer)) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            other => Poll::Ready(other),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stream<S> {
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

impl<S: Connection> Connection for Stream<TokioIo<S>> {
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

        Stream(Source(b"{}\n", io::ErrorKind::UnexpectedEof)).read_to_end(&mut read).await.unwrap();

        assert_eq!(read, b"{}\n");
    }

    #[tokio::test]
    async fn tls_connection_that_is_reset_has_failed() {
        let mut read = Vec::new();

        let error = Stream(Source(b"{}\n", io::ErrorKind::ConnectionReset)).read_to_end(&mut read).await.unwrap_err();

        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}
