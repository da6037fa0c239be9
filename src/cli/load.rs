//! From the command line to the configuration (spec 70 §1.1, §5).

use std::{io, path::Path};

use cluster::files;

use super::{RunOptions, UsageError, legacy};
use crate::api::config::{ConfigError, DecodeError, Draft, Loaded};

/// File that holds the namespace of the Pod that the process runs in.
pub const SERVICE_ACCOUNT_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

const MAX_BYTES: u64 = 2 << 20; // largest configuration file. It comes from a ConfigMap, whose limit is 1 MiB.

/// Why the process cannot start. The texts are those of spec 70 §1.1.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is neither a file nor a legacy flag.
    #[error("missing config file")]
    MissingConfig,
    /// The file cannot be read.
    #[error("error reading config file: {0}")]
    Read(io::Error),
    /// The file is not a component configuration, or file and flags together are invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A flag has an invalid value.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// No namespace of the lease was given, and the process runs outside of a cluster.
    #[error("unable to find leader election namespace: not running in-cluster, please specify LeaderElectionNamespace")]
    NoLeaderElectionNamespace,
    /// The file with the namespace of the Pod cannot be read.
    #[error("unable to find leader election namespace: error reading namespace file: {0}")]
    NamespaceFile(io::Error),
}

impl From<DecodeError> for StartError {
    fn from(error: DecodeError) -> Self {
        Self::Config(error.into())
    }
}

/// Reads a file. Fails with the error of the file system, or if the file is too large; the error begins with the path.
pub fn read_file(path: &str) -> io::Result<Vec<u8>> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("open {path}: {error}"));
    files::read(Path::new(path), MAX_BYTES).map_err(named)
}

/// Order: file, legacy flags, environment, defaults, extra namespaces, validation. Fails as spec 70 §1.1 says.
pub fn load(options: &RunOptions, read: &dyn Fn(&str) -> io::Result<Vec<u8>>) -> Result<Loaded, StartError> {
    let mut draft = match &options.config {
        Some(path) => Draft::decode(&read(path).map_err(StartError::Read)?)?,
        None if options.is_flag_mode() => flag_mode_defaults()?,
        None => return Err(StartError::MissingConfig),
    };
    for (flag, text) in &options.legacy {
        flag.apply(&mut draft, text)?;
    }
    csr_approver_namespace(options, &mut draft);
    environment(options, &mut draft);
    if options.is_flag_mode() {
        leader_election_namespace(&mut draft, read)?;
    }
    Ok(draft.finish(&options.extra_target_namespaces)?)
}

fn flag_mode_defaults() -> Result<Draft, UsageError> {
    let mut draft = Draft::default();
    for flag in legacy::FLAGS {
        flag.apply_default(&mut draft)?;
    }
    draft.file.webhooks.projected_token_mount.enabled = true;
    // Decision 8: the first generation deleted ServiceAccounts.
    draft.file.controllers.token_requestor.delete_service_accounts = true;
    // Spec 30 §2.1: the first generation knew no classes.
    draft.file.controllers.token_requestor.any_class = true;
    Ok(draft)
}

/// The flag of the CSR approver takes the namespace of the Machines from `--namespace`.
fn csr_approver_namespace(options: &RunOptions, draft: &mut Draft) {
    let approver_is_set = options.legacy("kubelet-csr-approver-max-concurrent-workers").is_some();
    let namespace = options.legacy("namespace").filter(|namespace| !namespace.is_empty());
    if let Some(namespace) = namespace.filter(|_| approver_is_set) {
        draft.file.controllers.csr_approver.machine_namespace = Some(namespace.to_owned());
    }
}

/// A flag beats `KUBECONFIG` and `TARGET_KUBECONFIG`, and these beat the file (spec 70 §5, end).
fn environment(options: &RunOptions, draft: &mut Draft) {
    let is_set = |flag| options.legacy(flag).is_some_and(|path| !path.is_empty());
    let environment = &options.environment;
    let fallback = environment.kubeconfig.as_ref().filter(|_| options.is_flag_mode());
    if let Some(path) = environment.kubeconfig.as_ref().filter(|_| !is_set("kubeconfig")) {
        draft.file.source.kubeconfig.clone_from(path);
    }
    if let Some(path) = environment.target_kubeconfig.as_ref().or(fallback).filter(|_| !is_set("target-kubeconfig")) {
        draft.file.target.kubeconfig.clone_from(path);
    }
}

fn leader_election_namespace(draft: &mut Draft, read: &dyn Fn(&str) -> io::Result<Vec<u8>>) -> Result<(), StartError> {
    let election = &mut draft.file.leader_election;
    if !election.resource_namespace.is_empty() || !election.leader_elect {
        return Ok(());
    }
    let namespace = read(SERVICE_ACCOUNT_NAMESPACE).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StartError::NoLeaderElectionNamespace,
        _ => StartError::NamespaceFile(error),
    })?;
    election.resource_namespace = String::from_utf8_lossy(&namespace).trim().to_owned();
    Ok(())
}
