//! `check`: what a program with a configuration needs, and whether it is there. Writes nothing.
//! * here: both programs: their configuration and clusters
//! * `cluster`: what is asked of one cluster
//! * `certificate`: the serving certificate
//! * `finding`: one answer, and how the answers are printed

mod certificate;
mod cluster;
mod finding;

#[cfg(test)]
#[cfg(feature = "sim")]
mod tests;

use std::{fmt, path::Path, time::Duration};

use ::cluster::{
    Cluster, ClusterLabel,
    kubeconfig::{self, Environment, Origin},
};
use kit::{Clock, Random};
use process::{BuildInfo, ConnectError, Program as _, UserAgents, command_line::read_file, connection};

use self::{
    certificate::certificate,
    cluster::{Asked, Necessary, ask},
    finding::{Finding, Outcome, said},
};
use super::{CommandError, Said, connect};
use crate::{
    api::kinds,
    cli::{self, CheckOptions, ProgramCheckOptions, RunOptions},
    programs::{
        controller_manager::{self, ControllerManager},
        resource_manager::ResourceManager,
    },
    rights,
};

static MANAGED_RESOURCES: Necessary =
    Necessary { kind: kinds::MANAGED_RESOURCE, without: "it is not served: install its definition" };
static SHOOTS: Necessary = Necessary {
    kind: kinds::SHOOT,
    without: "it is not served: the cluster is no garden, or its gardener-apiserver is not registered",
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
        let [source_label, target_label] = ResourceManager::CLUSTERS else { return Ok(Said::default()) };
        let (source, target) = (config.source.kubeconfig_path(), config.target.kubeconfig_path());
        let origins: [Result<Origin, ConnectError>; 2] =
            match kubeconfig::resolve(source, target, &environment, false, &Path::exists) {
                Ok((source, target)) => [Ok(source), Ok(target)],
                Err(error) => [Err(error.into()), Err(error.into())],
            };
        let agent = agents::<ResourceManager>().requests;
        let mut findings = Vec::new();
        for ((label, necessary), origin) in
            [(source_label, Some(&MANAGED_RESOURCES)), (target_label, None)].into_iter().zip(origins)
        {
            match origin.and_then(|origin| reach(&origin, &environment, &agent)) {
                Ok((client, host)) => {
                    let cluster = &cluster_of(client, *label, limit);
                    findings.extend(ask(Asked { cluster, host: &host, needed: &needed, necessary, limit }).await);
                }
                Err(error) => findings.push(unusable(*label, &error)),
            }
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
        let [label] = ControllerManager::CLUSTERS else { return Ok(Said::default()) };
        let findings = match controller_manager::connect(&config, &run.environment, &agents::<ControllerManager>()) {
            Ok((link, _)) => {
                let (cluster, host) = (&cluster_of(link.client, *label, limit), &link.host);
                ask(Asked { cluster, host, needed: &needed, necessary: Some(&SHOOTS), limit }).await
            }
            Err(error) => vec![unusable(*label, &error)],
        };
        Ok(said(&findings, options.report.output.as_ref(), colours)?)
    })
}

/// Returns a client and the host of its API server. Fails if the kubeconfig, or the environment of the Pod, cannot be used.
fn reach(origin: &Origin, environment: &Environment, agent: &str) -> Result<(kube::Client, String), ConnectError> {
    let connection = connection(origin, &environment.proxies)?;
    Ok((connection.client(agent)?, connection.host()))
}

/// Nothing can be asked of the cluster. The checks of the other cluster and of the process go on.
fn unusable(label: ClusterLabel, error: &dyn fmt::Display) -> Finding {
    Finding::new("cluster", label.as_str(), "*", Outcome::Missing).because(error)
}

fn agents<P: process::Program>() -> UserAgents {
    UserAgents::new(P::NAME, &BuildInfo::of_this_binary())
}

fn cluster_of(client: kube::Client, label: ClusterLabel, limit: Duration) -> Cluster {
    connect::read_only_as(client, label, Clock::system(), Random::from_entropy()).limited(limit)
}
