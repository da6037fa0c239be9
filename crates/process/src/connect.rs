//! Reaches the clusters of a program (spec 70 §8.1).

use std::path::Path;

use cluster::{
    Connection, ConnectionError, ProxySettings, SERVICE_ACCOUNT,
    kubeconfig::{self, ForbiddenField, NoConfiguration, Origin},
    read_kubeconfig, shown_path, user_agent,
};

use crate::BuildInfo;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither a kubeconfig nor the environment says where the cluster is.
    #[error("{0} — name a kubeconfig in the configuration or in $KUBECONFIG")]
    NoConfiguration(#[from] NoConfiguration),
    /// A kubeconfig has an unsupported field.
    #[error("{error} — in the kubeconfig {path}")]
    ForbiddenField {
        /// The kubeconfig, without what may be a credential.
        path: String,
        /// The field.
        error: ForbiddenField,
    },
    /// A kubeconfig, or the Pod's environment, cannot be used.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// What the program calls itself in requests (spec 70 §8.3).
#[derive(Debug, Clone)]
pub struct UserAgents {
    /// In the requests of controllers and webhooks.
    pub requests: String,
    /// In the requests of the leader election.
    pub election: String,
}

impl UserAgents {
    /// The names of this version of a program.
    pub fn new(program: &str, version: &BuildInfo) -> Self {
        let agent = |election| user_agent(program, &version.version, &version.git_commit, election);
        Self { requests: agent(false), election: agent(true) }
    }
}

/// Warns of variables of the environment that name no proxy.
pub fn warn_of_ignored_proxies(proxies: &ProxySettings) {
    for variable in proxies.ignored() {
        tracing::warn!(variable, "the value is no proxy that is supported, so the variable counts as unset");
    }
}

/// Logs where a cluster is: its server, the context of the kubeconfig that names it, and the proxy to it if there is one.
pub fn show_connection(cluster: &str, connection: &Connection) {
    let kubeconfig = connection.context().map(|context| context.kubeconfig.as_str());
    let context = connection.context().map(|context| context.context.as_str());
    tracing::info!(cluster, server = connection.host(), kubeconfig, context, "Connecting to the cluster");
    if let Some(proxy) = connection.proxy() {
        tracing::info!(cluster, host = connection.host(), %proxy, "The cluster is reached through a proxy");
    }
}

/// Reads how a cluster is reached. Fails if a kubeconfig is unreadable, unsupported or has an invalid `proxy-url`.
pub fn connection(origin: &Origin, proxies: &ProxySettings) -> Result<Connection, ConnectError> {
    match origin {
        Origin::Kubeconfig(path) => {
            let content = read_kubeconfig(path)?;
            kubeconfig::check(&content)
                .map_err(|error| ConnectError::ForbiddenField { path: shown_path(path), error })?;
            Ok(Connection::of_kubeconfig(path, content, proxies)?)
        }
        Origin::InCluster { server } => Ok(Connection::in_cluster(server, Path::new(SERVICE_ACCOUNT), proxies)?),
    }
}
