//! Connects to a server, through a proxy if there is one (spec 70 §8.1).

use std::{sync::Arc, time::Duration};

use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use rustls::ClientConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tower::{BoxError, ServiceExt as _, service_fn, util::BoxCloneSyncService};

use super::{Proxy, ProxyKind, port, socks, tunnel};

/// For TCP, and for a proxy up to its answer. Below most requests' 30 s, so that their errors name the proxy.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The text names the proxy without user and password.
#[derive(Debug, thiserror::Error)]
#[error("cannot get through the proxy {proxy}")]
struct Barred {
    proxy: Proxy,
    #[source]
    error: BoxError,
}

pub(crate) type ServerStream = MaybeHttpsStream<TokioIo<TcpStream>>;
pub(crate) type Connector = BoxCloneSyncService<Uri, ServerStream, BoxError>;

/// Returns the connector to a server. `tls` is for the server; its CA is valid for the proxy, too, whose certificate must
/// be for the host of its URL.
pub(crate) fn connector(proxy: Option<&Proxy>, tls: &ClientConfig) -> Connector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(TIMEOUT));
    tcp.set_nodelay(true);
    let Some(proxy) = proxy.cloned() else {
        return BoxCloneSyncService::new(tcp.map_response(MaybeHttpsStream::Http).map_err(BoxError::from));
    };
    let mut tls = tls.clone();
    tls.alpn_protocols.clear(); // CONNECT is sent as HTTP/1.1
    let to_proxy = HttpsConnector::from((tcp, Arc::new(tls))); // it speaks TLS if the address begins with `https`
    BoxCloneSyncService::new(service_fn(move |server: Uri| {
        through(proxy.clone(), to_proxy.clone().oneshot(proxy.address.clone()), server)
    }))
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
