//! Makes clients; they find their cluster as kubectl does.

use std::{io, path::PathBuf, rc::Rc};

use cluster::{
    AnswerRoom, BadProxy, Cluster, ClusterEnv, ClusterOptions, Fence, GivenProxy, NoObserver, ProxySettings,
};
use kit::{Clock, Random};
use kube::config::{Config, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::CommandError;
use crate::api::resources::side::Side;

/// Why there is no client. Texts hold no credentials.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error(
        "no cluster found: there is neither a kubeconfig nor the service account of a Pod ({0}) — give a kubeconfig with --kubeconfig or $KUBECONFIG"
    )]
    Nowhere(InClusterError),
    #[error("cannot use the kubeconfig {}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("cannot use the kubeconfig: {0}")]
    Kubeconfig(String),
    #[error("cannot use the proxy of the kubeconfig: {0}")]
    Proxy(#[from] BadProxy),
    #[error("cannot connect: {0}")]
    Client(#[from] kube::Error),
    #[error("cannot start: {0}")]
    Runtime(io::Error),
}

impl From<KubeconfigError> for ConnectError {
    fn from(error: KubeconfigError) -> Self {
        Self::Kubeconfig(cluster::kubeconfig::reason(&error))
    }
}

/// Runs requests to a cluster. First warns of environment variables whose value is not a usable proxy.
pub(super) fn with_client<T>(
    kubeconfig: Option<&str>,
    env: &dyn Fn(&str) -> Option<String>,
    work: impl AsyncFnOnce(kube::Client) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    warnings(&ProxySettings::of(env)).for_each(|warning| eprintln!("{warning}"));
    rustls::crypto::ring::default_provider().install_default().ok();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ConnectError::Runtime)?;
    runtime.block_on(async { work(client(kubeconfig, env).await?).await })
}

