//! The objects of all bundles in the target cluster: who is interested in which, and what watches know of them.
//!
//! Interest, not the origin annotation, finds the bundles an object's drift concerns: each bundle registers the keys of
//! its manifests and refs. A kind is watched as long as somebody is interested in one of its objects; only objects with
//! interest are kept.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use super::{
    bodies::Bodies,
    fingerprint::{self, Record},
};
use crate::{
    actors::kit::{Env, Moment},
    api::object::{GroupKind, NamespacedName, ObjectKey},
    cluster::{Change, Cluster, Found, How, ReadRecord, Resource, Router, RouterOptions, Start, StoreState},
};

/// A kind is watched this much longer than somebody is interested in it.
const WATCH_AFTER_LAST: Duration = Duration::from_secs(300);

/// Where a kind may not be watched as a whole, it is watched in so many namespaces; elsewhere its objects are read.
const MOST_NAMESPACES: usize = 64;

/// Told of drift: the bundle, and the object that is no longer as it was.
pub type DriftListener = Rc<dyn Fn(&NamespacedName, &ObjectKey)>;

/// Tells whether a kind is defined by a CustomResourceDefinition: such kinds count generations.
pub type IsCustom = Rc<dyn Fn(&Resource) -> bool>;

/// The watched objects of all bundles. Cheap to clone.
#[derive(Clone)]
pub struct Targets {
    inner: Rc<Inner>,
}

struct Inner {
    cluster: Cluster,
    env: Env,
    /// Label selector of the watches: `resources.gardener.cloud/managed-by=<value>`.
    selector: String,
    is_custom: IsCustom,
    kinds: RefCell<BTreeMap<GroupKind, Kind>>,
    interest: Rc<RefCell<Interest>>,
    drift: DriftListener,
    bodies: Bodies,
}

struct Kind {
    router: Router<Record>,
    /// Since when nobody is interested in an object of the kind.
    idle_since: Option<Instant>,
}

/// Which bundles hold which objects.
#[derive(Default)]
struct Interest {
    holders: BTreeMap<ObjectKey, BTreeSet<NamespacedName>>,
    held: BTreeMap<NamespacedName, BTreeSet<ObjectKey>>,
}

/// What is known of an object without asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// It exists and looks like this; any change would have been heard.
    Known(Record),
    /// Nothing that may be relied on.
    None,
}

// === impl Targets ===

impl Targets {
    /// Nothing is watched yet.
    pub fn new(cluster: &Cluster, env: &Env, selector: String, is_custom: IsCustom, drift: DriftListener) -> Self {
        let inner = Inner {
            cluster: cluster.clone(),
            env: env.clone(),
            selector,
            is_custom,
            kinds: RefCell::default(),
            interest: Rc::default(),
            drift,
            bodies: Bodies::default(),
        };
        Self { inner: Rc::new(inner) }
    }

    /// Sets the objects a bundle is interested in; an empty set ends its interest.
    pub fn register(&self, bundle: &NamespacedName, keys: BTreeSet<ObjectKey>) {
        let lost = self.inner.interest.borrow_mut().replace(bundle, keys);
        for key in lost {
            if let Some(kind) = self.inner.kinds.borrow().get(&key.group_kind()) {
                kind.router.forget(&name_in_store(kind.router.resource(), &key));
            }
        }
        self.end_idle_watches();
    }

    /// Starts to watch a kind, if it is not watched yet: in the version the server prefers, whatever the manifests say, so
    /// that bundles that use different versions see the same. A version that is no longer served is given up for another.
    pub fn watch(&self, resource: &Resource) {
        let group_kind = resource.group_kind();
        let mut kinds = self.inner.kinds.borrow_mut();
        let wanted = self.inner.wanted(kinds.get(&group_kind).map(|kind| &kind.router), resource);
        if let Some((resource, scopes)) = wanted {
            if let Some(old) = kinds.remove(&group_kind) {
                old.router.stop();
            }
            kinds.insert(group_kind.clone(), Kind { router: self.inner.router(&resource, scopes), idle_since: None });
        }
        if let Some(kind) = kinds.get_mut(&group_kind) {
            kind.idle_since = None;
        }
    }

