//! The Pods of the target cluster, as far as Deployments are counted by them (spec 20 §15): one watch for all bundles, from
//! the first rolled-out Deployment until nobody holds a Deployment any more. Of a Pod stay hashes of its labels.
//!
//! Without the right to all Pods there is a watch for each namespace that has such Deployments, so that a namespace without
//! the right to its Pods holds up its own Deployments alone. Meanwhile all Pods are tried now and then.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

use cluster::{Change, Cluster, How, Record, Resource, Router, RouterOptions, Start, StoreState};
use kit::{Env, Listening};
use serde_json::Value;
use tokio::time::Instant;

use super::super::{targets::MOST_NAMESPACES, widening::Widening};
use crate::{
    actors::health::pods::{PodSummary, Quota},
    api::object::{self, NamespacedName},
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
    source: Rc<Source>,
    watches: Rc<RefCell<Watches>>,
    /// What still runs when the controller has stopped must not start watches again.
    ended: Cell<bool>,
    idle_since: Cell<Option<Instant>>,
}

/// What a watch is made of.
struct Source {
    cluster: Cluster,
    env: Env,
    listener: Listener,
}

enum Watches {
    None,
    /// Of all Pods.
    One(Watch),
    /// By namespace: the right to all Pods was denied.
    Many {
        /// By namespace.
        watches: BTreeMap<String, Watch>,
        /// Tries all Pods again, until it is dropped.
        _widening: Widening<PodRecord>,
    },
}

struct Watch {
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
        let source = Source { cluster: cluster.clone(), env: env.clone(), listener };
        Self {
            source: Rc::new(source),
            watches: Rc::new(RefCell::new(Watches::None)),
            ended: Cell::default(),
            idle_since: Cell::default(),
        }
    }

    /// Counts the Pods of a Deployment. Starts the watch if need be; `inhabited` are the namespaces in which there are
    /// Deployments to be counted.
    pub(super) fn count(
        &self,
        namespace: &str,
        quota: &Quota,
        inhabited: impl FnOnce() -> BTreeSet<String>,
    ) -> Counted {
        self.idle_since.set(None);
        if self.ended.get() {
            return Counted::Starting;
        }
        let mut watches = self.watches.borrow_mut();
        if let Watches::One(watch) = &*watches
            && watch.router.is_forbidden()
        {
            watch.router.stop();
            *watches = Watches::Many { watches: BTreeMap::new(), _widening: self.widening() };
        }
        if let Watches::None = *watches {
            *watches = Watches::One(self.source.start(None));
        }
        match &mut *watches {
            Watches::None => Counted::Starting,
            Watches::One(watch) => watch.count(namespace, quota),
            Watches::Many { watches, .. } => match self.watch_of(watches, namespace, inhabited) {
                Some(watch) => watch.count(namespace, quota),
                None => Counted::Failing(format!(
                    "without the right to list Pods of all namespaces they are counted in {MOST_NAMESPACES} of them, and \
                     \"{namespace}\" is not among these"
                )),
            },
        }
    }

    /// The watch of a namespace; none if there are too many already.
    fn watch_of<'a>(
        &self,
        watches: &'a mut BTreeMap<String, Watch>,
        namespace: &str,
        inhabited: impl FnOnce() -> BTreeSet<String>,
    ) -> Option<&'a Watch> {
        if watches.len() >= MOST_NAMESPACES && !watches.contains_key(namespace) {
            let inhabited = inhabited();
            for (_, left) in watches.extract_if(.., |namespace, _| !inhabited.contains(namespace)) {
                left.router.stop();
            }
            if watches.len() >= MOST_NAMESPACES {
                return None;
            }
        }
        Some(watches.entry(namespace.to_owned()).or_insert_with(|| self.source.start(Some(namespace))))
    }

    /// Whether [`Pods::end_if_idle`] would do something.
    pub(super) fn is_to_end(&self, is_needed: impl Fn() -> bool) -> bool {
        if matches!(*self.watches.borrow(), Watches::None) || is_needed() {
            return false;
        }
        let now = self.source.env.clock.monotonic();
        self.idle_since.get().is_none_or(|since| now.saturating_duration_since(since) >= WATCH_AFTER_LAST)
    }

    /// Ends the watch some time after the last Deployment.
    pub(super) fn end_if_idle(&self, is_needed: bool) {
        if is_needed || matches!(*self.watches.borrow(), Watches::None) {
            self.idle_since.set(None);
            return;
        }
        let now = self.source.env.clock.monotonic();
        let since = self.idle_since.get().unwrap_or(now);
        self.idle_since.set(Some(since));
        if now.saturating_duration_since(since) >= WATCH_AFTER_LAST {
            self.end();
        }
    }

    /// Ends the watch for good.
    pub(in super::super) fn stop(&self) {
        self.ended.set(true);
        self.end();
    }

    fn end(&self) {
        self.watches.replace(Watches::None).stop();
    }

    /// Takes one watch of all Pods again for those of the namespaces, as soon as there may be one.
    fn widening(&self) -> Widening<PodRecord> {
        let (source, watches) = (self.source.clone(), Rc::downgrade(&self.watches));
        let start = {
            let source = source.clone();
            move || Some(source.router(None))
        };
        Widening::start(&self.source.env, start, move |router| {
            let Some(watches) = watches.upgrade() else { return false };
            watches.replace(Watches::One(source.watch(router.clone()))).stop();
            (source.listener)(None, &[]);
            true
        })
    }
}

