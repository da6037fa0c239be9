//! The objects of all bundles in the target cluster: who is interested in which, and what watches know of them.
//!
//! Interest, not the origin annotation, finds the bundles an object's drift concerns: each bundle registers the keys of
//! its manifests and refs. A kind is watched as long as somebody is interested in one of its objects; only objects with
//! interest are kept.

mod holders;
mod origins;
mod owners;
mod revision;
mod watch;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

use cluster::{Cached as _, Found, Resource, StoreState, Watch, Watches};
use kit::{Listening, Moment};
use serde_json::Value;
use tokio::time::Instant;

pub(crate) use self::revision::ObjectsRevision;
pub(crate) use self::watch::{Drift, DriftListener, HealthListener, News};
use self::{origins::Origins, owners::Owners};
use super::{bodies::Bodies, cached_object::CachedObject, named::Named};
use crate::{
    actors::health::{Judgement, judge, pods::PodSummary},
    api::object::{GroupKind, GroupVersionKind, NamespacedName, ObjectKey},
};

/// A kind is watched this much longer than somebody is interested in it.
const WATCH_AFTER_LAST: Duration = Duration::from_secs(300);

/// How an object stands, for health (spec 20 §10.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It exists; what is wrong with it. It may be of before a connection was lost: until there is one again nothing else
    /// is known.
    Known(Option<Box<Judgement>>),
    /// Its kind is watched, or never will be, and nothing is known of it.
    Unknown,
    /// Its kind's watch has not begun.
    Starting,
    /// Its kind cannot be watched.
    Failing(String),
}

/// Tells whether a kind is defined by a CustomResourceDefinition: such kinds count generations.
pub(crate) type IsCustom = Rc<dyn Fn(&Resource) -> bool>;

/// The watched objects of all bundles. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ManagedObjects {
    inner: Rc<Inner>,
}

struct Inner {
    watches: Watches,
    /// Label selector of the watches: `resources.gardener.cloud/managed-by=<value>`.
    selector: String,
    is_custom: IsCustom,
    kinds: RefCell<BTreeMap<GroupKind, WatchedKind>>,
    /// Nothing is watched: what is asked for is read (spec 70 §8.5).
    is_live: Cell<bool>,
    /// What still runs when the controller has stopped must not start watches again.
    ended: Cell<bool>,
    owners: Rc<RefCell<Owners>>,
    drift: DriftListener,
    health: HealthListener,
    bodies: Bodies,
    origins: Rc<Origins>,
}

struct WatchedKind {
    watch: Watch<CachedObject>,
    /// Since when nobody is interested in an object of the kind.
    idle_since: Option<Instant>,
    /// Tells the holders of its objects when the watch comes or goes.
    _listening: Listening,
}

/// What is known of an object without asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// It exists and looks like this; any change would have been heard.
    Known(CachedObject),
    /// Nothing that may be relied on.
    None,
}

impl ManagedObjects {
    /// Nothing is watched yet.
    pub(crate) fn new(
        watches: &Watches,
        selector: String,
        is_custom: IsCustom,
        drift: DriftListener,
        health: HealthListener,
    ) -> Self {
        let inner = Inner {
            watches: watches.clone(),
            selector,
            is_custom,
            kinds: RefCell::default(),
            is_live: Cell::default(),
            ended: Cell::default(),
            owners: Rc::default(),
            drift,
            health,
            bodies: Bodies::default(),
            origins: Rc::default(),
        };
        Self { inner: Rc::new(inner) }
    }

    /// From now on no kind is watched: each look reads, and only periods find what drifted (spec 70 §8.5).
    pub(crate) fn read_live(&self) {
        self.inner.is_live.set(true);
    }

    /// Sets the objects a bundle is interested in; an empty set ends its interest.
    pub(crate) fn register(&self, bundle: &NamespacedName, keys: BTreeSet<ObjectKey>) {
        let lost = self.inner.owners.borrow_mut().replace(bundle, keys);
        for key in lost {
            if let Some(watch) = self.inner.watch(&key.group_kind()) {
                watch.forget(&name_in_store(watch.resource(), &key));
            }
        }
        self.end_idle_watches();
    }

    /// Sets the labels and annotations that count for a bundle, by object. Of its other objects all do.
    pub(crate) fn name(&self, bundle: &NamespacedName, named: impl Iterator<Item = (ObjectKey, Named)>) {
        self.inner.owners.borrow_mut().name(bundle, named);
    }

