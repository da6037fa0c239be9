//! A client for the commands of people, whose kubeconfigs may have what those of the controller may not.

use hyper_util::{client::legacy::Client as HttpClient, rt::TokioExecutor};
use kube::{
    Config,
    client::{Body, ClientBuilder, ConfigExt as _},
};
use tower::{BoxError, ServiceBuilder};
use tower_http::decompression::DecompressionLayer;

use super::{Connector, Proxy};

/// kube's own client if there is no proxy, and otherwise one like it. kube knows SOCKS without password only.
///
/// # Errors
/// When TLS cannot be set up, or credentials cannot be used.
pub fn client_through(proxy: Option<&Proxy>, config: Config) -> Result<kube::Client, kube::Error> {
    if proxy.is_none() {
        return kube::Client::try_from(config);
    }
    let connector = Connector::new(proxy, &config.rustls_client_config()?);
    let https = config.rustls_https_connector_with_connector(connector)?;
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new().gzip(!config.disable_compression))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(HttpClient::builder(TokioExecutor::new()).build::<_, Body>(https));
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}