    /// The server serves other kinds than before: what is watched in a version that is gone is watched in another.
    pub fn follow_discovery(&self) {
        for kind in self.inner.kinds.borrow_mut().values_mut() {
            let wanted = self.inner.wanted(Some(&kind.router), kind.router.resource());
            if let Some((resource, scopes)) = wanted {
                kind.router.stop();
                kind.router = self.inner.router(&resource, scopes);
            }
        }
    }

    /// How the watch of a kind tells of its objects, if that is another version than this one and bodies count.
    pub fn watched_in(&self, resource: &Resource) -> Option<Resource> {
        let kinds = self.inner.kinds.borrow();
        let router = &kinds.get(&resource.group_kind())?.router;
        let differs = router.resource().version != resource.version && router.tells_of_bodies();
        (differs && router.store().is_heard_of()).then(|| router.resource().clone())
    }

    /// Where the objects of a kind are watched: in these namespaces, or everywhere (`None`).
    pub fn scopes(&self, kind: &GroupKind) -> Vec<Option<String>> {
        let kinds = self.inner.kinds.borrow();
        kinds.get(kind).map_or(vec![None], |kind| kind.router.scopes().to_vec())
    }

    /// Moments to wait for until each of these watched kinds has begun to be heard of. Kinds that cannot be watched are
    /// not waited for: their objects are read live.
    pub fn starting<'a>(&self, kinds: impl IntoIterator<Item = &'a GroupKind>) -> Vec<Moment> {
        let watched = self.inner.kinds.borrow();
        let starting = kinds.into_iter().filter_map(|kind| {
            let router = &watched.get(kind)?.router;
            let moment = router.signal().moment();
            (router.store().state() == StoreState::Starting).then_some(moment)
        });
        starting.collect()
    }

    /// What is known of an object without asking.
    pub fn evidence(&self, key: &ObjectKey) -> Evidence {
        let kinds = self.inner.kinds.borrow();
        let record = kinds.get(&key.group_kind()).and_then(|Kind { router, .. }| {
            let name = name_in_store(router.resource(), key);
            router.store().get(&name).filter(|_| router.is_fresh_for(&name))
        });
        record.map_or(Evidence::None, Evidence::Known)
    }

    /// The object itself, if what is known of it is just what the last write was answered with.
    pub fn body(&self, key: &ObjectKey) -> Option<Value> {
        match self.evidence(key) {
            Evidence::Known(record) => self.inner.bodies.take(key, &record.resource_version),
            Evidence::None => None,
        }
    }

    /// Keeps what a write was answered with, for the next one.
    pub fn keep_body(&self, key: &ObjectKey, object: &Value) {
        self.inner.bodies.keep(key, object);
    }

    /// Enters what a read or a write of this process was answered with that was sent at `asked` or later.
    pub fn wrote(&self, key: &ObjectKey, object: &Value, writer: &str, asked: Instant) {
        let router = self.inner.kinds.borrow().get(&key.group_kind()).map(|kind| kind.router.clone());
        if let Some(router) = router {
            router.wrote(object, writer, asked);
        }
    }

    /// Enters an object of a list that this process read, and tells what is known of it. No drift: whoever listed it
    /// compares it.
    pub fn found(&self, key: &ObjectKey, object: &Value, asked: Instant) -> Found {
        let router = self.inner.kinds.borrow().get(&key.group_kind()).map(|kind| kind.router.clone());
        router.map_or(Found::Known, |router| router.found(object, asked))
    }

    /// Something about an object changed that is not in the object: whoever is interested in it has to look.
    pub fn changed(&self, key: &ObjectKey) {
        let holders = self.inner.interest.borrow().holders.get(key).cloned().unwrap_or_default();
        for holder in &holders {
            (self.inner.drift)(holder, key);
        }
    }

    /// Enters that an object is gone: a DELETE or a GET of this process said so.
    pub fn gone(&self, key: &ObjectKey, writer: &str) {
        let router = self.inner.kinds.borrow().get(&key.group_kind()).map(|kind| kind.router.clone());
        if let Some(router) = router {
            router.deleted(&name_in_store(router.resource(), key), writer);
        }
    }

    /// Ends all watches.
    pub fn stop(&self) {
        for (_, kind) in std::mem::take(&mut *self.inner.kinds.borrow_mut()) {
            kind.router.stop();
        }
    }

    fn end_idle_watches(&self) {
        let now = self.inner.env.clock.monotonic();
        let interest = self.inner.interest.borrow();
        self.inner.kinds.borrow_mut().retain(|group_kind, kind| {
            if interest.has_kind(group_kind) {
                kind.idle_since = None;
                return true;
            }
            let since = *kind.idle_since.get_or_insert(now);
            let keep = now.saturating_duration_since(since) < WATCH_AFTER_LAST;
            if !keep {
                kind.router.stop();
            }
            keep
        });
    }
}

