//! Makes clients; they find their cluster as kubectl does.

use std::{error::Error as _, fmt, io, path::PathBuf, rc::Rc};

use cluster::{
    AnswerRoom, ApiError, BadProxy, Cluster, ClusterEnv, ClusterLabel, ClusterOptions, Fence, GivenProxy, NoObserver,
    ProxySettings, shown_path,
};
use kit::{Clock, Random, credentials::without_credentials, quote::cut};
use kube::{
    client::AuthError,
    config::{
        Config, Context as KubeContext, ExecConfig, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError,
        NamedContext,
    },
};

use super::{CommandError, screen::remark};
use crate::{
    actors::resource_manager::garbage_collector::survey::SurveyError,
    api::{
        kinds,
        resources::{crd::INSTALL_MANAGED_RESOURCES as DEFINITION, side::Side},
    },
    cli::ConnectionOptions,
};

/// Names of a kubeconfig in an error.
const MOST_NAMES: usize = 10;

/// Why there is no client. Texts hold no credentials.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error(
        "no cluster found: {looked}, and no service account of a Pod ({error}) — give a kubeconfig with --kubeconfig or $KUBECONFIG"
    )]
    Nowhere { looked: String, error: InClusterError },
    #[error("there is no kubeconfig with the {what} {name:?} — give a kubeconfig with --kubeconfig or $KUBECONFIG")]
    NoKubeconfig { what: &'static str, name: String },
    #[error("the kubeconfig has no {what} {name:?} — {known}")]
    Unknown { what: &'static str, name: String, known: String },
    #[error("the kubeconfig has no current context — name one with --context, or a cluster with --cluster")]
    NoContext,
    #[error("cannot use the kubeconfig {}: {reason}", shown_path(path))]
    File { path: PathBuf, reason: String },
    #[error("cannot use the kubeconfig: {0}")]
    Kubeconfig(String),
    #[error("cannot use the context {context:?} of {file}: {reason}")]
    Context { context: String, file: String, reason: String },
    #[error("{file} has no current context — name one with --context ({known})")]
    NoCurrentContext { file: String, known: String },
    #[error("cannot use the proxy of the kubeconfig: {0}")]
    Proxy(#[from] BadProxy),
    #[error("cannot connect to {endpoint}: {reason}")]
    Client { endpoint: Box<Endpoint>, reason: String },
    #[error(
        "cannot connect to {endpoint}: the credential plugin {command:?} cannot be started: {error} — install it{hint}, or give another kubeconfig with --kubeconfig or $KUBECONFIG"
    )]
    NoPlugin { endpoint: Box<Endpoint>, command: String, error: io::Error, hint: String },
    #[error("cannot start: {0}")]
    Runtime(io::Error),
}

impl From<KubeconfigError> for ConnectError {
    fn from(error: KubeconfigError) -> Self {
        Self::Kubeconfig(cluster::kubeconfig::reason(&error))
    }
}

/// A client, and the cluster that it talks to.
pub(super) struct Connected {
    pub(super) client: kube::Client,
    pub(super) endpoint: Endpoint,
}

/// The cluster of a client, for errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    server: String,
    /// The context, and where it comes from; `None` in a Pod.
    context: Option<(String, String)>,
}

/// Runs requests to a cluster. First warns of environment variables whose value is not a usable proxy. Errors of a cluster
/// that cannot be reached name it.
pub(super) fn with_client<T>(
    options: &ConnectionOptions,
    env: &dyn Fn(&str) -> Option<String>,
    work: impl AsyncFnOnce(kube::Client) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    warnings(&ProxySettings::of(env)).for_each(|warning| remark(&mut io::stderr(), &warning));
    run(async || {
        let Connected { client, endpoint } = client(options, env).await?;
        work(client).await.map_err(|error| named(error, &endpoint))
    })
}

/// Runs requests to clusters.
pub(super) fn run<T>(work: impl AsyncFnOnce() -> Result<T, CommandError>) -> Result<T, CommandError> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ConnectError::Runtime)?;
    runtime.block_on(work())
}

