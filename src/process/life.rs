//! A process on given clients: watches start at once, controllers run while it leads.

use std::rc::Rc;

use actix::{Actor as _, Addr};
use cluster::{AnswerRoom, Cluster, ClusterEnv, ClusterOptions, Fence, RequestObserver, Side};
use kit::{Env, Role};
use tokio::{sync::watch, task::JoinHandle};

use super::Vitals;
use crate::{
    actors::{
        controller_context::ControllerContext,
        leader::{Election, ElectionError, LeaderActor, LeaderSetup, Leadership, Timing, check_lock_type},
        root::{BootstrapError, Parts, Root},
    },
    api::config::{Config, Connection, LeaderElection},
    webhooks::{
        knowledge::{Caches, Knowledge},
        registry,
    },
};

pub(super) const LEADER: &str = "leader";

/// A client with the address of its cluster.
#[derive(Clone)]
pub struct Link {
    /// The client; only its service is used.
    pub client: kube::Client,
    /// `host:port` of the API server, for metrics.
    pub host: String,
    /// CA certificates of the API server (PEM); empty if unknown.
    pub ca: Rc<[u8]>,
}

/// Everything that a process needs.
pub struct ProcessParts {
    /// The source cluster.
    pub source: Link,
    /// The target cluster; `None` if it is the source.
    pub target: Option<Link>,
    /// The client of the leader election; `None`: that of the source.
    pub election: Option<kube::Client>,
    /// Our identity in the leader election; see [`identity`].
    pub identity: String,
    /// The configuration.
    pub config: Config,
    /// Clock, randomness, status registry, observers.
    pub env: Env,
    /// Observes requests.
    pub requests: Rc<dyn RequestObserver>,
    /// Filled in for probes and the dashboard.
    pub vitals: Vitals,
}

/// A running process. It must be stopped: dropping it leaves its tasks running.
#[must_use = "a process runs until it is stopped"]
pub struct Process {
    pub(super) env: Env,
    pub(super) root: Rc<Root>,
    pub(super) caches: Caches,
    pub(super) fence: Fence,
    pub(super) election: Option<Addr<LeaderActor>>,
    pub(super) conductor: JoinHandle<ProcessError>,
    pub(super) prober: JoinHandle<()>,
}

/// Why a process must end by itself. The texts are those of spec 70 §7.1, §12, §14.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Another process leads.
    #[error("leader election lost")]
    LeaderElectionLost,
    /// The cluster id cannot be determined.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    /// An indispensable task failed; the text says which.
    #[error("{0}")]
    Failed(String),
    /// A defect: the task that follows the election panicked.
    #[error("the start of the controllers panicked")]
    Panicked,
}

/// Returns `<host name>_<random uuid>` (spec 70 §12).
pub fn identity(host: &str, env: &Env) -> String {
    format!("{host}_{}", env.random.uuid())
}

impl Process {
    /// Starts the watches and the election, and returns at once, before any request. Controllers start when this
    /// process leads, or, without an election, when the stores of the source are filled.
    pub fn start(parts: ProcessParts) -> Result<Self, ElectionError> {
        let ProcessParts { source: link, target, election, identity, config, env, requests, vitals } = parts;
        let env = Env { sync_timeout: config.cache_sync_timeout, ..env };
        let config = Rc::new(config);
        let timing = config.leader_election.as_ref().map(timing).transpose()?;
        let fence = timing.as_ref().map_or_else(Fence::open, |timing| Fence::leased(timing.renew_deadline()));
        let cluster_env = ClusterEnv {
            clock: env.clock.clone(),
            random: env.random.clone(),
            fence: fence.clone(),
            room: AnswerRoom::default(),
        };
        let cluster =
            |link: &Link, options| Cluster::new(link.client.clone(), options, cluster_env.clone(), requests.clone());

        let options = source_options(&config, &link, target.is_none());
        let source = cluster(&link, options.clone());
        let target_cluster = match &target {
            Some(link) => cluster(link, options_of(Side::Target, &config.target, link)),
            None => source.as_side(Side::Target, config.target.namespaces.clone()),
        };
        let tree = Parts {
            source: source.clone(),
            target: target_cluster,
            same: target.is_none(),
            target_ca: target.as_ref().unwrap_or(&link).ca.clone(),
            config: config.clone(),
        };
        let root = Rc::new(Root::open(tree, &env));
        let caches = caches_of_webhooks(root.controller_context(), &config);
        root.watch();
        vitals.show(root.source_synced(), root.target_synced());
        let prober = env.fatal.spawn("the prober of the source cluster", vitals.clone().probe(source));

        let leadership = vitals.leadership_sender();
        let elected = config.leader_election.clone().zip(timing).map(|(settings, timing)| {
            let link = Link { client: election.unwrap_or_else(|| link.client.clone()), host: link.host, ca: link.ca };
            let now = env.clock.monotonic();
            let (namespace, name) = (settings.resource_namespace, settings.resource_name);
            let recorder = root.controller_context().source.events.for_component(identity.as_str());
            let setup = LeaderSetup {
                election: Election::new(identity, namespace.clone(), name.clone(), timing, now),
                namespace,
                name,
                cluster: cluster(&link, options),
                fence: fence.clone(),
                recorder,
                cell: env.status_registry.enter(LEADER, Role::Service),
                leadership: leadership.clone(),
                lifeline: env.fatal.indispensable("the leader election"),
            };
            LeaderActor::new(setup).start()
        });
        let conductor = actix::spawn(conduct(root.clone(), elected.is_some(), leadership));
        Ok(Self { env, root, caches, fence, election: elected, conductor, prober })
    }

