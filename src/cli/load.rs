//! From the command line to the configuration (spec 70 §1.1, §5).

use std::io;

use process::command_line::{LoadError, read_config};

use super::{RunOptions, UsageError, legacy};
use crate::api::config::resource_manager::{ConfigError, Draft, Loaded, SCHEMA};

/// File that holds the namespace of the Pod that the process runs in.
pub const SERVICE_ACCOUNT_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Why the process cannot start. The texts are those of spec 70 §1.1.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no configuration, or file and flags together are invalid.
    #[error(transparent)]
    Load(#[from] LoadError),
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

/// Order: file, legacy flags, environment, defaults, extra namespaces, validation. Fails as spec 70 §1.1 says.
pub fn load(options: &RunOptions, read: &dyn Fn(&str) -> io::Result<Vec<u8>>) -> Result<Loaded, StartError> {
    let bytes = if options.is_flag_mode() { None } else { Some(read_config(&options.shared, read)?) };
    let wrong = |error| match &bytes {
        Some(bytes) => wrong_file(options, bytes, error),
        None => LoadError::Flags(error),
    };
    let mut draft = match &bytes {
        None => flag_mode_defaults()?,
        Some(bytes) => Draft::decode(bytes).map_err(wrong)?,
    };
    for flag in legacy::FLAGS {
        if let Some(text) = options.legacy(flag.name) {
            flag.apply(&mut draft, text)?;
        }
    }
    csr_approver_namespace(options, &mut draft);
    environment(options, &mut draft);
    if options.is_flag_mode() {
        leader_election_namespace(&mut draft, read)?;
    }
    let mut loaded = draft.finish(&options.extra_target_namespaces).map_err(wrong)?;
    SCHEMA.locate(&mut loaded.warnings, bytes.as_deref().unwrap_or_default());
    Ok(loaded)
}

/// A flag may have set the value that is wrong: then a line of the file would mislead.
fn wrong_file(options: &RunOptions, bytes: &[u8], error: ConfigError) -> LoadError {
    let file = options.shared.config.as_deref().unwrap_or_default();
    let place = match &error {
        ConfigError::Invalid(_) if !options.legacy.is_empty() => format!("{file} and flags"),
        _ => SCHEMA.place(&error, file, bytes),
    };
    LoadError::Config { error, place }
}

fn flag_mode_defaults() -> Result<Draft, UsageError> {
    let mut draft = Draft::default();
    for flag in legacy::FLAGS {
        flag.apply_default(&mut draft)?;
    }
    draft.config.webhooks.projected_token_mount.enabled = true;
    // Decision 8: the first generation deleted ServiceAccounts.
    draft.config.controllers.token_requestor.settings.delete_service_accounts = true;
    // Spec 30 §2.1: the first generation knew no classes.
    draft.config.controllers.token_requestor.settings.any_class = true;
    Ok(draft)
}

/// The flag of the CSR approver takes the namespace of the Machines from `--namespace`.
fn csr_approver_namespace(options: &RunOptions, draft: &mut Draft) {
    let approver_is_set = options.legacy("kubelet-csr-approver-max-concurrent-workers").is_some();
    let namespace = options.legacy("namespace").filter(|namespace| !namespace.is_empty());
    if let Some(namespace) = namespace.filter(|_| approver_is_set) {
        draft.config.controllers.csr_approver.settings.machine_namespace = Some(namespace.to_owned());
    }
}

/// A flag beats `KUBECONFIG` and `TARGET_KUBECONFIG`, and these beat the file (spec 70 §5, end).
fn environment(options: &RunOptions, draft: &mut Draft) {
    let is_set = |flag| options.legacy(flag).is_some_and(|path| !path.is_empty());
    let environment = &options.environment;
    let fallback = environment.kubeconfig.as_ref().filter(|_| options.is_flag_mode());
    if let Some(path) = environment.kubeconfig.as_ref().filter(|_| !is_set("kubeconfig")) {
        draft.config.source.kubeconfig.clone_from(path);
    }
    if let Some(path) = environment.target_kubeconfig.as_ref().or(fallback).filter(|_| !is_set("target-kubeconfig")) {
        draft.config.target.kubeconfig.clone_from(path);
    }
}

fn leader_election_namespace(draft: &mut Draft, read: &dyn Fn(&str) -> io::Result<Vec<u8>>) -> Result<(), StartError> {
    let election = &mut draft.config.leader_election;
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
