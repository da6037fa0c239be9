//! The start over many bundles: claim, then sweep (architecture §6).
//!
//! Reading ten thousand objects one by one would take minutes and hide everything else. So each listed bundle first
//! decodes and leaves its *claims*: which objects it wants, and how. When all have, or after five seconds, each claimed
//! kind is listed once; each object is compared with its claim, and only the verdict is kept.
//!
//! Here: the state of the start, and the claims. `sweep`: its course, the lists and the comparison.

mod sweep;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::{
    apply,
    apply_object::Scene,
    identity::Equivalences,
    memory::{Applied, Fingerprint, Memory},
    plan::Old,
    read,
    run::{Run, Todo},
    status,
};
use crate::{
    actors::kit::{Failure, Moment, Signal},
    api::{
        object::{GroupVersionKind, NamespacedName, ObjectKey},
        origin::Origin,
    },
    cluster::Resource,
};

/// Claims beyond this are not taken; their objects are read live.
const CLAIM_BYTES: usize = 64 << 20;

/// What a pass has to do for the start.
pub(super) enum Start {
    /// Nothing: the start is over for this bundle.
    Over,
    /// Leave its claims.
    Claim,
    /// Wait.
    Wait(Vec<Moment>),
}

/// The state of the start.
#[derive(Default)]
pub(super) struct Opening {
    state: RefCell<State>,
    signal: Signal,
}

#[derive(Default)]
struct State {
    phase: Phase,
    /// Bundles that were listed and have not yet claimed.
    expected: BTreeSet<NamespacedName>,
    claims: BTreeMap<GroupVersionKind, Kind>,
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

struct Kind {
    resource: Resource,
    claims: BTreeMap<NamespacedName, Vec<Claim>>,
}

/// One object that one bundle wants.
struct Claim {
    common: Rc<Common>,
    key: ObjectKey,
    manifest_hash: u64,
    /// JSON of the manifest: a tree would take five times as much.
    manifest: Box<[u8]>,
    old: Option<Old>,
}

/// What the claims of one bundle have in common.
struct Common {
    bundle: NamespacedName,
    origin: String,
    labels: BTreeMap<String, String>,
    equivalences: Equivalences,
    force_overwrite_labels: bool,
    force_overwrite_annotations: bool,
    /// The status says that this very set was applied.
    trusted: bool,
}

/// What the sweep found for one bundle.
#[derive(Default)]
struct Verdicts {
    /// What the bundle is if all its objects are settled.
    applied: Option<Applied>,
    settled: BTreeMap<Rc<ObjectKey>, Fingerprint>,
    absent: BTreeSet<ObjectKey>,
    claimed: usize,
    /// Kinds of its claims that are still to be listed.
    kinds: usize,
    /// Raised when there are no more of them.
    complete: Signal,
}

// === impl Opening ===

impl Opening {
    /// What the pass of a bundle has to do. At the end of the start the bundle's memory is filled with what was found.
    pub(super) fn turn(&self, bundle: &NamespacedName, memory: &mut Memory) -> Start {
        let mut state = self.state.borrow_mut();
        match state.phase {
            Phase::Listing => Start::Wait(vec![self.signal.moment()]),
            Phase::Claiming if state.expected.contains(bundle) => Start::Claim,
            phase @ (Phase::Claiming | Phase::Sweeping | Phase::Over) => {
                let waits = |verdicts: &&Verdicts| match phase {
                    Phase::Listing | Phase::Claiming => true,
                    Phase::Sweeping => verdicts.kinds > 0,
                    Phase::Over => false,
                };
                if let Some(verdicts) = state.verdicts.get(bundle).filter(waits) {
                    return Start::Wait(vec![verdicts.complete.moment()]);
                }
                if let Some(verdicts) = state.verdicts.remove(bundle) {
                    memory.take_over(verdicts);
                }
                Start::Over
            }
        }
    }

