//! Builds a client from a kubeconfig or the environment of a Pod (spec 70 §8.1).

use std::path::{Path, PathBuf};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::HeaderValue;
use kit::credentials::without_credentials;
use kube::{Config, client::ConfigExt as _, config::Kubeconfig};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::Value;
use tower::Layer as _;
use tower_http::decompression::DecompressionLayer;

pub(crate) use self::http_client::{http_client, leave_cas_of_the_system};
use super::token::{Credentials, CredentialsError, identified};
use crate::{
    files,
    kubeconfig::{ContextOfFile, NoConfiguration, current_cluster, reason},
    proxy::{BadProxy, GivenProxy, Proxy, ProxySettings},
};

/// Where a Pod finds its ServiceAccount's token and the API server's CA.
pub const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

const LARGEST_KUBECONFIG: u64 = 2 << 20; // size limit of a kubeconfig and of a file of CA certificates

/// Address and credentials of a cluster. Equal connections may share a client (spec 70 §8.2).
#[derive(Clone)]
pub struct Connection {
    config: Config,
    /// CA certificates of the server as given, in PEM; empty without any.
    ca: Vec<u8>,
    /// The proxy to the server; `config`'s own proxy is never set.
    proxy: Option<Proxy>,
    /// `None` in a Pod.
    context: Option<ContextOfFile>,
}

/// Why there is no connection. Texts hold no credentials.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// Neither a kubeconfig nor a Pod's token (spec 70 §8.1).
    #[error(transparent)]
    NoConfiguration(#[from] NoConfiguration),
    /// An unusable kubeconfig.
    #[error("cannot load the kubeconfig {}: {reason}", shown_path(path))]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// Unusable credentials.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The server's address is not a URL.
    #[error("invalid address of the API server {0:?}")]
    BadAddress(String),
    /// Certificates or keys that TLS cannot use.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    /// A user agent with characters that a header cannot hold.
    #[error("invalid user agent {0:?}")]
    BadUserAgent(String),
}

impl ConnectionError {
    fn of_kubeconfig(path: &Path, reason: String) -> Self {
        Self::Kubeconfig { path: path.into(), reason }
    }
}

impl Connection {
    /// Creates a connection from the current context of a kubeconfig that was read from `path`.
    pub fn of_kubeconfig(
        path: &Path,
        mut kubeconfig: Kubeconfig,
        proxies: &ProxySettings,
    ) -> Result<Self, ConnectionError> {
        let context = kubeconfig.current_context.clone().unwrap_or_default();
        let context = Some(ContextOfFile { kubeconfig: shown_path(path), context });
        let ca = ca_of_current_context(&mut kubeconfig, path);
        let given = GivenProxy::take(&mut kubeconfig);
        let failed = |error| ConnectionError::of_kubeconfig(path, reason(&error));
        let mut config = Config::try_from(kubeconfig).map_err(failed)?;
        let failed = |error: BadProxy| ConnectionError::of_kubeconfig(path, error.to_string());
        let proxy = given.choose(&mut config, proxies).map_err(failed)?;
        leave_cas_of_the_system(&mut config, proxy.as_ref());
        Ok(Self { config, ca, proxy, context })
    }

    /// Creates a connection of a Pod to the API server at a URL. `service_account` is a folder with `token` and `ca.crt`:
    /// [`SERVICE_ACCOUNT`] in a Pod.
    pub fn in_cluster(server: &str, service_account: &Path, proxies: &ProxySettings) -> Result<Self, ConnectionError> {
        let token_file = service_account.join("token");
        if let Err(error) = std::fs::metadata(&token_file) {
            tracing::warn!(path = %token_file.display(), %error, "the Pod has no token for the API server");
            return Err(NoConfiguration.into());
        }
        let url = server.parse().map_err(|_| ConnectionError::BadAddress(server.to_owned()))?;
        let mut config = Config::new(url);
        config.auth_info.token_file = Some(token_file.to_string_lossy().into_owned());
        let ca_file = service_account.join("ca.crt");
        let (ca, certificates) = certificates(&ca_file)?;
        config.root_cert = Some(certificates);
        config.root_cert_file = Some(ca_file); // kube re-reads it, so that a new CA needs no restart
        let proxy = proxies.choose(&config.cluster_url, None).unwrap_or_default(); // only a `proxy-url` can be wrong
        Ok(Self { config, ca, proxy, context: None })
    }

    /// CA certificates of the server in PEM, as given inline or in a file that was read once; empty without any.
    pub fn ca(&self) -> &[u8] {
        &self.ca
    }

    /// `host:port` of the server's address, without user and password.
    pub fn host(&self) -> String {
        let server = &self.config.cluster_url;
        let host = server.host().unwrap_or_default();
        server.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// The context of the kubeconfig that it comes from; `None` in a Pod.
    pub fn context(&self) -> Option<&ContextOfFile> {
        self.context.as_ref()
    }

    /// The proxy to the server, if there is one.
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref()
    }