    /// Returns what the webhooks know of the target cluster.
    pub fn knowledge(&self) -> Knowledge {
        self.caches.knowledge()
    }

    /// Waits until the process must end by itself. Call it again only if it was dropped before it returned.
    pub async fn ended(&mut self) -> ProcessError {
        tokio::select! {
            biased;
            ended = &mut self.conductor => ended.unwrap_or(ProcessError::Panicked),
            cause = self.env.fatal.ended() => ProcessError::Failed(cause),
        }
    }
}

/// Starts and stops the controllers with the election. Returns when the process must end.
async fn conduct(root: Rc<Root>, elected: bool, leadership: watch::Sender<Leadership>) -> ProcessError {
    let become_of = |wanted: Leadership| {
        let mut changes = leadership.subscribe();
        async move {
            if changes.wait_for(|now| *now == wanted).await.is_err() {
                std::future::pending::<()>().await; // cannot happen: the sender lives as long as this task
            }
        }
    };
    let work = async {
        if elected {
            become_of(Leadership::Leader).await
        } else {
            root.source_listed().await
        }
        match root.start_controllers().await {
            Ok(()) => std::future::pending().await,
            Err(error) => ProcessError::Bootstrap(error),
        }
    };
    tokio::select! {
        biased;
        () = become_of(Leadership::Lost) => ProcessError::LeaderElectionLost,
        error = work => error,
    }
}

fn timing(settings: &LeaderElection) -> Result<Timing, ElectionError> {
    check_lock_type(&settings.resource_lock)?;
    Timing::new(settings.lease_duration, settings.renew_deadline, settings.retry_period)
}

fn options_of(side: Side, connection: &Connection, link: &Link) -> ClusterOptions {
    let limit = connection.rate_limit;
    ClusterOptions {
        side,
        host: link.host.clone(),
        qps: limit.map_or(-1.0, |limit| limit.qps as f32),
        burst: limit.map_or(0, |limit| limit.burst),
        namespaces: connection.namespaces.clone(),
    }
}

/// The stores that enabled webhooks read, in every replica from the beginning (spec 50, "better" 2).
fn caches_of_webhooks(ctx: &ControllerContext, config: &Config) -> Caches {
    let ControllerContext { env, source, target, .. } = ctx;
    let reads = registry::reads(&registry::enabled(&config.webhooks));
    let selector = registry::node_selector(&config.webhooks);
    Caches::open(&source.watches, &target.watches, &reads, selector, &env.fatal)
}

/// One cluster in both roles gets the larger limits: each role alone must get what was configured for it.
fn source_options(config: &Config, link: &Link, same: bool) -> ClusterOptions {
    let source = options_of(Side::Source, &config.source, link);
    if !same {
        return source;
    }
    let target = options_of(Side::Target, &config.target, link);
    let unlimited = source.qps < 0.0 || target.qps < 0.0;
    let qps = if unlimited { -1.0 } else { source.qps.max(target.qps) };
    ClusterOptions { qps, burst: source.burst.max(target.burst), ..source }
}