// === impl Watches ===

impl Watches {
    fn stop(self) {
        match self {
            Self::None => {}
            Self::One(watch) => watch.router.stop(),
            Self::Many { watches, .. } => watches.values().for_each(|watch| watch.router.stop()),
        }
    }
}

// === impl Source ===

impl Source {
    fn start(&self, namespace: Option<&str>) -> Watch {
        tracing::info!(kind = "pods.v1", namespace, metadata_only = false, "watching a kind");
        self.watch(self.router(namespace))
    }

    /// A watch nobody is told of.
    fn router(&self, namespace: Option<&str>) -> Router<PodRecord> {
        let place = namespace.map(|namespace| format!("/{namespace}")).unwrap_or_default();
        let options = RouterOptions {
            name: format!("target/pods{place}"),
            resource: Resource::new("", "v1", "Pod", "pods", true),
            scopes: vec![namespace.map(str::to_owned)],
            label_selector: None,
            metadata_only: false,
            start: Start::List,
            record: Box::new(|pod| Some(PodRecord::of(pod))),
            keep: Box::new(|_| true),
        };
        Router::start(&self.cluster, options, &self.env)
    }

    fn watch(&self, router: Router<PodRecord>) -> Watch {
        let listener = self.listener.clone();
        router.subscribe(move |change| tell(change, &listener));
        let listener = self.listener.clone();
        let listening = router.signal().listen(move || listener(None, &[]));
        Watch { router, _listening: listening }
    }
}

// === impl Watch ===

impl Watch {
    fn count(&self, namespace: &str, quota: &Quota) -> Counted {
        match self.router.store().state() {
            StoreState::Off | StoreState::Starting => Counted::Starting,
            // Who was heard of before is only away for a while.
            StoreState::Failing(error) if self.router.store().age().is_none() => Counted::Failing(error),
            StoreState::Failing(_) | StoreState::Synced => {
                let mut pods = 0;
                let count = |_: &NamespacedName, pod: &PodRecord| pods += usize::from(quota.counts(&pod.summary));
                self.router.store().for_each_in(namespace, count);
                Counted::Settled(quota.is_met_by(pods))
            }
        }
    }
}

/// Only that a Pod begins or ends to count is of interest: between that its status changes often. The end of the first list
/// is told as a whole.
fn tell(change: &Change<'_, PodRecord>, listener: &Listener) {
    if change.how == How::First {
        return;
    }
    let summary = |record: Option<&PodRecord>| record.map(|record| record.summary.clone()).filter(|pod| pod.counts);
    let (old, new) = (summary(change.old), summary(change.new));
    if old != new {
        let changed: Vec<&PodSummary> = old.iter().chain(&new).collect();
        listener(Some(&change.name.namespace), &changed);
    }
}
