//! `seed-secrets`: the Namespace of each Seed, and copies of the shared Secrets in it (spec 83 A).
//! ```text
//! Namespaces, metadata ── namespace.rs ─► NamespaceVerdict ─┐
//! Secrets with a shared role ── copy.rs ─► digests ─────────┴─ plan.rs ─► nothing to do: no request
//! live list of the shared Secrets ── plan.rs ─► copies to write, copies to delete ── writes.rs
//! ```
//! One actor per Seed. The cache has hashes of Secrets, and only of Secrets with a shared role. What is written or
//! deleted rests on a list of the shared Secrets that began after the decision to write (spec 80 §16 S-13), and on a live
//! read of the Namespace. What another client undoes is repaired after ever longer pauses.
//! * [`roles`], [`namespace`], [`copy`], [`plan`]: pure
//! * `writes`: the requests of a reconcile

pub mod copy;
pub mod namespace;
pub mod plan;
pub mod roles;
#[cfg(test)]
mod tests;
mod writes;

use std::{collections::BTreeMap, rc::Rc};

use cluster::{
    ApiError, CachedFields, Cluster, Context, Lock, Predicate, Watch, WatchOptions, object, object::NamespacedName,
};
use kit::{Controller, Deadline, Failure, Outcome, Priority, Reconcile, Reconciler, Supervised, hash_of};
use tokio::time::Instant;

use self::{
    copy::{CachedSecret, digest},
    namespace::{NamespaceVerdict, SeedNamespace, judge_namespace, label_patch, namespace_of, new_namespace, seed_of},
    plan::{Digests, KnownCopy, Plan},
    roles::{GARDEN, SELECTOR},
    writes::{Copies, Sources},
};
use crate::{
    actors::{
        controller_manager::{
            context::{GardenContext, Registration, StartControllers},
            figures::SEEDS_BY_COPIES,
        },
        shared::{
            drift_backoff::{DriftBackoff, LONGEST_PAUSE},
            live_lists::{LIST_TIME, LiveLists},
            state_counts::StateCounts,
        },
    },
    api::{config::controller_manager::Config, kinds},
};

const NAME: &str = "seed-secrets"; // spec 80 §15

const WORKERS: usize = 5;

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

struct SeedSecrets {
    cluster: Cluster,
    /// uids of Seeds.
    seeds: Watch<CachedFields<Box<str>>>,
    namespaces: Watch<CachedFields<SeedNamespace>>,
    secrets: Watch<CachedSecret>,
    lists: LiveLists<(), Sources>,
    counts: StateCounts,
}

const COPIED: &str = "copied";
const UNDONE: &str = "undone";
const FAILING: &str = "failing";
const ENDING: &str = "ending";

/// What is repaired, and after a pause if another client undid the last repair.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Repaired {
    /// The Namespace exists.
    Namespace,
    /// The Namespace has its label.
    Label,
    /// The copy of this name is like its source, or gone.
    Copy(String),
}

type Repairs = DriftBackoff<Repaired>;

/// A Namespace in which copies are kept.
struct KeptNamespace {
    /// uid of the Seed that controls it.
    seed_uid: Box<str>,
    /// It takes new Secrets.
    may_create: bool,
    /// Why its label is missing.
    error: Option<String>,
}

fn setup(_: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let watches = &ctx.garden.watches;
    let namespaces = WatchOptions::fields(kinds::NAMESPACE, SeedNamespace::of).metadata();
    let secrets = WatchOptions::new(kinds::SECRET, CachedSecret::of).labelled(SELECTOR);
    let concerns_seeds = |name: &NamespacedName| name.namespace == GARDEN || seed_of(&name.namespace).is_some();
    let controller = SeedSecrets {
        cluster: ctx.garden.cluster.clone(),
        seeds: watches.open(WatchOptions::fields(kinds::SEED, |seed| object::uid(seed).into()).metadata()),
        namespaces: watches.open(namespaces.keeping(|name| seed_of(&name.name).is_some())),
        secrets: watches.open(secrets.keeping(concerns_seeds)),
        lists: LiveLists::default(),
        counts: StateCounts::new(&ctx.env.observers, SEEDS_BY_COPIES, [COPIED, UNDONE, FAILING, ENDING]),
    };
    Some(Box::new(|ctx| {
        let supervised = Supervised::start(Rc::new(controller), &ctx.env);
        supervised.controller().subscribe(&supervised);
        supervised.into()
    }))
}