// === impl Inner ===

impl Inner {
    /// The watch a kind needs, if it is not the one there is: in which version, and where.
    fn wanted(&self, known: Option<&Router<Record>>, resource: &Resource) -> Option<(Resource, Vec<Option<String>>)> {
        let discovery = self.cluster.discovery();
        let preferred = discovery.known_preferred(&resource.group_kind());
        let watched = known.map(Router::resource);
        let is_served = |watched: &Resource| discovery.known(&watched.group_version_kind()).as_ref() == Some(watched);
        let version = match watched {
            Some(watched) if is_served(watched) => watched.clone(),
            Some(watched) => preferred.unwrap_or_else(|| watched.clone()),
            None => preferred.unwrap_or_else(|| resource.clone()),
        };
        let scopes = self.scopes_of(known, &version);
        let is_there = known.is_some_and(|known| *known.resource() == version && known.scopes() == scopes);
        (!is_there).then_some((version, scopes))
    }

    /// Where a kind is watched: in the namespaces of the configuration; else everywhere; and without the right to that, in
    /// the namespaces somebody is interested in.
    fn scopes_of(&self, known: Option<&Router<Record>>, resource: &Resource) -> Vec<Option<String>> {
        let some = |namespaces: BTreeSet<String>| namespaces.into_iter().map(Some).collect();
        let configured = &self.cluster.options().namespaces;
        let Some(known) = known.filter(|_| resource.namespaced && configured.is_empty()) else {
            let is_narrow = resource.namespaced && !configured.is_empty();
            return if is_narrow { some(configured.iter().cloned().collect()) } else { vec![None] };
        };
        let before: BTreeSet<String> = known.scopes().iter().flatten().cloned().collect();
        if before.is_empty() && !known.is_forbidden() {
            return vec![None];
        }
        let namespaces = self.interest.borrow().namespaces(&resource.group_kind());
        let room = MOST_NAMESPACES.saturating_sub(before.len());
        let added: Vec<String> = namespaces.difference(&before).take(room).cloned().collect();
        let all: BTreeSet<String> = before.into_iter().chain(added).collect();
        if all.is_empty() { vec![None] } else { some(all) }
    }

