//! The HTTP client below all others: that of the controllers, and that of commands behind a proxy.

use std::time::Duration;

use http::Uri;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use kube::{
    Config,
    client::{Body, ConfigExt as _, RustlsTlsError},
};
use rustls::pki_types::ServerName;
use tower::{BoxError, ServiceExt as _, util::BoxCloneSyncService};

use super::{abrupt_end::AbruptEnd, in_time::in_time};
use crate::proxy::{Proxy, ServerStream, connector};

/// A connection is probed after this much silence (spec 70 §8.3; fault 6) …
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// … and given up when the probe is not answered in this time.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes in flight of all streams of a connection together: one slow watch must not stop the others.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Bytes that an HTTP/1.1 connection reads ahead, and the bound of an answer's head. Without it, each connection that
/// receives a large answer keeps 400 KiB, which no budget of answers counts.
const READ_BUFFER: usize = 64 << 10;

type Connection = TokioIo<AbruptEnd<TokioIo<MaybeHttpsStream<ServerStream>>>>;
type Http = Client<BoxCloneSyncService<Uri, Connection, BoxError>, Body>;

/// Keeps kube from reading the CAs of the system where no certificate is verified: it takes time and memory, and an image
/// has none (spec 71 §13).
pub(crate) fn leave_cas_of_the_system(config: &mut Config, proxy: Option<&Proxy>) {
    let is_plain = config.cluster_url.scheme_str() == Some("http") && !proxy.is_some_and(Proxy::speaks_tls);
    if config.accept_invalid_certs || is_plain {
        config.root_cert.get_or_insert_default();
    }
}

/// Creates a client over HTTP/2 or HTTP/1.1, or fails if TLS cannot be set up. Ignores the configuration's `proxy_url`.
pub(crate) fn http_client(config: &Config, proxy: Option<&Proxy>) -> Result<Http, kube::Error> {
    let mut tls = config.rustls_client_config()?;
    tls.alpn_protocols.clear(); // the connector sets them
    let connector = connector(proxy, &tls);
    let mut https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone()).map_err(RustlsTlsError::InvalidServerName);
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name.map_err(kube::Error::RustlsTls)?));
    }
    let https = https.enable_http1().enable_http2().wrap_connector(connector);
    let connector = https.map_future(in_time).map_response(|tls| TokioIo::new(AbruptEnd(TokioIo::new(tls))));
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http1_max_buf_size(READ_BUFFER)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build(BoxCloneSyncService::new(connector)))
}
