//! gardener-resource-manager: two clusters, its controllers, and webhooks.
//! * `announce`: what is logged at the start; `connect`: finds the clusters; `cluster_id`: their identity
//! * `webhooks`: the webhook server as a service of the process

mod announce;
mod cluster_id;
mod connect;
pub mod metrics;
mod webhooks;

#[cfg(feature = "sim")]
#[cfg(test)]
mod tests;

use std::rc::Rc;

use cluster::{ClusterLabel, kubeconfig::ContextOfFile};
use futures::future::{LocalBoxFuture, join};
use kit::Env;
use process::{
    ClusterParts, Clusters, EventApi, Probes, Program, Start, StartError,
    command_line::{self, read_file},
    metrics::ProgramMetrics,
    refuse,
    settings::{RateLimit, Settings},
};

pub use self::{
    cluster_id::ClusterIdError,
    connect::{Connections, connections},
    webhooks::Webhooks,
};
use crate::{
    actors::resource_manager::{
        controller_context::{ControllerContext, Registration},
        controllers::CONTROLLERS,
        figures::FIGURES,
    },
    api::{
        config::resource_manager::{Config, Connection},
        resources::side::Side,
    },
    cli::{self, Cli, RunOptions, printable},
    rights,
    webhooks::{knowledge::Caches, registry},
};

const SOURCE: ClusterLabel = Side::Source.label();
const TARGET: ClusterLabel = Side::Target.label();

/// gardener-resource-manager.
#[derive(Debug)]
pub struct ResourceManager;

/// How both clusters are reached.
#[derive(Clone)]
pub struct Links {
    /// The source cluster.
    pub source: Link,
    /// The target cluster; `None` if it is the source.
    pub target: Option<Link>,
}

/// A client with the address of its cluster.
#[derive(Clone)]
pub struct Link {
    /// The client; only its service is used.
    pub client: kube::Client,
    /// `host:port` of the API server, for metrics and the log.
    pub host: String,
    /// The context of a kubeconfig that the client comes from, for the log; `None` in a Pod.
    pub context: Option<ContextOfFile>,
    /// CA certificates of the API server (PEM); empty if unknown.
    pub ca: Rc<[u8]>,
}

impl Program for ResourceManager {
    type Config = Config;
    type Links = Links;
    type Context = ControllerContext;
    type Caches = Caches;
    type Services = Webhooks;

    const NAME: &'static str = "gardener-resource-manager";
    const METRICS: ProgramMetrics = ProgramMetrics { prefix: "gardener_resource_manager", figures: FIGURES };
    const CLUSTERS: &'static [ClusterLabel] = &[SOURCE, TARGET];
    const PROBES: Probes =
        Probes { informers: &["source-informer-sync", "target-informer-sync"], api_server: Some("apiserver-healthz") };
    const VIEWS: &'static [&'static str] = &["bundles", "actors", "clusters"];
    const EVENTS: EventApi = EventApi::CoreV1;

    fn controllers() -> &'static [Registration] {
        CONTROLLERS
    }

    fn settings(config: &Config) -> Settings {
        Settings {
            leader_election: config.leader_election.on().cloned(),
            health_probes: config.server.health_probes(),
            metrics: config.server.metrics(),
            debugging: config.debugging,
            logging: config.logging(),
            cache_sync_timeout: config.controllers.cache_sync_timeout.get(),
            hash: config.hash(),
            effective: config.to_log(),
        }
    }

    fn open(config: &Config, links: Links, env: &Env, clusters: &mut Clusters) -> ControllerContext {
        let Links { source, target } = links;
        let target_ca = target.as_ref().unwrap_or(&source).ca.clone();
        let source_limit = if target.is_some() { config.source.rate_limit() } else { larger_limit(config) };
        let source = clusters.open(parts(SOURCE, source, &config.source, source_limit));
        let target = match target {
            Some(link) => clusters.open(parts(TARGET, link, &config.target, config.target.rate_limit())),
            None => clusters.share(&source, TARGET, config.target.namespaces.clone()),
        };
        ControllerContext { env: env.clone(), source, target, target_ca, cluster_id: Rc::default() }
    }

    /// The stores that enabled webhooks read, in every replica from the beginning (spec 50, "better" 2).
    fn open_caches(config: &Config, context: &ControllerContext, env: &Env) -> Caches {
        let reads = registry::reads(&registry::enabled(&config.webhooks));
        let selector = registry::node_selector(&config.webhooks);
        Caches::open(&context.source.watches, &context.target.watches, &reads, selector, &env.fatal)
    }

    fn check_clusters(config: &Config, context: &ControllerContext) -> LocalBoxFuture<'static, ()> {
        let needed = rights::programs::of_resource_manager(config);
        let (source, target) = (context.source.cluster.clone(), context.target.cluster.clone());
        Box::pin(async move {
            let of_target = async {
                if target.shares_connection(&source) {
                    rights::at_start::check_rights(&target, &needed).await;
                } else {
                    rights::at_start::check(&target, &needed).await;
                }
            };
            join(rights::at_start::check(&source, &needed), of_target).await;
        })
    }

    async fn bootstrap(config: &Config, context: &ControllerContext) -> Result<(), StartError> {
        Ok(cluster_id::determine(config, context).await?)
    }
}

/// Runs controllers and webhooks until the end; returns the exit code (spec 70 §13).
pub fn run(options: &RunOptions) -> i32 {
    let loaded = match cli::load(options, &read_file) {
        Ok(loaded) => loaded,
        Err(error) => return refuse(&printable(&error), &Cli::usage()),
    };
    let (environment, is_flag_mode) = (options.environment.clone(), options.is_flag_mode());
    let (configuration, file) = (loaded.config.to_log(), options.shared.config.clone());
    let warnings = loaded.warnings;
    process::run(Start::<ResourceManager> {
        options: options.shared.clone(),
        flags: options.flag_lines(),
        configuration,
        usage: Cli::usage(),
        config: loaded.config,
        announce: Box::new(move |config| announce::warn(config, &warnings, file.as_deref())),
        connect: Box::new(move |config, agents| {
            tracing::info!("Getting rest configs");
            connect::links(&connections(config, &environment, is_flag_mode)?, agents)
        }),
    })
}

/// Prints the effective configuration and warnings about it; returns the exit code.
pub fn print_config(options: &RunOptions) -> i32 {
    match cli::load(options, &read_file) {
        Ok(loaded) => {
            command_line::print_config(&loaded.config.to_yaml(), &loaded.warnings, options.shared.config.as_deref())
        }
        Err(error) => refuse(&printable(&error), &Cli::usage()),
    }
}

fn parts(label: ClusterLabel, link: Link, connection: &Connection, rate_limit: Option<RateLimit>) -> ClusterParts {
    let namespaces = connection.namespaces.clone();
    let Link { client, host, context, .. } = link;
    ClusterParts { label, client, host, context, rate_limit, namespaces }
}

/// One cluster in both roles gets the larger limits: each role alone must get what was configured for it.
fn larger_limit(config: &Config) -> Option<RateLimit> {
    let (source, target) = (config.source.rate_limit()?, config.target.rate_limit()?);
    Some(RateLimit { qps: source.qps.max(target.qps), burst: source.burst.max(target.burst) })
}