    /// What is remembered of a whole object, as it was answered.
    pub(crate) fn cached_of(&self, key: &ObjectKey, object: &Value) -> CachedObject {
        CachedObject::of_object(object, self.inner.owners.borrow().named(key).as_deref())
    }

    /// Adds to what a bundle is interested in.
    pub(crate) fn hold(&self, bundle: &NamespacedName, keys: impl Iterator<Item = ObjectKey>) {
        let more = {
            let owners = self.inner.owners.borrow();
            let mut more: BTreeSet<_> = keys.filter(|key| !owners.is_held_by(key, bundle)).collect();
            if more.is_empty() {
                return;
            }
            more.extend(owners.held_by(bundle).cloned());
            more
        };
        self.register(bundle, more);
    }

    /// Whether a bundle is interested in an object.
    pub(crate) fn is_held_by(&self, key: &ObjectKey, bundle: &NamespacedName) -> bool {
        self.inner.owners.borrow().is_held_by(key, bundle)
    }

    /// The key, kept once for all who remember something of the object.
    pub(crate) fn shared(&self, key: &ObjectKey) -> Rc<ObjectKey> {
        self.inner.owners.borrow().shared(key).unwrap_or_else(|| Rc::new(key.clone()))
    }

    /// There is news for a bundle that does not come from the watches of its objects.
    pub(crate) fn news_for(&self, bundle: &NamespacedName) {
        self.inner.owners.borrow_mut().news_for(bundle);
    }

    /// Whether a bundle is interested in an object of a kind.
    pub(crate) fn is_interested_in(&self, kind: &GroupKind) -> bool {
        self.inner.owners.borrow().has_kind(kind)
    }

    /// Whether a bundle is interested in an object of such a kind.
    pub(crate) fn holds(&self, bundle: &NamespacedName, is_such: impl Fn(&GroupKind) -> bool) -> bool {
        self.inner.owners.borrow().last_news(bundle).is_some_and(|(_, mut kinds)| kinds.any(is_such))
    }

    /// The bundles that are interested in objects of a kind.
    pub(crate) fn holders_of(&self, kind: &GroupKind) -> BTreeSet<NamespacedName> {
        self.inner.owners.borrow().holders_of(kind)
    }

    /// The namespaces of the objects of a kind that somebody is interested in.
    pub(crate) fn namespaces_of(&self, kind: &GroupKind) -> BTreeSet<String> {
        self.inner.owners.borrow().namespaces(kind)
    }

    /// Starts to watch a kind, if it is not watched yet: in the version by which its health is judged, or else the one the
    /// server prefers, whatever the manifests say, so that bundles that use different versions see the same. A version that
    /// is no longer served is given up for another.
    pub(crate) fn watch(&self, resource: &Resource) {
        if self.inner.is_live.get() || self.inner.ended.get() {
            return;
        }
        let group_kind = resource.group_kind();
        let watched = self.inner.watch(&group_kind);
        if let Some(resource) = self.inner.wanted(watched.as_ref(), resource) {
            self.inner.watch_in(&resource, None);
        }
        if let Some(kind) = self.inner.kinds.borrow_mut().get_mut(&group_kind) {
            kind.idle_since = None;
        }
        // There may be interest in more namespaces.
        if let Some(watch) = self.inner.watch(&group_kind) {
            watch.places_changed();
        }
    }

    /// The server serves other kinds than before: what is watched in a version that is gone is watched in another.
    pub(crate) fn follow_discovery(&self) {
        let outdated: Vec<(Resource, Option<Instant>)> = {
            let kinds = self.inner.kinds.borrow();
            let wanted = |kind: &WatchedKind| {
                Some((self.inner.wanted(Some(&kind.watch), kind.watch.resource())?, kind.idle_since))
            };
            kinds.values().filter_map(wanted).collect()
        };
        for (resource, idle_since) in outdated {
            self.inner.watch_in(&resource, idle_since);
        }
    }

    /// How the watch of a kind tells of its objects, if that is another version than this one and bodies count.
    pub(crate) fn watched_in(&self, resource: &Resource) -> Option<Resource> {
        let kinds = self.inner.kinds.borrow();
        let watch = &kinds.get(&resource.group_kind())?.watch;
        let differs = watch.resource().version != resource.version && watch.reports_bodies();
        (differs && watch.store().is_heard_of()).then(|| watch.resource().clone())
    }

    /// Where the objects of a kind are watched: in these namespaces, or everywhere (`None`).
    pub(crate) fn scopes(&self, kind: &GroupKind) -> Vec<Option<String>> {
        let kinds = self.inner.kinds.borrow();
        kinds.get(kind).map_or(vec![None], |kind| kind.watch.scopes())
    }

