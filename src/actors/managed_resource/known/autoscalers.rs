//! Which objects a HorizontalPodAutoscaler scales: one small index out of a watch (spec 10 §11.2).
//!
//! The watch starts with the first bundle. Without the right to all of them those in the namespaces of the configuration
//! count; all are tried now and then.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
};

use cluster::{Cached, Change, How, Index, Resource, StoreState, Watch, WatchOptions, Watches};
use kit::Moment;
use serde_json::Value;
use tokio::time::Instant;

use super::lingering::Lingering;
use crate::{
    api::object::{self, GroupVersionKind, NamespacedName, ObjectKey},
    bundle::{hpa, identity::Equivalences},
};

/// The versions in which autoscalers may be read: what they scale is said alike. The first is the one webhooks read, with
/// which the stream is shared.
const VERSIONS: [&str; 2] = ["v2", "v1"];

/// What is kept of an autoscaler.
#[derive(Clone, Debug)]
struct CachedAutoscaler {
    uid: Arc<str>,
    version: u64,
    scales: Option<ObjectKey>,
}

/// Hears of objects that got their first autoscaler or lost their last one.
pub(crate) type ScalingListener = Rc<dyn Fn(&ObjectKey)>;

/// The index.
pub(crate) struct Autoscalers {
    watches: Watches,
    running: RefCell<Option<Running>>,
    /// What still runs when the controller has stopped must not start the watch again.
    ended: Cell<bool>,
    /// Told of each object that gets its first autoscaler or loses its last one.
    changed: ScalingListener,
    /// Autoscalers that are gone, and count for a while all the same.
    lingering: Rc<RefCell<Lingering>>,
    /// Why it cannot be told whether autoscalers are served.
    unknown: RefCell<Option<String>>,
}

struct Running {
    watch: Watch<CachedAutoscaler>,
    /// By what they scale.
    scaled: Index<ObjectKey>,
}

impl CachedAutoscaler {
    /// From an autoscaler. One whose target cannot be read scales nothing, with a warning (spec 10 §11.2, DEV).
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
    /// Nothing is watched yet.
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

    /// Starts the watch if need be. A cluster that does not serve autoscalers has none.
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

    /// Finds out how autoscalers are served, if nothing is known of it yet. That nothing is known is no *there are none*: until it
    /// can be told, [`Self::error`] says so.
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
            let Moved { lost, got } = moved(change, &index);
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

    /// The moment to wait for while the first list is under way: before its end nothing is known of what is scaled. It
    /// comes, because a list that does not end fails.
    pub(crate) fn pending(&self) -> Option<Moment> {
        let running = self.running.borrow();
        let watch = &running.as_ref()?.watch;
        let moment = watch.signal().moment();
        (watch.store().state() == StoreState::Starting).then_some(moment)
    }

    /// Why autoscalers cannot be listed, if so.
    pub(crate) fn error(&self) -> Option<String> {
        match self.running.borrow().as_ref().map(|running| running.watch.store().state()) {
            Some(StoreState::Failing(error)) => Some(error),
            Some(StoreState::Off | StoreState::Starting | StoreState::Synced) => None,
            None => self.unknown.borrow().clone(),
        }
    }

    /// Whether any change of what is scaled would be heard of.
    pub(crate) fn is_fresh(&self) -> bool {
        self.running.borrow().as_ref().is_none_or(|running| running.watch.is_fresh())
    }

    /// Whether an autoscaler scales the object of a bundle, under any equivalent group and kind; or did a moment ago. `period`:
    /// when the last period of the bundle ended.
    pub(crate) fn scales(
        &self,
        key: &ObjectKey,
        equivalences: &Equivalences,
        bundle: &NamespacedName,
        period: Option<Instant>,
    ) -> bool {
        let running = self.running.borrow();
        let Some(Running { scaled, .. }) = running.as_ref() else { return false };
        let scales = |key: &ObjectKey| scaled.contains(key);
        scales(key)
            || equivalences.of_key(key).any(|key| scales(&key))
            || self.lingers(key, equivalences, bundle, period).is_some()
    }

    /// Until when the autoscaler of an object counts for a bundle although it is gone; `None` if it does not.
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

    /// A bundle asks for the deletion of an object: if that is an autoscaler, the bundle does not miss it.
    pub(crate) fn is_deleted_by(&self, bundle: &NamespacedName, key: &ObjectKey) {
        if key.group == "autoscaling" && key.kind == "HorizontalPodAutoscaler" {
            let now = self.watches.cluster().clock().monotonic();
            let autoscaler = NamespacedName::new(&key.namespace, &key.name);
            self.lingering.borrow_mut().is_deleted_by(bundle, autoscaler, now);
        }
    }

    /// Ends the watch for good.
    pub(crate) fn stop(&self) {
        self.ended.set(true);
        let running = self.running.borrow_mut().take();
        if let Some(Running { watch, .. }) = running {
            watch.stop();
        }
    }
}

/// What a change of an autoscaler means for the objects it scales.
#[derive(Default)]
struct Moved<'a> {
    /// It lost its last autoscaler.
    lost: Option<&'a ObjectKey>,
    /// It got its first one.
    got: Option<&'a ObjectKey>,
}

/// The objects that got their first autoscaler by a change, or lost their last one. The index is as it is after the change.
fn moved<'a>(change: &Change<'a, CachedAutoscaler>, index: &Index<ObjectKey>) -> Moved<'a> {
    let old = change.old.and_then(|cached| cached.scales.as_ref());
    let new = change.new.and_then(|cached| cached.scales.as_ref());
    // Who applies waits for the first list.
    if old == new || change.how == How::First {
        return Moved::default();
    }
    Moved { lost: old.filter(|key| !index.contains(key)), got: new.filter(|key| index.get(key).len() == 1) }
}
