//! Clients for the commands: as a person's tools find their cluster.

use std::{io, path::Path, rc::Rc};

use cluster::{
    Cluster, ClusterEnv, ClusterOptions, ConnectionError, Fence, NoObserver, Side,
    kubeconfig::{self, Environment},
    user_agent,
};
use kit::{Clock, Random};

use crate::{cli::BuildInfo, process};

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("{0} — give a kubeconfig with --kubeconfig or $KUBECONFIG")]
    NoConfiguration(#[from] kubeconfig::NoConfiguration),
    #[error(transparent)]
    Process(#[from] process::ConnectError),
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error("cannot start: {0}")]
    Runtime(#[from] io::Error),
}

/// Runs what talks to a cluster.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, ConnectError> {
    // One provider for all TLS; an error would mean that there is one already.
    rustls::crypto::ring::default_provider().install_default().ok();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(work))
}

/// A client: from the given kubeconfig, `$KUBECONFIG` (one path), the Pod's environment, or `~/.kube/config`.
pub(super) fn client(given: Option<&str>, env: &dyn Fn(&str) -> Option<String>) -> Result<kube::Client, ConnectError> {
    let environment = Environment::read(env);
    let path = given.or(environment.kubeconfig.as_deref());
    let (origin, _) = kubeconfig::resolve(path, None, &environment, true, &Path::exists)?;
    let build = BuildInfo::of_this_binary();
    Ok(process::connection(&origin)?.client(&user_agent(&build.version, &build.git_commit, false))?)
}

/// A cluster that can only be read: its fence is shut.
pub(super) fn read_only(client: kube::Client, side: Side, clock: Clock, random: Random) -> Cluster {
    let options = ClusterOptions { side, host: String::new(), qps: -1.0, burst: 0, namespaces: Vec::new() };
    let fence = Fence::open();
    fence.shut("this command writes nothing");
    Cluster::new(client, options, ClusterEnv { clock, random, fence }, Rc::new(NoObserver))
}
