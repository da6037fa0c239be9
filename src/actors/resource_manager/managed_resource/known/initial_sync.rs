//! State of the initial sync of many ManagedResources: which of them have not submitted their wanted objects yet, which
//! objects are wanted, and what was found (architecture §6). The folder `initial_sync` runs it.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use cluster::{
    Resource,
    object::{GroupVersionKind, NamespacedName, ObjectKey},
};
use kit::{Moment, Signal};

use super::memory::{Applied, Fingerprint, Fingerprints, Memory};
use crate::actors::resource_manager::bundle::{identity::Equivalences, merge::MergeSettings};

/// Maximum size of all wanted objects together. Objects that do not fit are read live.
const WANTED_BYTES: usize = 64 << 20;

pub(crate) enum InitialSyncStep {
    Over,
    Collect,
    Wait(Moment),
}

#[derive(Default)]
pub(crate) struct InitialSync {
    state: RefCell<InitialSyncState>,
    signal: Signal,
}

#[derive(Default)]
struct InitialSyncState {
    phase: Phase,
    expected: BTreeSet<NamespacedName>,
    wanted: BTreeMap<GroupVersionKind, WantedKind>,
    bytes: usize,
    results: BTreeMap<NamespacedName, SyncResult>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Listing,
    Collecting,
    Comparing,
    Over,
}

pub(crate) struct WantedKind {
    pub(crate) resource: Resource,
    /// By namespace (empty for cluster-scoped objects) and name.
    pub(crate) wanted: BTreeMap<NamespacedName, Vec<WantedObject>>,
}

pub(crate) struct WantedObject {
    pub(crate) wanted_by: Rc<WantedBy>,
    pub(crate) key: Rc<ObjectKey>,
    pub(crate) manifest_hash: u64,
    /// JSON of the manifest and of what was applied before. Trees would take five times as much memory.
    pub(crate) wanted: Box<[u8]>,
}

pub(crate) struct WantedBy {
    pub(crate) bundle: NamespacedName,
    pub(crate) merging: Rc<MergeSettings>,
    pub(crate) equivalences: Equivalences,
    /// The status says that exactly this set was applied.
    pub(crate) trusted: bool,
}

#[derive(Default)]
struct SyncResult {
    /// The applied state, valid if all objects are up to date.
    applied: Option<Applied>,
    up_to_date: Fingerprints,
    absent: BTreeSet<Rc<ObjectKey>>,
    collected: usize,
    kinds: usize,
    complete: Signal,
}

impl InitialSync {
    /// Returns what a reconcile has to do. At the end of the initial sync, fills `memory` with the findings.
    pub(crate) fn step(&self, bundle: &NamespacedName, memory: &mut Memory) -> InitialSyncStep {
        let moment = self.under_way(bundle);
        let mut state = self.state.borrow_mut();
        let is_collecting = state.phase == Phase::Collecting;
        if is_collecting && state.expected.contains(bundle) {
            return InitialSyncStep::Collect;
        }
        // ManagedResources that have not submitted yet need the permits first: their time is short.
        let is_unexpected = is_collecting && state.expected.is_empty() && !state.results.contains_key(bundle);
        if let Some(moment) = moment.filter(|_| !is_unexpected) {
            return InitialSyncStep::Wait(moment);
        }
        if let Some(results) = state.results.remove(bundle) {
            memory.take_over(results);
        }
        InitialSyncStep::Over
    }

    /// Returns the moment to wait for, as long as a list of the initial sync may bring objects of a ManagedResource.
    pub(crate) fn under_way(&self, bundle: &NamespacedName) -> Option<Moment> {
        let state = self.state.borrow();
        let results = state.results.get(bundle);
        match state.phase {
            Phase::Listing => Some(self.signal.moment()),
            Phase::Collecting => Some(results.map_or(&self.signal, |results| &results.complete).moment()),
            Phase::Comparing => results.filter(|results| results.kinds > 0).map(|results| results.complete.moment()),
            Phase::Over => None,
        }
    }

    /// A listed ManagedResource submits no (more) wanted objects.
    pub(crate) fn has_nothing_wanted(&self, bundle: &NamespacedName) {
        let mut state = self.state.borrow_mut();
        if state.expected.remove(bundle) && state.expected.is_empty() {
            drop(state);
            self.signal.raise();
        }
    }