impl SeedSecrets {
    /// A shared Secret that comes, changes or goes wakes all Seeds; a copy, or a Namespace, wakes its Seed.
    fn subscribe(&self, supervised: &Supervised<Self>) {
        self.counts.show();
        let key = |namespace: &str| seed_of(namespace).map(|seed| NamespacedName::new("", seed));
        self.seeds.on_change(supervised, Predicate::fields_changed(), |name, _| [name.clone()]);
        let changed = Predicate::fields_changed().ignoring_first_list();
        self.namespaces.on_change(supervised, changed, move |name, _| key(&name.name));
        let seeds = self.seeds.clone();
        let changed = Predicate::<CachedSecret>::differing(|old, new| old.digest != new.digest);
        self.secrets.on_change(supervised, changed.ignoring_first_list(), move |name, _| match &*name.namespace {
            GARDEN => seeds.store().names(),
            namespace => key(namespace).into_iter().collect(),
        });
    }

    /// Returns what is to do now: what another client undid a moment ago waits.
    fn plan(&self, sources: &Digests, namespace: &str, kept: &KeptNamespace, repairs: &mut Repairs) -> Plan {
        let mut plan = Plan::of(sources, &self.known_copies(namespace), kept.may_create);
        let now = Instant::now();
        plan.retain(sources, |name, digest| {
            repairs.may_repair(&Repaired::Copy(name.to_owned()), kept.intent(digest), now)
        });
        plan
    }

    fn known_sources(&self) -> Digests {
        let mut sources = Digests::new();
        self.secrets.store().for_each_in(GARDEN, |name, secret| {
            sources.insert(name.name.clone(), secret.digest);
        });
        sources
    }

    fn known_copies(&self, namespace: &str) -> BTreeMap<String, KnownCopy> {
        let mut copies = BTreeMap::new();
        self.secrets.store().for_each_in(namespace, |name, secret| {
            let copy = KnownCopy { digest: secret.digest, is_deleting: secret.is_deleting };
            copies.insert(name.name.clone(), copy);
        });
        copies
    }

    /// Returns the shared Secrets of a list that begins now. Reconciles share it.
    async fn sources(&self) -> Result<Rc<Sources>, Failure> {
        let cluster = self.cluster.clone();
        let list = self.lists.get(&(), move || async move {
            let context = Context::new(Priority::High, Deadline::after(LIST_TIME), NAME);
            Sources::list(&cluster, &context).await
        });
        list.await.map_err(|error| Failure::new(format!("failed to sync garden secrets: {error}")))
    }