    fn router(&self, resource: &Resource, scopes: Vec<Option<String>>) -> Router<Record> {
        let group_kind = resource.group_kind();
        let metadata_only =
            fingerprint::generation_covers_body(&group_kind.group, &group_kind.kind) || (self.is_custom)(resource);
        let interest = self.interest.clone();
        let (group, kind) = (group_kind.group.clone(), group_kind.kind.clone());
        let key_of =
            move |name: &NamespacedName| super::identity::index_key(&group, &kind, &name.namespace, &name.name);
        let keep = {
            let (interest, key_of) = (interest.clone(), key_of.clone());
            Box::new(move |name: &NamespacedName| interest.borrow().holders.contains_key(&key_of(name)))
        };
        let record: ReadRecord<Record> = if metadata_only {
            Box::new(|object| Some(Record::of_metadata(object)))
        } else {
            Box::new(|object| Some(Record::of_object(object)))
        };
        let options = RouterOptions {
            name: format!("target/{}", resource),
            resource: resource.clone(),
            scopes,
            label_selector: Some(self.selector.clone()),
            metadata_only,
            start: Start::Now,
            record,
            keep,
        };
        let router = Router::start(&self.cluster, options, &self.env);
        let drift = self.drift.clone();
        router.subscribe(move |change| {
            let Some(writer) = drifted(change) else { return };
            let key = key_of(change.name);
            let holders = interest.borrow().holders.get(&key).cloned().unwrap_or_default();
            for holder in holders.iter().filter(|holder| writer != Some(holder.to_string().as_str())) {
                drift(holder, &key);
            }
        });
        router
    }
}

/// Whether a change concerns the holders of the object, and who made it if it was this process. A change that leaves
/// the content as it was (a status, say) concerns nobody.
fn drifted<'a>(change: &Change<'a, Record>) -> Option<Option<&'a str>> {
    let writer = match change.how {
        How::First => return None,
        How::Event | How::Relist => None,
        How::Own { writer } => Some(writer),
    };
    match (change.old, change.new) {
        (Some(old), Some(new)) if old.same_content(new) => None,
        // What a read or write of this process brought for the first time is no drift.
        (None, Some(_)) if writer.is_some() => None,
        _ => Some(writer),
    }
}

/// The key's place in its kind's store. Index keys of cluster-scoped objects carry the namespace `default`.
fn name_in_store(resource: &Resource, key: &ObjectKey) -> NamespacedName {
    let namespace = if resource.namespaced { key.namespace.as_str() } else { "" };
    NamespacedName::new(namespace, &key.name)
}

// === impl Interest ===

impl Interest {
    /// Sets a bundle's keys; gives back those that nobody is interested in any more.
    fn replace(&mut self, bundle: &NamespacedName, keys: BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
        let before =
            if keys.is_empty() { self.held.remove(bundle) } else { self.held.insert(bundle.clone(), keys.clone()) };
        for key in &keys {
            self.holders.entry(key.clone()).or_default().insert(bundle.clone());
        }
        let mut lost = Vec::new();
        for key in before.unwrap_or_default().difference(&keys) {
            if let Some(holders) = self.holders.get_mut(key) {
                holders.remove(bundle);
                if holders.is_empty() {
                    self.holders.remove(key);
                    lost.push(key.clone());
                }
            }
        }
        lost
    }

    /// The namespaces of the objects of a kind.
    fn namespaces(&self, kind: &GroupKind) -> BTreeSet<String> {
        let first = ObjectKey { group: kind.group.clone(), kind: kind.kind.clone(), ..ObjectKey::default() };
        let keys = self.holders.range(first..).map(|(key, _)| key);
        let keys = keys.take_while(|key| key.group == kind.group && key.kind == kind.kind);
        keys.map(|key| key.namespace.clone()).collect()
    }

