//! `check`: what a program with a configuration needs, and whether it is there. Writes nothing.
//! * here: both programs: their configuration, clusters and certificate
//! * `cluster`: what is asked of one cluster
//! * `finding`: one answer, and how the answers are printed

mod cluster;
mod finding;

use std::{path::Path, time::Duration};

use ::cluster::{Cluster, ClusterLabel, kubeconfig::Environment};
use jiff::Timestamp;
use kit::{Clock, Random};
use process::{BuildInfo, Program as _, UserAgents, command_line::read_file};

use self::{
    cluster::{Asked, ask},
    finding::{Finding, Outcome, said},
};
use super::{CommandError, Said, connect};
use crate::{
    api::{config::resource_manager, kinds},
    cli::{self, CheckOptions, ProgramCheckOptions, RunOptions},
    programs::{
        controller_manager::{self, ControllerManager},
        resource_manager::{self as programs, ResourceManager},
    },
    rights,
    webhooks::server::{SOON, expiration, read_certificate},
};

/// Checks gardener-resource-manager: both clusters, and the certificate of the webhook server.
pub(super) fn of_resource_manager(
    options: &CheckOptions,
    env: &dyn Fn(&str) -> Option<String>,
    colours: bool,
) -> Result<Said, CommandError> {
    let CheckOptions { program, extra_target_namespaces } = options;
    let run = RunOptions::of_file(&program.config, extra_target_namespaces, Environment::read(env));
    let loaded = cli::load(&run, &read_file).map_err(|error| CommandError::Usage(error.to_string()))?;
    let (config, environment) = (loaded.config, run.environment);
    let needed = rights::programs::of_resource_manager(&config);
    let limit = program.request_timeout.get();
    connect::run(async || {
        let links = programs::links_of(&config, &environment, &agents::<ResourceManager>())?;
        let source = links.source;
        let target = links.target.unwrap_or_else(|| source.clone());
        let mut findings = Vec::new();
        let [source_label, target_label] = ResourceManager::CLUSTERS else { return Ok(Said::default()) };
        for (label, link, kind) in [(source_label, source, Some(kinds::MANAGED_RESOURCE)), (target_label, target, None)]
        {
            let cluster = cluster_of(link.client, *label, limit);
            findings.extend(
                ask(Asked { cluster: &cluster, host: &link.host, needed: &needed, kind: kind.as_ref(), limit }).await,
            );
        }
        findings.push(certificate(&config, Clock::system_wall()));
        Ok(said(&findings, program.report.output.as_ref(), colours)?)
    })
}

/// Checks gardener-controller-manager: the garden cluster.
pub(super) fn of_controller_manager(
    options: &ProgramCheckOptions,
    env: &dyn Fn(&str) -> Option<String>,
    colours: bool,
) -> Result<Said, CommandError> {
    let run = cli::controller_manager::RunOptions::of_file(&options.config, Environment::read(env));
    let loaded = cli::controller_manager::load(&run, &read_file);
    let config = loaded.map_err(|error| CommandError::Usage(error.to_string()))?.config;
    let needed = rights::programs::of_controller_manager(&config);
    let limit = options.request_timeout.get();
    connect::run(async || {
        let (link, _) = controller_manager::connect(&config, &run.environment, &agents::<ControllerManager>())?;
        let [label] = ControllerManager::CLUSTERS else { return Ok(Said::default()) };
        let cluster = cluster_of(link.client, *label, limit);
        let findings = ask(Asked { cluster: &cluster, host: &link.host, needed: &needed, kind: None, limit }).await;
        Ok(said(&findings, options.report.output.as_ref(), colours)?)
    })
}

fn agents<P: process::Program>() -> UserAgents {
    UserAgents::new(P::NAME, &BuildInfo::of_this_binary())
}

fn cluster_of(client: kube::Client, label: ClusterLabel, limit: Duration) -> Cluster {
    connect::read_only_as(client, label, Clock::system(), Random::from_entropy()).limited(limit)
}

/// The program does not start without it.
fn certificate(config: &resource_manager::Config, now: Timestamp) -> Finding {
    let directory = config.server.webhooks.tls.cert_dir(&std::env::temp_dir());
    let (outcome, detail) = state_of_certificate(&directory, now);
    Finding { detail, ..Finding::new("certificate", "", directory.display().to_string(), outcome) }
}

fn state_of_certificate(directory: &Path, now: Timestamp) -> (Outcome, String) {
    let pair = match read_certificate(directory) {
        Ok(pair) => pair,
        Err(error) => return (Outcome::Missing, error.to_string()),
    };
    match expiration(&pair) {
        None => (Outcome::Note, "its end cannot be read".to_owned()),
        Some(end) if end <= now => (Outcome::Missing, format!("it has expired at {end}: issue a new one")),
        Some(end) if end.duration_since(now) < SOON => {
            (Outcome::Note, format!("it expires soon, at {end}: issue a new one"))
        }
        Some(end) => (Outcome::Good, format!("it expires at {end}")),
    }
}
