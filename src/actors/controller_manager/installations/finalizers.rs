//! The finalizer of ControllerRegistrations (spec 85 C), Seeds and Shoots (D): they stay until no installation refers to
//! them. A live list confirms each release, except for a Shoot to which no installation can refer. No installation is
//! created meanwhile.

use std::{collections::BTreeSet, rc::Rc, time::Duration};

use cluster::{ApiError, Cached, Context, How, Watch, Wrote, object, object::NamespacedName};
use kit::{Causes, Controller, Deadline, Failure, Outcome, Reconcile, Reconciler, Supervised, Wake};
use serde_json::Value;

use super::{
    FINALIZER,
    backups::ExtensionCluster,
    installation::{CachedInstallation, InstallationFacts},
    reference_locks::ReferredObject,
    stores::{LiveInstallations, Stores},
};
use crate::actors::{controller_manager::seed::secrets::roles::GARDEN, shared::texts::bracketed};

/// Name of the controller of registrations (spec 80 §15).
pub(super) const REGISTRATIONS: &str = "controllerregistration-controllerregistration-finalizer";
/// Name of the controller of Seeds.
pub(super) const SEEDS: &str = "controllerregistration-cluster-finalizer-seed";
/// Name of the controller of Shoots.
pub(super) const SHOOTS: &str = "controllerregistration-cluster-finalizer-shoot";

const WORKERS: usize = 5;

/// Time limit of the read after a patch without an answer: the reconcile has no other time left.
const READ_TIME: Duration = Duration::from_secs(5);

/// The kinds that are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HeldKind {
    /// ControllerRegistrations.
    Registration,
    /// Seeds.
    Seed,
    /// Shoots, all of them (D-2).
    Shoot,
}

/// What counts of a held object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeldState {
    /// It has the finalizer.
    pub(super) is_held: bool,
    pub(super) is_deleting: bool,
    /// An installation can refer to it, by its own fields.
    pub(super) can_have_installations: bool,
}

/// Keeps the finalizer of one kind.
pub(super) struct FinalizerController<R: Cached> {
    kind: HeldKind,
    stores: Rc<Stores>,
    watch: Watch<R>,
    state: fn(&R) -> HeldState,
}

/// The installations that keep an object, as they were told last.
#[derive(Debug, Default)]
pub(super) struct Told(BTreeSet<String>);

impl HeldKind {
    /// Returns the objects to which an installation refers.
    pub(super) fn referred_objects(installation: &InstallationFacts) -> Vec<ReferredObject> {
        let all = [Self::Registration, Self::Seed, Self::Shoot].into_iter();
        all.filter_map(|kind| Some((kind, kind.target(installation)?))).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Registration => REGISTRATIONS,
            Self::Seed => SEEDS,
            Self::Shoot => SHOOTS,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Registration => "ControllerRegistration",
            Self::Seed => "Seed",
            Self::Shoot => "Shoot",
        }
    }

    /// Returns the object of this kind to which an installation refers.
    fn target(self, installation: &InstallationFacts) -> Option<NamespacedName> {
        match self {
            Self::Registration => Some(NamespacedName::new("", &*installation.registration)),
            Self::Seed => installation.seed.as_ref().map(|seed| NamespacedName::new("", &**seed)),
            Self::Shoot => installation.shoot.clone(),
        }
    }

    /// Returns the installations that a cache knows.
    fn cached(self, stores: &Stores, key: &NamespacedName) -> BTreeSet<String> {
        let all = |cluster: ExtensionCluster| {
            let existing = stores.installations_of(&cluster);
            existing.into_values().flatten().map(|(name, _)| name.into()).collect()
        };
        match self {
            Self::Registration => stores.installations_of_registration(&key.name),
            Self::Seed => all(ExtensionCluster::Seed(key.name.as_str().into())),
            Self::Shoot => all(ExtensionCluster::Shoot(key.clone())),
        }
    }

    fn is_free(self, live: &LiveInstallations, key: &NamespacedName) -> bool {
        match self {
            Self::Registration => live.of_registration(&key.name).is_empty(),
            Self::Seed => !live.has_any(&ExtensionCluster::Seed(key.name.as_str().into())),
            Self::Shoot => !live.has_any(&ExtensionCluster::Shoot(key.clone())),
        }
    }
}

impl<R: Cached> FinalizerController<R> {
    pub(super) fn new(kind: HeldKind, stores: &Rc<Stores>, watch: &Watch<R>, state: fn(&R) -> HeldState) -> Self {
        Self { kind, stores: stores.clone(), watch: watch.clone(), state }
    }