    /// Keeps the Namespace of a Seed. Returns `None` if the Seed is gone.
    async fn keep_namespace(
        &self,
        context: &Context,
        seed: &str,
        uid: &str,
        repairs: &mut Repairs,
    ) -> Result<Option<KeptNamespace>, Failure> {
        let name = NamespacedName::new("", namespace_of(seed));
        let namespace = match self.namespaces.known(&name) {
            Some(known) => known,
            None => self.namespaces.read_live(context, &name).await?,
        };
        let namespace = namespace.map(|namespace| namespace.fields);
        let mut verdict = judge_namespace(namespace.as_ref(), uid);
        let mut uid = Box::from(uid);
        if matches!(verdict, NamespaceVerdict::Create | NamespaceVerdict::Foreign) {
            // The cache may have an earlier Seed of this name.
            let live = self.seeds.read_live(context, &NamespacedName::new("", seed)).await?;
            let Some(live) = live else { return Ok(None) };
            uid = live.fields;
            verdict = judge_namespace(namespace.as_ref(), &uid);
        }
        let mut kept = KeptNamespace { seed_uid: uid, may_create: true, error: None };
        let intent = hash_of(&*kept.seed_uid);
        match verdict {
            NamespaceVerdict::Create if !repairs.may_repair(&Repaired::Namespace, intent, Instant::now()) => {
                kept.may_create = false;
            }
            NamespaceVerdict::Create => {
                tracing::info!(garden_namespace = name.name, "Creating Namespace in garden for Seed");
                self.namespaces.create(context, &new_namespace(seed, &kept.seed_uid)).await?;
                repairs.repaired(&Repaired::Namespace, intent, Instant::now(), LONGEST_PAUSE);
            }
            NamespaceVerdict::Foreign => {
                let text = format!("namespace {:?} is not controlled by seed {seed:?}", name.name);
                return Err(Failure::terminal(text)); // a change of the Namespace wakes the Seed
            }
            NamespaceVerdict::Label if repairs.may_repair(&Repaired::Label, intent, Instant::now()) => {
                match self.label(context, &name, &kept.seed_uid).await {
                    Ok(()) => repairs.repaired(&Repaired::Label, intent, Instant::now(), LONGEST_PAUSE),
                    // The Seed controls the Namespace: revoked Secrets must leave it.
                    Err(error) => kept.error = Some(format!("failed to label namespace {:?}: {error}", name.name)),
                }
            }
            NamespaceVerdict::Label | NamespaceVerdict::Serve => {}
            NamespaceVerdict::Ending => kept.may_create = false,
        }
        Ok(Some(kept))
    }

    /// Sets the label of a Namespace that a Seed controls.
    async fn label(&self, context: &Context, name: &NamespacedName, seed_uid: &str) -> Result<(), ApiError> {
        let is_due =
            |namespace: &_| judge_namespace(Some(&SeedNamespace::of(namespace)), seed_uid) == NamespaceVerdict::Label;
        let patch = |namespace: &_| is_due(namespace).then(label_patch);
        self.namespaces.patch(context, name, Lock::Uid, patch).await.map(drop)
    }

    /// Writes and deletes copies as a live list of the shared Secrets says. Adds what fails to `errors`. Returns true if
    /// something is not as wanted, because somebody else changed it meanwhile.
    async fn keep_copies(
        &self,
        context: &Context,
        namespace: &str,
        kept: &KeptNamespace,
        repairs: &mut Repairs,
        errors: &mut Vec<String>,
    ) -> Result<bool, Failure> {
        let sources = self.sources().await?;
        let digests: Digests = sources.0.iter().map(|(name, secret)| (name.clone(), digest(secret))).collect();
        let plan = self.plan(&digests, namespace, kept, repairs);
        if plan.is_empty() {
            return Ok(false);
        }
        if !self.is_kept_live(context, namespace, kept).await? {
            return Ok(true);
        }
        let copies = Copies { watch: &self.secrets, context, namespace, may_create: kept.may_create };
        let written = copies.write(&sources, &plan.write).await;
        let deleted = copies.delete(&plan.delete).await; // also if a copy could not be written (A-T3)
        let now = Instant::now();
        for name in written.settled().iter().chain(deleted.settled()) {
            let intent = kept.intent(digests.get(name).copied());
            repairs.repaired(&Repaired::Copy(name.clone()), intent, now, LONGEST_PAUSE);
        }
        errors.extend(written.error("failed to sync garden secrets"));
        errors.extend(deleted.error("failed to clean up secrets in seed namespace"));
        Ok(written.is_overtaken() || deleted.is_overtaken())
    }

    /// Returns true if a Namespace is as the cache says: the cache of Namespaces may lag behind that of Secrets, and
    /// somebody else may have made a Namespace of this name meanwhile.
    async fn is_kept_live(&self, context: &Context, namespace: &str, kept: &KeptNamespace) -> Result<bool, ApiError> {
        let live = self.namespaces.read_live(context, &NamespacedName::new("", namespace)).await?;
        Ok(match judge_namespace(live.as_ref().map(|live| &live.fields), &kept.seed_uid) {
            NamespaceVerdict::Label | NamespaceVerdict::Serve => true,
            NamespaceVerdict::Ending => !kept.may_create,
            NamespaceVerdict::Create | NamespaceVerdict::Foreign => false,
        })
    }

