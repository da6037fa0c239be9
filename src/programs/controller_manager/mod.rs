//! gardener-controller-manager: one cluster, the garden, and its controllers (spec 80).
//! * `version`: the check of the garden cluster's version; [`metrics`]: the reference of the metrics

pub mod metrics;
mod version;

use std::path::Path;

use cluster::{
    ClusterLabel,
    kubeconfig::{self, ContextOfFile, Environment},
};
use futures::future::LocalBoxFuture;
use kit::Env;
use process::{
    ClusterParts, Clusters, ConnectError, EventApi, NoServices, Probes, Program, Start, StartError, UserAgents,
    command_line::{self, read_file},
    config::Warning,
    connection,
    metrics::ProgramMetrics,
    refuse,
    settings::Settings,
    show_connection, warn_of_ignored_proxies,
};

use crate::{
    actors::controller_manager::{
        context::{GardenContext, Registration},
        controllers::CONTROLLERS,
        figures::FIGURES,
    },
    api::config::controller_manager::Config,
    cli::{
        controller_manager::{self as cli, RunOptions},
        printable,
    },
    rights,
};

const GARDEN: ClusterLabel = ClusterLabel::kinds_may_come_later("garden");

/// gardener-controller-manager.
#[derive(Debug)]
pub struct ControllerManager;

/// How the garden cluster is reached.
#[derive(Clone)]
pub struct GardenLink {
    /// The client; only its service is used.
    pub client: kube::Client,
    /// `host:port` of the API server, for metrics and the log.
    pub host: String,
    /// The context of a kubeconfig that the client comes from, for the log; `None` in a Pod.
    pub context: Option<ContextOfFile>,
}

impl Program for ControllerManager {
    type Config = Config;
    type Links = GardenLink;
    type Context = GardenContext;
    type Caches = ();
    type Services = NoServices;

    const NAME: &'static str = cli::PROGRAM;
    const METRICS: ProgramMetrics = ProgramMetrics { prefix: "gardener_controller_manager", figures: FIGURES };
    const CLUSTERS: &'static [ClusterLabel] = &[GARDEN];
    const PROBES: Probes = Probes { informers: &["informer-sync"], api_server: None };
    const VIEWS: &'static [&'static str] = &["actors", "clusters"];
    const EVENTS: EventApi = EventApi::EventsV1;

    fn controllers() -> &'static [Registration] {
        CONTROLLERS
    }

    fn settings(config: &Config) -> Settings {
        Settings {
            leader_election: config.leader_election.on().cloned(),
            health_probes: Some(config.server.health_probes.address()),
            metrics: Some(config.server.metrics.address()),
            debugging: config.debugging,
            logging: config.logging(),
            cache_sync_timeout: config.controllers.cache_sync_timeout.get(),
            hash: config.hash(),
            effective: config.to_log(),
        }
    }

    fn open(config: &Config, link: GardenLink, env: &Env, clusters: &mut Clusters) -> GardenContext {
        let GardenLink { client, host, context } = link;
        let rate_limit = config.garden_client_connection.rate_limit();
        let garden =
            clusters.open(ClusterParts { label: GARDEN, client, host, context, rate_limit, namespaces: Vec::new() });
        GardenContext::new(env.clone(), garden)
    }

    fn open_caches(_: &Config, _: &GardenContext, _: &Env) {}

    fn check_clusters(config: &Config, context: &GardenContext) -> LocalBoxFuture<'static, ()> {
        let needed = rights::programs::of_controller_manager(config);
        let cluster = context.garden.cluster.clone();
        Box::pin(async move { rights::at_start::check(&cluster, &needed).await })
    }

    async fn bootstrap(_: &Config, context: &GardenContext) -> Result<(), StartError> {
        Ok(version::check(&context.garden.cluster).await?)
    }
}

/// Runs the controllers until the end; returns the exit code (spec 80 §17).
pub fn run(options: &RunOptions) -> i32 {
    let loaded = match cli::load(options, &read_file) {
        Ok(loaded) => loaded,
        Err(error) => return refuse(&printable(&error), &cli::usage()),
    };
    let (configuration, file) = (loaded.config.to_log(), options.shared.config.clone());
    let (environment, warnings) = (options.environment.clone(), loaded.warnings);
    process::run(Start::<ControllerManager> {
        options: options.shared.clone(),
        flags: options.flag_lines(),
        configuration,
        usage: cli::usage(),
        config: loaded.config,
        announce: Box::new(move |config| announce(config, &warnings, file.as_deref())),
        connect: Box::new(move |config, agents| {
            tracing::info!("Getting rest config");
            connect(config, &environment, agents)
        }),
    })
}

/// Prints the effective configuration and warnings about it; returns the exit code.
pub fn print_config(options: &RunOptions) -> i32 {
    match cli::load(options, &read_file) {
        Ok(loaded) => {
            command_line::print_config(&loaded.config.to_yaml(), &loaded.warnings, options.shared.config.as_deref())
        }
        Err(error) => refuse(&printable(&error), &cli::usage()),
    }
}

/// Logs the feature gates that are set, and what is remarkable about the configuration (spec 80 §6, §7).
fn announce(config: &Config, warnings: &[Warning], file: Option<&str>) {
    let gates = config.feature_gates.explicit();
    let gates: Vec<_> = gates.iter().map(|(name, value)| format!("{name}={value}")).collect();
    tracing::info!(feature_gates = gates.join(","), "Feature Gates");
    warnings.iter().for_each(|warning| warning.log(file));
}

/// Fails if the cluster cannot be located, or if its kubeconfig is unreadable, unsupported or has an invalid `proxy-url`.
pub(crate) fn connect(
    config: &Config,
    environment: &Environment,
    agents: &UserAgents,
) -> Result<(GardenLink, kube::Client), ConnectError> {
    let path = Some(config.garden_client_connection.kubeconfig.as_str()).filter(|path| !path.is_empty());
    let (origin, _) = kubeconfig::resolve(path, None, environment, false, &Path::exists)?;
    warn_of_ignored_proxies(&environment.proxies);
    let garden = connection(&origin, &environment.proxies)?;
    show_connection(GARDEN.as_str(), &garden);
    let (client, context) = (garden.client(&agents.requests)?, garden.context().cloned());
    let link = GardenLink { client, host: garden.host(), context };
    Ok((link, garden.client(&agents.election)?))
}