    /// A ManagedResource is gone, or its wanted objects do not count any more: nothing is kept for it.
    pub(crate) fn leaves(&self, bundle: &NamespacedName) {
        let results = self.state.borrow_mut().results.remove(bundle);
        if let Some(results) = results {
            results.complete.raise(); // another of its reconcilers may wait
        }
        self.has_nothing_wanted(bundle);
    }

    pub(crate) fn end(&self) {
        let mut state = self.state.borrow_mut();
        state.phase = Phase::Over;
        state.wanted.clear();
        let waiting: Vec<Signal> = state.results.values().map(|results| results.complete.clone()).collect();
        drop(state);
        self.signal.raise();
        waiting.iter().for_each(Signal::raise);
    }

    /// ManagedResources and Secrets are listed: the `expected` ManagedResources have to submit their wanted objects.
    pub(crate) fn begin_collecting(&self, expected: BTreeSet<NamespacedName>) {
        let mut state = self.state.borrow_mut();
        state.phase = Phase::Collecting;
        state.expected = expected;
        drop(state);
        self.signal.raise();
    }

    /// Makes room for the wanted objects of a ManagedResource. Returns when all are compared, `None` if the comparison
    /// began without them. `wanted`: number of its objects. `applied`: its state if all are up to date.
    pub(crate) fn expect_results(
        &self,
        bundle: &NamespacedName,
        wanted: usize,
        applied: Option<Applied>,
    ) -> Option<Moment> {
        let mut state = self.state.borrow_mut();
        if state.phase != Phase::Collecting {
            return None;
        }
        let results = SyncResult { applied, collected: wanted, ..SyncResult::default() };
        let moment = results.complete.moment();
        state.results.insert(bundle.clone(), results);
        Some(moment)
    }

    pub(crate) fn add(&self, kind: GroupVersionKind, resource: &Resource, wanted_object: WantedObject) -> bool {
        let mut state = self.state.borrow_mut();
        if state.bytes + wanted_object.wanted.len() > WANTED_BYTES {
            return false;
        }
        state.bytes += wanted_object.wanted.len();
        let namespace = if resource.namespaced { wanted_object.key.namespace.as_str() } else { "" };
        let name = NamespacedName::new(namespace, &wanted_object.key.name);
        let kind = state.wanted.entry(kind);
        let kind = kind.or_insert_with(|| WantedKind { resource: resource.clone(), wanted: BTreeMap::new() });
        // Two ManagedResources hardly ever want the same object.
        kind.wanted.entry(name).or_insert_with(|| Vec::with_capacity(1)).push(wanted_object);
        true
    }

    /// A complete list lacks these objects: they do not exist, or do not carry our label.
    pub(crate) fn record_absent(&self, wanted_objects: impl Iterator<Item = WantedObject>) {
        let mut state = self.state.borrow_mut();
        for wanted_object in wanted_objects {
            if let Some(results) = state.results.get_mut(&wanted_object.wanted_by.bundle) {
                results.absent.insert(wanted_object.key);
            }
        }
    }

    pub(crate) fn is_up_to_date(&self, bundle: &NamespacedName, key: Rc<ObjectKey>, seen: Fingerprint) {
        if let Some(results) = self.state.borrow_mut().results.get_mut(bundle) {
            results.up_to_date.insert(key, seen);
        }
    }

    pub(crate) fn moment(&self) -> Moment {
        self.signal.moment()
    }

    pub(crate) fn begin_comparing(&self) -> BTreeMap<GroupVersionKind, WantedKind> {
        let mut state = self.state.borrow_mut();
        state.phase = Phase::Comparing;
        state.expected.clear();
        let kinds = std::mem::take(&mut state.wanted);
        for bundle in kinds.values().flat_map(WantedKind::bundles) {
            if let Some(results) = state.results.get_mut(&bundle) {
                results.kinds += 1;
            }
        }
        let free = state.results.values().filter(|results| results.kinds == 0);
        let free: Vec<Signal> = free.map(|results| results.complete.clone()).collect();
        drop(state);
        self.signal.raise(); // ManagedResources without wanted objects wait for nothing
        free.iter().for_each(Signal::raise);
        kinds
    }

    /// A kind was compared, or cannot be. ManagedResources that want objects of it, and of no other kind, go on.
    pub(crate) fn compared(&self, bundles: BTreeSet<NamespacedName>) {
        let mut free = Vec::new();
        for bundle in bundles {
            if let Some(results) = self.state.borrow_mut().results.get_mut(&bundle) {
                results.kinds = results.kinds.saturating_sub(1);
                if results.kinds == 0 {
                    free.push(results.complete.clone());
                }
            }
        }
        free.iter().for_each(Signal::raise);
    }

