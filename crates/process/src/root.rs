//! Opens the watches of all controllers in every replica, starts their actors in the leader, stops all.

use std::{cell::RefCell, rc::Rc, time::Duration};

use cluster::{Synced, report_outages};
use futures::future::{LocalBoxFuture, join_all};
use kit::{Activity, Deadline, Env, Role};
use tokio::task::JoinHandle;

use crate::{
    Clusters, Program, StartError,
    controller_registration::{Running, StartControllers},
};

/// How long reconciles get to end by themselves at shutdown, before their writes are cut off (contract rule 10).
pub const PATIENCE: Duration = Duration::from_secs(4);

const ROOT: &str = "root";

/// The clusters of a program with their watches, and all its controllers.
pub struct Root<P: Program> {
    env: Env,
    config: Rc<P::Config>,
    context: P::Context,
    caches: P::Caches,
    clusters: Clusters,
    waiting: RefCell<Vec<StartControllers<P::Context>>>,
    running: RefCell<Vec<Running>>,
    reporters: RefCell<Vec<JoinHandle<()>>>,
}

impl<P: Program> Root<P> {
    /// Opens the watches of all controllers. No request is sent before [`Self::watch`]: others can share streams.
    pub fn open(config: Rc<P::Config>, links: P::Links, env: &Env, mut clusters: Clusters) -> Self {
        let context = P::open(&config, links, env, &mut clusters);
        let waiting =
            P::controllers().iter().filter_map(|registration| (registration.setup)(&config, &context)).collect();
        let caches = P::open_caches(&config, &context, env);
        let root = Self {
            env: env.clone(),
            config,
            context,
            caches,
            clusters,
            waiting: RefCell::new(waiting),
            running: RefCell::default(),
            reporters: RefCell::default(),
        };
        root.say("watches are open; controllers wait for leadership");
        root
    }

    /// Starts the watches.
    pub fn watch(&self) {
        self.clusters.opened.iter().for_each(|opened| opened.handle.watches.start());
        let reporters = self.clusters.apart().map(|(handle, synced)| {
            let name = format!("the reporter of outages of the {} cluster", handle.cluster.options().label.as_str());
            self.env.fatal.spawn(name, report_outages(handle.cluster.clone(), synced, handle.context.clone()))
        });
        self.reporters.replace(reporters.collect());
    }

    /// Returns [`Program::check_clusters`] of this program.
    pub(super) fn check_clusters(&self) -> LocalBoxFuture<'static, ()> {
        P::check_clusters(&self.config, &self.context)
    }

    /// Starts the actors of all controllers: this process leads now. Fails as [`Program::bootstrap`] does.
    pub async fn start_controllers(&self) -> Result<(), StartError> {
        P::bootstrap(&self.config, &self.context).await?;
        let waiting = self.waiting.take();
        self.running.borrow_mut().extend(waiting.into_iter().map(|start_controllers| start_controllers(&self.context)));
        self.say("leads");
        Ok(())
    }

    /// Stops the actors of all controllers side by side, then the watches (contract rule 10). Reconciles get `patience`
    /// to end by themselves. Returns true if all of them did.
    pub async fn stop(&self, patience: Duration) -> bool {
        self.reporters.take().iter().for_each(JoinHandle::abort);
        let running = self.running.take();
        let finished = join_all(running.into_iter().map(|running| running.stop(patience))).await;
        self.clusters.opened.iter().for_each(|opened| opened.handle.watches.stop());
        self.env.status_registry.leave(ROOT);
        finished.into_iter().all(|finished| finished)
    }

    /// Writes the Events that are still waiting. Then ends the discovery and the recorder of Events of all clusters.
    pub async fn flush_events(&self, deadline: Deadline) {
        join_all(self.clusters.apart().map(|(handle, _)| handle.events.flush(deadline))).await;
        self.clusters.tasks.iter().for_each(JoinHandle::abort);
    }

    /// What all controllers get.
    pub fn context(&self) -> &P::Context {
        &self.context
    }

    /// What the program watches besides its controllers.
    pub fn caches(&self) -> &P::Caches {
        &self.caches
    }

    /// The sync state of the caches of all clusters. Caches that come and go with objects do not count.
    pub fn synced(&self) -> Synced {
        let synced = self.clusters.synced();
        synced.reduce(|all, one| all.and(one)).expect("every program opens at least one cluster")
    }

    /// Its clusters.
    pub(super) fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// Waits until the caches of the first cluster have had their first list. If its kinds may come later, each controller
    /// waits for its own caches instead.
    pub async fn listed(&self) {
        let first = self.clusters.first();
        if !first.cluster.options().label.may_serve_kinds_later() {
            first.watches.listed().await;
        }
    }

    fn say(&self, line: &str) {
        self.env.status_registry.enter(ROOT, Role::Root).update(self.env.clock.wall(), |cell| {
            cell.activity = Activity::Idle;
            line.clone_into(&mut cell.line);
        });
    }
}
