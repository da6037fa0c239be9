//! The start over many bundles: claim, then sweep (architecture §6).
//!
//! Reading ten thousand objects one by one would take minutes and hide everything else. So each listed bundle first
//! decodes and leaves its *claims*: which objects it wants, and how. When all have, or after five seconds, each claimed
//! kind is listed once; each object is compared with its claim, and only the verdict is kept.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    rc::Rc,
    time::Duration,
};

use futures::future::join_all;
use serde_json::Value;
use tokio::{sync::Semaphore, time::Instant};

use super::{
    apply,
    apply_object::{OWN_MANAGER, Scene},
    controller::ManagedResources,
    fingerprint::Record,
    hpa,
    identity::Equivalences,
    memory::{Applied, Fingerprint, Memory},
    merge::{self, MergeContext},
    plan::Old,
    read,
    run::{Run, Todo},
    settled,
    snapshot::BundleRecord,
    status,
    trigger::{self, Entry, Operation},
};
use crate::{
    actors::kit::{Deadline, Failure, Lane, Moment, Signal},
    api::{
        keys::MANAGED_BY,
        object::{GroupVersionKind, NamespacedName, ObjectKey},
        origin::Origin,
    },
    cluster::{ApiError, Context, Found, ListQuery, Page, Pages, Resource},
};

/// Bundles that have not claimed by then read their objects live.
const CLAIMING: Duration = Duration::from_secs(5);

/// Time for the lists of one kind, and for the Secrets.
const LISTING: Duration = Duration::from_secs(300);

/// Claims beyond this are not taken; their objects are read live.
const CLAIM_BYTES: usize = 64 << 20;

/// Kinds of which a page is under way at once …
const SIDE_BY_SIDE: usize = 4;

/// … not counting those that have not answered for so long.
const ANSWER: Duration = Duration::from_secs(5);

/// Objects compared in one go before others get their turn.
const COMPARED_AT_ONCE: usize = 50;

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
    settled: BTreeMap<ObjectKey, Fingerprint>,
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

// === sweeping ===

impl Kind {
    /// The bundles that claim an object of it.
    fn bundles(&self) -> BTreeSet<NamespacedName> {
        self.claims.values().flatten().map(|claim| claim.common.bundle.clone()).collect()
    }
}

/// The next page, in turn with other kinds. A server that does not answer gives up its turn.
async fn next_page(pages: &mut Pages, turns: &Semaphore) -> Option<Result<Page, ApiError>> {
    let mut page = pin!(pages.next());
    let turn = turns.acquire().await;
    match tokio::time::timeout(ANSWER, &mut page).await {
        Ok(page) => page,
        Err(_) => {
            drop(turn);
            page.await
        }
    }
}

impl ManagedResources {
    /// Runs the start, from the first list of ManagedResources to the last verdict.
    pub(super) async fn open(self: Rc<Self>) {
        self.bundles.need().met().await;
        let expected = self.expected();
        if !expected.is_empty() {
            let context = self.start_context();
            // What is read before changes are heard of would have to be read again.
            drop(tokio::time::timeout(CLAIMING, self.secrets.heard_of()).await);
            self.secrets.preload(&context, &self.needed_secrets(&expected)).await;
        }
        // Once more: the pass of a bundle that claims nothing may have come and gone meanwhile.
        self.opening.begin_claiming(self.expected());
        let claimed = async {
            while !self.opening.all_claimed() {
                let moment = self.opening.signal.moment();
                if !self.opening.all_claimed() {
                    Signal::raised_after(&moment).await;
                }
            }
        };
        // After the time is over the sweep goes on with what was claimed.
        drop(tokio::time::timeout(CLAIMING, claimed).await);
        self.secrets.drop_preloaded();
        let turns = Semaphore::new(SIDE_BY_SIDE);
        let kinds = self.opening.begin_sweeping().into_values();
        join_all(kinds.map(|kind| self.sweep_or_pass_over(kind, &turns))).await;
        self.opening.end();
    }

    /// The bundles whose first pass will claim something.
    fn expected(&self) -> BTreeSet<NamespacedName> {
        let mut expected = BTreeSet::new();
        self.bundles.store().for_each(|name, record| {
            let Ok(mr) = record.managed_resource() else { return };
            let stopped = trigger::operation(&mr) == Operation::Stop;
            if !stopped && trigger::entry(&self.settings.class, &mr) == Entry::Apply {
                expected.insert(name.clone());
            }
        });
        expected
    }

    fn needed_secrets(&self, bundles: &BTreeSet<NamespacedName>) -> BTreeSet<NamespacedName> {
        let mut needed = BTreeSet::new();
        for bundle in bundles {
            let mr = self.bundles.store().with(bundle, BundleRecord::managed_resource).and_then(Result::ok);
            let references = mr.map(|mr| mr.spec.secret_refs).unwrap_or_default();
            let names = references.into_iter().map(|reference| NamespacedName::new(&bundle.namespace, reference.name));
            needed.extend(names);
        }
        needed
    }

