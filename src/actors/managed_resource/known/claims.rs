//! The state of a start over many bundles: who is to claim, what is claimed, and what was found (architecture §6).
//!
//! What is done with it is in the room `start`.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use cluster::Resource;
use kit::{Moment, Signal};

use super::memory::{Applied, Fingerprint, Fingerprints, Memory};
use crate::{
    api::object::{GroupVersionKind, NamespacedName, ObjectKey},
    bundle::identity::Equivalences,
};

/// Claims beyond this are not taken; their objects are read live.
const CLAIM_BYTES: usize = 64 << 20;

/// What a pass has to do for the start.
pub(crate) enum StartStep {
    /// Nothing: the start is over for this bundle.
    Over,
    /// Leave its claims.
    Claim,
    /// Wait.
    Wait(Vec<Moment>),
}

/// The state of the start.
#[derive(Default)]
pub(crate) struct Claims {
    state: RefCell<State>,
    signal: Signal,
}

#[derive(Default)]
struct State {
    phase: Phase,
    /// Bundles that were listed and have not yet claimed.
    expected: BTreeSet<NamespacedName>,
    claims: BTreeMap<GroupVersionKind, ClaimedKind>,
    bytes: usize,
    verdicts: BTreeMap<NamespacedName, Verdicts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Listing,
    Claiming,
    Sweeping,
    Over,
}

/// What is claimed of one kind.
pub(crate) struct ClaimedKind {
    pub(crate) resource: Resource,
    /// By namespace, which is empty for cluster-scoped objects, and name.
    pub(crate) claims: BTreeMap<NamespacedName, Vec<Claim>>,
}

/// One object that one bundle wants.
pub(crate) struct Claim {
    pub(crate) common: Rc<Common>,
    pub(crate) key: Rc<ObjectKey>,
    pub(crate) manifest_hash: u64,
    /// JSON of the manifest and of what was applied before: trees would take five times as much.
    pub(crate) wanted: Box<[u8]>,
}

/// What the claims of one bundle have in common.
pub(crate) struct Common {
    pub(crate) bundle: NamespacedName,
    pub(crate) origin: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) equivalences: Equivalences,
    pub(crate) force_overwrite_labels: bool,
    pub(crate) force_overwrite_annotations: bool,
    /// The status says that this very set was applied.
    pub(crate) trusted: bool,
}

/// What the sweep found for one bundle.
#[derive(Default)]
struct Verdicts {
    /// What the bundle is if all its objects are settled.
    applied: Option<Applied>,
    settled: Fingerprints,
    absent: BTreeSet<Rc<ObjectKey>>,
    claimed: usize,
    /// Kinds of its claims that are still to be listed.
    kinds: usize,
    /// Raised when there are no more of them.
    complete: Signal,
}

impl Claims {
    /// What the pass of a bundle has to do. At the end of the start the bundle's memory is filled with what was found.
    pub(crate) fn step(&self, bundle: &NamespacedName, memory: &mut Memory) -> StartStep {
        let mut state = self.state.borrow_mut();
        match state.phase {
            Phase::Listing => StartStep::Wait(vec![self.signal.moment()]),
            Phase::Claiming if state.expected.contains(bundle) => StartStep::Claim,
            // Those who are to claim need the permits first: their time is short.
            Phase::Claiming if !state.expected.is_empty() && !state.verdicts.contains_key(bundle) => {
                StartStep::Wait(vec![self.signal.moment()])
            }
            phase @ (Phase::Claiming | Phase::Sweeping | Phase::Over) => {
                let waits = |verdicts: &&Verdicts| match phase {
                    Phase::Listing | Phase::Claiming => true,
                    Phase::Sweeping => verdicts.kinds > 0,
                    Phase::Over => false,
                };
                if let Some(verdicts) = state.verdicts.get(bundle).filter(waits) {
                    return StartStep::Wait(vec![verdicts.complete.moment()]);
                }
                if let Some(verdicts) = state.verdicts.remove(bundle) {
                    memory.take_over(verdicts);
                }
                StartStep::Over
            }
        }
    }

    /// The moment to wait for as long as a list of the start may bring objects of a bundle.
    pub(crate) fn under_way(&self, bundle: &NamespacedName) -> Option<Moment> {
        let state = self.state.borrow();
        let verdicts = state.verdicts.get(bundle);
        match state.phase {
            Phase::Listing => Some(self.signal.moment()),
            Phase::Claiming => Some(verdicts.map_or(&self.signal, |verdicts| &verdicts.complete).moment()),
            Phase::Sweeping => {
                verdicts.filter(|verdicts| verdicts.kinds > 0).map(|verdicts| verdicts.complete.moment())
            }
            Phase::Over => None,
        }
    }

