//! What must hold at each moment of a life: checked with each request of the program.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use sim::{RequestInfo, Sim};
use tokio::time::Instant;

use super::items::{Form, ITEMS, Item};
use crate::world::NAMESPACE;

/// A reconcile acts on what it read at its start. It ends after a minute, and its requests a moment later.
const RECONCILE: Duration = Duration::from_secs(70);
/// A request that was sent before a lease was lost may arrive after it.
const ON_THE_WAY: Duration = Duration::from_millis(5);

#[derive(Clone)]
pub(super) struct Watchman {
    observed: Arc<Mutex<Observed>>,
    sim: Sim,
    /// Whether events get lost in this life: the program's cache may then be arbitrarily old.
    lossy: bool,
}

#[derive(Default)]
struct Observed {
    held: BTreeMap<&'static str, BTreeMap<Item, Form>>,
    dropped: BTreeMap<(&'static str, Item), Instant>,
    may_stay: BTreeSet<Item>,
    deposed: BTreeMap<String, Instant>,
    /// Deletions that are wrong if they are executed, by number of the request.
    suspicious: Vec<(u64, String)>,
    violations: Vec<String>,
}

impl Watchman {
    pub(super) fn new(sim: &Sim, lossy: bool) -> Self {
        Self { observed: Arc::default(), sim: sim.clone(), lossy }
    }

    fn observed(&self) -> MutexGuard<'_, Observed> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn holds(&self, bundle: &'static str, items: BTreeMap<Item, Form>) {
        let mut observed = self.observed();
        observed.may_stay.extend(
            items.iter().filter(|(_, form)| matches!(form, Form::Kept | Form::Released)).map(|(item, _)| *item),
        );
        let before = observed.held.insert(bundle, items.clone()).unwrap_or_default();
        for item in before.into_keys().filter(|item| !items.contains_key(item)) {
            observed.dropped.insert((bundle, item), Instant::now());
        }
    }

    pub(super) fn keeps(&self, items: impl IntoIterator<Item = Item>) {
        self.observed().may_stay.extend(items);
    }

    pub(super) fn may_stay(&self, item: Item) -> bool {
        self.observed().may_stay.contains(&item)
    }

    pub(super) fn deposed(&self, user: &str) {
        self.observed().deposed.insert(user.to_owned(), Instant::now());
    }

    pub(super) fn violations(&self) -> Vec<String> {
        let mut observed = self.observed();
        let suspicious = std::mem::take(&mut observed.suspicious);
        let mut violations = std::mem::take(&mut observed.violations);
        drop(observed);
        if !suspicious.is_empty() {
            let done: BTreeSet<u64> = self.sim.requests().into_iter().filter(is_done).map(|r| r.info.number).collect();
            violations.extend(suspicious.into_iter().filter(|(number, _)| done.contains(number)).map(|(_, text)| text));
        }
        violations
    }

    pub(super) fn see(&self, info: &RequestInfo) {
        // Events only report; they are written without the lease, too.
        if matches!(info.verb.as_str(), "get" | "list" | "watch") || info.resource == "events" {
            return;
        }
        let mut observed = self.observed();
        if observed.deposed.get(&info.user).is_some_and(|at| at.elapsed() > ON_THE_WAY) {
            let text = format!("{} lost its lease and writes: {} {}", info.user, info.verb, info.path);
            observed.violations.push(text);
        }
        match info.verb.as_str() {
            "create" | "patch" => self.check_responsibility(&mut observed, info),
            "delete" => {
                if let Some(item) = Item::at(&info.resource, &info.group, &info.namespace, &info.name)
                    && let Some(why) = self.wrong(&observed, info, item)
                {
                    observed.suspicious.push((info.number, format!("request {}: {why}", info.number)));
                }
            }
            _ => {}
        }
    }

    /// Returns why an object must not be deleted now: its owner wants it, or no ManagedResource has given it up.
    fn wrong(&self, observed: &Observed, info: &RequestInfo, item: Item) -> Option<String> {
        if self.lossy {
            return None;
        }
        let recently = |bundle, item| observed.dropped.get(&(bundle, item)).is_some_and(|at| at.elapsed() < RECONCILE);
        let holds = |bundle: &str| observed.held.get(bundle).and_then(|items| items.get(&item)).copied();
        let owner = self.origin(&resource(info), &info.namespace, &info.name);
        let owner = owner.as_deref().and_then(|origin| origin.strip_prefix("shoot/"));
        if let Some((owner, _)) = owner.and_then(|owner| observed.held.get_key_value(owner))
            && holds(owner).is_some_and(|form| form != Form::Released)
            && !recently(owner, item)
        {
            return Some(format!("{item:?} of {owner}, which wants it, is deleted: {}", info.path));
        }
        let has_reason = |bundle: &&'static str| holds(bundle).is_none() || recently(bundle, item);
        let mut known = observed.held.keys().filter(|bundle| self.knows(bundle, info));
        (!known.any(has_reason))
            .then(|| format!("{item:?} is deleted, but no ManagedResource that held it has given it up: {}", info.path))
    }

    /// Whether the status names the object. For a cluster-scoped kind it may include a namespace (spec 10 §9.3).
    fn knows(&self, bundle: &str, info: &RequestInfo) -> bool {
        let names = |mr: &Value| {
            let references = mr["status"]["resources"].as_array();
            references.into_iter().flatten().any(|reference| {
                let is_there = info.namespace.is_empty() || reference["namespace"] == *info.namespace;
                reference["name"] == *info.name && is_there
            })
        };
        self.sim.look_at("managedresources.resources.gardener.cloud", NAMESPACE, bundle, names).unwrap_or(false)
    }

    /// The owner that an object names exists and has a finalizer (spec 10 §8, §15).
    fn check_responsibility(&self, observed: &mut Observed, info: &RequestInfo) {
        for item in ITEMS.into_iter().filter(|item| !observed.may_stay.contains(item)) {
            for (resource, namespace, name) in item.places() {
                let Some(origin) = self.origin(resource, namespace, name) else { continue };
                let owner = origin.strip_prefix("shoot/").unwrap_or_default();
                let carries = |mr: &Value| mr["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
                let mrs = "managedresources.resources.gardener.cloud";
                if self.sim.look_at(mrs, NAMESPACE, owner, carries) != Some(true) {
                    let text = format!("{resource} {name} exists without a finalizer on its owner {owner}");
                    observed
                        .violations
                        .push(format!("before request {} ({} {}): {text}", info.number, info.verb, info.path));
                }
            }
        }
    }

    fn origin(&self, resource: &str, namespace: &str, name: &str) -> Option<String> {
        let origin = |object: &Value| {
            object["metadata"]["annotations"]["resources.gardener.cloud/origin"].as_str().map(str::to_owned)
        };
        self.sim.look_at(resource, namespace, name, origin)?
    }
}

fn is_done(request: &sim::Recorded) -> bool {
    request.code.is_some_and(|code| (200..300).contains(&code))
}

fn resource(info: &RequestInfo) -> String {
    if info.group.is_empty() { info.resource.clone() } else { format!("{}.{}", info.resource, info.group) }
}