    fn start_context(&self) -> Context {
        Context { lane: Lane::Background, deadline: Deadline::after(LISTING), key: "start".into() }
    }

    async fn sweep_or_pass_over(&self, kind: Kind, turns: &Semaphore) {
        let (name, bundles) = (kind.resource.to_string(), kind.bundles());
        if let Err(error) = self.sweep(kind, turns).await {
            tracing::info!(resource = %name, error = %error, "a kind cannot be listed; its objects are read one by one");
        }
        self.opening.swept(bundles);
    }

    /// Lists one kind and compares each object with its claims.
    async fn sweep(&self, mut kind: Kind, turns: &Semaphore) -> Result<(), ApiError> {
        let context = self.start_context();
        // Without the right to watch it everywhere, it is watched in namespaces: those watches have to begin too.
        self.watched(&kind).await;
        if self.autoscalers_starting(&kind).is_some() {
            // How many replicas are right is not known yet: the bundles look themselves, when it is.
            return Ok(());
        }
        let group_kind = kind.resource.group_kind();
        let scopes = self.targets.scopes(&group_kind);
        self.targets.watch(&kind.resource);
        if self.targets.scopes(&group_kind) != scopes {
            self.watched(&kind).await;
        }
        let mut swept = Ok(());
        for scope in self.targets.scopes(&kind.resource.group_kind()) {
            swept = swept.and(self.sweep_scope(&mut kind, scope, &context, turns).await);
        }
        swept
    }

    /// Lists one kind in one namespace, or everywhere.
    async fn sweep_scope(
        &self,
        kind: &mut Kind,
        scope: Option<String>,
        context: &Context,
        turns: &Semaphore,
    ) -> Result<(), ApiError> {
        let query = ListQuery::labelled(format!("{MANAGED_BY}={}", self.settings.managed_by));
        let asked = self.env.clock.monotonic();
        let mut pages = self.target.pages(context.clone(), kind.resource.clone(), scope.clone(), query);
        while let Some(page) = next_page(&mut pages, turns).await {
            for (index, live) in page?.items.iter().enumerate() {
                let claims = kind.claims.remove(&NamespacedName::of(live)).unwrap_or_default();
                for claim in claims {
                    self.compare(&claim, live, asked);
                }
                if index % COMPARED_AT_ONCE == COMPARED_AT_ONCE - 1 {
                    tokio::task::yield_now().await;
                }
            }
        }
        // What a complete list does not hold does not exist, or does not carry our label: it is created without reading.
        let mut state = self.opening.state.borrow_mut();
        let in_scope = |name: &NamespacedName| scope.as_ref().is_none_or(|scope| *scope == name.namespace);
        let left = kind.claims.extract_if(.., |name, _| in_scope(name));
        for claim in left.flat_map(|(_, claims)| claims) {
            if let Some(verdicts) = state.verdicts.get_mut(&claim.common.bundle) {
                verdicts.absent.insert(claim.key);
            }
        }
        Ok(())
    }

    /// Waits until changes of the kind are heard of, or that takes too long.
    async fn watched(&self, kind: &Kind) {
        let starting = self.targets.starting([&kind.resource.group_kind()]);
        for moment in starting.into_iter().chain(self.autoscalers_starting(kind)) {
            drop(tokio::time::timeout(CLAIMING, Signal::raised_after(&moment)).await);
        }
    }

    fn autoscalers_starting(&self, kind: &Kind) -> Option<Moment> {
        if hpa::is_scalable(&kind.resource.group_kind()) { self.autoscalers.pending() } else { None }
    }

    fn compare(&self, claim: &Claim, live: &Value, asked: Instant) {
        if self.targets.found(&claim.key, live, asked) == Found::Removed {
            // No event will tell of it again: the bundle has to look.
            return;
        }
        let Ok(manifest) = serde_json::from_slice::<Value>(&claim.manifest) else { return };
        let common = &claim.common;
        let context = MergeContext {
            origin: &common.origin,
            labels: &common.labels,
            old: claim.old.as_ref(),
            force_overwrite_labels: common.force_overwrite_labels,
            force_overwrite_annotations: common.force_overwrite_annotations,
            preserve_replicas: hpa::is_scalable(&claim.key.group_kind())
                && self.autoscalers.scales(&claim.key, &common.equivalences),
        };
        let Ok(merged) = merge::merge(&manifest, live, &context) else { return };
        let settled =
            !settled::differs(&merged, live) || (common.trusted && settled::settled(&merged, live, OWN_MANAGER));
        if settled {
            let seen = Fingerprint { manifest: claim.manifest_hash, record: Record::of_object(live) };
            let mut state = self.opening.state.borrow_mut();
            if let Some(verdicts) = state.verdicts.get_mut(&common.bundle) {
                verdicts.settled.insert(claim.key.clone(), seen);
            }
        }
    }
}
