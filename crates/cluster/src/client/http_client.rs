//! The HTTP client below all others: that of the controller, and that of commands where a proxy leads to the server.

use std::time::Duration;

use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Config,
    client::{Body, ConfigExt as _, RustlsTlsError},
};
use rustls::pki_types::ServerName;

use super::{abrupt_end::AbruptEnd, in_time::InTime};
use crate::proxy::{Connector, Proxy};

/// A connection is probed after this much silence (spec 70 §8.3; fault 6) …
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// … and given up when the probe is not answered in this time.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(15);
/// All streams of a connection together may have this much data under way: one slow watch must not stop the others.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// What [`http_client`] makes.
type Http = Client<AbruptEnd<InTime<HttpsConnector<Connector>>>, Body>;

/// A client over HTTP/2 (HTTP/1.1 where the server does not speak it). The `proxy_url` of the configuration does not matter.
///
/// # Errors
/// When TLS cannot be set up.
pub(crate) fn http_client(config: &Config, proxy: Option<&Proxy>) -> Result<Http, kube::Error> {
    let mut tls = config.rustls_client_config()?;
    tls.alpn_protocols.clear(); // the connector sets them
    let connector = Connector::new(proxy, &tls);
    let mut https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone()).map_err(RustlsTlsError::InvalidServerName);
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name.map_err(kube::Error::RustlsTls)?));
    }
    let https = https.enable_http1().enable_http2().wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build(AbruptEnd(InTime(https))))
}