/// Looks at the given kubeconfig, `$KUBECONFIG`, `~/.kube/config`, then the Pod. Uses proxies (spec 70 §8.1).
pub(super) async fn client(
    options: &ConnectionOptions,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Connected, ConnectError> {
    let proxies = ProxySettings::of(env);
    let (config, proxy, context) = match kubeconfig(options.kubeconfig.as_deref(), env)? {
        Some(mut kubeconfig) => {
            choose(&mut kubeconfig, options)?;
            let given = GivenProxy::take(&mut kubeconfig);
            let chosen = kubeconfig.current_context.clone().unwrap_or_default();
            let file = options.kubeconfig.clone().or_else(|| env("KUBECONFIG").filter(|list| !list.is_empty()));
            let file = file.unwrap_or_else(|| "~/.kube/config".to_owned());
            let mut contexts = kubeconfig.contexts.iter().map(|context| &context.name);
            if !contexts.clone().any(|name| *name == chosen) {
                let known = names(&mut contexts);
                return Err(match chosen.is_empty() {
                    true => ConnectError::NoCurrentContext { file, known },
                    false => {
                        ConnectError::Context { context: chosen, file, reason: format!("there is none — {known}") }
                    }
                });
            }
            let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
            let mut config = config.map_err(|error| ConnectError::Context {
                context: chosen.clone(),
                file: file.clone(),
                reason: cluster::kubeconfig::reason(&error),
            })?;
            let proxy = given.choose(&mut config, &proxies)?;
            (config, proxy, Some((chosen, file)))
        }
        None => {
            // The user does not mean the cluster of the Pod.
            let ConnectionOptions { context, cluster, user, .. } = options;
            for (what, name) in [("context", context), ("cluster", cluster), ("user", user)] {
                if let Some(name) = name.clone() {
                    return Err(ConnectError::NoKubeconfig { what, name });
                }
            }
            let looked = env("KUBECONFIG").filter(|list| !list.is_empty());
            let looked = looked.map_or_else(
                || "there is no kubeconfig".to_owned(),
                |list| format!("$KUBECONFIG names no file that exists ({})", without_credentials(&list)),
            );
            let config = Config::incluster().map_err(|error| ConnectError::Nowhere { looked, error })?;
            let proxy = proxies.choose(&config.cluster_url, None)?;
            (config, proxy, None)
        }
    };
    // A URL may hold credentials; scheme, host and port do not.
    let url = &config.cluster_url;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let server = format!("{}://{}{port}", url.scheme_str().unwrap_or("https"), url.host().unwrap_or_default());
    let endpoint = Endpoint { server, context };
    let plugin = config.auth_info.exec.clone();
    match cluster::client_through(proxy.as_ref(), config) {
        Ok(client) => Ok(Connected { client, endpoint }),
        Err(error) => Err(without_client(error, plugin.as_ref(), endpoint.into())),
    }
}

fn without_client(error: kube::Error, plugin: Option<&ExecConfig>, endpoint: Box<Endpoint>) -> ConnectError {
    match (error, plugin) {
        (kube::Error::Auth(AuthError::AuthExecStart(error)), Some(plugin)) => {
            let hint = plugin.install_hint.as_deref().map(str::trim).filter(|hint| !hint.is_empty());
            let hint = hint.map(|hint| format!(" (the kubeconfig says: {})", cut(hint))).unwrap_or_default();
            ConnectError::NoPlugin { endpoint, command: plugin.command.clone().unwrap_or_default(), error, hint }
        }
        (kube::Error::Auth(error), _) => {
            ConnectError::Client { endpoint, reason: cluster::kubeconfig::credentials_reason(&error) }
        }
        (error, _) => ConnectError::Client { endpoint, reason: error.to_string() },
    }
}

/// Makes the context that the flags describe the current one: the proxy of its cluster counts, too.
fn choose(kubeconfig: &mut Kubeconfig, options: &ConnectionOptions) -> Result<(), ConnectError> {
    let ConnectionOptions { context, cluster, user, .. } = options;
    if let Some(context) = context {
        kubeconfig.current_context = Some(context.clone());
    }
    if cluster.is_none() && user.is_none() {
        return Ok(());
    }
    known("cluster", cluster, kubeconfig.clusters.iter().map(|cluster| &cluster.name))?;
    known("user", user, kubeconfig.auth_infos.iter().map(|user| &user.name))?;
    let name = kubeconfig.current_context.clone().unwrap_or_default();
    if name.is_empty() {
        if cluster.is_none() {
            return Err(ConnectError::NoContext);
        }
        kubeconfig.current_context = Some(name.clone());
        kubeconfig.contexts.push(NamedContext {
            name: name.clone(),
            context: Some(KubeContext::default()),
            ..NamedContext::default()
        });
    }
    let named = kubeconfig.contexts.iter_mut().find(|context| context.name == name);
    if let Some(context) = named.and_then(|named| named.context.as_mut()) {
        context.cluster = cluster.clone().unwrap_or_else(|| context.cluster.clone());
        context.user = user.clone().or_else(|| context.user.clone());
    }
    Ok(())
}

/// Fails unless a kubeconfig has what a flag names. kube takes an unknown user for none.
fn known<'a>(
    what: &'static str,
    name: &Option<String>,
    all: impl Iterator<Item = &'a String> + Clone,
) -> Result<(), ConnectError> {
    let Some(name) = name else { return Ok(()) };
    if all.clone().any(|known| known == name) {
        return Ok(());
    }
    Err(ConnectError::Unknown { what, name: name.clone(), known: names(&mut all.clone()) })
}

