//! The Pods of the target cluster, as far as Deployments are counted by them (spec 20 §15): one watch for all bundles, from
//! the first rolled-out Deployment until nobody holds a Deployment any more. Of a Pod stay hashes of its labels.
//!
//! Without the right to all Pods those of the namespaces are watched that have such Deployments, each by itself, so that a
//! namespace without the right to its Pods holds up its own Deployments alone. Meanwhile all Pods are tried now and then.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    rc::Rc,
    time::Duration,
};

use cluster::{Cached, Change, How, MOST_NAMESPACES, Resource, StoreState, Watch, WatchOptions, Watches};
use kit::Listening;
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    actors::health::pods::{PodSummary, Quota},
    api::object::{self, NamespacedName},
};

/// Pods are watched this much longer than somebody needs them.
const WATCH_AFTER_LAST: Duration = Duration::from_secs(300);

/// What is kept of a Pod.
#[derive(Clone, Debug)]
struct CachedPod {
    version: u64,
    summary: PodSummary,
}

/// The Pods.
pub(crate) struct Pods {
    watches: Watches,
    running: RefCell<Option<Running>>,
    /// The namespaces in which Pods were counted, to be watched if not all may be.
    places: Rc<RefCell<BTreeSet<String>>>,
    /// What still runs when the controller has stopped must not start watches again.
    ended: Cell<bool>,
    idle_since: Cell<Option<Instant>>,
    listener: PodsListener,
}

struct Running {
    watch: Watch<CachedPod>,
    _listening: Listening,
}

/// Told of Pods of a namespace: as they counted before, and as they count now. With no namespace: of anything else that
/// may change what is known of Pods.
pub(crate) type PodsListener = Rc<dyn Fn(Option<&str>, &[&PodSummary])>;

/// Whether a Deployment's Pods are those it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Counted {
    /// They have not been listed yet.
    Starting,
    /// They cannot be listed.
    Failing(String),
    /// Yes or no.
    Known(bool),
}

impl CachedPod {
    fn of(pod: &Value) -> Self {
        let version = object::resource_version(pod).parse().unwrap_or_default();
        Self { version, summary: PodSummary::of(pod) }
    }
}

impl Cached for CachedPod {
    /// Not kept: nobody asks which incarnation of a Pod is counted.
    fn uid(&self) -> &'static str {
        ""
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl Pods {
    /// Nothing is watched yet.
    pub(crate) fn new(watches: &Watches, listener: PodsListener) -> Self {
        Self {
            watches: watches.clone(),
            running: RefCell::default(),
            places: Rc::default(),
            ended: Cell::default(),
            idle_since: Cell::default(),
            listener,
        }
    }

    /// Counts the Pods of a Deployment. Starts the watch if need be; `inhabited` are the namespaces in which there are
    /// Deployments to be counted.
    pub(crate) fn count(
        &self,
        namespace: &str,
        quota: &Quota,
        inhabited: impl FnOnce() -> BTreeSet<String>,
    ) -> Counted {
        self.idle_since.set(None);
        if self.ended.get() {
            return Counted::Starting;
        }
        let watch = self.watch();
        self.watch_in(namespace, &watch, inhabited);
        match watch.state_in(namespace) {
            StoreState::Off if watch.scopes() != [None] => Counted::Failing(format!(
                "without the right to list Pods of all namespaces they are counted in {MOST_NAMESPACES} of them, and \
                 \"{namespace}\" is not among these"
            )),
            StoreState::Off | StoreState::Starting => Counted::Starting,
            // Who was heard of before is only away for a while.
            StoreState::Failing(error) if watch.age_in(namespace).is_none() => Counted::Failing(error),
            StoreState::Failing(_) | StoreState::Synced => {
                let mut pods = 0;
                let count = |_: &NamespacedName, pod: &CachedPod| pods += usize::from(quota.counts(&pod.summary));
                watch.store().for_each_in(namespace, count);
                Counted::Known(quota.is_met_by(pods))
            }
        }
    }

    /// The watch; begins it if need be.
    fn watch(&self) -> Watch<CachedPod> {
        if let Some(running) = &*self.running.borrow() {
            return running.watch.clone();
        }
        tracing::info!(kind = "pods.v1", metadata_only = false, "watching a kind");
        let places = self.places.clone();
        let options = WatchOptions::new(Resource::new("", "v1", "Pod", "pods", true), |pod| Some(CachedPod::of(pod)));
        let watch = self.watches.open(options.everywhere().narrowing(move || places.borrow().clone()));
        let listener = self.listener.clone();
        watch.subscribe(move |change| report(change, &listener));
        let listener = self.listener.clone();
        let listening = watch.scopes_signal().listen(move || listener(None, &[]));
        self.running.replace(Some(Running { watch: watch.clone(), _listening: listening }));
        watch
    }

    /// Has the Pods of a namespace watched if not all are. Where there are too many namespaces, those without Deployments
    /// make room.
    fn watch_in(&self, namespace: &str, watch: &Watch<CachedPod>, inhabited: impl FnOnce() -> BTreeSet<String>) {
        let is_new = self.places.borrow_mut().insert(namespace.to_owned());
        let is_out = watch.state_in(namespace) == StoreState::Off;
        if is_out {
            let inhabited = inhabited();
            self.places.borrow_mut().retain(|place| place == namespace || inhabited.contains(place));
        }
        if is_new || is_out {
            watch.places_changed();
        }
    }

    /// Whether [`Pods::end_if_idle`] would do something.
    pub(crate) fn is_to_end(&self, is_needed: impl Fn() -> bool) -> bool {
        if self.running.borrow().is_none() || is_needed() {
            return false;
        }
        let now = self.watches.cluster().clock().monotonic();
        self.idle_since.get().is_none_or(|since| now.saturating_duration_since(since) >= WATCH_AFTER_LAST)
    }

    /// Ends the watch some time after the last Deployment.
    pub(crate) fn end_if_idle(&self, is_needed: bool) {
        if is_needed || self.running.borrow().is_none() {
            self.idle_since.set(None);
            return;
        }
        let now = self.watches.cluster().clock().monotonic();
        let since = self.idle_since.get().unwrap_or(now);
        self.idle_since.set(Some(since));
        if now.saturating_duration_since(since) >= WATCH_AFTER_LAST {
            self.end();
        }
    }

    /// Ends the watch for good.
    pub(crate) fn stop(&self) {
        self.ended.set(true);
        self.end();
    }

    fn end(&self) {
        self.places.take();
        let running = self.running.borrow_mut().take();
        if let Some(Running { watch, .. }) = running {
            watch.stop();
        }
    }
}

/// Only that a Pod begins or ends to count is of interest: between that its status changes often. The end of the first list
/// is told as a whole, and so is that a namespace is no longer watched.
fn report(change: &Change<'_, CachedPod>, listener: &PodsListener) {
    if matches!(change.how, How::First | How::Lost) {
        return;
    }
    let summary = |cached: Option<&CachedPod>| cached.map(|cached| cached.summary.clone()).filter(|pod| pod.counts);
    let (old, new) = (summary(change.old), summary(change.new));
    if old != new {
        let changed: Vec<&PodSummary> = old.iter().chain(&new).collect();
        listener(Some(&change.name.namespace), &changed);
    }
}