    /// The moment to wait for as long as a list of the start may bring objects of a bundle.
    pub(super) fn under_way(&self, bundle: &NamespacedName) -> Option<Moment> {
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
    pub(super) fn has_nothing_to_claim(&self, bundle: &NamespacedName) {
        let mut state = self.state.borrow_mut();
        if state.expected.remove(bundle) && state.expected.is_empty() {
            drop(state);
            self.signal.raise();
        }
    }

    /// A bundle is gone, or what it wanted counts no more: nothing is kept for it.
    pub(super) fn leaves(&self, bundle: &NamespacedName) {
        let verdicts = self.state.borrow_mut().verdicts.remove(bundle);
        if let Some(verdicts) = verdicts {
            verdicts.complete.raise(); // another of its duties may wait
        }
        self.has_nothing_to_claim(bundle);
    }

    /// Ends the start: everybody reads live.
    pub(super) fn end(&self) {
        let mut state = self.state.borrow_mut();
        state.phase = Phase::Over;
        state.claims.clear();
        let waiting: Vec<Signal> = state.verdicts.values().map(|verdicts| verdicts.complete.clone()).collect();
        drop(state);
        self.signal.raise();
        waiting.iter().for_each(Signal::raise);
    }

    fn begin_claiming(&self, expected: BTreeSet<NamespacedName>) {
        let mut state = self.state.borrow_mut();
        state.phase = Phase::Claiming;
        state.expected = expected;
        drop(state);
        self.signal.raise();
    }

    fn begin_sweeping(&self) -> BTreeMap<GroupVersionKind, Kind> {
        let mut state = self.state.borrow_mut();
        state.phase = Phase::Sweeping;
        state.expected.clear();
        let kinds = std::mem::take(&mut state.claims);
        for bundle in kinds.values().flat_map(Kind::bundles) {
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
    fn swept(&self, bundles: BTreeSet<NamespacedName>) {
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

    fn all_claimed(&self) -> bool {
        self.state.borrow().expected.is_empty()
    }
}

impl Memory {
    fn take_over(&mut self, verdicts: Verdicts) {
        let complete = verdicts.settled.len() == verdicts.claimed;
        self.objects = verdicts.settled;
        self.absent = verdicts.absent;
        self.applied = verdicts.applied.filter(|_| complete);
    }
}

// === claiming ===

/// Leaves the claims of a bundle. `None` means that the pass goes on by itself.
pub(super) async fn claim(run: &Run<'_>) -> Result<Option<Vec<Moment>>, Failure> {
    let opening = &run.controller.opening;
    let Ok(bundle) = read::read(run).await else {
        opening.has_nothing_to_claim(&run.pass.key);
        return Ok(None);
    };
    // The watches begin before the lists, so that no change gets lost in between.
    drop(bundle.watch_kinds(run));
    let common = Rc::new(common(run, &bundle));
    let everything = Todo::All { forced: false };
    let scene = Scene::new(run, &bundle, false, &everything);
    let verdicts =
        Verdicts { applied: applied(run, &bundle), claimed: bundle.plan.objects.len(), ..Verdicts::default() };
    let moment = verdicts.complete.moment();
    let mut state = opening.state.borrow_mut();
    if state.phase != Phase::Claiming {
        // Too late: the sweep has taken what there was, and its end may have been told already.
        return Ok(None);
    }
    state.verdicts.insert(run.pass.key.clone(), verdicts);
    for object in &bundle.plan.objects {
        let kind = GroupVersionKind::of(&object.manifest).unwrap_or_default();
        let (Some(resource), None, false) = (bundle.resource(&kind), &object.error, object.ignored) else { continue };
        let Ok(manifest) = serde_json::to_vec(&object.manifest) else { continue };
        if state.bytes + manifest.len() > CLAIM_BYTES {
            break;
        }
        state.bytes += manifest.len();
        let namespace = if resource.namespaced { object.key.namespace.as_str() } else { "" };
        let claim = Claim {
            common: common.clone(),
            key: object.key.clone(),
            manifest_hash: scene.intent(object),
            manifest: manifest.into(),
            old: object.old.clone(),
        };
        let kind =
            state.claims.entry(kind).or_insert_with(|| Kind { resource: resource.clone(), claims: BTreeMap::new() });
        kind.claims.entry(NamespacedName::new(namespace, &object.key.name)).or_default().push(claim);
    }
    drop(state);
    opening.has_nothing_to_claim(&run.pass.key);
    Ok(Some(vec![moment]))
}

fn common(run: &Run<'_>, bundle: &read::Bundle) -> Common {
    let mr = run.mr();
    Common {
        bundle: run.pass.key.clone(),
        origin: Origin::new(run.controller.settings.cluster_id.clone(), run.pass.key.clone()).to_string(),
        labels: bundle.labels.clone(),
        equivalences: bundle.equivalences.clone(),
        force_overwrite_labels: mr.spec.force_overwrite_labels,
        force_overwrite_annotations: mr.spec.force_overwrite_annotations,
        trusted: apply::is_applied(run, bundle),
    }
}

/// What the bundle is if the sweep finds all its objects settled: applied, with nothing left to report.
fn applied(run: &Run<'_>, bundle: &read::Bundle) -> Option<Applied> {
    let mr = run.mr();
    let reported = status::is_reported_applied(&mr.status);
    let complete = reported
        && apply::is_applied(run, bundle)
        && !status::is_changed(&mr.status, &bundle.plan.references, &bundle.checksum)
        && bundle.errors.is_empty()
        && !bundle.uncertain
        && bundle.plan.removed.is_empty()
        && bundle.plan.released.is_empty()
        && run.has_finalizer();
    complete.then(|| Applied::of(mr, &bundle.secrets))
}

impl Kind {
    /// The bundles that claim an object of it.
    fn bundles(&self) -> BTreeSet<NamespacedName> {
        self.claims.values().flatten().map(|claim| claim.common.bundle.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(name: &str) -> NamespacedName {
        NamespacedName::new("shoot", name)
    }

    /// An opening in which these bundles have claimed objects of one kind each, and the sweep is to begin.
    fn claimed(bundles: &[(&str, &str)]) -> Opening {
        let opening = Opening::default();
        opening.begin_claiming(bundles.iter().map(|(name, _)| bundle(name)).collect());
        for (name, kind) in bundles {
            let common = Common {
                bundle: bundle(name),
                origin: String::new(),
                labels: BTreeMap::new(),
                equivalences: Equivalences::predefined(),
                force_overwrite_labels: false,
                force_overwrite_annotations: false,
                trusted: false,
            };
            let key = ObjectKey { kind: (*kind).into(), name: (*name).into(), ..ObjectKey::default() };
            let claim = Claim { common: Rc::new(common), key, manifest_hash: 0, manifest: [].into(), old: None };
            let mut state = opening.state.borrow_mut();
            state.verdicts.insert(bundle(name), Verdicts { claimed: 1, ..Verdicts::default() });
            let resource = Resource::new("", "v1", kind, &kind.to_lowercase(), true);
            let kind = state.claims.entry(GroupVersionKind::new("", "v1", *kind));
            let kind = kind.or_insert_with(|| Kind { resource, claims: BTreeMap::new() });
            kind.claims.entry(bundle(name)).or_default().push(claim);
            drop(state);
            opening.has_nothing_to_claim(&bundle(name));
        }
        opening
    }

    #[test]
    fn a_bundle_waits_for_the_lists_of_its_own_kinds_alone() {
        let opening = claimed(&[("one", "ConfigMap"), ("two", "Pod")]);
        let is_under_way = |name: &str| opening.under_way(&bundle(name)).is_some();
        assert!(is_under_way("one") && is_under_way("two") && is_under_way("three"));
        let moments = ["one", "two", "three"].map(|name| opening.under_way(&bundle(name)).unwrap());

        let kinds = opening.begin_sweeping();
        assert_eq!(moments.each_ref().map(Moment::has_passed), [false, false, true]);
        assert!(is_under_way("one") && is_under_way("two") && !is_under_way("three"));
        opening.swept(kinds[&GroupVersionKind::new("", "v1", "Pod")].bundles());

        assert_eq!(moments.each_ref().map(Moment::has_passed), [false, true, true]);
        assert!(is_under_way("one") && !is_under_way("two"));
        opening.end();
        assert!(moments[0].has_passed() && !is_under_way("one"));
    }

    #[test]
    fn nothing_is_kept_for_a_bundle_that_is_gone_before_its_kinds_are_listed() {
        let opening = claimed(&[("one", "ConfigMap"), ("two", "ConfigMap")]);
        let kinds = opening.begin_sweeping();
        let moment = opening.under_way(&bundle("one")).unwrap();

        opening.leaves(&bundle("one"));
        assert!(moment.has_passed() && opening.under_way(&bundle("one")).is_none());
        opening.swept(kinds.values().flat_map(Kind::bundles).collect());

        let state = opening.state.borrow();
        assert_eq!(state.verdicts.keys().collect::<Vec<_>>(), [&bundle("two")]);
    }
}
