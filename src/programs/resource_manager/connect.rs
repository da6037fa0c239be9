//! Finds the clusters of the process (spec 70 §8.1, §8.2).

use std::path::Path;

use cluster::{
    Connection, ConnectionError,
    kubeconfig::{self, Environment},
};
use process::{ConnectError, UserAgents, connection, show_connection, warn_of_ignored_proxies};

use super::{Link, Links};
use crate::api::config::resource_manager::Config;

/// How the two clusters are reached.
#[derive(Debug, Clone)]
pub struct Connections {
    /// The source cluster.
    pub source: Connection,
    /// The target cluster; `None` if it is the source, with the same credentials.
    pub target: Option<Connection>,
}

/// Fails if a cluster cannot be located, or if a kubeconfig is unreadable, unsupported or has an invalid `proxy-url`.
pub fn connections(config: &Config, environment: &Environment, flag_mode: bool) -> Result<Connections, ConnectError> {
    let (source, target) = (config.source.kubeconfig_path(), config.target.kubeconfig_path());
    let (source, target) = kubeconfig::resolve(source, target, environment, flag_mode, &Path::exists)?;
    let proxies = &environment.proxies;
    warn_of_ignored_proxies(proxies);
    let source = connection(&source, proxies)?;
    let target = connection(&target, proxies)?;
    let target = (target != source).then_some(target);
    show_connection("source", &source);
    target.iter().for_each(|target| show_connection("target", target));
    Ok(Connections { source, target })
}

/// Returns clients, and the one for the leader election. Fails if a connection's credentials cannot be used.
pub(super) fn links(connections: &Connections, agents: &UserAgents) -> Result<(Links, kube::Client), ConnectError> {
    let link = |connection: &Connection| -> Result<Link, ConnectionError> {
        Ok(Link {
            client: connection.client(&agents.requests)?,
            host: connection.host(),
            context: connection.context().cloned(),
            ca: connection.ca().into(),
        })
    };
    let source = link(&connections.source)?;
    let target = connections.target.as_ref().map(link).transpose()?;
    Ok((Links { source, target }, connections.source.client(&agents.election)?))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

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
        source.clone_into(&mut config.source.kubeconfig);
        target.clone_into(&mut config.target.kubeconfig);
        config
    }

    /// spec 70 §8.2
    #[test]
    fn source_and_target_with_the_same_server_and_credentials_are_one_cluster() {
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
    fn source_and_target_behind_different_proxies_are_two_clusters() {
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

    /// spec 70 §8.1
    #[test]
    fn connection_of_each_cluster_is_logged_without_user_of_its_proxy() {
        let directory = tempfile::tempdir().unwrap();
        let (a, b) = (kubeconfig(&directory, "a", ""), kubeconfig(&directory, "10.0.0.1", ""));
        let value = |name: &str| match name {
            "HTTPS_PROXY" => Some("me:sesame@p:3128".to_owned()),
            "NO_PROXY" => Some("10.0.0.0/8".to_owned()),
            _ => None,
        };
        let environment = Environment::read(&value);
        let file = tempfile::NamedTempFile::new().unwrap();
        let (log, path) = (file.reopen().unwrap(), file.path());
        let subscriber =
            tracing_subscriber::fmt().without_time().with_ansi(false).with_writer(Mutex::new(log)).finish();

        tracing::subscriber::with_default(subscriber, || {
            connections(&config(&a, &b), &environment, false).unwrap();
            connections(&config(&b, &a), &environment, false).unwrap();
        });

        let text = std::fs::read_to_string(path).unwrap();
        let found: Vec<_> =
            text.lines().filter_map(|line| line.split_once(" through a proxy ")).map(|it| it.1).collect();
        let fields = |cluster: &str| format!("cluster=\"{cluster}\" host=\"a:6443\" proxy=http://p:3128");
        assert_eq!(found, [fields("source"), fields("target")]);
        let connecting = |cluster: &str, path: &str, host: &str| {
            format!("the cluster cluster=\"{cluster}\" server=\"{host}:6443\" kubeconfig=\"{path}\" context=\"c\"")
        };
        assert!(text.contains(&connecting("source", &a, "a")), "{text}");
        assert!(text.contains(&connecting("target", &b, "10.0.0.1")), "{text}");
    }

    /// spec 70 scenario 19
    #[test]
    fn kubeconfig_with_a_forbidden_field_of_an_unused_user_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = kubeconfig(&directory, "a", r#""exec": {"command": "/bin/true"}"#);

        let error = connections(&config(&path, &path), &Environment::default(), false).unwrap_err();

        assert!(error.to_string().starts_with("exec configurations are not supported (user \"other\")"), "{error}");
        assert!(error.to_string().ends_with(&format!("in the kubeconfig {path}")), "{error}");
    }

    #[test]
    fn kubeconfig_that_does_not_exist_is_named() {
        let error = connections(&config("/nowhere/k", "/nowhere/k"), &Environment::default(), false).unwrap_err();

        assert!(error.to_string().contains("/nowhere/k"), "{error}");
    }

    #[test]
    fn kubeconfig_content_in_the_place_of_its_path_is_not_shown() {
        let content = "users:\n- {name: u, user: {token: sesame}}\n";

        let error = connections(&config(content, content), &Environment::default(), false).unwrap_err();

        assert!(error.to_string().starts_with("cannot load the kubeconfig (left out"), "{error}");
        assert!(!error.to_string().contains("sesame"), "{error}");
    }
}