    /// Moments to wait for until each of these watched kinds has begun to be heard of. Kinds that cannot be watched are
    /// not waited for: their objects are read live.
    pub(crate) fn starting<'a>(&self, kinds: impl IntoIterator<Item = &'a GroupKind>) -> Vec<Moment> {
        let watched = self.inner.kinds.borrow();
        let starting = kinds.into_iter().filter_map(|kind| {
            let watch = &watched.get(kind)?.watch;
            let moment = watch.signal().moment();
            (watch.store().state() == StoreState::Starting).then_some(moment)
        });
        starting.collect()
    }

    /// What is known of an object without asking.
    pub(crate) fn evidence(&self, key: &ObjectKey) -> Evidence {
        let kinds = self.inner.kinds.borrow();
        let cached = kinds.get(&key.group_kind()).and_then(|WatchedKind { watch, .. }| {
            let name = name_in_store(watch.resource(), key);
            watch.store().get(&name).filter(|_| watch.is_fresh_for(&name))
        });
        cached.map_or(Evidence::None, Evidence::Known)
    }

    /// How an object stands, for health.
    pub(crate) fn standing(&self, key: &ObjectKey) -> Standing {
        let kinds = self.inner.kinds.borrow();
        let Some(watch) = kinds.get(&key.group_kind()).map(|kind| &kind.watch) else {
            return if self.inner.is_live.get() { Standing::Unknown } else { Standing::Starting };
        };
        match watch.store().state() {
            StoreState::Off | StoreState::Starting => Standing::Starting,
            StoreState::Failing(error) if watch.store().age().is_none() => Standing::Failing(error),
            StoreState::Failing(_) | StoreState::Synced => watch
                .store()
                .with(&name_in_store(watch.resource(), key), |cached| Standing::Known(cached.judgement.clone()))
                .unwrap_or(Standing::Unknown),
        }
    }

    /// The Deployments of a namespace for which one of these Pods counts.
    pub(crate) fn deployments_of(&self, namespace: &str, pods: &[&PodSummary]) -> Vec<ObjectKey> {
        let kinds = self.inner.kinds.borrow();
        let Some(kind) = kinds.get(&GroupKind::new("apps", "Deployment")) else { return Vec::new() };
        let mut counted = Vec::new();
        kind.watch.store().for_each_in(namespace, |name, cached| {
            let quota = cached.judgement.as_ref().and_then(|judgement| judgement.pods.as_ref());
            if quota.is_some_and(|quota| pods.iter().any(|pod| quota.counts(pod))) {
                counted.push(crate::bundle::identity::index_key("apps", "Deployment", &name.namespace, &name.name));
            }
        });
        counted
    }

    /// The bundles that are interested in an object.
    pub(crate) fn holders(&self, key: &ObjectKey) -> BTreeSet<NamespacedName> {
        self.inner.owners.borrow().holders(key).iter().map(|holder| NamespacedName::clone(holder)).collect()
    }

    /// The object itself, if what is known of it is just what the last write was answered with.
    pub(crate) fn body(&self, key: &ObjectKey) -> Option<Value> {
        match self.evidence(key) {
            Evidence::Known(cached) => self.inner.bodies.take(key, &cached.resource_version),
            Evidence::None => None,
        }
    }

    /// Keeps what a write was answered with, for the next one.
    pub(crate) fn keep_body(&self, key: &ObjectKey, object: &Value) {
        self.inner.bodies.keep(self.shared(key), object);
    }

    /// Enters what a read or a write of this process was answered with that was sent at `asked` or later.
    pub(crate) fn wrote(&self, key: &ObjectKey, object: &Value, writer: &str, asked: Instant) {
        if let Some(watch) = self.inner.watch_of(key, object) {
            watch.wrote(object, writer, asked);
        }
    }

    /// Enters an object of a list that this process read, and tells what is known of it. No drift: whoever listed it
    /// compares it.
    pub(crate) fn found(&self, key: &ObjectKey, object: &Value, asked: Instant) -> Found {
        self.inner.watch_of(key, object).map_or(Found::Known, |watch| watch.found(object, asked))
    }

    /// The version of an object that is known now. Take it before a request whose answer may be that the object is gone.
    pub(crate) fn version(&self, key: &ObjectKey) -> Option<u64> {
        let watch = self.inner.watch(&key.group_kind())?;
        watch.store().with(&name_in_store(watch.resource(), key), |cached| cached.version())
    }

    /// Enters that an object is gone: a DELETE or a GET of this process said so. `version` is what was deleted, or what was
    /// known before the request: one that was made anew since stays known. `None`: nothing was known.
    pub(crate) fn gone(&self, key: &ObjectKey, version: Option<u64>, writer: &str) {
        if let Some((watch, version)) = self.inner.watch(&key.group_kind()).zip(version) {
            watch.deleted(&name_in_store(watch.resource(), key), version, writer);
        }
        let holders = self.inner.owners.borrow_mut().news_of(key);
        for holder in holders {
            (self.inner.health)(&holder, Some(key), News::Gone);
        }
    }

    /// Ends all watches for good.
    pub(crate) fn stop(&self) {
        self.inner.ended.set(true);
        let kinds = self.inner.kinds.take();
        kinds.values().for_each(|kind| kind.watch.stop());
    }

    fn end_idle_watches(&self) {
        let now = self.inner.watches.cluster().clock().monotonic();
        let is_over = |group_kind: &GroupKind, kind: &mut WatchedKind| {
            if self.inner.owners.borrow().has_kind(group_kind) {
                kind.idle_since = None;
                return false;
            }
            let since = *kind.idle_since.get_or_insert(now);
            now.saturating_duration_since(since) >= WATCH_AFTER_LAST
        };
        let over: Vec<_> = self.inner.kinds.borrow_mut().extract_if(.., is_over).collect();
        over.iter().for_each(|(_, kind)| kind.watch.stop());
    }
}

