//! A client for commands, whose kubeconfigs may use more features than the controllers' kubeconfigs.

use kube::{
    Config,
    client::{ClientBuilder, ConfigExt as _},
};
use tower::{BoxError, ServiceBuilder};
use tower_http::decompression::DecompressionLayer;

use super::Proxy;
use crate::client::{http_client, leave_cas_of_the_system};

/// Returns kube's own client if there is no proxy. Otherwise a similar client with the controllers' time limits and
/// without retries, because kube knows SOCKS without password only. Fails if TLS or the credentials cannot be used.
pub fn client_through(proxy: Option<&Proxy>, mut config: Config) -> Result<kube::Client, kube::Error> {
    leave_cas_of_the_system(&mut config, proxy);
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
