//! The target's objects of all ManagedResources: which ManagedResource owns which, and what watches know of them.
//! Registered keys, not the origin annotation, tell which ManagedResources an object's drift concerns: each registers
//! the keys of its manifests and refs. A kind is watched while one of its objects has an owner; only those are cached.

mod owners;
mod revision;
mod watch;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use cluster::{
    Cached as _, Found, Resource, StoreState, Watch, Watches,
    object::{GroupKind, GroupVersionKind, NamespacedName, ObjectKey},
};
use kit::{Listening, Moment};
use serde_json::Value;
use tokio::time::Instant;

use self::owners::Owners;
pub(crate) use self::{
    revision::ObjectsRevision,
    watch::{Drift, DriftListener, HealthListener, News},
};
use super::{
    bodies::Bodies,
    cached_object::{CachedObject, generation_covers_body},
    named::Named,
    shared_texts::SharedTexts,
};
use crate::actors::resource_manager::health::{Judgement, judge, pods::PodSummary};

/// A kind is watched for this long after its last object lost its owner.
const WATCH_AFTER_LAST: Duration = Duration::from_secs(300);

/// The state of an object, for health (spec 20 §10.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It exists, with what is wrong with it. If the connection was lost, this is the last known state.
    Known(Option<Box<Judgement>>),
    /// It is not cached, although its kind is watched, or nothing is watched at all.
    Unknown,
    Starting,
    Failing(String),
}

/// What is known of an object, for people: of the last event, whether that is evidence or not.
#[derive(Debug, Clone)]
pub(crate) struct Glance {
    pub(crate) standing: Standing,
    pub(crate) deleting: bool,
    pub(crate) origin: Option<Arc<str>>,
}

/// Returns whether a kind is defined by a CustomResourceDefinition, or `None` while that is not known. Such kinds count
/// generations.
pub(crate) type IsCustom = Rc<dyn Fn(&Resource) -> Option<bool>>;

pub(crate) struct ManagedObjects {
    watches: Watches,
    selector: String,
    is_custom: IsCustom,
    kinds: RefCell<BTreeMap<GroupKind, WatchedKind>>,
    /// Kinds that are watched as soon as it is known whether they are custom.
    undefined: RefCell<BTreeMap<GroupKind, Resource>>,
    is_live: bool,
    /// Set when the controller has stopped: code that still runs must not start watches again.
    ended: Cell<bool>,
    owners: Rc<RefCell<Owners>>,
    drift: DriftListener,
    health: HealthListener,
    bodies: Bodies,
    /// All objects of a ManagedResource have the same.
    origins: Rc<SharedTexts>,
}

struct WatchedKind {
    watch: Watch<CachedObject>,
    idle_since: Option<Instant>,
    _listening: Listening,
}

impl ManagedObjects {
    /// `is_live`: no kind is watched. Every check reads, and only periods find drift (spec 70 §8.5).
    pub(crate) fn new(
        watches: &Watches,
        selector: String,
        is_live: bool,
        is_custom: IsCustom,
        drift: DriftListener,
        health: HealthListener,
    ) -> Rc<Self> {
        Rc::new(Self {
            watches: watches.clone(),
            selector,
            is_custom,
            kinds: RefCell::default(),
            undefined: RefCell::default(),
            is_live,
            ended: Cell::default(),
            owners: Rc::default(),
            drift,
            health,
            bodies: Bodies::default(),
            origins: Rc::default(),
        })
    }

    /// Replaces the objects that a ManagedResource owns.
    pub(crate) fn register(&self, bundle: &NamespacedName, keys: BTreeSet<ObjectKey>) {
        let lost = self.owners.borrow_mut().replace(bundle, keys);
        for key in lost {
            if let Some(watch) = self.watch_of_kind(&key.group_kind()) {
                watch.forget(&name_in_store(watch.resource(), &key));
            }
        }
        self.end_idle_watches();
    }

    /// Sets which labels and annotations count for a ManagedResource, by object. For its other objects all count.
    pub(crate) fn name(&self, bundle: &NamespacedName, named: impl Iterator<Item = (ObjectKey, Named)>) {
        self.owners.borrow_mut().name(bundle, named);
    }

    pub(crate) fn cached_of(&self, key: &ObjectKey, object: &Value) -> CachedObject {
        CachedObject::of_object(object, self.owners.borrow().named(key).as_deref())
    }

