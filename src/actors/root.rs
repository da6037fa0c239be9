//! The tree: opens the watches of all controllers in every replica, starts their actors in the leader, stops all. It
//! knows no controller: a new controller is a folder and a line in [`CONTROLLERS`].

use std::{cell::RefCell, rc::Rc, time::Duration};

use cluster::{ApiError, Cluster, Context, Resource, Synced, report_outages};
use futures::future::join_all;
use kit::{Activity, Deadline, Env, Priority, Role};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::{
    controller_context::{ClusterHandle, ControllerContext},
    controller_registration::{Running, StartControllers},
    controllers::CONTROLLERS,
};
use crate::api::config::{ClusterIdSource, Config, cluster_id_source};

/// How long reconciles get to end by themselves at shutdown, before their writes are cut off (contract rule 10).
pub const PATIENCE: Duration = Duration::from_secs(4);

const CLUSTER_ID: Duration = Duration::from_secs(30);

const ROOT: &str = "root";

/// What a [`Root`] is built from.
pub struct Parts {
    /// The source cluster.
    pub source: Cluster,
    /// The target cluster; a clone of the source if both are the same.
    pub target: Cluster,
    /// Whether both are the same.
    pub same: bool,
    /// CA certificates of the target's API server, in PEM; empty if none are known.
    pub target_ca: Rc<[u8]>,
    /// Which controllers run, and how.
    pub config: Rc<Config>,
}

/// Both clusters with their watches, and all controllers.
pub struct Root {
    ctx: ControllerContext,
    same: bool,
    cluster_id: ClusterIdSource,
    waiting: RefCell<Vec<StartControllers>>,
    running: RefCell<Vec<Running>>,
    tasks: Vec<JoinHandle<()>>,
    reporters: RefCell<Vec<JoinHandle<()>>>,
}

/// The cluster id cannot be determined (spec 70 §14).
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The ConfigMap cannot be read.
    #[error(
        "failed during bootstrapping: unable to determine cluster id: cannot determine cluster identity from configmap: {0}"
    )]
    ConfigMap(#[source] ApiError),
    /// The ConfigMap has no such key.
    #[error(
        "failed during bootstrapping: unable to determine cluster id: cannot determine cluster identity from configmap: no cluster-identity entry"
    )]
    NoEntry,
}

/// The controllers of this build, as in [`Config::enabled_controllers`].
pub fn controllers() -> impl Iterator<Item = &'static str> {
    CONTROLLERS.iter().flat_map(|registration| registration.names).copied()
}

impl Root {
    /// Opens the watches of all controllers and starts them.
    pub fn start(parts: Parts, env: &Env) -> Self {
        let root = Self::open(parts, env);
        root.watch();
        root
    }

    /// Opens the watches of all controllers. No request is sent before [`Self::watch`]: others can share streams.
    pub fn open(parts: Parts, env: &Env) -> Self {
        let Parts { source, target, same, target_ca, config } = parts;
        let (mut ctx, tasks) = build_context(source, target, same, env);
        ctx.target_ca = target_ca;
        let waiting = CONTROLLERS.iter().filter_map(|registration| (registration.setup)(&config, &ctx)).collect();
        let root = Self {
            ctx,
            same,
            cluster_id: cluster_id_source(&config.cluster_id),
            waiting: RefCell::new(waiting),
            running: RefCell::default(),
            tasks,
            reporters: RefCell::default(),
        };
        root.say("watches are open; controllers wait for leadership");
        root
    }

    /// Starts the watches.
    pub fn watch(&self) {
        self.ctx.source.watches.start();
        self.ctx.target.watches.start();
        let ControllerContext { env, source, target, .. } = &self.ctx;
        let report = |cluster: &Cluster, synced| {
            let name = format!("the reporter of outages of the {} cluster", cluster.options().side.as_str());
            env.fatal.spawn(name, report_outages(cluster.clone(), synced))
        };
        let (of_source, of_target) = (self.source_synced(), self.target_synced());
        self.reporters.replace(match self.same {
            true => vec![report(&source.cluster, of_source.and(of_target))],
            false => vec![report(&source.cluster, of_source), report(&target.cluster, of_target)],
        });
    }

