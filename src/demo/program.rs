//! The program of the demonstration: its process and servers, as the production process starts them.

use std::{cell::Cell, net::SocketAddr, rc::Rc, time::Duration};

use cluster::{ClusterLabel, RequestObserver};
use http::Method;
use kit::{ActorState, Clock, Cpu, Env, Fatal, Random, StatusRegistry};
use process::{
    Process, ProcessParts, Program as _, ServiceParts, Services as _, StartError, Vitals,
    dashboard::server::{ServeError, ServerHandles},
    http::{descriptors::Descriptors, probes::ProbeQuery},
    leader::ElectionError,
    metrics::Metrics,
};
use tokio::time::Instant;

use crate::{
    api::config::resource_manager::Config,
    programs::resource_manager::{Link, Links, ResourceManager, Webhooks},
};

const CPU_JOBS: usize = 2;
const LAST_REVIEWS: Duration = Duration::from_secs(1);

/// The program's name, and its user in the cluster.
pub(super) const PROGRAM: &str = ResourceManager::NAME;

pub(super) struct DemoProgram {
    process: Process<ResourceManager>,
    servers: ServerHandles,
    webhooks: Webhooks,
    status_registry: StatusRegistry,
    metrics: Metrics,
    vitals: Vitals,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramError {
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Webhooks(#[from] StartError),
    #[error(transparent)]
    Election(#[from] ElectionError),
}

/// Panics once if `armed`. Only reconciles send updates, so the panic is that of a reconcile.
struct Saboteur {
    production: Metrics,
    armed: Rc<Cell<bool>>,
}

impl DemoProgram {
    /// Starts it for the cluster of `client`. A reconcile panics when `sabotage` is set.
    pub(super) fn start(
        config: &Config,
        version: &str,
        client: kube::Client,
        sabotage: Rc<Cell<bool>>,
    ) -> Result<Self, ProgramError> {
        let (status_registry, vitals) = (StatusRegistry::default(), Vitals::new::<ResourceManager>());
        let metrics =
            Metrics::new(ResourceManager::METRICS, ResourceManager::CLUSTERS, version, status_registry.clone());
        let config = Rc::new(config.clone());
        let mut readiness = vitals.readiness();
        let parts = ServiceParts {
            metrics: metrics.clone(),
            status_registry: status_registry.clone(),
            vitals: vitals.clone(),
            descriptors: Descriptors::default(),
        };
        let mut webhooks = Webhooks::prepare(&config, parts, &mut readiness)?;
        let servers = process::serve_http::<ResourceManager>(
            version,
            &ResourceManager::settings(&config),
            "demonstration",
            &vitals,
            readiness,
            &metrics,
            &status_registry,
        )?;
        let env = Env {
            clock: Clock::system(),
            random: Random::from_entropy(),
            status_registry: status_registry.clone(),
            cpu: Cpu::pool(CPU_JOBS),
            observers: Rc::new(metrics.clone()),
            fatal: Fatal::default(),
            sync_timeout: config.controllers.cache_sync_timeout.get(),
        };
        let process = Process::start(ProcessParts {
            links: Links {
                source: Link { client, host: "in-memory".to_owned(), context: None, ca: Rc::default() },
                target: None,
            },
            election: None,
            host: "demo".to_owned(),
            config,
            env,
            requests: Rc::new(Saboteur { production: metrics.clone(), armed: sabotage }),
            vitals: vitals.clone(),
        })?;
        webhooks.start(&process)?;
        Ok(Self { process, servers, webhooks, status_registry, metrics, vitals })
    }

    pub(super) async fn stop(self, patience: Duration) {
        self.process.stop(patience).await;
        self.webhooks.stop(Instant::now() + LAST_REVIEWS).await;
        self.servers.stop().await;
    }

    pub(super) fn readiness(&self) -> Result<(), String> {
        let answer = self.vitals.readiness().aggregate(&ProbeQuery { local: true, ..ProbeQuery::default() });
        if answer.status == 200 { Ok(()) } else { Err(answer.body) }
    }

    pub(super) fn actors(&self) -> Vec<ActorState> {
        self.status_registry.snapshot()
    }

    pub(super) fn render_metrics(&self) -> String {
        self.metrics.render()
    }

    pub(super) fn metrics_address(&self) -> Option<SocketAddr> {
        self.servers.metrics_address()
    }

    pub(super) fn webhook_address(&self) -> Option<SocketAddr> {
        self.webhooks.address()
    }

    /// The ports of metrics, probes and webhooks.
    pub(super) fn ports(&self) -> [u16; 3] {
        [self.servers.metrics_address(), self.servers.probes_address(), self.webhooks.address()]
            .map(|address| address.map_or(0, |address| address.port()))
    }
}

impl RequestObserver for Saboteur {
    fn finished(&self, method: &str, host: &str, code: Option<u16>) {
        self.production.finished(method, host, code);
        if method == Method::PUT.as_str() && self.armed.take() {
            panic!("thrown by the demonstration");
        }
    }

    fn request_scheduler(&self, cluster: ClusterLabel, high: usize, low: usize, writes_in_flight: usize) {
        self.production.request_scheduler(cluster, high, low, writes_in_flight);
    }

    fn event_dropped(&self) {
        self.production.event_dropped();
    }
}