fn names(all: &mut dyn Iterator<Item = &String>) -> String {
    let some: Vec<&str> = all.take(MOST_NAMES).map(String::as_str).collect();
    if some.is_empty() { "it has none".to_owned() } else { format!("it has {}", some.join(", ")) }
}

/// Adds a hint to an error: the cluster if it cannot be reached, or the command that installs a missing definition.
pub(super) fn named(error: CommandError, endpoint: &dyn fmt::Display) -> CommandError {
    if matches!(error, CommandError::Of { .. }) {
        return error;
    }
    let hint = match cause(&error) {
        Some(api) if is_unreachable(api) => format!("the cluster is {endpoint}"),
        Some(api) if api.is_not_served() && error.to_string().contains("ManagedResource") => {
            format!("{endpoint} may not serve ManagedResources; {DEFINITION} installs their definition")
        }
        Some(_) | None => return error,
    };
    CommandError::Of { error: Box::new(error), hint }
}

/// Whether a cluster is known not to serve ManagedResources.
pub(super) async fn lacks_managed_resources(cluster: &Cluster) -> bool {
    let kind = kinds::MANAGED_RESOURCE.group_version_kind();
    cluster.discovery().mapping(&kind).await.is_err_and(|error| error.is_no_match())
}

/// The remedy for a cluster without ManagedResources.
pub(super) fn not_served() -> String {
    format!("the cluster does not serve ManagedResources — install their definition: {DEFINITION}")
}

/// Whether the cluster did not answer, or does not know the user.
pub(super) fn is_unreachable(error: &ApiError) -> bool {
    let is_silent = matches!(error, ApiError::Transport { .. } | ApiError::Timeout | ApiError::NotSent);
    is_silent || matches!(error, ApiError::Discovery(_)) || error.is_unauthorized()
}

fn cause(error: &CommandError) -> Option<&ApiError> {
    use SurveyError::{Candidates, Holders, Watch};

    if let CommandError::Garbage(Candidates(_, error) | Holders(_, error) | Watch(_, error)) = error {
        return Some(error);
    }
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<ApiError>() {
            return Some(error);
        }
        next = error.source();
    }
    None
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.server)?;
        match &self.context {
            Some((context, file)) => write!(f, " (context {context:?} of {file})"),
            None => f.write_str(" (of this Pod)"),
        }
    }
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
        let read = cluster::kubeconfig_of_file(&path).map_err(|reason| ConnectError::File { path, reason })?;
        merged = Some(match merged {
            Some(before) => before.merge(read)?,
            None => read,
        });
    }
    Ok(merged)
}

/// Returns a cluster whose write fence is closed, so that nothing can be written.
pub(super) fn read_only(client: kube::Client, side: Side, clock: Clock, random: Random) -> Cluster {
    read_only_as(client, side.label(), clock, random)
}

/// As [`read_only`], under another name.
pub(super) fn read_only_as(client: kube::Client, label: ClusterLabel, clock: Clock, random: Random) -> Cluster {
    let fence = Fence::open();
    fence.shut("this command writes nothing");
    with_fence(client, label, (clock, random), fence)
}

/// Returns a cluster that can be written to.
pub(super) fn writable(client: kube::Client, side: Side, clock: Clock, random: Random) -> Cluster {
    with_fence(client, side.label(), (clock, random), Fence::open())
}

fn with_fence(client: kube::Client, label: ClusterLabel, (clock, random): (Clock, Random), fence: Fence) -> Cluster {
    let options = ClusterOptions { label, host: String::new(), qps: -1.0, burst: 0, namespaces: Vec::new() };
    Cluster::new(client, options, ClusterEnv { clock, random, fence, room: AnswerRoom::default() }, Rc::new(NoObserver))
}

#[cfg(test)]
mod tests;
