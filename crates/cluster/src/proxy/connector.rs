//! From the server's address to a connection, through a proxy if there is one (spec 70 §8.1).

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures::future::BoxFuture;
use http::{HeaderValue, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{HttpConnector, proxy::Tunnel},
    rt::TokioIo,
};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use super::{Kind, Proxy, User, port, socks};

/// For the connection itself, and once more for what a proxy has to say.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Connects with servers. TLS to the server is the business of who calls.
#[derive(Clone)]
pub(crate) enum Connector {
    Direct(HttpConnector),
    /// By `CONNECT`. The inner connector speaks TLS with a proxy whose address begins with `https`.
    Tunnel(Proxy, Box<Tunnel<HttpsConnector<HttpConnector>>>),
    Socks(Proxy, HttpConnector),
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

// === impl Connector ===

impl Connector {
    /// `tls` is what the server is reached with: its CA is the proxy's, too. The proxy's certificate must be for the host of
    /// its URL.
    pub(crate) fn new(proxy: Option<&Proxy>, tls: &ClientConfig) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(TIMEOUT));
        tcp.set_nodelay(true);
        let Some(proxy) = proxy.cloned() else { return Self::Direct(tcp) };
        match proxy.kind {
            Kind::Socks5 => Self::Socks(proxy, tcp),
            Kind::Http | Kind::Https => {
                let mut tls = tls.clone();
                tls.alpn_protocols.clear(); // CONNECT is sent as HTTP/1.1
                let mut tunnel = Tunnel::new(proxy.address.clone(), HttpsConnector::from((tcp, Arc::new(tls))));
                if let Some(user) = &proxy.user {
                    tunnel = tunnel.with_auth(user.basic());
                }
                Self::Tunnel(proxy, Box::new(tunnel))
            }
        }
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Stream, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Direct(tcp) | Self::Socks(_, tcp) => tcp.poll_ready(cx).map_err(Into::into),
            Self::Tunnel(_, tunnel) => tunnel.poll_ready(cx).map_err(Into::into),
        }
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match self {
            Self::Direct(tcp) => {
                let connecting = tcp.call(server);
                Box::pin(async move { Ok(MaybeHttpsStream::Http(connecting.await?)) })
            }
            Self::Tunnel(proxy, tunnel) => {
                let connecting = tunnel.call(with_port(server));
                Box::pin(through(proxy.clone(), async move { Ok(connecting.await?) }))
            }
            Self::Socks(proxy, tcp) => {
                let (connecting, user) = (tcp.call(proxy.address.clone()), proxy.user.clone());
                Box::pin(through(proxy.clone(), async move {
                    let mut stream = connecting.await?;
                    let host = server.host().unwrap_or_default();
                    socks::connect(stream.inner_mut(), host, port(&server), user.as_ref()).await?;
                    Ok(MaybeHttpsStream::Http(stream))
                }))
            }
        }
    }
}

/// Waits for the proxy, but not for ever; names it in the error.
async fn through(proxy: Proxy, connecting: impl Future<Output = Result<Stream, BoxError>>) -> Result<Stream, BoxError> {
    let connected = tokio::time::timeout(2 * TIMEOUT, connecting).await;
    let connected = connected.unwrap_or_else(|_| Err("it does not answer in time".into()));
    connected.map_err(|error| Barred { proxy, error }.into())
}

/// The tunnel would take 443 for the port of each address without one.
fn with_port(server: Uri) -> Uri {
    let host = server.host().unwrap_or_default();
    let full = Uri::builder()
        .scheme(server.scheme_str().unwrap_or("https"))
        .authority(format!("{host}:{}", port(&server)))
        .path_and_query("/");
    full.build().unwrap_or(server)
}

// === impl User ===

impl User {
    /// Value of `Proxy-Authorization`.
    fn basic(&self) -> HeaderValue {
        let encoded = BASE64_STANDARD.encode([&self.name[..], b":", &self.password].concat());
        let mut value = HeaderValue::try_from(format!("Basic {encoded}")).expect("base64 has what a header may hold");
        value.set_sensitive(true);
        value
    }
}

#[cfg(test)]
mod tests;
