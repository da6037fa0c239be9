//! Which objects a HorizontalPodAutoscaler scales: one small index out of a watch (spec 10 §11.2).
//!
//! The watch starts with the first bundle that holds a scalable kind.

use std::{cell::RefCell, sync::Arc};

use serde_json::Value;

use super::{hpa, identity::Equivalences};
use crate::{
    actors::kit::{Env, Moment},
    api::object::{self, NamespacedName, ObjectKey},
    cluster::{Cluster, Record, Resource, Router, RouterOptions, Start, StoreState},
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
    pub(super) fn new(cluster: &Cluster, env: &Env) -> Self {
        Self { cluster: cluster.clone(), env: env.clone(), router: RefCell::default() }
    }

    /// Starts the watch if need be. Gives the moment to wait for while the first list is under way.
    pub(super) fn ready(&self) -> Option<Moment> {
        let mut router = self.router.borrow_mut();
        let router = router.get_or_insert_with(|| {
            let resource =
                Resource::new("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true);
            let options = RouterOptions {
                name: "target/horizontalpodautoscalers".to_owned(),
                resource,
                scopes: vec![None],
                label_selector: None,
                metadata_only: false,
                start: Start::List,
                record: Box::new(AutoscalerRecord::of),
                keep: Box::new(|_| true),
            };
            Router::start(&self.cluster, options, &self.env)
        });
        let moment = router.signal().moment();
        (router.store().state() == StoreState::Starting).then_some(moment)
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
        let router = self.router.borrow();
        let Some(router) = router.as_ref() else { return false };
        let keys: Vec<ObjectKey> = std::iter::once(key.clone()).chain(equivalences.of_key(key)).collect();
        let mut found = false;
        router.store().for_each(|_: &NamespacedName, record| {
            found |= record.target.as_ref().is_some_and(|target| keys.contains(target));
        });
        found
    }

    /// Ends the watch.
    pub(super) fn stop(&self) {
        if let Some(router) = self.router.borrow_mut().take() {
            router.stop();
        }
    }
}
