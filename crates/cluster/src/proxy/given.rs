//! The `proxy-url` of a kubeconfig.

use kube::{Config, config::Kubeconfig};

use super::{BadProxy, Proxy, ProxySettings};
use crate::kubeconfig::current_cluster;

/// Keeps kube from reading the environment: its rules differ and its errors show passwords. Nothing connects to it.
const PLACEHOLDER: &str = "http://placeholder.invalid";

/// The `proxy-url` of a kubeconfig's current context, hidden from kube while kube reads the file.
pub struct GivenProxy(Option<String>);

impl GivenProxy {
    /// Takes the `proxy-url` out of the kubeconfig.
    pub fn take(kubeconfig: &mut Kubeconfig) -> Self {
        let cluster = current_cluster(kubeconfig);
        Self(cluster.and_then(|cluster| cluster.proxy_url.replace(PLACEHOLDER.to_owned())))
    }

    /// Returns the proxy to the configuration's server, and removes the placeholder. Fails for an invalid `proxy-url`.
    pub fn choose(self, config: &mut Config, proxies: &ProxySettings) -> Result<Option<Proxy>, BadProxy> {
        config.proxy_url = None;
        let reported = config.auth_info.exec.as_mut().and_then(|program| program.cluster.as_mut());
        let proxy = proxies.choose(&config.cluster_url, self.0.as_deref());
        if let Some(cluster) = reported {
            cluster.proxy_url = self.0;
        }
        proxy
    }
}
