//! Which objects a HorizontalPodAutoscaler scales: one small index out of a watch (spec 10 §11.2).
//!
//! The watch starts with the first bundle.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use serde_json::Value;

use super::{hpa, identity::Equivalences};
use crate::{
    actors::kit::{Env, Listening, Moment},
    api::object::{self, GroupVersionKind, ObjectKey},
    cluster::{Cluster, How, Record, Resource, Router, RouterOptions, Start, StoreState},
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
    /// Compares the two when the first list is there.
    _listening: Listening,
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
        Self { cluster: cluster.clone(), env: env.clone(), watch: RefCell::default(), ended: Cell::default(), changed }
    }

    /// Starts the watch if need be. A cluster that does not serve autoscalers has none.
    pub(super) fn start(&self) {
        let kind = GroupVersionKind::new("autoscaling", "v1", "HorizontalPodAutoscaler");
        if self.ended.get() {
            return;
        }
        let mut watch = self.watch.borrow_mut();
        if watch.is_none()
            && let Some(resource) = self.cluster.discovery().known(&kind)
        {
            *watch = Some(self.watch(resource, vec![None], Targets::default()));
        }
        let configured = &self.cluster.options().namespaces;
        let narrowed = watch
            .as_ref()
            .filter(|watch| watch.router.is_forbidden() && watch.router.scopes() == [None] && !configured.is_empty());
        if let Some(Watch { router, targets, .. }) = narrowed {
            // Without the right to all of them those count that may be seen.
            let (resource, scopes) = (router.resource().clone(), configured.iter().cloned().map(Some).collect());
            router.stop();
            *watch = Some(self.watch(resource, scopes, targets.clone()));
        }
    }

    /// The moment to wait for while the first list is under way: before its end nothing is known of what is scaled. It
    /// comes, because a list that does not end fails.
    pub(super) fn pending(&self) -> Option<Moment> {
        let watch = self.watch.borrow();
        let router = &watch.as_ref()?.router;
        let moment = router.signal().moment();
        (router.store().state() == StoreState::Starting).then_some(moment)
    }

    fn watch(&self, resource: Resource, scopes: Vec<Option<String>>, before: Targets) -> Watch {
        let options = RouterOptions {
            name: "target/horizontalpodautoscalers".to_owned(),
            resource,
            scopes,
            label_selector: None,
            metadata_only: false,
            start: Start::List,
            record: Box::new(AutoscalerRecord::of),
            keep: Box::new(|_| true),
        };
        let router = Router::start(&self.cluster, options, &self.env);
        let targets = Targets::default();
        let listening = {
            let (store, targets, before) = (router.clone(), targets.clone(), before.clone());
            let changed = self.changed.clone();
            router.signal().listen(move || {
                if store.store().state() == StoreState::Synced {
                    let before = before.take();
                    let targets: BTreeSet<ObjectKey> = targets.borrow().keys().cloned().collect();
                    before.keys().filter(|key| !targets.contains(*key)).for_each(|key| changed(key));
                }
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
        Watch { router, targets, before, _listening: listening }
    }

    /// Why autoscalers cannot be listed, if so.
    pub(super) fn error(&self) -> Option<String> {
        match self.watch.borrow().as_ref().map(|watch| watch.router.store().state()) {
            Some(StoreState::Failing(error)) => Some(error),
            Some(StoreState::Off | StoreState::Starting | StoreState::Synced) | None => None,
        }
    }

    /// Whether an autoscaler scales the object, under any equivalent group and kind.
    pub(super) fn scales(&self, key: &ObjectKey, equivalences: &Equivalences) -> bool {
        let watch = self.watch.borrow();
        let Some(Watch { targets, before, .. }) = watch.as_ref() else { return false };
        let (targets, before) = (targets.borrow(), before.borrow());
        let is_scaled = |key: &ObjectKey| targets.contains_key(key) || before.contains_key(key);
        is_scaled(key) || equivalences.of_key(key).any(|key| is_scaled(&key))
    }

    /// Ends the watch for good.
    pub(super) fn stop(&self) {
        self.ended.set(true);
        if let Some(watch) = self.watch.borrow_mut().take() {
            watch.router.stop();
        }
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
