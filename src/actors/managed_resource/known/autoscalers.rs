//! Which objects a HorizontalPodAutoscaler scales: one small index out of a watch (spec 10 §11.2).
//!
//! The watch starts with the first bundle. Without the right to all of them those in the namespaces of the configuration
//! count; all are tried now and then.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
};

use cluster::{Change, How, Index, Record, Resource, StoreState, Want, Watch, Watches};
use kit::Moment;
use serde_json::Value;

use crate::{
    api::object::{self, GroupVersionKind, ObjectKey},
    bundle::{hpa, identity::Equivalences},
};

/// The versions in which autoscalers may be read: what they scale is said alike. The first is the one webhooks read, with
/// which the stream is shared.
const VERSIONS: [&str; 2] = ["v2", "v1"];

/// What is kept of an autoscaler.
#[derive(Clone, Debug)]
struct AutoscalerRecord {
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
}

struct Running {
    watch: Watch<AutoscalerRecord>,
    /// By what they scale.
    scaled: Index<ObjectKey>,
}

// === impl AutoscalerRecord ===

impl AutoscalerRecord {
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
    pub(crate) fn new(watches: &Watches, changed: ScalingListener) -> Self {
        Self { watches: watches.clone(), running: RefCell::default(), ended: Cell::default(), changed }
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

    fn open(&self, resource: Resource) -> Running {
        let configured = self.watches.cluster().options().namespaces.clone();
        let want = Want::new(resource, |autoscaler| Some(AutoscalerRecord::of(autoscaler))).everywhere();
        let watch = self.watches.open(want.narrowing(move || configured.iter().cloned().collect()));
        let scaled = watch.index(|_, record: &AutoscalerRecord| record.scales.iter().cloned().collect());
        let (index, changed) = (scaled.clone(), self.changed.clone());
        watch.subscribe(move |change| moved(change, &index).into_iter().for_each(|key| changed(key)));
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
            Some(StoreState::Off | StoreState::Starting | StoreState::Synced) | None => None,
        }
    }

    /// Whether any change of what is scaled would be heard of.
    pub(crate) fn is_fresh(&self) -> bool {
        self.running.borrow().as_ref().is_none_or(|running| running.watch.is_fresh())
    }

    /// Whether an autoscaler scales the object, under any equivalent group and kind.
    pub(crate) fn scales(&self, key: &ObjectKey, equivalences: &Equivalences) -> bool {
        let running = self.running.borrow();
        let Some(Running { scaled, .. }) = running.as_ref() else { return false };
        scaled.contains(key) || equivalences.of_key(key).any(|key| scaled.contains(&key))
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

/// The objects that got their first autoscaler by a change, or lost their last one. The index is as it is after the change.
fn moved<'a>(change: &Change<'a, AutoscalerRecord>, index: &Index<ObjectKey>) -> Vec<&'a ObjectKey> {
    let old = change.old.and_then(|record| record.scales.as_ref());
    let new = change.new.and_then(|record| record.scales.as_ref());
    // Who applies waits for the first list.
    if old == new || change.how == How::First {
        return Vec::new();
    }
    let lost = old.filter(|key| !index.contains(key));
    let got = new.filter(|key| index.get(key).len() == 1);
    lost.into_iter().chain(got).collect()
}
