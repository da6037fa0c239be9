//! Which objects a HorizontalPodAutoscaler scales: one small index out of a watch (spec 10 §11.2).
//!
//! The watch starts with the first bundle. Without the right to all of them those in the namespaces of the configuration
//! count; all are tried now and then.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use cluster::{Cluster, How, Record, Resource, Router, RouterOptions, Start, StoreState};
use kit::{Env, Listening, Moment};
use serde_json::Value;

use super::widening::Widening;
use crate::{
    api::object::{self, GroupVersionKind, ObjectKey},
    bundle::{hpa, identity::Equivalences},
};

/// What is kept of an autoscaler.
#[derive(Clone, Debug)]
pub(super) struct AutoscalerRecord {
    uid: Arc<str>,
    version: u64,
    target: Option<ObjectKey>,
}

/// Hears of objects that got their first autoscaler or lost their last one.
pub(super) type Listener = Rc<dyn Fn(&ObjectKey)>;

/// The index.
pub(super) struct Autoscalers {
    inner: Rc<Inner>,
}

struct Inner {
    cluster: Cluster,
    env: Env,
    watch: RefCell<Option<Watch>>,
    /// What still runs when the controller has stopped must not start the watch again.
    ended: Cell<bool>,
    /// Told of each object that gets its first autoscaler or loses its last one.
    changed: Listener,
}

struct Watch {
    router: Router<AutoscalerRecord>,
    targets: Targets,
    /// What the watch before it knew, until this one has listed: who asks meanwhile must not take *unknown* for *none*.
    before: Targets,
    /// Compares the two when the first list is there; narrows when it is denied.
    _listening: Listening,
    /// Of a watch that was narrowed.
    _widening: Option<Widening<AutoscalerRecord>>,
}

/// How many autoscalers scale an object.
type Targets = Rc<RefCell<BTreeMap<ObjectKey, usize>>>;

// === impl AutoscalerRecord ===

impl AutoscalerRecord {
    /// From an autoscaler. One whose target cannot be read scales nothing, with a warning (spec 10 §11.2, DEV).
    fn of(autoscaler: &Value) -> Option<Self> {
        let target = match hpa::target(autoscaler) {
            Ok(target) => Some(target),
            Err(broken) => {
                tracing::warn!(
                    autoscaler = %broken.autoscaler, api_version = %broken.api_version,
                    "a HorizontalPodAutoscaler with an invalid API version in its scaleTargetRef is left out"
                );
                None
            }
        };
        let version = object::resource_version(autoscaler).parse().unwrap_or_default();
        Some(Self { uid: object::uid(autoscaler).into(), version, target })
    }
}

impl Record for AutoscalerRecord {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

// === impl Autoscalers ===

impl Autoscalers {
    /// Nothing is watched yet.
    pub(super) fn new(cluster: &Cluster, env: &Env, changed: Listener) -> Self {
        let (cluster, env) = (cluster.clone(), env.clone());
        let inner = Inner { cluster, env, watch: RefCell::default(), ended: Cell::default(), changed };
        Self { inner: Rc::new(inner) }
    }

    /// Starts the watch if need be. A cluster that does not serve autoscalers has none.
    pub(super) fn start(&self) {
        let inner = &self.inner;
        let kind = GroupVersionKind::new("autoscaling", "v1", "HorizontalPodAutoscaler");
        if inner.ended.get() || inner.watch.borrow().is_some() {
            return;
        }
        if let Some(resource) = inner.cluster.discovery().known(&kind) {
            let watch = inner.watch(inner.router(resource, vec![None]), Targets::default(), None);
            inner.watch.replace(Some(watch));
        }
    }

    /// The moment to wait for while the first list is under way: before its end nothing is known of what is scaled. It
    /// comes, because a list that does not end fails.
    pub(super) fn pending(&self) -> Option<Moment> {
        let watch = self.inner.watch.borrow();
        let router = &watch.as_ref()?.router;
        let moment = router.signal().moment();
        (router.store().state() == StoreState::Starting).then_some(moment)
    }

    /// Why autoscalers cannot be listed, if so.
    pub(super) fn error(&self) -> Option<String> {
        match self.inner.watch.borrow().as_ref().map(|watch| watch.router.store().state()) {
            Some(StoreState::Failing(error)) => Some(error),
            Some(StoreState::Off | StoreState::Starting | StoreState::Synced) | None => None,
        }
    }

    /// Whether any change of what is scaled would be heard of.
    pub(super) fn is_fresh(&self) -> bool {
        self.inner.watch.borrow().as_ref().is_none_or(|watch| watch.router.is_fresh())
    }

    /// Whether an autoscaler scales the object, under any equivalent group and kind.
    pub(super) fn scales(&self, key: &ObjectKey, equivalences: &Equivalences) -> bool {
        let watch = self.inner.watch.borrow();
        let Some(Watch { targets, before, .. }) = watch.as_ref() else { return false };
        let (targets, before) = (targets.borrow(), before.borrow());
        let is_scaled = |key: &ObjectKey| targets.contains_key(key) || before.contains_key(key);
        is_scaled(key) || equivalences.of_key(key).any(|key| is_scaled(&key))
    }

