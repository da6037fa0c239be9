//! Pods that still mount a Secret, and Secrets that wait for them (spec 31 §4.2 rules 7 and 8). A fresh list of the API
//! server decides. A watch only signals when to list again. It is opened for a namespace when a Secret begins to wait
//! there, shared by all waiting Secrets of the namespace, and closed with the last.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    rc::{Rc, Weak},
};

use cluster::{
    CachedFields, Cluster, Context, Index, ListQuery, MOST_NAMESPACES, StoreState, Watch, WatchOptions, Watches,
    object::NamespacedName,
};
use kit::{Failure, Moment, Outcome, Signal};
use serde_json::Value;

use crate::api::kinds;

pub(super) struct Pods {
    cluster: Cluster,
    watches: Watches,
    /// By namespace; entries without a holder are dead.
    open: RefCell<BTreeMap<String, Weak<NamespacePods>>>,
}

/// Held by a waiting Secret: the watch of the Pods of its namespace.
pub(super) type Waiting = Option<Rc<NamespacePods>>;

pub(super) struct NamespacePods {
    watch: Watch<CachedFields<Box<[Box<str>]>>>,
    by_secret: Index<Box<str>>,
    released: Signal,
}

/// Returns the Secrets in plain volumes of a Pod that has not ended (spec 31 "Better than upstream" 2).
pub fn mounted(pod: &Value) -> impl Iterator<Item = &str> {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str);
    let has_ended = matches!(text("/status/phase"), Some("Succeeded" | "Failed"));
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array).filter(|_| !has_ended);
    volumes.into_iter().flatten().filter_map(|volume| volume.pointer("/secret/secretName")?.as_str())
}

impl Pods {
    pub(super) fn new(cluster: &Cluster, watches: &Watches) -> Self {
        Self { cluster: cluster.clone(), watches: watches.clone(), open: RefCell::default() }
    }

    /// Returns how to wait if cached Pods mount the Secret; otherwise `None`.
    pub(super) fn known(waiting: &Waiting, secret: &NamespacedName) -> Option<Outcome> {
        let pods = waiting.as_ref()?;
        let moments = pods.moments();
        let follows = pods.watch.store().state() == StoreState::Synced;
        (follows && pods.by_secret.contains(&secret.name.as_str().into())).then_some(Outcome::Wait(moments))
    }

    /// Lists the Pods. Returns how to wait if one mounts the Secret, otherwise `None`. Fails if the list fails.
    pub(super) async fn ask(
        &self,
        context: &Context,
        secret: &NamespacedName,
        waiting: &mut Waiting,
    ) -> Result<Option<Outcome>, Failure> {
        let before = waiting.as_ref().map(|pods| pods.moments());
        if !self.is_mounted(context, secret).await? {
            return Ok(None);
        }
        if waiting.is_none() {
            *waiting = self.watch(&secret.namespace);
        }
        let Some(pods) = waiting else { return Ok(Some(Outcome::Again)) };
        let outcome = match (pods.watch.store().state(), before) {
            // A signal follows after the initial list.
            (StoreState::Starting, _) => Outcome::Wait(pods.moments()),
            // The watch has reported the end of a listed Pod, or will. If the watch is lost for long, a signal follows.
            (StoreState::Synced, Some(before)) => Outcome::Wait(before),
            (StoreState::Synced | StoreState::Failing(_) | StoreState::Off, _) => Outcome::Again,
        };
        Ok(Some(outcome))
    }

    async fn is_mounted(&self, context: &Context, secret: &NamespacedName) -> Result<bool, Failure> {
        let namespace = Some(secret.namespace.clone());
        let mut pages = self.cluster.pages(context.clone(), kinds::POD, namespace, ListQuery::default());
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| Failure::new(format!("could not list Pods: {error}")))?;
            if page.items.iter().flat_map(mounted).any(|name| name == secret.name) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the watch of the Pods of a namespace, or `None` if there are too many watches.
    fn watch(&self, namespace: &str) -> Waiting {
        let mut open = self.open.borrow_mut();
        open.retain(|_, pods| pods.strong_count() > 0);
        if let Some(pods) = open.get(namespace).and_then(Weak::upgrade) {
            return Some(pods);
        }
        if open.len() >= MOST_NAMESPACES {
            return None;
        }
        let pods = Rc::new(NamespacePods::open(&self.watches, namespace));
        open.insert(namespace.to_owned(), Rc::downgrade(&pods));
        Some(pods)
    }
}

impl NamespacePods {
    fn open(watches: &Watches, namespace: &str) -> Self {
        let secrets = |pod: &Value| mounted(pod).map(Box::from).collect::<Box<[Box<str>]>>();
        let watch = watches.open(WatchOptions::fields(kinds::POD, secrets).within([namespace]).unawaited());
        let by_secret = watch.index(|_, pod| pod.fields.to_vec());
        let released = Signal::default();
        let raised = released.clone();
        watch.subscribe(move |change| {
            let still = change.new.map(|pod| &*pod.fields).unwrap_or_default();
            if change.old.is_some_and(|pod| pod.fields.iter().any(|secret| !still.contains(secret))) {
                raised.raise();
            }
        });
        Self { watch, by_secret, released }
    }

    fn moments(&self) -> Vec<Moment> {
        vec![self.released.moment(), self.watch.signal().moment()]
    }
}

impl Drop for NamespacePods {
    fn drop(&mut self) {
        self.watch.stop();
    }
}
