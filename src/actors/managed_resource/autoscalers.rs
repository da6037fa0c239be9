//! Which objects a HorizontalPodAutoscaler scales: one small index out of a watch (spec 10 §11.2).
//!
//! The watch starts with the first bundle.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
    sync::Arc,
};

use serde_json::Value;

use super::{hpa, identity::Equivalences};
use crate::{
    actors::kit::{Env, Moment},
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

/// The index.
pub(super) struct Autoscalers {
    cluster: Cluster,
    env: Env,
    router: RefCell<Option<Router<AutoscalerRecord>>>,
    /// What still runs when the controller has stopped must not start the watch again.
    ended: Cell<bool>,
    /// How many autoscalers scale an object.
    targets: Rc<RefCell<BTreeMap<ObjectKey, usize>>>,
    /// Told of each object that gets its first autoscaler or loses its last one.
    changed: Rc<dyn Fn(&ObjectKey)>,
}

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
    pub(super) fn new(cluster: &Cluster, env: &Env, changed: Rc<dyn Fn(&ObjectKey)>) -> Self {
        Self {
            cluster: cluster.clone(),
            env: env.clone(),
            router: RefCell::default(),
            ended: Cell::default(),
            targets: Rc::default(),
            changed,
        }
    }

    /// Starts the watch if need be. A cluster that does not serve autoscalers has none.
    pub(super) fn start(&self) {
        let kind = GroupVersionKind::new("autoscaling", "v1", "HorizontalPodAutoscaler");
        if self.ended.get() {
            return;
        }
        let mut router = self.router.borrow_mut();
        if router.is_none()
            && let Some(resource) = self.cluster.discovery().known(&kind)
        {
            *router = Some(self.watch(resource, vec![None]));
        }
        let configured = &self.cluster.options().namespaces;
        if let Some(known) = router.as_ref().filter(|known| known.is_forbidden() && known.scopes() == [None])
            && !configured.is_empty()
        {
            // Without the right to all of them those count that may be seen.
            let (resource, scopes) = (known.resource().clone(), configured.iter().cloned().map(Some).collect());
            known.stop();
            *router = Some(self.watch(resource, scopes));
        }
    }

    /// The moment to wait for while the first list is under way: before its end nothing is known of what is scaled. It
    /// comes, because a list that does not end fails.
    pub(super) fn pending(&self) -> Option<Moment> {
        let router = self.router.borrow();
        let router = router.as_ref()?;
        let moment = router.signal().moment();
        (router.store().state() == StoreState::Starting).then_some(moment)
    }

    fn watch(&self, resource: Resource, scopes: Vec<Option<String>>) -> Router<AutoscalerRecord> {
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
        let (targets, changed) = (self.targets.clone(), self.changed.clone());
        router.subscribe(move |change| {
            let old = change.old.and_then(|record| record.target.as_ref());
            let new = change.new.and_then(|record| record.target.as_ref());
            if old != new {
                let moved =
                    [old.filter(|key| count(&targets, key, false)), new.filter(|key| count(&targets, key, true))];
                // Who applies waits for the first list.
                moved.into_iter().flatten().filter(|_| change.how != How::First).for_each(|key| changed(key));
            }
        });
        router
    }

    /// Why autoscalers cannot be listed, if so.
    pub(super) fn error(&self) -> Option<String> {
        match self.router.borrow().as_ref().map(|router| router.store().state()) {
            Some(StoreState::Failing(error)) => Some(error),
            Some(StoreState::Off | StoreState::Starting | StoreState::Synced) | None => None,
        }
    }

    /// Whether an autoscaler scales the object, under any equivalent group and kind.
    pub(super) fn scales(&self, key: &ObjectKey, equivalences: &Equivalences) -> bool {
        let targets = self.targets.borrow();
        targets.contains_key(key) || equivalences.of_key(key).any(|key| targets.contains_key(&key))
    }

    /// Ends the watch for good.
    pub(super) fn stop(&self) {
        self.ended.set(true);
        if let Some(router) = self.router.borrow_mut().take() {
            router.stop();
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
