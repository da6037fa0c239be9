//! The Pods of the target cluster, as far as Deployments are counted by them (spec 20 §15): one watch for all bundles, from
//! the first rolled-out Deployment until nobody holds a Deployment any more. Of a Pod stay hashes of its labels.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use crate::{
    actors::{
        health::pods::{PodSummary, Quota},
        kit::{Env, Listening},
    },
    api::object,
    cluster::{Change, Cluster, Record, Resource, Router, RouterOptions, Start, StoreState},
};

/// Pods are watched this much longer than somebody needs them.
const WATCH_AFTER_LAST: Duration = Duration::from_secs(300);

/// What is kept of a Pod.
#[derive(Clone, Debug)]
pub(in super::super) struct PodRecord {
    version: u64,
    summary: PodSummary,
}

/// The Pods.
pub(in super::super) struct Pods {
    cluster: Cluster,
    env: Env,
    running: RefCell<Option<Running>>,
    idle_since: Cell<Option<Instant>>,
    listener: Listener,
}

struct Running {
    router: Router<PodRecord>,
    _listening: Listening,
}

/// Told of Pods of a namespace: as they counted before, and as they count now. With no namespace: of anything else that
/// may change what is known of Pods.
pub(in super::super) type Listener = Rc<dyn Fn(Option<&str>, &[&PodSummary])>;

/// Whether a Deployment's Pods are those it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Counted {
    /// They have not been listed yet.
    Starting,
    /// They cannot be listed.
    Failing(String),
    /// Yes or no.
    Settled(bool),
}

// === impl PodRecord ===

impl PodRecord {
    fn of(pod: &Value) -> Self {
        let version = object::resource_version(pod).parse().unwrap_or_default();
        Self { version, summary: PodSummary::of(pod) }
    }
}

impl Record for PodRecord {
    /// Not kept: nobody asks which incarnation of a Pod is counted.
    fn uid(&self) -> &'static str {
        ""
    }

    fn version(&self) -> u64 {
        self.version
    }
}

// === impl Pods ===

impl Pods {
    /// Nothing is watched yet.
    pub(in super::super) fn new(cluster: &Cluster, env: &Env, listener: Listener) -> Self {
        let idle_since = Cell::new(None);
        Self { cluster: cluster.clone(), env: env.clone(), running: RefCell::default(), idle_since, listener }
    }

    /// Counts the Pods of a Deployment. Starts the watch if need be.
    pub(super) fn count(&self, namespace: &str, quota: &Quota) -> Counted {
        self.idle_since.set(None);
        let mut running = self.running.borrow_mut();
        let router = &running.get_or_insert_with(|| self.start()).router;
        match router.store().state() {
            StoreState::Off | StoreState::Starting => Counted::Starting,
            // Who was heard of before is only away for a while.
            StoreState::Failing(error) if router.store().age().is_none() => Counted::Failing(error),
            StoreState::Failing(_) | StoreState::Synced => {
                let mut pods = 0;
                router.store().for_each_in(namespace, |_, record| pods += usize::from(quota.counts(&record.summary)));
                Counted::Settled(quota.is_met_by(pods))
            }
        }
    }

    /// Ends the watch some time after the last Deployment.
    pub(super) fn end_if_idle(&self, is_needed: bool) {
        if is_needed || self.running.borrow().is_none() {
            self.idle_since.set(None);
            return;
        }
        let now = self.env.clock.monotonic();
        let since = self.idle_since.get().unwrap_or(now);
        self.idle_since.set(Some(since));
        if now.saturating_duration_since(since) >= WATCH_AFTER_LAST {
            self.stop();
        }
    }

    /// Ends the watch.
    pub(in super::super) fn stop(&self) {
        if let Some(running) = self.running.borrow_mut().take() {
            running.router.stop();
        }
    }

    fn start(&self) -> Running {
        tracing::info!(kind = "pods.v1", metadata_only = false, "watching a kind");
        let options = RouterOptions {
            name: "target/pods".to_owned(),
            resource: Resource::new("", "v1", "Pod", "pods", true),
            scopes: vec![None],
            label_selector: None,
            metadata_only: false,
            start: Start::List,
            record: Box::new(|pod| Some(PodRecord::of(pod))),
            keep: Box::new(|_| true),
        };
        let router = Router::start(&self.cluster, options, &self.env);
        let listener = self.listener.clone();
        router.subscribe(move |change| tell(change, &listener));
        let listener = self.listener.clone();
        let listening = router.signal().listen(move || listener(None, &[]));
        Running { router, _listening: listening }
    }
}

/// Only that a Pod begins or ends to count is of interest: between that its status changes often.
fn tell(change: &Change<'_, PodRecord>, listener: &Listener) {
    let summary = |record: Option<&PodRecord>| record.map(|record| record.summary.clone()).filter(|pod| pod.counts);
    let (old, new) = (summary(change.old), summary(change.new));
    if old != new {
        let changed: Vec<&PodSummary> = old.iter().chain(&new).collect();
        listener(Some(&change.name.namespace), &changed);
    }
}
