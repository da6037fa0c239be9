//! Which clusters the process works with (spec 70 §8.1, §8.2).

use std::path::Path;

use cluster::{
    Connection, ConnectionError, PodEnvironment, ProxySettings,
    kubeconfig::{self, Environment, ForbiddenField, NoConfiguration, Origin},
    read_kubeconfig,
};

use crate::api::config::Config;

/// Where the two clusters are.
#[derive(Debug, Clone)]
pub struct Connections {
    /// The source cluster.
    pub source: Connection,
    /// The target cluster; `None` if it is the source, reached with the same credentials.
    pub target: Option<Connection>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing says where the source is.
    #[error(transparent)]
    NoConfiguration(#[from] NoConfiguration),
    /// A kubeconfig has what is not supported.
    #[error(transparent)]
    ForbiddenField(#[from] ForbiddenField),
    /// A kubeconfig, or the Pod's environment, cannot be used.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// Finds out how source and target are reached.
///
/// # Errors
/// When nothing says where a cluster is, or a kubeconfig cannot be read or has a field that is not supported.
pub fn connections(config: &Config, environment: &Environment, flag_mode: bool) -> Result<Connections, ConnectError> {
    let (source, target) = (config.source.kubeconfig.as_deref(), config.target.kubeconfig.as_deref());
    let (source, target) = kubeconfig::resolve(source, target, environment, flag_mode, &Path::exists)?;
    let proxies = &environment.proxies;
    for variable in proxies.ignored() {
        tracing::warn!(variable, "the value is no proxy that is supported, so the variable counts as unset");
    }
    let source = connection(&source, proxies)?;
    let target = connection(&target, proxies)?;
    let target = (target != source).then_some(target);
    Ok(Connections { source, target })
}

/// How one cluster is reached.
fn connection(origin: &Origin, proxies: &ProxySettings) -> Result<Connection, ConnectError> {
    match origin {
        Origin::Kubeconfig(path) => {
            let content = read_kubeconfig(path)?;
            kubeconfig::check(&content)?;
            Ok(Connection::of_kubeconfig(path, content, proxies)?)
        }
        Origin::InCluster { .. } => Ok(Connection::in_cluster(&PodEnvironment::of_process(), proxies)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECONFIG: &str = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://SERVER:6443"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}, {"name": "other", "user": {OTHER}}]}"#;

    fn kubeconfig(directory: &tempfile::TempDir, server: &str, other: &str) -> String {
        let path = directory.path().join(format!("{server}{}", other.len()));
        std::fs::write(&path, KUBECONFIG.replace("SERVER", server).replace("OTHER", other)).unwrap();
        path.to_string_lossy().into_owned()
    }

    fn config(source: &str, target: &str) -> Config {
        let mut config = Config::default();
        config.source.kubeconfig = Some(source.to_owned());
        config.target.kubeconfig = Some(target.to_owned());
        config
    }

    /// spec 70 §8.2
    #[test]
    fn the_same_server_with_the_same_credentials_is_one_cluster() {
        let directory = tempfile::tempdir().unwrap();
        let (a, b) = (kubeconfig(&directory, "a", ""), kubeconfig(&directory, "b", ""));
        let copy = format!("{a}-copy");
        std::fs::copy(&a, &copy).unwrap();

        let one = connections(&config(&a, &copy), &Environment::default(), false).unwrap();
        let two = connections(&config(&a, &b), &Environment::default(), false).unwrap();

        assert!(one.target.is_none());
        assert_eq!(two.target.map(|target| target.host()), Some("b:6443".to_owned()));
    }

    /// spec 70 §8.1, §8.2
    #[test]
    fn a_cluster_behind_another_proxy_is_another_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = kubeconfig(&directory, "a", "");
        let copy = |name: &str, proxy_url: &str| {
            let copy = format!("{path}-{name}");
            let text = std::fs::read_to_string(&path).unwrap();
            let server = "\"server\"";
            std::fs::write(&copy, text.replace(server, &format!("\"proxy-url\": \"{proxy_url}\", {server}"))).unwrap();
            copy
        };
        let (same, other) = (copy("same", "http://p:3128"), copy("other", "http://q:3128"));
        let value = |name: &str| (name == "HTTPS_PROXY").then(|| "p:3128".to_owned());
        let environment = Environment::read(&value);

        let one = connections(&config(&path, &same), &environment, false).unwrap();
        let two = connections(&config(&path, &other), &environment, false).unwrap();

        assert!(one.target.is_none());
        assert!(two.target.is_some());
    }

    /// spec 70 scenario 19
    #[test]
    fn a_forbidden_field_of_an_unused_user_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = kubeconfig(&directory, "a", r#""exec": {"command": "/bin/true"}"#);

        let error = connections(&config(&path, &path), &Environment::default(), false).unwrap_err();

        assert!(error.to_string().starts_with("exec configurations are not supported (user \"other\")"), "{error}");
    }

    #[test]
    fn a_kubeconfig_that_is_not_there_is_named() {
        let error = connections(&config("/nowhere/k", "/nowhere/k"), &Environment::default(), false).unwrap_err();

        assert!(error.to_string().contains("/nowhere/k"), "{error}");
    }
}