    /// Creates a client that neither limits nor repeats requests, on the thread and runtime that will use it.
    pub fn client(&self, user_agent: &str) -> Result<kube::Client, ConnectionError> {
        let user_agent =
            HeaderValue::from_str(user_agent).map_err(|_| ConnectionError::BadUserAgent(user_agent.into()))?;
        let http = http_client(&self.config, self.proxy.as_ref());
        let http = http.map_err(|error| ConnectionError::Tls(error.to_string()))?;
        let service = identified(http, self.credentials()?, user_agent);
        let service = DecompressionLayer::new().gzip(!self.config.disable_compression).layer(service);
        let service = self.config.base_uri_layer().layer(service);
        Ok(kube::Client::new(service, self.config.default_namespace.clone()))
    }

    fn credentials(&self) -> Result<Credentials, CredentialsError> {
        let user = self.user();
        let text = |field: &str| user[field].as_str().filter(|text| !text.is_empty());
        if let Some(token) = text("token") {
            return Credentials::token(token);
        }
        if let Some(path) = text("tokenFile") {
            return Credentials::file(Path::new(path));
        }
        match (text("username"), text("password")) {
            (Some(name), Some(password)) => Credentials::password(name, password),
            _ => Ok(Credentials::None),
        }
    }

    /// The user entry; its secrets are readable only in serialized form.
    fn user(&self) -> Value {
        serde_json::to_value(&self.config.auth_info).unwrap_or_default()
    }
}

impl PartialEq for Connection {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.config, &other.config);
        a.cluster_url == b.cluster_url
            && a.root_cert == b.root_cert
            && a.accept_invalid_certs == b.accept_invalid_certs
            && a.tls_server_name == b.tls_server_name
            && self.proxy == other.proxy
            && self.user() == other.user()
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("server", &self.host()).finish_non_exhaustive()
    }
}

/// The path of a kubeconfig for people. A user may have put its content there.
pub fn shown_path(path: &Path) -> String {
    without_credentials(&path.to_string_lossy()).into_owned()
}

/// Returns `<program>/<version> (<os>/<arch>) kubernetes/<commit>`, with the suffix `/leader-election` for the client of
/// the lease. Its first part is the field manager of all writes (spec 70 §8.3).
pub fn user_agent(program: &str, version: &str, commit: &str, leader_election: bool) -> String {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let suffix = if leader_election { "/leader-election" } else { "" };
    format!("{program}/{version} ({}/{arch}) kubernetes/{commit}{suffix}", std::env::consts::OS)
}

/// Reads a kubeconfig; its paths are relative to its folder. Fails if it is unreadable, too large or not a kubeconfig, and,
/// without waiting, for a pipe that is not one of the shell.
pub fn read_kubeconfig(path: &Path) -> Result<Kubeconfig, ConnectionError> {
    kubeconfig_of_file(path).map_err(|reason| ConnectionError::of_kubeconfig(path, reason))
}

/// As [`read_kubeconfig`], but fails with the reason alone, without the path.
pub fn kubeconfig_of_file(path: &Path) -> Result<Kubeconfig, String> {
    // kube reads a file as a whole, so check its size first.
    let text = files::read_given(path, LARGEST_KUBECONFIG).map_err(|error| error.to_string())?;
    let is_regular = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let read = match is_regular {
        true => Kubeconfig::read_from(path),
        false => Kubeconfig::from_yaml(&String::from_utf8_lossy(&text)), // it can be read only once
    };
    read.map_err(|error| reason(&error))
}

/// Reads CA certificates. Returns them as they are in the file, and each by itself.
fn certificates(path: &Path) -> Result<(Vec<u8>, Vec<Vec<u8>>), ConnectionError> {
    let failed = |reason: String| ConnectionError::Tls(format!("{}: {reason}", path.display()));
    let text = files::read_regular(path, LARGEST_KUBECONFIG).map_err(|error| failed(error.to_string()))?;
    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(&text).map(|it| it.map(|it| it.to_vec())).collect();
    let certificates = certificates.map_err(|error| failed(error.to_string()))?;
    if certificates.is_empty() { Err(failed("no certificate found".into())) } else { Ok((text, certificates)) }
}

/// Inline data wins over a file, as in the connection, which reports unreadable files.
fn ca_of_current_context(kubeconfig: &mut Kubeconfig, path: &Path) -> Vec<u8> {
    let Some(cluster) = current_cluster(kubeconfig) else { return Vec::new() };
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(data) = given(&cluster.certificate_authority_data) {
        return BASE64_STANDARD.decode(data).unwrap_or_default();
    }
    let file = given(&cluster.certificate_authority).map(|file| path.parent().unwrap_or(path).join(file));
    file.and_then(|file| files::read_regular(&file, LARGEST_KUBECONFIG).ok()).unwrap_or_default()
}

mod abrupt_end;
mod http_client;
mod in_time;
#[cfg(test)]
mod tests;