    /// Adds to the objects that a ManagedResource owns.
    pub(crate) fn hold(&self, bundle: &NamespacedName, keys: impl Iterator<Item = ObjectKey>) {
        let more = {
            let owners = self.owners.borrow();
            let mut more: BTreeSet<_> = keys.filter(|key| !owners.is_held_by(key, bundle)).collect();
            if more.is_empty() {
                return;
            }
            more.extend(owners.held_by(bundle).cloned());
            more
        };
        self.register(bundle, more);
    }

    pub(crate) fn is_held_by(&self, key: &ObjectKey, bundle: &NamespacedName) -> bool {
        self.owners.borrow().is_held_by(key, bundle)
    }

    pub(crate) fn shared(&self, key: &ObjectKey) -> Rc<ObjectKey> {
        self.owners.borrow().shared(key).unwrap_or_else(|| Rc::new(key.clone()))
    }

    /// Records news for ManagedResources that do not come from the watches of their objects.
    pub(crate) fn news_for<'a>(&self, bundles: impl IntoIterator<Item = &'a NamespacedName>) {
        self.owners.borrow_mut().news_for(bundles);
    }

    pub(crate) fn has_owned_kind(&self, kind: &GroupKind) -> bool {
        self.owners.borrow().has_kind(kind)
    }

    pub(crate) fn holds(&self, bundle: &NamespacedName, is_such: impl Fn(&GroupKind) -> bool) -> bool {
        self.owners.borrow().last_news(bundle).is_some_and(|(_, mut kinds)| kinds.any(is_such))
    }

    pub(crate) fn holders_of(&self, kind: &GroupKind) -> BTreeSet<NamespacedName> {
        self.owners.borrow().holders_of(kind)
    }

    /// Returns the owned kinds for which `is_such` returns true. It gets their group and, if known, their plural.
    pub(crate) fn held_kinds(&self, is_such: impl Fn(&str, Option<&str>) -> bool) -> Vec<GroupKind> {
        let kinds = self.kinds.borrow();
        let plural = |kind: &GroupKind| kinds.get(kind).map(|kind| kind.watch.resource().plural.to_string());
        let held = self.owners.borrow().kinds.keys().cloned().collect::<Vec<_>>().into_iter();
        held.filter(|kind| is_such(&kind.group, plural(kind).as_deref())).collect()
    }

    /// Returns the owners of objects in these namespaces, each with its least value. Iterates over all objects once.
    pub(crate) fn holders_in<T: Copy + Ord>(&self, namespaces: &BTreeMap<String, T>) -> Vec<(Rc<NamespacedName>, T)> {
        self.owners.borrow().holders_in(namespaces)
    }

    pub(crate) fn namespaces_of(&self, kind: &GroupKind) -> BTreeSet<String> {
        self.owners.borrow().namespaces(kind)
    }

    /// Watches a kind in the version that judges its health, otherwise in the server's preferred version, so that
    /// ManagedResources with different versions see the same. A version that is no longer served is replaced. The watch waits while
    /// it is not known whether the kind is custom.
    pub(crate) fn watch(&self, resource: &Resource) {
        if self.is_live || self.ended.get() {
            return;
        }
        let group_kind = resource.group_kind();
        let watched = self.watch_of_kind(&group_kind);
        if let Some(resource) = self.wanted(watched.as_ref(), resource) {
            self.watch_in(&resource, None);
        }
        if let Some(kind) = self.kinds.borrow_mut().get_mut(&group_kind) {
            kind.idle_since = None;
        }
        // There may be owned objects in more namespaces.
        if let Some(watch) = self.watch_of_kind(&group_kind) {
            watch.namespaces_changed();
        }
    }

    /// Starts the watches of owned kinds that wait for definitions, if these are known now.
    pub(crate) fn follow_definitions(&self) {
        let undefined = self.undefined.take();
        let owned = undefined.iter().filter(|(kind, _)| self.has_owned_kind(kind));
        owned.for_each(|(_, resource)| self.watch(resource));
    }

    /// Moves watches in versions that are not served any more to another version.
    pub(crate) fn follow_discovery(&self) {
        let outdated: Vec<(Resource, Option<Instant>)> = {
            let kinds = self.kinds.borrow();
            let wanted =
                |kind: &WatchedKind| Some((self.wanted(Some(&kind.watch), kind.watch.resource())?, kind.idle_since));
            kinds.values().filter_map(wanted).collect()
        };
        for (resource, idle_since) in outdated {
            self.watch_in(&resource, idle_since);
        }
    }

    /// Returns the watched version, or `None` if it is this one, bodies do not count, or nothing was received yet.
    pub(crate) fn watched_in(&self, resource: &Resource) -> Option<Resource> {
        let kinds = self.kinds.borrow();
        let watch = &kinds.get(&resource.group_kind())?.watch;
        let differs = watch.resource().version != resource.version && watch.reports_bodies();
        (differs && watch.store().has_contact()).then(|| watch.resource().clone())
    }

    /// Returns the namespaces in which a kind is watched. `None` stands for all namespaces.
    pub(crate) fn scopes(&self, kind: &GroupKind) -> Vec<Option<String>> {
        let kinds = self.kinds.borrow();
        kinds.get(kind).map_or(vec![None], |kind| kind.watch.scopes())
    }

    /// Returns a moment for each of these kinds whose watch has not synced yet: the caller waits for the watch's next
    /// change. Kinds that cannot be watched have no moment. Their objects are read live.
    pub(crate) fn starting<'a>(&self, kinds: impl IntoIterator<Item = &'a GroupKind>) -> Vec<Moment> {
        let watched = self.kinds.borrow();
        let starting = kinds.into_iter().filter_map(|kind| {
            let watch = &watched.get(kind)?.watch;
            let moment = watch.signal().moment();
            (watch.store().state() == StoreState::Starting).then_some(moment)
        });
        starting.collect()
    }

    /// Returns the object as it is known to exist: any change would have been received.
    pub(crate) fn evidence(&self, key: &ObjectKey) -> Option<CachedObject> {
        let watch = self.watch_of_kind(&key.group_kind())?;
        let name = name_in_store(watch.resource(), key);
        watch.store().get(&name).filter(|_| watch.is_fresh_for(&name))
    }

    pub(crate) fn standing(&self, key: &ObjectKey) -> Standing {
        let kinds = self.kinds.borrow();
        let Some(watch) = kinds.get(&key.group_kind()).map(|kind| &kind.watch) else {
            return if self.is_live { Standing::Unknown } else { Standing::Starting };
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

    pub(crate) fn glance(&self, key: &ObjectKey) -> Glance {
        let standing = self.standing(key);
        let kinds = self.kinds.borrow();
        let watch = kinds.get(&key.group_kind()).map(|kind| &kind.watch);
        let known = watch.and_then(|watch| {
            let name = name_in_store(watch.resource(), key);
            watch.store().with(&name, |cached| (cached.deleting, cached.origin.clone()))
        });
        let (deleting, origin) = known.unwrap_or_default();
        Glance { standing, deleting, origin }
    }

    pub(crate) fn deployments_of(&self, namespace: &str, pods: &[&PodSummary]) -> Vec<ObjectKey> {
        let kinds = self.kinds.borrow();
        let Some(kind) = kinds.get(&GroupKind::new("apps", "Deployment")) else { return Vec::new() };
        let mut counted = Vec::new();
        kind.watch.store().for_each_in(namespace, |name, cached| {
            let quota = cached.judgement.as_ref().and_then(|judgement| judgement.pods.as_ref());
            if quota.is_some_and(|quota| pods.iter().any(|pod| quota.counts(pod))) {
                counted.push(crate::actors::resource_manager::bundle::identity::index_key(
                    "apps",
                    "Deployment",
                    &name.namespace,
                    &name.name,
                ));
            }
        });
        counted
    }

    pub(crate) fn holders(&self, key: &ObjectKey) -> BTreeSet<NamespacedName> {
        self.owners.borrow().holders(key).iter().map(|holder| NamespacedName::clone(holder)).collect()
    }

    /// Returns the object itself, if the cached version is what the last write was answered with.
    pub(crate) fn body(&self, key: &ObjectKey) -> Option<Value> {
        self.bodies.take(key, &self.evidence(key)?.resource_version)
    }

    pub(crate) fn keep_body(&self, key: &ObjectKey, object: &Value) {
        self.bodies.keep(self.shared(key), object);
    }

    /// Enters the answer to a read or a write of this process that was sent at `asked` or later.
    pub(crate) fn wrote(&self, key: &ObjectKey, object: &Value, writer: &str, asked: Instant) {
        if let Some(watch) = self.watch_of(key, object) {
            watch.wrote(object, writer, asked);
        }
    }

    /// Enters a listed object and returns what is known of it. Reports no drift: the caller compares the object.
    pub(crate) fn found(&self, key: &ObjectKey, object: &Value, asked: Instant) -> Found {
        self.watch_of(key, object).map_or(Found::Known, |watch| watch.found(object, asked))
    }

    /// Returns the cached version of an object. Take it before a request whose answer may be that the object is gone.
    pub(crate) fn version(&self, key: &ObjectKey) -> Option<u64> {
        let watch = self.watch_of_kind(&key.group_kind())?;
        watch.store().with(&name_in_store(watch.resource(), key), |cached| cached.version())
    }

    /// Enters that an object is gone, by a DELETE or GET of this process. `version` is the deleted version, or the
    /// version known before the request: an object that was created since stays cached.
    pub(crate) fn gone(&self, key: &ObjectKey, version: Option<u64>, writer: &str) {
        if let Some((watch, version)) = self.watch_of_kind(&key.group_kind()).zip(version) {
            watch.deleted(&name_in_store(watch.resource(), key), version, writer);
        }
        let holders = self.owners.borrow_mut().news_of(key);
        for holder in holders {
            (self.health)(&holder, Some(key), News::Gone);
        }
    }

    pub(crate) fn stop(&self) {
        self.ended.set(true);
        self.undefined.take();
        let kinds = self.kinds.take();
        kinds.values().for_each(|kind| kind.watch.stop());
    }

    fn end_idle_watches(&self) {
        let now = self.watches.cluster().clock().monotonic();
        let is_over = |group_kind: &GroupKind, kind: &mut WatchedKind| {
            if self.owners.borrow().has_kind(group_kind) {
                kind.idle_since = None;
                return false;
            }
            let since = *kind.idle_since.get_or_insert(now);
            now.saturating_duration_since(since) >= WATCH_AFTER_LAST
        };
        let over: Vec<_> = self.kinds.borrow_mut().extract_if(.., is_over).collect();
        over.iter().for_each(|(_, kind)| kind.watch.stop());
    }

    /// Returns the watch of a kind. Its listeners read the data of this type: no borrow may be held while they run.
    fn watch_of_kind(&self, kind: &GroupKind) -> Option<Watch<CachedObject>> {
        self.kinds.borrow().get(kind).map(|kind| kind.watch.clone())
    }

    fn watch_in(&self, resource: &Resource, idle_since: Option<Instant>) {
        let group_kind = resource.group_kind();
        if self.is_covered(resource).is_none() {
            self.undefined.borrow_mut().insert(group_kind, resource.clone());
            return;
        }
        let old = self.kinds.borrow_mut().remove(&group_kind);
        if let Some(old) = old {
            old.watch.stop();
        }
        // A listener that heard of the end may have started a watch, or ended all.
        if self.ended.get() || self.watch_of_kind(&group_kind).is_some_and(|watch| watch.resource() == resource) {
            return;
        }
        let kind = WatchedKind { idle_since, ..self.start(resource) };
        let other = self.kinds.borrow_mut().insert(group_kind.clone(), kind);
        if let Some(other) = other {
            other.watch.stop();
        }
        self.owners.borrow_mut().news_of_kind(&group_kind);
    }

    /// Returns whether the generation of a kind's objects tells each change of their bodies, or `None` while that is not known.
    fn is_covered(&self, resource: &Resource) -> Option<bool> {
        let kind = resource.group_kind();
        if generation_covers_body(&kind.group, &kind.kind) { Some(true) } else { (self.is_custom)(resource) }
    }

    /// Returns the watch for an answer about one of its objects. An answer in another version than the watched one is
    /// news, because it may silently invalidate the cached object.
    fn watch_of(&self, key: &ObjectKey, object: &Value) -> Option<Watch<CachedObject>> {
        let watch = self.watch_of_kind(&key.group_kind())?;
        if object["apiVersion"].as_str().is_some_and(|version| version != watch.resource().api_version()) {
            self.owners.borrow_mut().news_of(key);
        }
        Some(watch)
    }

    /// Returns the version in which a kind should be watched, or `None` if it is watched in it already.
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

/// Returns the key's name in the store of its kind. Index keys of cluster-scoped objects have the namespace `default`.
fn name_in_store(resource: &Resource, key: &ObjectKey) -> NamespacedName {
    let namespace = if resource.namespaced { key.namespace.as_str() } else { "" };
    NamespacedName::new(namespace, &key.name)
}

#[cfg(test)]
mod tests;