    /// Ends the watch for good.
    pub(super) fn stop(&self) {
        self.inner.ended.set(true);
        let watch = self.inner.watch.borrow_mut().take();
        if let Some(watch) = watch {
            watch.router.stop();
        }
    }
}

// === impl Inner ===

impl Inner {
    /// A watch nobody is told of.
    fn router(&self, resource: Resource, scopes: Vec<Option<String>>) -> Router<AutoscalerRecord> {
        let place = if scopes == [None] { "" } else { "/by-namespace" };
        let options = RouterOptions {
            name: format!("target/horizontalpodautoscalers{place}"),
            resource,
            scopes,
            label_selector: None,
            metadata_only: false,
            start: Start::List,
            record: Box::new(AutoscalerRecord::of),
            keep: Box::new(|_| true),
        };
        Router::start(&self.cluster, options, &self.env)
    }

    fn watch(
        self: &Rc<Self>,
        router: Router<AutoscalerRecord>,
        before: Targets,
        widening: Option<Widening<AutoscalerRecord>>,
    ) -> Watch {
        let targets = Targets::default();
        let listening = {
            let (inner, store) = (Rc::downgrade(self), router.store().clone());
            let (targets, before) = (targets.clone(), before.clone());
            router.signal().listen(move || {
                let Some(inner) = inner.upgrade() else { return };
                if store.state() == StoreState::Synced {
                    let before = before.take();
                    let targets: BTreeSet<ObjectKey> = targets.borrow().keys().cloned().collect();
                    before.keys().filter(|key| !targets.contains(*key)).for_each(|key| (inner.changed)(key));
                }
                // Not by a pass: bundles at rest have none that gets so far.
                inner.narrow();
            })
        };
        let (entered, changed) = (targets.clone(), self.changed.clone());
        router.subscribe(move |change| {
            let old = change.old.and_then(|record| record.target.as_ref());
            let new = change.new.and_then(|record| record.target.as_ref());
            if old != new {
                let moved =
                    [old.filter(|key| count(&entered, key, false)), new.filter(|key| count(&entered, key, true))];
                // Who applies waits for the first list.
                moved.into_iter().flatten().filter(|_| change.how != How::First).for_each(|key| changed(key));
            }
        });
        Watch { router, targets, before, _listening: listening, _widening: widening }
    }

    /// Without the right to all autoscalers those count that may be seen.
    fn narrow(self: &Rc<Self>) {
        let configured = &self.cluster.options().namespaces;
        let is_denied = |watch: &mut Watch| {
            watch.router.is_forbidden() && watch.router.scopes() == [None] && !configured.is_empty()
        };
        let denied = self.watch.borrow_mut().take_if(is_denied);
        if let Some(Watch { router, targets, .. }) = denied {
            let scopes = configured.iter().cloned().map(Some).collect();
            let narrow = self.router(router.resource().clone(), scopes);
            let watch = self.watch(narrow, targets, Some(self.widening(router.resource().clone())));
            self.watch.replace(Some(watch));
            router.stop();
        }
    }

    /// Takes a watch of all autoscalers again, as soon as there may be one.
    fn widening(self: &Rc<Self>, resource: Resource) -> Widening<AutoscalerRecord> {
        let (start, adopt) = (Rc::downgrade(self), Rc::downgrade(self));
        let start = move || Some(start.upgrade()?.router(resource.clone(), vec![None]));
        Widening::start(&self.env, start, move |router| adopt.upgrade().is_some_and(|inner| inner.widen(router)))
    }

    /// Takes this watch for the present one. It has listed, and nobody waits for it: who got his first autoscaler, or lost
    /// his last one, by what it knows is told.
    fn widen(self: &Rc<Self>, router: &Router<AutoscalerRecord>) -> bool {
        let Some(narrow) = self.watch.borrow_mut().take() else { return false };
        let wide = self.watch(router.clone(), Targets::default(), None);
        let scaled = |watch: &Watch| -> BTreeSet<ObjectKey> {
            let (targets, before) = (watch.targets.borrow(), watch.before.borrow());
            targets.keys().chain(before.keys()).cloned().collect()
        };
        let (before, now) = (scaled(&narrow), scaled(&wide));
        self.watch.replace(Some(wide));
        narrow.router.stop();
        before.symmetric_difference(&now).for_each(|key| (self.changed)(key));
        true
    }
}

/// Counts an autoscaler of an object in or out; true if it is the first or was the last one.
fn count(targets: &RefCell<BTreeMap<ObjectKey, usize>>, key: &ObjectKey, added: bool) -> bool {
    let mut targets = targets.borrow_mut();
    let count = targets.entry(key.clone()).or_default();
    *count = if added { *count + 1 } else { count.saturating_sub(1) };
    let (first, none) = (*count == 1, *count == 0);
    if none {
        targets.remove(key);
    }
    if added { first } else { none }
}