impl Inner {
    /// The watch of a kind. Whoever listens to it looks at what is kept here: nothing of that is held while it is told
    /// something.
    fn watch(&self, kind: &GroupKind) -> Option<Watch<CachedObject>> {
        self.kinds.borrow().get(kind).map(|kind| kind.watch.clone())
    }

    /// Watches a kind in this version, and no longer in another.
    fn watch_in(&self, resource: &Resource, idle_since: Option<Instant>) {
        let group_kind = resource.group_kind();
        let old = self.kinds.borrow_mut().remove(&group_kind);
        if let Some(old) = old {
            old.watch.stop();
        }
        // Whoever was told of the end may have begun anew, or ended all.
        if self.ended.get() || self.watch(&group_kind).is_some_and(|watch| watch.resource() == resource) {
            return;
        }
        let kind = WatchedKind { idle_since, ..self.start(resource) };
        let other = self.kinds.borrow_mut().insert(group_kind.clone(), kind);
        if let Some(other) = other {
            other.watch.stop();
        }
        self.owners.borrow_mut().news_of_kind(&group_kind);
    }

    /// The watch of a kind, for an answer of the server about one of its objects. In another version than the watched one it
    /// may end what was known without more ado.
    fn watch_of(&self, key: &ObjectKey, object: &Value) -> Option<Watch<CachedObject>> {
        let watch = self.watch(&key.group_kind())?;
        if object["apiVersion"].as_str().is_some_and(|version| version != watch.resource().api_version()) {
            self.owners.borrow_mut().news_of(key);
        }
        Some(watch)
    }

    /// The version in which a kind is to be watched, if it is not the one in which it is.
    fn wanted(&self, known: Option<&Watch<CachedObject>>, resource: &Resource) -> Option<Resource> {
        let discovery = self.watches.cluster().discovery();
        let kind = resource.group_kind();
        let judged = judge::checked_version(&kind)
            .and_then(|version| discovery.known(&GroupVersionKind::new(&kind.group, version, &kind.kind)));
        let preferred = judged.clone().or_else(|| discovery.known_preferred(&kind));
        let watched = known.map(Watch::resource);
        let is_served = |watched: &Resource| discovery.known(&watched.group_version_kind()).as_ref() == Some(watched);
        let version = match watched {
            Some(watched) if is_served(watched) && judged.as_ref().is_none_or(|judged| judged == watched) => {
                watched.clone()
            }
            Some(watched) => preferred.unwrap_or_else(|| watched.clone()),
            None => preferred.unwrap_or_else(|| resource.clone()),
        };
        (watched != Some(&version)).then_some(version)
    }
}

/// The key's place in its kind's store. Index keys of cluster-scoped objects carry the namespace `default`.
fn name_in_store(resource: &Resource, key: &ObjectKey) -> NamespacedName {
    let namespace = if resource.namespaced { key.namespace.as_str() } else { "" };
    NamespacedName::new(namespace, &key.name)
}

#[cfg(test)]
mod tests;