/// Looks at the given kubeconfig, `$KUBECONFIG`, `~/.kube/config`, then the Pod. Uses proxies (spec 70 §8.1).
pub(super) async fn client(
    given: Option<&str>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<kube::Client, ConnectError> {
    let proxies = ProxySettings::of(env);
    let (config, proxy) = match kubeconfig(given, env)? {
        Some(mut kubeconfig) => {
            let given = GivenProxy::take(&mut kubeconfig);
            let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
            let proxy = given.choose(&mut config, &proxies)?;
            (config, proxy)
        }
        None => {
            let config = Config::incluster().map_err(ConnectError::Nowhere)?;
            let proxy = proxies.choose(&config.cluster_url, None)?;
            (config, proxy)
        }
    };
    Ok(cluster::client_through(proxy.as_ref(), config)?)
}

fn warnings(proxies: &ProxySettings) -> impl Iterator<Item = String> {
    let ignored = proxies.ignored().iter();
    ignored.map(|variable| format!("warning: {variable} counts as unset: its value is no proxy that is supported"))
}

fn kubeconfig(given: Option<&str>, env: &dyn Fn(&str) -> Option<String>) -> Result<Option<Kubeconfig>, ConnectError> {
    let variable = |name| env(name).filter(|value| !value.is_empty());
    let there = |paths: &mut dyn Iterator<Item = PathBuf>| paths.filter(|path| path.exists()).collect();
    let paths: Vec<PathBuf> = match (given, variable("KUBECONFIG"), variable("HOME")) {
        (Some(path), ..) => vec![path.into()],
        (None, Some(list), _) => there(&mut std::env::split_paths(&list)),
        (None, None, Some(home)) => there(&mut std::iter::once(PathBuf::from(home).join(".kube/config"))),
        (None, None, None) => Vec::new(),
    };
    let mut merged: Option<Kubeconfig> = None;
    for path in paths {
        let read = Kubeconfig::read_from(&path).map_err(|error| {
            let reason = cluster::kubeconfig::reason(&error);
            ConnectError::File { path, reason }
        })?;
        merged = Some(match merged {
            Some(before) => before.merge(read)?,
            None => read,
        });
    }
    Ok(merged)
}

/// Returns a cluster whose write fence is closed, so that nothing can be written.
pub(super) fn read_only(client: kube::Client, side: Side, clock: Clock, random: Random) -> Cluster {
    let options =
        ClusterOptions { label: side.label(), host: String::new(), qps: -1.0, burst: 0, namespaces: Vec::new() };
    let fence = Fence::open();
    fence.shut("this command writes nothing");
    Cluster::new(client, options, ClusterEnv { clock, random, fence, room: AnswerRoom::default() }, Rc::new(NoObserver))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &tempfile::TempDir, name: &str, context: &str) -> String {
        let path = folder.path().join(name);
        let text =
            format!("{{apiVersion: v1, kind: Config, current-context: {context}, contexts: [{{name: {context}}}]}}");
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    }

    fn contexts(given: Option<&str>, variables: &[(&str, &str)]) -> Option<(String, Vec<String>)> {
        let value =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let found = kubeconfig(given, &value).unwrap()?;
        let names = found.contexts.into_iter().map(|context| context.name).collect();
        Some((found.current_context.unwrap_or_default(), names))
    }

    #[test]
    fn kubeconfig_is_found_as_kubectl_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (file(&folder, "a", "a"), file(&folder, "b", "b"));
        std::fs::create_dir(folder.path().join(".kube")).unwrap();
        file(&folder, ".kube/config", "home");
        let home = folder.path().to_string_lossy().into_owned();
        let found =
            |current: &str, all: &[&str]| Some((current.to_owned(), all.iter().map(|&name| name.to_owned()).collect()));

        assert_eq!(contexts(Some(&a), &[("KUBECONFIG", &b), ("HOME", &home)]), found("a", &["a"]));
        assert_eq!(contexts(None, &[("KUBECONFIG", &b), ("HOME", &home)]), found("b", &["b"]));
        assert_eq!(contexts(None, &[("KUBECONFIG", ""), ("HOME", &home)]), found("home", &["home"]));
        let list = format!("{home}/gone:{b}:{a}");
        assert_eq!(contexts(None, &[("KUBECONFIG", &list)]), found("b", &["b", "a"]), "the first one's context counts");
        assert_eq!(contexts(None, &[("HOME", "/nowhere")]), None);
    }

    #[test]
    fn kubeconfig_that_cannot_be_read_is_named() {
        let error = kubeconfig(Some("/nowhere/k"), &|_| None).unwrap_err();

        assert!(error.to_string().starts_with("cannot use the kubeconfig /nowhere/k: "), "{error}");
    }

    #[test]
    fn kubeconfig_that_cannot_be_parsed_is_named_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k");
        std::fs::write(&path, "users:\n- {name: u, user: {token: sesame, token: [}}\n").unwrap();
        let path = path.to_string_lossy();

        let error = kubeconfig(Some(&path), &|_| None).unwrap_err();

        let text = error.to_string();
        assert!(text.starts_with(&format!("cannot use the kubeconfig {path}: it is not valid YAML")), "{text}");
        assert!(!format!("{text} {error:?}").contains("sesame"), "{text} {error:?}");
        let raw = Kubeconfig::from_yaml("users: [{token: sesame, token: [}]").unwrap_err();
        let error = ConnectError::from(raw);
        assert!(!format!("{error} {error:?}").contains("sesame"), "{error} {error:?}");
    }

    /// spec 70 §8.1
    #[test]
    fn proxy_variable_that_is_invalid_is_warned_of_without_its_value() {
        let of = |value: &str| {
            let proxies = ProxySettings::of(&|name| (name == "HTTPS_PROXY").then(|| value.to_owned()));
            warnings(&proxies).collect::<Vec<_>>()
        };

        let warning = "warning: HTTPS_PROXY counts as unset: its value is no proxy that is supported";
        assert_eq!(of("ftp://me:sesame@p"), [warning]);
        assert!(of("http://me:sesame@p").is_empty());
    }
}
