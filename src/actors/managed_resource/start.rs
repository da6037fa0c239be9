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

    /// The moment to wait for while the start is under way.
    pub(super) fn under_way(&self) -> Option<Moment> {
        let moment = self.signal.moment();
        (self.state.borrow().phase != Phase::Over).then_some(moment)
    }

    /// A listed bundle will not claim anything.
    pub(super) fn has_nothing_to_claim(&self, bundle: &NamespacedName) {
        let mut state = self.state.borrow_mut();
        if state.expected.remove(bundle) && state.expected.is_empty() {
            drop(state);
            self.signal.raise();
        }
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