    pub(crate) fn all_collected(&self) -> bool {
        self.state.borrow().expected.is_empty()
    }
}

impl Memory {
    fn take_over(&mut self, results: SyncResult) {
        let complete = results.up_to_date.len() == results.collected;
        self.objects = Rc::new(results.up_to_date);
        self.absent = results.absent;
        self.applied = results.applied.filter(|_| complete).map(Rc::new);
    }
}

impl WantedKind {
    pub(crate) fn bundles(&self) -> BTreeSet<NamespacedName> {
        self.wanted.values().flatten().map(|wanted_object| wanted_object.wanted_by.bundle.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        actors::resource_manager::managed_resource::known::CachedObject,
        api::resources::{managed_resource::ManagedResourceSpec, origin::Origin},
    };

    fn bundle(name: &str) -> NamespacedName {
        NamespacedName::new("shoot", name)
    }

    fn add(initial_sync: &InitialSync, name: &str, kind: &str, bytes: usize) -> bool {
        let wanted_by = WantedBy {
            bundle: bundle(name),
            merging: Rc::new(MergeSettings::new(&ManagedResourceSpec::default(), &Origin::default(), "")),
            equivalences: Equivalences::predefined(),
            trusted: false,
        };
        let key = ObjectKey { kind: kind.into(), name: name.into(), ..ObjectKey::default() };
        let wanted = vec![0; bytes].into();
        let wanted_object = WantedObject { wanted_by: Rc::new(wanted_by), key: Rc::new(key), manifest_hash: 0, wanted };
        let resource = Resource::new("", "v1", kind, &kind.to_lowercase(), true);
        initial_sync.add(GroupVersionKind::new("", "v1", kind), &resource, wanted_object)
    }

    fn collected(bundles: &[(&str, &str)]) -> InitialSync {
        let initial_sync = InitialSync::default();
        initial_sync.begin_collecting(bundles.iter().map(|(name, _)| bundle(name)).collect());
        for (name, kind) in bundles {
            let applied = Applied { uid: (*name).into(), generation: 1, secrets: Vec::new(), status: 0 };
            assert!(initial_sync.expect_results(&bundle(name), 1, Some(applied)).is_some());
            assert!(add(&initial_sync, name, kind, 0));
            initial_sync.has_nothing_wanted(&bundle(name));
        }
        initial_sync
    }

    fn is_to_wait(initial_sync: &InitialSync, name: &str) -> bool {
        matches!(initial_sync.step(&bundle(name), &mut Memory::default()), InitialSyncStep::Wait(_))
    }

    #[test]
    fn initial_sync_waits_for_the_lists_of_own_kinds_only() {
        let initial_sync = collected(&[("one", "ConfigMap"), ("two", "Pod")]);
        let is_under_way = |name: &str| initial_sync.under_way(&bundle(name)).is_some();
        assert!(is_under_way("one") && is_under_way("two") && is_under_way("three"));
        let moments = ["one", "two", "three"].map(|name| initial_sync.under_way(&bundle(name)).unwrap());

        let kinds = initial_sync.begin_comparing();
        assert_eq!(moments.each_ref().map(Moment::has_passed), [false, false, true]);
        assert!(is_under_way("one") && is_under_way("two") && !is_under_way("three"));
        initial_sync.compared(kinds[&GroupVersionKind::new("", "v1", "Pod")].bundles());

        assert_eq!(moments.each_ref().map(Moment::has_passed), [false, true, true]);
        assert!(is_under_way("one") && !is_under_way("two"));
        initial_sync.end();
        assert!(moments[0].has_passed() && !is_under_way("one"));
    }

    #[test]
    fn initial_sync_without_wanted_objects_waits_until_all_have_submitted() {
        let initial_sync = InitialSync::default();
        initial_sync.begin_collecting([bundle("one")].into());
        let mut memory = Memory::default();

        let InitialSyncStep::Wait(moment) = initial_sync.step(&bundle("new"), &mut memory) else {
            panic!("it does not wait")
        };
        assert!(matches!(initial_sync.step(&bundle("one"), &mut memory), InitialSyncStep::Collect));
        assert!(!moment.has_passed());
        initial_sync.has_nothing_wanted(&bundle("one"));

        assert!(moment.has_passed());
        assert!(matches!(initial_sync.step(&bundle("new"), &mut memory), InitialSyncStep::Over));
    }

    #[test]
    fn initial_sync_keeps_nothing_for_a_resource_that_is_gone() {
        let initial_sync = collected(&[("one", "ConfigMap"), ("two", "ConfigMap")]);
        let kinds = initial_sync.begin_comparing();
        let moment = initial_sync.under_way(&bundle("one")).unwrap();

        initial_sync.leaves(&bundle("one"));
        assert!(moment.has_passed() && initial_sync.under_way(&bundle("one")).is_none());
        initial_sync.compared(kinds.values().flat_map(WantedKind::bundles).collect());

        let state = initial_sync.state.borrow();
        assert_eq!(state.results.keys().collect::<Vec<_>>(), [&bundle("two")]);
    }

    #[test]
    fn initial_sync_resource_is_applied_if_all_its_objects_are_up_to_date() {
        let initial_sync = collected(&[("one", "ConfigMap"), ("two", "Pod")]);
        let mut kinds = initial_sync.begin_comparing();
        let [pods, config_maps] = ["Pod", "ConfigMap"].map(|kind| {
            let kind = kinds.remove(&GroupVersionKind::new("", "v1", kind)).unwrap();
            (kind.bundles(), kind.wanted.into_values().flatten())
        });
        let up_to_date = config_maps.1.map(|wanted_object| wanted_object.key).next().unwrap();
        let content = CachedObject::of_metadata(&serde_json::json!({}), None).content();

        initial_sync.is_up_to_date(&bundle("one"), up_to_date.clone(), Fingerprint { manifest: 7, content, sent: 0 });
        initial_sync.record_absent(pods.1);
        initial_sync.compared(config_maps.0.union(&pods.0).cloned().collect());

        let [one, two] = ["one", "two"].map(|name| {
            let mut memory = Memory::default();
            assert!(matches!(initial_sync.step(&bundle(name), &mut memory), InitialSyncStep::Over));
            memory
        });
        assert_eq!(one.objects.keys().collect::<Vec<_>>(), [&up_to_date]);
        assert_eq!((one.applied.unwrap().uid.as_str(), one.absent.len()), ("one", 0));
        assert_eq!((two.applied, two.objects.len(), two.absent.len()), (None, 0, 1));
    }

    #[test]
    fn initial_sync_waits_until_its_kinds_are_listed() {
        let initial_sync = InitialSync::default();
        assert!(is_to_wait(&initial_sync, "one") && initial_sync.all_collected());
        initial_sync.begin_collecting([bundle("one"), bundle("two")].into());
        assert!(initial_sync.expect_results(&bundle("one"), 1, None).is_some() && add(&initial_sync, "one", "Pod", 0));
        let all_have_collected = initial_sync.moment();
        initial_sync.has_nothing_wanted(&bundle("one"));
        assert!(is_to_wait(&initial_sync, "one") && !initial_sync.all_collected() && !all_have_collected.has_passed());
        initial_sync.has_nothing_wanted(&bundle("two"));
        assert!(all_have_collected.has_passed());
        assert!(is_to_wait(&initial_sync, "one") && !is_to_wait(&initial_sync, "two") && initial_sync.all_collected());

        let kinds = initial_sync.begin_comparing();
        assert!(is_to_wait(&initial_sync, "one") && !is_to_wait(&initial_sync, "two"));
        initial_sync.compared(kinds.values().flat_map(WantedKind::bundles).collect());

        assert!(!is_to_wait(&initial_sync, "one"));
    }

    #[test]
    fn initial_sync_takes_no_objects_once_comparing_has_begun() {
        let initial_sync = collected(&[("one", "Pod")]);
        initial_sync.begin_comparing();

        assert!(initial_sync.expect_results(&bundle("late"), 1, None).is_none());
        assert!(!is_to_wait(&initial_sync, "late"));
    }

    #[test]
    fn initial_sync_takes_objects_as_long_as_there_is_room() {
        let initial_sync = InitialSync::default();

        assert!(add(&initial_sync, "one", "Pod", WANTED_BYTES - 2) && add(&initial_sync, "two", "Pod", 1));
        assert!(!add(&initial_sync, "three", "Pod", 2));
        assert!(add(&initial_sync, "four", "Pod", 1) && add(&initial_sync, "five", "Pod", 0));
        assert!(!add(&initial_sync, "six", "Pod", 1));
        assert_eq!(initial_sync.begin_comparing().values().flat_map(WantedKind::bundles).count(), 4);
    }
}
