//! A client for the commands of people, whose kubeconfigs may have what those of the controller may not.

use kube::{
    Config,
    client::{ClientBuilder, ConfigExt as _},
};
use tower::{BoxError, ServiceBuilder};
use tower_http::decompression::DecompressionLayer;

use super::Proxy;
use crate::client::http_client;

/// kube's own client if there is no proxy, and otherwise one like it, but with the limits of the controller's and without
/// repetitions. kube knows SOCKS without password only.
///
/// # Errors
/// When TLS cannot be set up, or credentials cannot be used.
pub fn client_through(proxy: Option<&Proxy>, config: Config) -> Result<kube::Client, kube::Error> {
    if proxy.is_none() {
        return kube::Client::try_from(config);
    }
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new().gzip(!config.disable_compression))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http_client(&config, proxy)?);
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}
