//! From the server's address to a connection, through a proxy if there is one (spec 70 §8.1).

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use rustls::ClientConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tower::{BoxError, Service};

use super::{Proxy, ProxyKind, port, socks, tunnel};

/// For TCP, and for all up to the answer of a proxy. Most requests have 30 s: their errors shall name the proxy.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Connects with servers. TLS to the server is the business of who calls.
#[derive(Clone)]
pub(crate) enum Connector {
    Direct(HttpConnector),
    /// The inner connector speaks TLS with a proxy whose address begins with `https`.
    Through(Proxy, HttpsConnector<HttpConnector>),
}

/// The proxy is the reason, and its name has neither user nor password.
#[derive(Debug, thiserror::Error)]
#[error("cannot get through the proxy {proxy}")]
struct Barred {
    proxy: Proxy,
    #[source]
    error: BoxError,
}

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

impl Connector {
    /// `tls` is what the server is reached with: its CA is the proxy's, too. The proxy's certificate must be for the host of
    /// its URL.
    pub(crate) fn new(proxy: Option<&Proxy>, tls: &ClientConfig) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(TIMEOUT));
        tcp.set_nodelay(true);
        let Some(proxy) = proxy.cloned() else { return Self::Direct(tcp) };
        let mut tls = tls.clone();
        tls.alpn_protocols.clear(); // CONNECT is sent as HTTP/1.1
        Self::Through(proxy, HttpsConnector::from((tcp, Arc::new(tls))))
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Stream, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Direct(tcp) => tcp.poll_ready(cx).map_err(Into::into),
            Self::Through(_, connector) => connector.poll_ready(cx),
        }
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match self {
            Self::Direct(tcp) => {
                let connecting = tcp.call(server);
                Box::pin(async move { Ok(MaybeHttpsStream::Http(connecting.await?)) })
            }
            Self::Through(proxy, connector) => {
                let connecting = connector.call(proxy.address.clone());
                Box::pin(through(proxy.clone(), connecting, server))
            }
        }
    }
}

/// Waits for the connection with the proxy and has that connect to the server, but not for ever; names it in the error.
async fn through<S>(
    proxy: Proxy,
    connecting: impl Future<Output = Result<S, BoxError>>,
    server: Uri,
) -> Result<S, BoxError>
where
    TokioIo<S>: AsyncRead + AsyncWrite + Unpin,
{
    let (host, server_port) = (server.host().unwrap_or_default(), port(&server));
    let talk = async {
        let mut stream = TokioIo::new(connecting.await?);
        let user = proxy.user.as_ref();
        match proxy.kind {
            ProxyKind::Http | ProxyKind::Https => tunnel::connect(&mut stream, host, server_port, user).await?,
            ProxyKind::Socks5 => socks::connect(&mut stream, host, server_port, user).await?,
        }
        Ok(stream.into_inner())
    };
    let connected = tokio::time::timeout(TIMEOUT, talk).await;
    let connected = connected.unwrap_or_else(|_| Err("it does not answer in time".into()));
    connected.map_err(|error| Barred { proxy, error }.into())
}

#[cfg(test)]
mod tests;