    /// A listed bundle will not claim anything.
    pub(crate) fn has_nothing_to_claim(&self, bundle: &NamespacedName) {
        let mut state = self.state.borrow_mut();
        if state.expected.remove(bundle) && state.expected.is_empty() {
            drop(state);
            self.signal.raise();
        }
    }

    /// A bundle is gone, or what it wanted counts no more: nothing is kept for it.
    pub(crate) fn leaves(&self, bundle: &NamespacedName) {
        let verdicts = self.state.borrow_mut().verdicts.remove(bundle);
        if let Some(verdicts) = verdicts {
            verdicts.complete.raise(); // another of its duties may wait
        }
        self.has_nothing_to_claim(bundle);
    }

    /// Ends the start: everybody reads live.
    pub(crate) fn end(&self) {
        let mut state = self.state.borrow_mut();
        state.phase = Phase::Over;
        state.claims.clear();
        let waiting: Vec<Signal> = state.verdicts.values().map(|verdicts| verdicts.complete.clone()).collect();
        drop(state);
        self.signal.raise();
        waiting.iter().for_each(Signal::raise);
    }

    /// The lists of bundles and Secrets are here: these bundles are to claim.
    pub(crate) fn begin_claiming(&self, expected: BTreeSet<NamespacedName>) {
        let mut state = self.state.borrow_mut();
        state.phase = Phase::Claiming;
        state.expected = expected;
        drop(state);
        self.signal.raise();
    }

    /// Room for what a bundle claims; the moment when all of it is found out. `None`: too late, the sweep has taken what
    /// there was, and its end may have been told already.
    ///
    /// `wanted`: how many objects it has; `applied`: what it is if all of them turn out to be settled.
    pub(crate) fn begin_claims(
        &self,
        bundle: &NamespacedName,
        wanted: usize,
        applied: Option<Applied>,
    ) -> Option<Moment> {
        let mut state = self.state.borrow_mut();
        if state.phase != Phase::Claiming {
            return None;
        }
        let verdicts = Verdicts { applied, claimed: wanted, ..Verdicts::default() };
        let moment = verdicts.complete.moment();
        state.verdicts.insert(bundle.clone(), verdicts);
        Some(moment)
    }

    /// Takes a claim; `false` when there is no room for more.
    pub(crate) fn add(&self, kind: GroupVersionKind, resource: &Resource, claim: Claim) -> bool {
        let mut state = self.state.borrow_mut();
        if state.bytes + claim.wanted.len() > CLAIM_BYTES {
            return false;
        }
        state.bytes += claim.wanted.len();
        let namespace = if resource.namespaced { claim.key.namespace.as_str() } else { "" };
        let name = NamespacedName::new(namespace, &claim.key.name);
        let kind = state.claims.entry(kind);
        let kind = kind.or_insert_with(|| ClaimedKind { resource: resource.clone(), claims: BTreeMap::new() });
        // Hardly ever is an object claimed twice.
        kind.claims.entry(name).or_insert_with(|| Vec::with_capacity(1)).push(claim);
        true
    }

    /// A complete list does not hold these objects: they do not exist, or do not carry our label.
    pub(crate) fn are_absent(&self, claims: impl Iterator<Item = Claim>) {
        let mut state = self.state.borrow_mut();
        for claim in claims {
            if let Some(verdicts) = state.verdicts.get_mut(&claim.common.bundle) {
                verdicts.absent.insert(claim.key);
            }
        }
    }

    /// An object is as its bundle wants it.
    pub(crate) fn is_settled(&self, bundle: &NamespacedName, key: Rc<ObjectKey>, seen: Fingerprint) {
        if let Some(verdicts) = self.state.borrow_mut().verdicts.get_mut(bundle) {
            verdicts.settled.insert(key, seen);
        }
    }

    /// The moment of the next news about the start as a whole.
    pub(crate) fn moment(&self) -> Moment {
        self.signal.moment()
    }

    /// Ends the claiming, and gives what was claimed.
    pub(crate) fn begin_sweeping(&self) -> BTreeMap<GroupVersionKind, ClaimedKind> {
        let mut state = self.state.borrow_mut();
        state.phase = Phase::Sweeping;
        state.expected.clear();
        let kinds = std::mem::take(&mut state.claims);
        for bundle in kinds.values().flat_map(ClaimedKind::bundles) {
            if let Some(verdicts) = state.verdicts.get_mut(&bundle) {
                verdicts.kinds += 1;
            }
        }
        let free = state.verdicts.values().filter(|verdicts| verdicts.kinds == 0);
        let free: Vec<Signal> = free.map(|verdicts| verdicts.complete.clone()).collect();
        drop(state);
        self.signal.raise(); // bundles without claims wait for nothing
        free.iter().for_each(Signal::raise);
        kinds
    }

