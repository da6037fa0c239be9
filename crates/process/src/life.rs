//! A process on given clients: watches start at once, controllers run while it leads.

use std::rc::Rc;

use actix::{Actor as _, Addr};
use cluster::{AnswerRoom, ClusterEnv, Fence, RequestObserver};
use kit::{Env, Role};
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    Clusters, Program, Root, StartError, Vitals,
    leader::{Election, ElectionError, LeaderActor, LeaderSetup, Leadership, Timing, check_lock_type},
    settings::LeaderElection,
};

pub(super) const LEADER: &str = "leader";

/// Everything that a process needs.
pub struct ProcessParts<P: Program> {
    /// How its clusters are reached.
    pub links: P::Links,
    /// The client of the leader election; `None`: that of the first cluster.
    pub election: Option<kube::Client>,
    /// The name of this host, in the leader election and in Events.
    pub host: String,
    /// The configuration.
    pub config: Rc<P::Config>,
    /// Clock, randomness, status registry, observers.
    pub env: Env,
    /// Observes requests.
    pub requests: Rc<dyn RequestObserver>,
    /// Filled in for probes and the dashboard.
    pub vitals: Vitals,
}

/// A running process. It must be stopped: dropping it leaves its tasks running.
#[must_use = "a process runs until it is stopped"]
pub struct Process<P: Program> {
    pub(super) env: Env,
    pub(super) root: Rc<Root<P>>,
    pub(super) fence: Fence,
    pub(super) election: Option<Addr<LeaderActor>>,
    pub(super) conductor: JoinHandle<ProcessError>,
    pub(super) prober: JoinHandle<()>,
    pub(super) versions: JoinHandle<()>,
    pub(super) clusters: JoinHandle<()>,
}

/// Why a process must end by itself. The texts are those of spec 70 §7.1, §12, §14.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Another process leads.
    #[error("leader election lost")]
    LeaderElectionLost,
    /// The leader cannot begin.
    #[error(transparent)]
    Bootstrap(#[from] StartError),
    /// An indispensable task failed; the text says which.
    #[error("{0}")]
    Failed(String),
    /// A defect: the task that follows the election panicked.
    #[error("the start of the controllers panicked")]
    Panicked,
}

impl<P: Program> Process<P> {
    /// Starts the watches and the election, and returns at once, before any request. Controllers start when this
    /// process leads, or, without an election, when the stores of the first cluster are filled.
    pub fn start(parts: ProcessParts<P>) -> Result<Self, ElectionError> {
        let ProcessParts { links, election, host, config, env, requests, vitals } = parts;
        let identity = format!("{host}_{}", env.random.uuid()); // spec 70 §12
        let settings = P::settings(&config);
        let env = Env { sync_timeout: settings.cache_sync_timeout, ..env };
        let timing = settings.leader_election.as_ref().map(timing).transpose()?;
        let fence = timing.as_ref().map_or_else(Fence::open, |timing| Fence::leased(timing.renew_deadline()));
        let cluster_env = ClusterEnv {
            clock: env.clock.clone(),
            random: env.random.clone(),
            fence: fence.clone(),
            room: AnswerRoom::default(),
        };
        let clusters = Clusters::new(&env, cluster_env, P::NAME, requests).with_events(P::EVENTS, &host);
        let root = Rc::new(Root::<P>::open(config, links, &env, clusters));
        root.watch();
        vitals.show(root.clusters().synced());
        vitals.show_clusters(root.clusters().views());
        let versions = vitals.clone().read_versions(root.clusters().apart_by_index());
        let versions = env.fatal.spawn("the reader of the API servers' versions".to_owned(), versions);
        let clusters = env.fatal.spawn("the check of the clusters", root.check_clusters());
        let first = root.clusters().first();
        let prober = vitals.clone().probe(first.cluster.clone());
        let prober =
            env.fatal.spawn(format!("the prober of the {} cluster", first.cluster.options().label.as_str()), prober);

        let leadership = vitals.leadership_sender();
        let elected = settings.leader_election.zip(timing).map(|(settings, timing)| {
            let now = env.clock.monotonic();
            let (namespace, name) = (settings.resource_namespace, settings.resource_name);
            // The right that deployers grant for these Events is the one for core/v1 (spec 80 §18).
            let recorder = first.events.in_core_v1().for_component(identity.as_str());
            let setup = LeaderSetup {
                election: Election::new(identity, namespace.clone(), name.clone(), timing, now),
                namespace,
                name,
                cluster: root.clusters().for_election(election),
                fence: fence.clone(),
                recorder,
                cell: env.status_registry.enter(LEADER, Role::Service),
                leadership: leadership.clone(),
                holder: vitals.holder_sender(),
                lifeline: env.fatal.indispensable("the leader election"),
            };
            LeaderActor::new(setup).start()
        });
        let conductor = actix::spawn(conduct(root.clone(), elected.is_some(), leadership));
        Ok(Self { env, root, fence, election: elected, conductor, prober, versions, clusters })
    }

    /// What all controllers get.
    pub fn context(&self) -> &P::Context {
        self.root.context()
    }

    /// What the program watches besides its controllers.
    pub fn caches(&self) -> &P::Caches {
        self.root.caches()
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
async fn conduct<P: Program>(root: Rc<Root<P>>, elected: bool, leadership: watch::Sender<Leadership>) -> ProcessError {
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
            root.listed().await
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
    Timing::new(settings.lease_duration.get(), settings.renew_deadline.get(), settings.retry_period.get())
}
