use std::{error::Error, future::Future, rc::Rc};

use cluster::ClusterLabel;
use futures::future::LocalBoxFuture;
use kit::Env;
use tokio::time::Instant;

use crate::{
    clusters::{Clusters, EventApi},
    controller_registration::ControllerRegistration,
    http::{descriptors::Descriptors, probes::Checks},
    life::Process,
    metrics::{Metrics, ProgramMetrics},
    settings::Settings,
    vitals::Vitals,
};

/// A program of this family: everything that the process must know of it.
pub trait Program: Sized + 'static {
    /// Its effective configuration.
    type Config: 'static;
    /// How its clusters are reached.
    type Links;
    /// What all its controllers get: its clusters, and what it reads before they start.
    type Context: 'static;
    /// What it watches besides its controllers, e.g. for webhooks; `()` if nothing.
    type Caches: 'static;
    /// What it serves besides probes and metrics; [`NoServices`] if nothing.
    type Services: Services<Self>;

    /// Name of the binary, in logs, Events and the user agent.
    const NAME: &'static str;
    /// The metrics that only this program has.
    const METRICS: ProgramMetrics;
    /// Its clusters, in the order in which [`Program::open`] opens them. The first holds the Lease.
    const CLUSTERS: &'static [ClusterLabel];
    /// What the probes check.
    const PROBES: Probes;
    /// The views of its dashboard, the first page first: `bundles` if it has objects with conditions, `actors`, `clusters`.
    const VIEWS: &'static [&'static str];
    /// The API of its controllers' Events.
    const EVENTS: EventApi;

    /// Returns its controllers, in the order in which they are set up and started.
    fn controllers() -> &'static [ControllerRegistration<Self::Config, Self::Context>];

    /// Returns what the process needs of a configuration.
    fn settings(config: &Self::Config) -> Settings;

    /// Opens its clusters. No request is sent yet.
    fn open(config: &Self::Config, links: Self::Links, env: &Env, clusters: &mut Clusters) -> Self::Context;

    /// Opens what it watches besides its controllers. No request is sent yet.
    fn open_caches(config: &Self::Config, context: &Self::Context, env: &Env) -> Self::Caches;

    /// Returns a task that compares the clusters with what the program and its configuration need: versions and rights. It
    /// logs what is wrong. It runs in each replica, once and beside everything else.
    fn check_clusters(config: &Self::Config, context: &Self::Context) -> LocalBoxFuture<'static, ()>;

    /// Does what must be done before the first reconcile of a leader. An error ends the process.
    fn bootstrap(config: &Self::Config, context: &Self::Context) -> impl Future<Output = Result<(), StartError>>;
}

/// What the probes check (spec 70 §6, 80 §13).
#[derive(Debug, Clone, Copy)]
pub struct Probes {
    /// The checks of the caches, in the order of [`Program::CLUSTERS`], e.g. `source-informer-sync`.
    pub informers: &'static [&'static str],
    /// The check of `/healthz` that asks the first cluster's API server; `None`: it is not asked.
    pub api_server: Option<&'static str>,
}

/// Servers of a program besides probes and metrics, e.g. for webhooks.
pub trait Services<P: Program>: Sized {
    /// Prepares them before anything else runs: binds ports, reads certificates. May add checks to `/readyz`.
    fn prepare(config: &Rc<P::Config>, parts: ServiceParts, readiness: &mut Checks) -> Result<Self, StartError>;

    /// Begins to serve. The process runs.
    fn start(&mut self, process: &Process<P>) -> Result<(), StartError>;

    /// Answers what is under way, until `deadline`, and ends.
    fn stop(self, deadline: Instant) -> impl Future<Output = ()>;
}

/// What [`Services`] are made of.
pub struct ServiceParts {
    /// Counts what they do.
    pub metrics: Metrics,
    /// Shows them.
    pub status_registry: kit::StatusRegistry,
    /// Shows figures of them.
    pub vitals: Vitals,
    /// Bound of the process's open files.
    pub descriptors: Descriptors,
}

/// Services or the leader cannot start; the text is the whole message.
pub type StartError = Box<dyn Error + Send + Sync>;

/// No services.
#[derive(Debug)]
pub struct NoServices;

impl<P: Program> Services<P> for NoServices {
    fn prepare(_: &Rc<P::Config>, _: ServiceParts, _: &mut Checks) -> Result<Self, StartError> {
        Ok(Self)
    }

    fn start(&mut self, _: &Process<P>) -> Result<(), StartError> {
        Ok(())
    }

    async fn stop(self, _: Instant) {}
}
