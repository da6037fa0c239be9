//! Which objects HorizontalPodAutoscalers scale: an index, filled by a watch (spec 10 §11.2). The watch starts with the
//! first ManagedResource. Without the right to all, those in the configured namespaces count; all are tried again.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
};

use cluster::{
    Cached, How, Index, Resource, StoreState, Watch, WatchOptions, Watches,
    object::{self, GroupVersionKind, NamespacedName, ObjectKey},
};
use kit::Moment;
use serde_json::Value;
use tokio::time::Instant;

use super::lingering::Lingering;
use crate::actors::resource_manager::bundle::{hpa, identity::Equivalences};

/// Both versions name the scaled object alike. Webhooks read the first too, so that both share one informer.
const VERSIONS: [&str; 2] = ["v2", "v1"];

#[derive(Clone, Debug)]
struct CachedAutoscaler {
    uid: Arc<str>,
    version: u64,
    scales: Option<ObjectKey>,
}

pub(crate) type ScalingListener = Rc<dyn Fn(&ObjectKey)>;

pub(crate) struct Autoscalers {
    watches: Watches,
    running: RefCell<Option<Running>>,
    /// Set when the controller has stopped: code that still runs must not start the watch again.
    ended: Cell<bool>,
    changed: ScalingListener,
    lingering: Rc<RefCell<Lingering>>,
    unknown: RefCell<Option<String>>,
}

struct Running {
    watch: Watch<CachedAutoscaler>,
    scaled: Index<ObjectKey>,
}

impl CachedAutoscaler {
    /// An autoscaler whose target cannot be read scales nothing, with a warning (spec 10 §11.2, DEV).
    fn of(autoscaler: &Value) -> Self {
        let scales = match hpa::scale_target(autoscaler) {
            Ok(scaled) => Some(scaled),
            Err(broken) => {
                tracing::warn!(
                    autoscaler = %broken.autoscaler, api_version = %broken.api_version,
                    "a HorizontalPodAutoscaler with an invalid API version in its scaleTargetRef is left out"
                );
                None
            }
        };
        let version = object::resource_version(autoscaler).parse().unwrap_or_default();
        Self { uid: object::uid(autoscaler).into(), version, scales }
    }
}

impl Cached for CachedAutoscaler {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl Autoscalers {
    pub(crate) fn new(watches: &Watches, changed: ScalingListener) -> Self {
        Self {
            watches: watches.clone(),
            running: RefCell::default(),
            ended: Cell::default(),
            changed,
            lingering: Rc::default(),
            unknown: RefCell::default(),
        }
    }

    /// Starts the watch if necessary. A cluster that does not serve autoscalers has none.
    pub(crate) fn start(&self) {
        if self.ended.get() || self.running.borrow().is_some() {
            return;
        }
        let discovery = self.watches.cluster().discovery();
        let known =
            |version| discovery.known(&GroupVersionKind::new("autoscaling", version, "HorizontalPodAutoscaler"));
        if let Some(resource) = VERSIONS.into_iter().find_map(known) {
            self.running.replace(Some(self.open(resource)));
        }
    }

    /// Finds out how autoscalers are served. Unknown does not mean *none*: then [`Self::error`] returns why.
    pub(crate) async fn find(&self) {
        self.start();
        if self.ended.get() || self.running.borrow().is_some() {
            return;
        }
        let discovery = self.watches.cluster().discovery();
        let mut unknown = None;
        for version in VERSIONS {
            match discovery.mapping(&GroupVersionKind::new("autoscaling", version, "HorizontalPodAutoscaler")).await {
                Ok(_) => break,
                Err(error) if error.is_no_match() => {}
                Err(error) => unknown = Some(error.to_string()),
            }
        }
        self.unknown.replace(unknown);
        self.start();
    }

