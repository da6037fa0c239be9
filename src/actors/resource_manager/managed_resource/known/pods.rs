//! The Pods of the target cluster that are counted for Deployments (spec 20 §15). One watch serves all
//! ManagedResources, from the first rolled-out Deployment until no Deployment has an owner. Without the right to all
//! Pods, each namespace with such Deployments is watched by itself, so that a forbidden namespace holds up its own
//! Deployments only. Watching all Pods is retried now and then.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    rc::Rc,
    time::Duration,
};

use cluster::{
    CachedFields, Change, How, MOST_NAMESPACES, StoreState, Watch, WatchOptions, Watches, object::NamespacedName,
};
use kit::Listening;
use tokio::time::Instant;

use crate::{
    actors::resource_manager::health::pods::{PodSummary, Quota},
    api::kinds,
};

const WATCH_AFTER_LAST: Duration = Duration::from_secs(300);

/// Without a uid: a Pod counts whatever its uid.
type CachedPod = CachedFields<PodSummary>;

pub(crate) struct Pods {
    watches: Watches,
    running: RefCell<Option<Running>>,
    /// Namespaces in which Pods were counted. They are watched if not all Pods may be.
    namespaces: Rc<RefCell<BTreeSet<String>>>,
    /// Set when the controller has stopped: code that still runs must not start watches again.
    ended: Cell<bool>,
    idle_since: Cell<Option<Instant>>,
    listener: PodsListener,
}

struct Running {
    watch: Watch<CachedPod>,
    _listening: Listening,
}

/// Called with a namespace and its Pods, as they counted before and as they count now. Called without a namespace if
/// anything else may change what is known of Pods.
pub(crate) type PodsListener = Rc<dyn Fn(Option<&str>, &[&PodSummary])>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Counted {
    Starting,
    Failing(String),
    Known(bool),
}

impl Pods {
    pub(crate) fn new(watches: &Watches, listener: PodsListener) -> Self {
        Self {
            watches: watches.clone(),
            running: RefCell::default(),
            namespaces: Rc::default(),
            ended: Cell::default(),
            idle_since: Cell::default(),
            listener,
        }
    }

    /// Counts the Pods of a Deployment; starts the watch if necessary. `inhabited`: namespaces with such Deployments.
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
            // A watch that was in sync before has failed only for a while: its Pods are counted.
            StoreState::Failing(error) if watch.age_in(namespace).is_none() => Counted::Failing(error),
            StoreState::Failing(_) | StoreState::Synced => {
                let mut pods = 0;
                let count = |_: &NamespacedName, pod: &CachedPod| pods += usize::from(quota.counts(&pod.fields));
                watch.store().for_each_in(namespace, count);
                Counted::Known(quota.is_met_by(pods))
            }
        }
    }

    /// Returns whether a Deployment has the Pods that it wants, as far as the running watch knows. Starts nothing.
    /// `budget`: how many Pods may still be looked at. At 0, the answer is `None`.
    pub(crate) fn known(&self, namespace: &str, quota: &Quota, budget: &mut usize) -> Option<bool> {
        let watch = self.running.borrow().as_ref().map(|running| running.watch.clone())?;
        let is_known = match watch.state_in(namespace) {
            StoreState::Off | StoreState::Starting => false,
            StoreState::Failing(_) => watch.age_in(namespace).is_some(),
            StoreState::Synced => true,
        };
        if !is_known || *budget == 0 {
            return None;
        }
        let (mut pods, mut seen) = (0, 0);
        watch.store().for_each_in(namespace, |_, pod| {
            seen += 1;
            pods += usize::from(quota.counts(&pod.fields));
        });
        *budget = budget.saturating_sub(seen);
        Some(quota.is_met_by(pods))
    }

    fn watch(&self) -> Watch<CachedPod> {
        if let Some(running) = &*self.running.borrow() {
            return running.watch.clone();
        }
        tracing::info!(kind = "pods.v1", metadata_only = false, "watching a kind");
        let namespaces = self.namespaces.clone();
        let options = WatchOptions::new(kinds::POD, |pod| CachedPod::of(pod, PodSummary::of(pod)));
        let watch = self.watches.open(options.everywhere().narrowing(move || namespaces.borrow().clone()));
        let listener = self.listener.clone();
        watch.subscribe(move |change| report(change, &listener));
        let listener = self.listener.clone();
        let listening = watch.scopes_signal().listen(move || listener(None, &[]));
        self.running.replace(Some(Running { watch: watch.clone(), _listening: listening }));
        watch
    }

    /// Watches the Pods of a namespace unless all are watched. If too many are, some without Deployments make room.
    fn watch_in(&self, namespace: &str, watch: &Watch<CachedPod>, inhabited: impl FnOnce() -> BTreeSet<String>) {
        let is_new = self.namespaces.borrow_mut().insert(namespace.to_owned());
        let is_out = watch.state_in(namespace) == StoreState::Off;
        if is_out {
            let inhabited = inhabited();
            self.namespaces.borrow_mut().retain(|place| place == namespace || inhabited.contains(place));
        }
        if is_new || is_out {
            watch.namespaces_changed();
        }
    }

    pub(crate) fn is_to_end(&self, is_needed: impl Fn() -> bool) -> bool {
        if self.running.borrow().is_none() || is_needed() {
            return false;
        }
        let now = self.watches.cluster().clock().monotonic();
        self.idle_since.get().is_none_or(|since| now.saturating_duration_since(since) >= WATCH_AFTER_LAST)
    }

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

    pub(crate) fn stop(&self) {
        self.ended.set(true);
        self.end();
    }

    fn end(&self) {
        self.namespaces.take();
        let running = self.running.borrow_mut().take();
        if let Some(Running { watch, .. }) = running {
            watch.stop();
        }
    }
}

/// Reports only Pods that begin or cease to count, because the status of a Pod changes often in between. The end of the
/// first list, and the end of a namespace's watch, are reported as a whole.
fn report(change: &Change<'_, CachedPod>, listener: &PodsListener) {
    if matches!(change.how, How::First | How::Lost) {
        return;
    }
    let summary = |cached: Option<&CachedPod>| cached.map(|cached| cached.fields.clone()).filter(|pod| pod.counts);
    let (old, new) = (summary(change.old), summary(change.new));
    if old != new {
        let changed: Vec<&PodSummary> = old.iter().chain(&new).collect();
        listener(Some(&change.name.namespace), &changed);
    }
}