    fn has_kind(&self, kind: &GroupKind) -> bool {
        let first = ObjectKey { group: kind.group.clone(), kind: kind.kind.clone(), ..ObjectKey::default() };
        self.holders.range(first..).next().is_some_and(|(key, _)| key.group == kind.group && key.kind == kind.kind)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::*;
    use crate::{
        actors::kit::testing::{Universe, universe},
        api::object::GroupVersionKind,
        cluster::testing::{Server, json as reply, text},
    };

    /// A server whose group `g.io` has the kind `A` in these versions, in the order of preference.
    fn served(versions: &[&str]) -> Value {
        let resource = json!({"resource": "as", "scope": "Cluster", "responseKind": {"group": "g.io", "kind": "A"}});
        let version = |name: &&str| json!({"version": name, "freshness": "Current", "resources": [resource.clone()]});
        let versions: Vec<_> = versions.iter().map(version).collect();
        json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "g.io"}, "versions": versions}]})
    }

    /// fault 11
    #[test]
    fn a_kind_is_watched_in_the_preferred_version_and_in_another_when_that_is_no_longer_served() {
        universe(1, |universe: Universe| async move {
            let versions = Arc::new(Mutex::new(served(&["v1beta1", "v1alpha1"])));
            let shown = versions.clone();
            let server = Server::new(move |seen| match seen.line.as_str() {
                "GET /api" => reply(200, &json!({"kind": "APIGroupDiscoveryList", "items": []})),
                "GET /apis" => reply(200, &shown.lock().unwrap()),
                _ => text(404, "404 page not found\n"),
            });
            let cluster = server.cluster();
            let targets =
                Targets::new(&cluster, &universe.env, "a=b".to_owned(), Rc::new(|_| true), Rc::new(|_, _| {}));
            let kind = GroupKind::new("g.io", "A");
            let mut watched = Vec::new();
            for (served_now, asked) in
                [(&["v1beta1", "v1alpha1"][..], "v1alpha1"), (&["v1", "v1beta1"][..], "v1"), (&["v1"][..], "v1")]
            {
                *versions.lock().unwrap() = served(served_now);
                cluster.discovery().refresh_requested("g.io");
                tokio::time::sleep(Duration::from_secs(11)).await;
                let resource = cluster.discovery().mapping(&GroupVersionKind::new("g.io", asked, "A")).await.unwrap();

                targets.watch(&resource);

                let kinds = targets.inner.kinds.borrow();
                watched.push(kinds.get(&kind).unwrap().router.resource().version.to_string());
            }
            *versions.lock().unwrap() = served(&["v2"]);
            cluster.discovery().refresh_requested("g.io");
            tokio::time::sleep(Duration::from_secs(11)).await;
            cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v2", "A")).await.unwrap();
            targets.follow_discovery();
            watched.push(targets.inner.kinds.borrow().get(&kind).unwrap().router.resource().version.to_string());
            targets.stop();

            assert_eq!(watched, ["v1beta1", "v1beta1", "v1", "v2"]);
        });
    }

    fn key(kind: &str, name: &str) -> ObjectKey {
        ObjectKey { kind: kind.into(), name: name.into(), ..ObjectKey::default() }
    }

    fn bundle(name: &str) -> NamespacedName {
        NamespacedName::new("shoot", name)
    }

    #[test]
    fn an_object_is_lost_only_when_the_last_bundle_lets_go_of_it() {
        let mut interest = Interest::default();
        interest.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "a"), key("ConfigMap", "b")]));
        interest.replace(&bundle("two"), BTreeSet::from([key("ConfigMap", "b")]));

        assert_eq!(interest.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "c")])), [key("ConfigMap", "a")]);
        assert_eq!(interest.replace(&bundle("two"), BTreeSet::new()), [key("ConfigMap", "b")]);
        assert_eq!(interest.holders.keys().collect::<Vec<_>>(), [&key("ConfigMap", "c")]);
    }

    #[test]
    fn a_kind_is_wanted_as_long_as_one_of_its_objects_is() {
        let mut interest = Interest::default();
        interest.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "a"), key("Secret", "a")]));

        let wanted = |interest: &Interest, kind: &str| interest.has_kind(&GroupKind::new("", kind));
        assert!(wanted(&interest, "ConfigMap") && wanted(&interest, "Secret") && !wanted(&interest, "Service"));
        interest.replace(&bundle("one"), BTreeSet::from([key("Secret", "a")]));

        assert!(!wanted(&interest, "ConfigMap") && wanted(&interest, "Secret"));
    }
}