    /// A kind is swept, or cannot be: the bundles that held an object of it, and wait for no other kind, go on.
    pub(crate) fn swept(&self, bundles: BTreeSet<NamespacedName>) {
        let mut free = Vec::new();
        for bundle in bundles {
            if let Some(verdicts) = self.state.borrow_mut().verdicts.get_mut(&bundle) {
                verdicts.kinds = verdicts.kinds.saturating_sub(1);
                if verdicts.kinds == 0 {
                    free.push(verdicts.complete.clone());
                }
            }
        }
        free.iter().for_each(Signal::raise);
    }

    /// Whether nobody is left who is to claim.
    pub(crate) fn all_claimed(&self) -> bool {
        self.state.borrow().expected.is_empty()
    }
}

impl Memory {
    fn take_over(&mut self, verdicts: Verdicts) {
        let complete = verdicts.settled.len() == verdicts.claimed;
        self.objects = Rc::new(verdicts.settled);
        self.absent = verdicts.absent;
        self.applied = verdicts.applied.filter(|_| complete).map(Rc::new);
    }
}

impl ClaimedKind {
    /// The bundles that claim an object of it.
    pub(crate) fn bundles(&self) -> BTreeSet<NamespacedName> {
        self.claims.values().flatten().map(|claim| claim.common.bundle.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::managed_resource::known::ObjectRecord;

    fn bundle(name: &str) -> NamespacedName {
        NamespacedName::new("shoot", name)
    }

    /// A bundle claims an object; `false` if there is no room.
    fn add(claims: &Claims, name: &str, kind: &str, bytes: usize) -> bool {
        let common = Common {
            bundle: bundle(name),
            origin: String::new(),
            labels: BTreeMap::new(),
            equivalences: Equivalences::predefined(),
            force_overwrite_labels: false,
            force_overwrite_annotations: false,
            trusted: false,
        };
        let key = ObjectKey { kind: kind.into(), name: name.into(), ..ObjectKey::default() };
        let wanted = vec![0; bytes].into();
        let claim = Claim { common: Rc::new(common), key: Rc::new(key), manifest_hash: 0, wanted };
        let resource = Resource::new("", "v1", kind, &kind.to_lowercase(), true);
        claims.add(GroupVersionKind::new("", "v1", kind), &resource, claim)
    }

    /// Claims in which these bundles have claimed objects of one kind each, and the sweep is to begin.
    fn claimed(bundles: &[(&str, &str)]) -> Claims {
        let claims = Claims::default();
        claims.begin_claiming(bundles.iter().map(|(name, _)| bundle(name)).collect());
        for (name, kind) in bundles {
            let applied = Applied { uid: (*name).into(), generation: 1, secrets: Vec::new(), status: 0 };
            assert!(claims.begin_claims(&bundle(name), 1, Some(applied)).is_some());
            assert!(add(&claims, name, kind, 0));
            claims.has_nothing_to_claim(&bundle(name));
        }
        claims
    }

    fn is_to_wait(claims: &Claims, name: &str) -> bool {
        matches!(claims.step(&bundle(name), &mut Memory::default()), StartStep::Wait(_))
    }

    #[test]
    fn a_bundle_waits_for_the_lists_of_its_own_kinds_alone() {
        let claims = claimed(&[("one", "ConfigMap"), ("two", "Pod")]);
        let is_under_way = |name: &str| claims.under_way(&bundle(name)).is_some();
        assert!(is_under_way("one") && is_under_way("two") && is_under_way("three"));
        let moments = ["one", "two", "three"].map(|name| claims.under_way(&bundle(name)).unwrap());

        let kinds = claims.begin_sweeping();
        assert_eq!(moments.each_ref().map(Moment::has_passed), [false, false, true]);
        assert!(is_under_way("one") && is_under_way("two") && !is_under_way("three"));
        claims.swept(kinds[&GroupVersionKind::new("", "v1", "Pod")].bundles());

        assert_eq!(moments.each_ref().map(Moment::has_passed), [false, true, true]);
        assert!(is_under_way("one") && !is_under_way("two"));
        claims.end();
        assert!(moments[0].has_passed() && !is_under_way("one"));
    }

    #[test]
    fn a_bundle_without_claims_waits_until_the_others_have_claimed() {
        let claims = Claims::default();
        claims.begin_claiming([bundle("one")].into());
        let mut memory = Memory::default();

        let StartStep::Wait(moments) = claims.step(&bundle("new"), &mut memory) else { panic!("it goes on") };
        assert!(matches!(claims.step(&bundle("one"), &mut memory), StartStep::Claim));
        assert!(!moments[0].has_passed());
        claims.has_nothing_to_claim(&bundle("one"));

        assert!(moments[0].has_passed());
        assert!(matches!(claims.step(&bundle("new"), &mut memory), StartStep::Over));
    }

    #[test]
    fn nothing_is_kept_for_a_bundle_that_is_gone_before_its_kinds_are_listed() {
        let claims = claimed(&[("one", "ConfigMap"), ("two", "ConfigMap")]);
        let kinds = claims.begin_sweeping();
        let moment = claims.under_way(&bundle("one")).unwrap();

        claims.leaves(&bundle("one"));
        assert!(moment.has_passed() && claims.under_way(&bundle("one")).is_none());
        claims.swept(kinds.values().flat_map(ClaimedKind::bundles).collect());

        let state = claims.state.borrow();
        assert_eq!(state.verdicts.keys().collect::<Vec<_>>(), [&bundle("two")]);
    }

    #[test]
    fn what_was_found_is_remembered_and_a_bundle_is_applied_if_all_it_claimed_is_settled() {
        let claims = claimed(&[("one", "ConfigMap"), ("two", "Pod")]);
        let mut kinds = claims.begin_sweeping();
        let [pods, config_maps] = ["Pod", "ConfigMap"].map(|kind| {
            let kind = kinds.remove(&GroupVersionKind::new("", "v1", kind)).unwrap();
            (kind.bundles(), kind.claims.into_values().flatten())
        });
        let settled = config_maps.1.map(|claim| claim.key).next().unwrap();
        let content = ObjectRecord::of_metadata(&serde_json::json!({}), None).content();

        claims.is_settled(&bundle("one"), settled.clone(), Fingerprint { manifest: 7, content, sent: 0 });
        claims.are_absent(pods.1);
        claims.swept(config_maps.0.union(&pods.0).cloned().collect());

        let [one, two] = ["one", "two"].map(|name| {
            let mut memory = Memory::default();
            assert!(matches!(claims.step(&bundle(name), &mut memory), StartStep::Over));
            memory
        });
        assert_eq!(one.objects.keys().collect::<Vec<_>>(), [&settled]);
        assert_eq!((one.applied.unwrap().uid.as_str(), one.absent.len()), ("one", 0));
        assert_eq!((two.applied, two.objects.len(), two.absent.len()), (None, 0, 1));
    }

    #[test]
    fn a_bundle_that_has_claimed_waits_until_its_kinds_are_listed() {
        let claims = Claims::default();
        assert!(is_to_wait(&claims, "one") && claims.all_claimed());
        claims.begin_claiming([bundle("one"), bundle("two")].into());
        assert!(claims.begin_claims(&bundle("one"), 1, None).is_some() && add(&claims, "one", "Pod", 0));
        let all_have_claimed = claims.moment();
        claims.has_nothing_to_claim(&bundle("one"));
        assert!(is_to_wait(&claims, "one") && !claims.all_claimed() && !all_have_claimed.has_passed());
        claims.has_nothing_to_claim(&bundle("two"));
        assert!(all_have_claimed.has_passed());
        assert!(is_to_wait(&claims, "one") && !is_to_wait(&claims, "two") && claims.all_claimed());

        let kinds = claims.begin_sweeping();
        assert!(is_to_wait(&claims, "one") && !is_to_wait(&claims, "two"));
        claims.swept(kinds.values().flat_map(ClaimedKind::bundles).collect());

        assert!(!is_to_wait(&claims, "one"));
    }

    #[test]
    fn who_comes_when_the_sweep_has_begun_claims_nothing() {
        let claims = claimed(&[("one", "Pod")]);
        claims.begin_sweeping();

        assert!(claims.begin_claims(&bundle("late"), 1, None).is_none());
        assert!(!is_to_wait(&claims, "late"));
    }

    #[test]
    fn claims_are_taken_as_long_as_there_is_room() {
        let claims = Claims::default();

        assert!(add(&claims, "one", "Pod", CLAIM_BYTES - 2) && add(&claims, "two", "Pod", 1));
        assert!(!add(&claims, "three", "Pod", 2));
        assert!(add(&claims, "four", "Pod", 1) && add(&claims, "five", "Pod", 0));
        assert!(!add(&claims, "six", "Pod", 1));
        assert_eq!(claims.begin_sweeping().values().flat_map(ClaimedKind::bundles).count(), 4);
    }
}