    /// Starts the actors of all controllers: this process leads now. Fails if the cluster id cannot be determined.
    pub async fn start_controllers(&self) -> Result<(), BootstrapError> {
        let cluster_id = self.read_cluster_id().await?;
        tracing::info!(cluster_id = %cluster_id, "Using cluster id");
        self.ctx.cluster_id.set(cluster_id).ok(); // a process leads at most once
        let waiting = self.waiting.take();
        self.running.borrow_mut().extend(waiting.into_iter().map(|start_controllers| start_controllers(&self.ctx)));
        self.say("leads");
        Ok(())
    }

    /// Stops the actors of all controllers side by side, then the watches (contract rule 10). Reconciles get `patience`
    /// to end by themselves. Returns true if all of them did.
    pub async fn stop(&self, patience: Duration) -> bool {
        self.reporters.take().iter().for_each(JoinHandle::abort);
        let running = self.running.take();
        let finished = join_all(running.into_iter().map(|running| running.stop(patience))).await;
        for cluster_handle in [&self.ctx.source, &self.ctx.target] {
            cluster_handle.watches.stop();
        }
        self.ctx.env.status_registry.leave(ROOT);
        finished.into_iter().all(|finished| finished)
    }

    /// Writes the Events that are still waiting. Then ends the discovery and the recorder of Events of both clusters.
    pub async fn flush_events(&self, deadline: Deadline) {
        let ControllerContext { source, target, .. } = &self.ctx;
        futures::join!(source.events.flush(deadline), target.events.flush(deadline));
        self.tasks.iter().for_each(JoinHandle::abort);
    }

    /// What all controllers get.
    pub fn controller_context(&self) -> &ControllerContext {
        &self.ctx
    }

    /// The sync state of the source cluster's caches.
    pub fn source_synced(&self) -> Synced {
        self.ctx.source.watches.synced()
    }

    /// The sync state of the target cluster's caches. Caches that come and go with ManagedResources do not count.
    pub fn target_synced(&self) -> Synced {
        self.ctx.target.watches.synced()
    }

    /// Waits until the caches of the source cluster have had their first list.
    pub async fn source_listed(&self) {
        self.ctx.source.watches.listed().await;
    }

    fn say(&self, line: &str) {
        let env = &self.ctx.env;
        env.status_registry.enter(ROOT, Role::Root).update(env.clock.wall(), |cell| {
            cell.activity = Activity::Idle;
            line.clone_into(&mut cell.line);
        });
    }

    async fn read_cluster_id(&self) -> Result<String, BootstrapError> {
        let optional = match &self.cluster_id {
            ClusterIdSource::Literal(id) => return Ok(id.clone()),
            ClusterIdSource::Required => false,
            ClusterIdSource::Optional => true,
        };
        tracing::info!("Trying to get cluster id from cluster");
        let config_maps = Resource::new("", "v1", "ConfigMap", "configmaps", true);
        let context = Context::new(Priority::High, Deadline::after(CLUSTER_ID), "cluster-identity");
        let read = self.ctx.source.cluster.get(&context, &config_maps.at("kube-system", "cluster-identity")).await;
        match read {
            Ok(found) => match found.pointer("/data/cluster-identity").and_then(Value::as_str) {
                Some(id) => Ok(id.to_owned()),
                None if optional => Ok(String::new()),
                None => Err(BootstrapError::NoEntry),
            },
            Err(error) if optional && error.is_not_found() => Ok(String::new()),
            Err(error) => Err(BootstrapError::ConfigMap(error)),
        }
    }
}

fn build_context(source: Cluster, target: Cluster, same: bool, env: &Env) -> (ControllerContext, Vec<JoinHandle<()>>) {
    let mut tasks = Vec::new();
    let mut open_cluster = |cluster: &Cluster| {
        let side = cluster.options().side.as_str();
        let discovery = cluster.discovery().clone().run();
        tasks.push(env.fatal.spawn(format!("the discovery of the {side} cluster"), discovery));
        let cluster_handle = ClusterHandle::new(cluster, env);
        let recorder = cluster_handle.events.clone().run();
        tasks.push(env.fatal.spawn(format!("the recorder of Events of the {side} cluster"), recorder));
        cluster_handle
    };
    let source = open_cluster(&source);
    let target = if same { source.as_target(&target) } else { open_cluster(&target) };
    (ControllerContext { env: env.clone(), source, target, target_ca: Rc::default(), cluster_id: Rc::default() }, tasks)
}