    /// The object wakes by its finalizer and its deletion. An installation that no longer refers to it wakes it, too; own
    /// deletions count (DEV-12).
    pub(super) fn subscribe(&self, supervised: &Supervised<Self>) {
        let (waker, state) = (supervised.weak(), self.state);
        self.watch.subscribe(move |change| {
            let (old, new) = (change.old.map(state), change.new.map(state));
            let is_due = |state: &HeldState| state.is_held == state.is_deleting;
            if old != new && new.is_some_and(|new| is_due(&new)) {
                let is_first = change.how == How::First;
                waker.wake(change.name, if is_first { Wake::low(Causes::OBJECT) } else { Wake::high(Causes::OBJECT) });
            }
        });
        let (waker, kind, watch) = (supervised.weak(), self.kind, self.watch.clone());
        self.stores.installations.subscribe(move |change| {
            let target = |it: Option<&CachedInstallation>| it.and_then(|it| kind.target(&it.fields));
            let (old, new) = (target(change.old), target(change.new));
            let is_waiting = |name: &NamespacedName| {
                let state = watch.store().with(name, state);
                state.is_some_and(|state| state.is_held && state.is_deleting)
            };
            if let Some(old) = old.filter(|old| Some(old) != new.as_ref()).filter(is_waiting) {
                waker.wake(&old, Wake::high(Causes::OBJECT));
            }
        });
    }

    async fn add(&self, context: &Context, key: &NamespacedName) -> Result<Outcome, Failure> {
        let added = self.watch.set_finalizer(context, key, FINALIZER, true).await;
        let added = added.map_err(|error| Failure::new(format!("failed to add finalizer: {error}")))?;
        Ok(if matches!(added, Wrote::Altered(_)) { Outcome::Again } else { Outcome::Retire })
    }

    async fn release(&self, context: &Context, key: &NamespacedName) -> Result<Outcome, Failure> {
        let without = |live: &Value| {
            let is_deleting = object::deletion_timestamp(live).is_some();
            is_deleting.then(|| object::finalizer_patch(live, FINALIZER, false)).flatten()
        };
        tracing::info!(finalizer = FINALIZER, "Removing finalizer");
        let removed = self.watch.patch_finalizers(context, key, without).await;
        if removed.as_ref().is_err_and(ApiError::outcome_unknown) {
            // The object may be released. The cache must know it before a creation may begin. A failure changes nothing.
            let context = context.until(Deadline::after(READ_TIME));
            drop(self.watch.read_object(&context, key).await);
        }
        let removed = removed.map_err(|error| Failure::new(format!("failed to remove finalizer: {error}")))?;
        Ok(if matches!(removed, Wrote::Altered(_)) { Outcome::Again } else { Outcome::Retire })
    }

    /// Logs which installations keep an object, once per change.
    fn tell(&self, told: &mut Told, key: &NamespacedName, installations: BTreeSet<String>) {
        if told.0 != installations {
            let (kind, names) = (self.kind.kind(), bracketed(&installations));
            let text = format!(
                "cannot remove finalizer of {kind} \"{key}\" because still found ControllerInstallations: {names}"
            );
            tracing::info!("{text}");
            told.0 = installations;
        }
    }
}

impl<R: Cached> Controller for FinalizerController<R> {
    type Key = NamespacedName;
    type Memory = Told;

    fn reconcilers(&self) -> Vec<Reconciler> {
        vec![
            Reconciler::new(self.kind.name(), WORKERS)
                .about(("core.gardener.cloud", self.kind.kind()))
                .requires(self.watch.sync_requirement())
                .requires(self.stores.installations.sync_requirement()),
        ]
    }

    async fn reconcile(
        self: &Rc<Self>,
        told: &mut Told,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let Some(state) = self.watch.store().with(key, self.state) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        match (state.is_deleting, state.is_held) {
            (false, false) => return self.add(&context, key).await,
            (true, true) => {}
            (false, true) | (true, false) => return Ok(Outcome::Retire),
        }
        let installations = self.kind.cached(&self.stores, key);
        if !installations.is_empty() {
            reconcile.note(format!("in use by {} installations", installations.len()));
            self.tell(told, key, installations);
            return Ok(Outcome::Done); // the end of the last one wakes it
        }
        let Some(_lock) = self.stores.locks.for_release(&(self.kind, key.clone())) else {
            return Ok(Outcome::Again); // an installation is being created
        };
        // A hosted Shoot in `garden` may belong to a Seed that counts as self-hosted (DEV-20).
        let may_be_of_seed = self.kind == HeldKind::Shoot && key.namespace == GARDEN;
        if state.can_have_installations || may_be_of_seed {
            let registration = (self.kind == HeldKind::Registration).then_some(&*key.name);
            let live = self.stores.live_installations(registration).await?;
            if !self.kind.is_free(&live, key) {
                return Ok(Outcome::Again); // the cache lags
            }
        }
        self.release(&context, key).await
    }
}