    fn open(&self, resource: Resource) -> Running {
        let configured = self.watches.cluster().options().namespaces.clone();
        let options = WatchOptions::new(resource, |autoscaler| Some(CachedAutoscaler::of(autoscaler))).everywhere();
        let watch = self.watches.open(options.narrowing(move || configured.iter().cloned().collect()));
        let scaled = watch.index(|_, cached: &CachedAutoscaler| cached.scales.iter().cloned().collect());
        let (index, changed, lingering) = (scaled.clone(), self.changed.clone(), self.lingering.clone());
        let clock = self.watches.cluster().clock().clone();
        watch.subscribe(move |change| {
            let old = change.old.and_then(|cached| cached.scales.as_ref());
            let new = change.new.and_then(|cached| cached.scales.as_ref());
            // The apply path waits for the first list.
            if old == new || change.how == How::First {
                return;
            }
            // The first autoscaler of an object, or its last one: the index includes the change already.
            let lost = old.filter(|key| !index.contains(key));
            let got = new.filter(|key| index.get(key).len() == 1);
            if let Some(key) = lost {
                lingering.borrow_mut().lost(key, change.name, clock.monotonic());
            }
            if let Some(key) = got {
                lingering.borrow_mut().got(key);
            }
            lost.into_iter().chain(got).for_each(|key| changed(key));
        });
        Running { watch, scaled }
    }

    /// Returns the moment to wait for during the first list. It always comes, because a list that does not end fails.
    pub(crate) fn pending(&self) -> Option<Moment> {
        let running = self.running.borrow();
        let watch = &running.as_ref()?.watch;
        let moment = watch.signal().moment();
        (watch.store().state() == StoreState::Starting).then_some(moment)
    }

    pub(crate) fn error(&self) -> Option<String> {
        match self.running.borrow().as_ref().map(|running| running.watch.store().state()) {
            Some(StoreState::Failing(error)) => Some(error),
            Some(StoreState::Off | StoreState::Starting | StoreState::Synced) => None,
            None => self.unknown.borrow().clone(),
        }
    }

    pub(crate) fn is_fresh(&self) -> bool {
        self.running.borrow().as_ref().is_none_or(|running| running.watch.is_fresh())
    }

    /// Returns true if an autoscaler scales an object, under any equivalent group and kind, or did so a moment ago. Always
    /// false for kinds whose replicas do not count.
    pub(crate) fn scales(
        &self,
        key: &ObjectKey,
        equivalences: &Equivalences,
        bundle: &NamespacedName,
        period: Option<Instant>,
    ) -> bool {
        let running = self.running.borrow();
        let running = running.as_ref().filter(|_| hpa::is_scalable(&key.group_kind()));
        let Some(Running { scaled, .. }) = running else { return false };
        let scales = |key: &ObjectKey| scaled.contains(key);
        scales(key)
            || equivalences.of_key(key).any(|key| scales(&key))
            || self.lingers(key, equivalences, bundle, period).is_some()
    }

    pub(crate) fn lingers(
        &self,
        key: &ObjectKey,
        equivalences: &Equivalences,
        bundle: &NamespacedName,
        period: Option<Instant>,
    ) -> Option<Instant> {
        let (now, lingering) = (self.watches.cluster().clock().monotonic(), self.lingering.borrow());
        let until = |key: &ObjectKey| lingering.until(key, bundle, period, now);
        until(key).or_else(|| equivalences.of_key(key).find_map(|key| until(&key)))
    }

    /// A ManagedResource deletes an object. If that is an autoscaler, it does not count for it once it is gone.
    pub(crate) fn is_deleted_by(&self, bundle: &NamespacedName, key: &ObjectKey) {
        if key.group == "autoscaling" && key.kind == "HorizontalPodAutoscaler" {
            let now = self.watches.cluster().clock().monotonic();
            let autoscaler = NamespacedName::new(&key.namespace, &key.name);
            self.lingering.borrow_mut().is_deleted_by(bundle, autoscaler, now);
        }
    }

    pub(crate) fn stop(&self) {
        self.ended.set(true);
        let running = self.running.borrow_mut().take();
        if let Some(Running { watch, .. }) = running {
            watch.stop();
        }
    }
}