    /// Keeps the Namespace of a Seed, and the copies in it.
    async fn keep(&self, repairs: &mut Repairs, reconcile: &Reconcile<NamespacedName>) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let Some(uid) = self.seeds.store().with(key, |seed| seed.fields.clone()) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        repairs.take_due(Instant::now()); // what still differs is noted again
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let Some(kept) = self.keep_namespace(&context, &key.name, &uid, repairs).await? else {
            return Ok(Outcome::Retire);
        };
        let namespace = &*namespace_of(&key.name);
        let (mut errors, mut is_overtaken): (Vec<_>, _) = (kept.error.iter().cloned().collect(), false);
        if !self.plan(&self.known_sources(), namespace, &kept, repairs).is_empty() {
            is_overtaken = self.keep_copies(&context, namespace, &kept, repairs, &mut errors).await?;
        }
        if !errors.is_empty() && !self.is_ending(&context, namespace).await? {
            return Err(Failure::new(errors.join("; ")));
        }
        if is_overtaken {
            return Ok(Outcome::Again);
        }
        let pause = repairs.next_in(Instant::now());
        Ok(pause.map_or(Outcome::Done, Outcome::After))
    }

    /// Shows how the copies of a Seed are. While they are being written, what is shown stays.
    fn show(&self, reconcile: &Reconcile<NamespacedName>, kept: &Result<Outcome, Failure>) {
        let namespace = namespace_of(&reconcile.key.name);
        let (state, line) = match kept {
            Ok(Outcome::Again) => return,
            Ok(Outcome::Retire) => return self.counts.enter(&reconcile.key, None),
            Ok(_) if self.is_known_ending(&namespace) => (ENDING, "its Namespace is being deleted"),
            Ok(Outcome::After(_)) => (UNDONE, "another client undoes repairs"),
            Ok(Outcome::Done | Outcome::Idle(..) | Outcome::At(_) | Outcome::Wait(_) | Outcome::Continue) => {
                (COPIED, "all Secrets are copied")
            }
            Err(_) => (FAILING, "not all Secrets are copied"),
        };
        self.counts.enter(&reconcile.key, Some(state));
        reconcile.note(line);
        let count = |namespace: &str| {
            let mut count: usize = 0;
            self.secrets.store().for_each_in(namespace, |_, _| count += 1);
            count.to_string()
        };
        let (sources, copies) = (count(GARDEN), count(&namespace));
        let lines = [("Namespace", namespace), ("Shared Secrets", sources), ("Copies", copies)];
        reconcile.detail(lines.map(|(label, text)| (label.to_owned(), text)).into());
    }

    /// Returns true if the cache has a Namespace that is being deleted.
    fn is_known_ending(&self, namespace: &str) -> bool {
        let name = NamespacedName::new("", namespace);
        self.namespaces.store().with(&name, |namespace| namespace.fields.is_deleting()) == Some(true)
    }

    /// Returns true if a Namespace is being deleted, or is gone.
    async fn is_ending(&self, context: &Context, namespace: &str) -> Result<bool, Failure> {
        let live = self.namespaces.read_live(context, &NamespacedName::new("", namespace)).await?;
        Ok(live.is_none_or(|live| live.fields.is_deleting()))
    }
}

impl KeptNamespace {
    /// Returns a hash of what a copy must be: its digest, or `None` if it must go. That of another Seed is another one.
    fn intent(&self, digest: Option<u64>) -> u64 {
        hash_of(&(&*self.seed_uid, digest))
    }
}

impl Controller for SeedSecrets {
    type Key = NamespacedName;
    type Memory = Repairs;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, WORKERS)
            .about(("core.gardener.cloud", "Seed"))
            .requires(self.seeds.sync_requirement())
            .requires(self.namespaces.sync_requirement())
            .requires(self.secrets.sync_requirement());
        vec![reconciler]
    }

    async fn reconcile(
        self: &Rc<Self>,
        repairs: &mut Repairs,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let kept = self.keep(repairs, reconcile).await;
        self.show(reconcile, &kept);
        kept
    }
}
