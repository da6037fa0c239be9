//! Two replicas of the program, each a whole process with a user of its own. A process may end by itself: it crashes,
//! loses its Lease, or cannot begin because a fault made the API unreadable. It starts again after a pause.

use std::{rc::Rc, time::Duration};

use cluster::NoObserver;
use futures::FutureExt as _;
use gardener_resource_manager::programs::controller_manager::{ControllerManager, GardenLink};
use kit::{Activity, Env, Fatal, StatusRegistry, testing};
use process::{Process, ProcessError, ProcessParts, Program as _, Vitals, metrics::Metrics};
use sim::ClientOptions;
use tokio::time::Instant;

use crate::controller_manager::garden::Garden;

pub(super) const USERS: [&str; 2] = ["gcm-0", "gcm-1"];

/// One replica.
pub(super) struct Replica {
    pub(super) user: &'static str,
    running: Option<Running>,
    /// When it starts again.
    again: Instant,
}

struct Running {
    process: Process<ControllerManager>,
    life: sim::Process,
    metrics: Metrics,
    status_registry: StatusRegistry,
}

impl Replica {
    pub(super) fn new(user: &'static str) -> Self {
        Self { user, running: None, again: Instant::now() }
    }

    pub(super) fn start(&mut self, garden: &Garden) {
        let status_registry = StatusRegistry::default();
        let metrics =
            Metrics::new(ControllerManager::METRICS, ControllerManager::CLUSTERS, "v1", status_registry.clone());
        let life = sim::Process::new();
        let client = garden.sim.client_of(ClientOptions {
            user: self.user.into(),
            groups: vec!["system:masters".into()],
            user_agent: "gardener-controller-manager/test".into(),
            process: life.clone(),
        });
        let mut config = garden.config.borrow().clone();
        config.garden_client_connection.qps = -1.0; // no bucket delays requests
        let env = Env {
            status_registry: status_registry.clone(),
            fatal: Fatal::default(),
            observers: Rc::new(metrics.clone()),
            ..garden.env().clone()
        };
        let process = Process::start(ProcessParts {
            links: GardenLink { client, host: "simulator".into(), context: None },
            election: None,
            host: self.user.to_owned(),
            config: Rc::new(config),
            env,
            requests: Rc::new(NoObserver),
            vitals: Vitals::new::<ControllerManager>(),
        });
        let process = process.expect("the configuration is valid");
        self.running = Some(Running { process, life, metrics, status_registry });
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Kills it: none of its requests is answered any more, and its state is lost.
    pub(super) async fn crash(&mut self, pause: Duration) {
        if let Some(running) = &self.running {
            running.life.crash();
        }
        self.stop(Duration::ZERO, pause).await;
    }

    /// Stops it, and starts it again after a pause.
    pub(super) async fn stop(&mut self, patience: Duration, pause: Duration) {
        self.again = Instant::now() + pause;
        let Some(running) = self.running.take() else { return };
        running.process.stop(patience).await;
        testing::settle().await;
        let metrics = running.metrics.render();
        let panics = panics(&metrics);
        assert!(panics.is_empty(), "reconciles of {} panicked: {panics:?}", self.user);
        let left = running.status_registry.snapshot().into_iter();
        let left: Vec<_> = left.filter(|actor| actor.activity != Activity::Stopped).map(|actor| actor.path).collect();
        assert!(left.is_empty(), "actors of {} were left running: {left:?}", self.user);
    }

    /// Stops a process that must end, and starts one whose pause is over. Returns what happened.
    pub(super) async fn revive(&mut self, garden: &Garden, pause: Duration) -> Option<String> {
        let Some(running) = &mut self.running else {
            if Instant::now() < self.again {
                return None;
            }
            self.start(garden);
            return Some(format!("{} starts", self.user));
        };
        if running.life.is_crashed() {
            self.crash(pause).await;
            return Some(format!("{} crashed", self.user));
        }
        match running.process.ended().now_or_never()? {
            cause @ (ProcessError::LeaderElectionLost | ProcessError::Bootstrap(_)) => {
                self.crash(pause).await;
                Some(format!("{} ended: {cause}", self.user))
            }
            cause @ (ProcessError::Failed(_) | ProcessError::Panicked) => panic!("{} ended: {cause}", self.user),
        }
    }
}

/// Returns the series of reconciles that panicked.
fn panics(metrics: &str) -> Vec<&str> {
    let is_meant =
        |line: &&str| line.starts_with("controller_runtime_reconcile_panics_total{") && !line.ends_with(" 0");
    metrics.lines().filter(is_meant).collect()
}
