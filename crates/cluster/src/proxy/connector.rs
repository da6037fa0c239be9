//! Connects to a server, through a proxy if there is one (spec 70 §8.1).

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

/// For TCP, and for a proxy up to its answer. Below most requests' 30 s, so that their errors name the proxy.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(crate) enum Connector {
    Direct(HttpConnector),
    /// The inner connector speaks TLS with a proxy whose address begins with `https`.
    Through(Proxy, HttpsConnector<HttpConnector>),
}

/// The text names the proxy without user and password.
#[derive(Debug, thiserror::Error)]
#[error("cannot get through the proxy {proxy}")]
struct Barred {
    proxy: Proxy,
    #[source]
    error: BoxError,
}

pub(crate) type ServerStream = MaybeHttpsStream<TokioIo<TcpStream>>;

impl Connector {
    /// `tls` is for the server; its CA is valid for the proxy, too, whose certificate must be for the host of its URL.
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
    type Response = ServerStream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<ServerStream, BoxError>>;

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

/// Connects to the proxy and through it to the server, in limited time. The error names the proxy.
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
