//! The controller of one kind of bindings: an actor per binding, and per object that a binding left without a release.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt,
    rc::Rc,
    sync::Arc,
};

use cluster::{
    Cached, Context, Lock, Watch, Wrote,
    evidence::{Evidence, decide},
    object::{self, NamespacedName},
};
use kit::{Controller, Env, Failure, Outcome, Reconcile, Reconciler, Supervised};
use serde_json::{Value, json};

use super::{
    binding::{Binding, BindingKind, can_exist},
    caches::{CachedCredentials, CachedQuota, Caches},
    credentials::{
        CredentialsKind, CredentialsRef, CredentialsState, LabelChange, TRUE, protect, provider_label, release,
    },
    release::{Answer, Judge, Question, Release},
    view::{View, targets},
};
use crate::actors::{
    controller_manager::{
        guards::{Guard, GuardVerdict, Told},
        held::DeletionTime,
    },
    shared::texts::together,
};

/// What one actor looks after.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BindingKey {
    /// A binding.
    Binding(NamespacedName),
    /// Credentials that a binding left without a release.
    Credentials(CredentialsRef),
    /// A Quota that a binding left without a release.
    Quota(NamespacedName),
}

/// What an actor remembers.
#[derive(Debug, Default)]
pub(super) struct Memory {
    told: Told,
    /// The warning about credentials that cannot be protected was logged.
    is_warned: bool,
}

pub(super) struct BindingController {
    name: &'static str,
    pub(super) kind: BindingKind,
    workers: usize,
    labels_workload_identities: bool,
    guard: Guard,
    pub(super) caches: Rc<Caches>,
    view: View,
    /// The types of bindings that left credentials without a release.
    pub(super) left: RefCell<BTreeMap<CredentialsRef, BTreeSet<String>>>,
}

/// How credentials are that a binding refers to.
enum Held {
    /// They have the finalizer of the kind, and are not being deleted.
    Alive,
    /// They are being deleted: since when the finalizer of the kind keeps them, or `None` if it does not.
    InDeletion(Option<DeletionTime>),
    /// The API server did not keep the finalizer.
    Altered,
}

/// How the controller of a kind is set up.
pub(super) struct Settings {
    pub(super) name: &'static str,
    pub(super) kind: BindingKind,
    pub(super) workers: usize,
    pub(super) labels_workload_identities: bool,
}

impl fmt::Display for BindingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binding(name) => name.fmt(f),
            Self::Credentials(credentials) => credentials.fmt(f),
            Self::Quota(name) => write!(f, "Quota {name}"),
        }
    }
}

impl BindingController {
    /// Starts the controller of a kind, with its event handlers.
    pub(super) fn start(settings: Settings, guard: Guard, caches: &Rc<Caches>, env: &Env) -> Supervised<Self> {
        let Settings { name, kind, workers, labels_workload_identities } = settings;
        let view = View::start(name, kind, caches, env);
        let (caches, left) = (caches.clone(), RefCell::default());
        let controller = Rc::new(Self { name, kind, workers, labels_workload_identities, guard, caches, view, left });
        let supervised = Supervised::start(controller.clone(), env);
        controller.guard.subscribe_as(&supervised, BindingKey::Binding);
        controller.subscribe(&supervised);
        supervised
    }

    fn kind_name(&self) -> &'static str {
        &self.kind.resource().kind
    }

    fn binding_of(&self, name: &NamespacedName) -> Option<Arc<Binding>> {
        self.caches.bindings(self.kind).watch.store().with(name, |binding| binding.fields.clone())
    }

    /// Protects and labels what a binding refers to (spec 81 G.2).
    async fn hold(
        &self,
        context: &Context,
        (name, binding): (&NamespacedName, &Binding),
        memory: &mut Memory,
        reconcile: &Reconcile<BindingKey>,
    ) -> Result<Outcome, Failure> {
        let credentials = binding.credentials.as_ref().map_err(|text| {
            self.view.count(name, true);
            Failure::new(text.as_str())
        })?;
        let (mut errors, mut outcome) = (Vec::new(), Outcome::Retire);
        match self.hold_credentials(context, name, credentials, &binding.types, memory).await {
            Ok(Held::Altered) => outcome = Outcome::Again,
            Ok(Held::InDeletion(Some(since))) => {
                self.view.show_kept(reconcile, credentials, since);
                outcome = Outcome::Done;
            }
            Ok(Held::InDeletion(None)) => outcome = Outcome::Done, // it remembers the warning
            Ok(Held::Alive) => {}
            Err(error) => errors.push(error.to_string()),
        }
        for quota in &binding.quotas {
            let labelled = self.label_quota(context, quota).await;
            errors.extend(labelled.err().map(|error| error.to_string()));
        }
        if errors.is_empty() { Ok(outcome) } else { Err(Failure::new(together(&errors, "; "))) }
    }

    async fn hold_credentials(
        &self,
        context: &Context,
        name: &NamespacedName,
        credentials: &CredentialsRef,
        types: &BTreeSet<String>,
        memory: &mut Memory,
    ) -> Result<Held, Failure> {
        let state = self.caches.state_of(context, credentials).await?;
        self.view.count(name, state.as_ref().is_none_or(|state| state.is_lost_for(self.kind)));
        let Some(state) = state else {
            return Err(Failure::new(not_found(credentials.kind.resource(), &credentials.name)));
        };
        let is_lost = state.is_lost_for(self.kind);
        if is_lost && !memory.is_warned {
            tracing::warn!(credentials = %credentials, "credentials in use are being deleted without the finalizer");
        }
        memory.is_warned = is_lost;
        let held = match (self.protect(context, credentials).await?, state.is_deleting) {
            (false, _) => Held::Altered,
            (true, true) => Held::InDeletion(state.kept_since(self.kind)),
            (true, false) => Held::Alive,
        };
        let labels = types.iter().map(|name| provider_label(name));
        let mut change = LabelChange::default();
        if credentials.kind == CredentialsKind::WorkloadIdentity && !self.labels_workload_identities {
            change.remove.extend(labels);
        } else {
            change.add.extend(labels);
        }
        change.add.insert(self.kind.label().to_owned());
        if change.is_done(&state) {
            return Ok(held);
        }
        let watch = self.caches.credentials(credentials.kind);
        refresh(watch, context, &credentials.name).await?;
        let label = |known: &CachedCredentials| change.patch(&known.fields);
        let labelled = watch.patch_cached(context, &credentials.name, Lock::None, label).await;
        labelled.map_err(|error| {
            let (kind, binding) = (&credentials.kind.resource().kind, self.kind_name());
            Failure::new(match self.kind {
                BindingKind::SecretBinding => {
                    format!("failed to add referred label to {kind} referenced in {binding}: {error}")
                }
                BindingKind::CredentialsBinding => format!(
                    "failed to add provider type or/and referred labels to {kind} referenced in {binding}: {error}"
                ),
            })
        })?;
        Ok(held)
    }

    /// Adds the finalizer of this kind to credentials and removes that of earlier releases. Credentials that do not exist
    /// are no error. Returns false if the API server did not keep it.
    async fn protect(&self, context: &Context, credentials: &CredentialsRef) -> Result<bool, Failure> {
        let watch = self.caches.credentials(credentials.kind);
        if !credentials.can_exist() || watch.absence().is_some() {
            return Ok(true);
        }
        let is_done = |state: &CredentialsState| {
            state.is_lost_for(self.kind) || (state.held_by.contains(&self.kind) && !state.has_legacy)
        };
        // Credentials that do not exist wake the binding when they are created.
        let known = watch.known(&credentials.name);
        let is_known = known.is_some_and(|known| known.is_none_or(|state| is_done(&state.fields)));
        if is_known {
            return Ok(true);
        }
        tracing::info!(finalizer = self.kind.finalizer(), "Adding finalizer");
        let decide = |object: &Value| protect(object, self.kind);
        let wrote = watch.patch_finalizers(context, &credentials.name, decide).await.map_err(|error| {
            let kind: &str = match self.kind {
                BindingKind::SecretBinding => "secret",
                BindingKind::CredentialsBinding => &credentials.kind.resource().kind,
            };
            Failure::new(format!("could not add finalizer to {kind}: {error}"))
        })?;
        Ok(!wrote.is_altered())
    }

    async fn label_quota(&self, context: &Context, quota: &NamespacedName) -> Result<(), Failure> {
        let (watch, kind) = (&self.caches.quotas, self.kind);
        let known = if can_exist(quota) { watch.known(quota) } else { Some(None) };
        match known {
            Some(Some(labels)) if labels.fields.contains(&kind) => return Ok(()),
            Some(None) => return Err(Failure::new(not_found(watch.resource(), quota))),
            Some(Some(_)) | None => {}
        }
        refresh(watch, context, quota).await?;
        let label = |known: &CachedQuota| {
            let is_missing = !known.fields.contains(&kind);
            is_missing.then(|| json!({ "metadata": { "labels": { kind.label(): TRUE } } }))
        };
        let labelled = watch.patch_cached(context, quota, Lock::None, label).await;
        let labelled = labelled.map_err(|error| {
            let NamespacedName { namespace, name } = quota;
            Failure::new(format!(
                "failed to add referred label to the quota referenced in {}, quota: {name} , namespace: {namespace} : \
                 {error}",
                self.kind_name()
            ))
        })?;
        match labelled {
            Wrote::Gone => Err(Failure::new(not_found(watch.resource(), quota))),
            Wrote::Created(_) | Wrote::Updated(_) | Wrote::Altered(_) | Wrote::Unchanged(_) | Wrote::Deleting(_) => {
                Ok(())
            }
        }
    }

    /// Returns what is released, confirmed by live lists.
    async fn judged(
        &self,
        context: &Context,
        judge: impl Fn(Judge, &dyn Fn(Question) -> Result<Answer, Question>) -> Result<Release, Question>,
    ) -> Result<Release, Failure> {
        let rules = Judge { kind: self.kind, labels_workload_identities: self.labels_workload_identities };
        let ask = |evidence: &Evidence<'_, Caches>| judge(rules, &|question| evidence.ask(&question));
        decide(&*self.caches, context, ask, Release::is_any).await
    }

    /// Releases credentials: first their labels, then the finalizer (G.3 step 4). Returns false if somebody wrote them
    /// in between: then they must be judged again.
    async fn release_credentials(
        &self,
        context: &Context,
        credentials: &CredentialsRef,
        types: &BTreeSet<String>,
        other_is_used: bool,
    ) -> Result<bool, Failure> {
        let watch = self.caches.credentials(credentials.kind);
        if !credentials.can_exist() || watch.absence().is_some() {
            return Ok(true);
        }
        let kind = &credentials.kind.resource().kind;
        let mut change = LabelChange::default();
        change.remove.extend(types.iter().map(|name| provider_label(name)));
        change.remove.insert(self.kind.label().to_owned());
        refresh(watch, context, &credentials.name).await?;
        let unlabel = |known: &CachedCredentials| change.patch(&known.fields);
        let unlabelled = watch.patch_cached(context, &credentials.name, Lock::Version, unlabel).await;
        let unlabelled = unlabelled
            .map_err(|error| Failure::new(format!("failed to remove referred label from {kind}: {error}")))?;
        // A webhook may bring labels back (G-T8): one attempt.
        let Some(unlabelled) = unlabelled.into_object() else { return Ok(true) };
        tracing::info!(finalizer = self.kind.finalizer(), "Removing finalizer");
        let version = unlabelled.version().to_string();
        let decide = |object: &Value| {
            let is_as_judged = object::resource_version(object) == version;
            is_as_judged.then(|| release(object, self.kind, other_is_used)).flatten()
        };
        let released = watch.patch_finalizers(context, &credentials.name, decide).await;
        Ok(match released {
            Ok(Wrote::Unchanged(object)) => release(&object, self.kind, other_is_used).is_none(),
            Ok(Wrote::Created(_) | Wrote::Updated(_) | Wrote::Altered(_) | Wrote::Deleting(_) | Wrote::Gone) => true,
            Err(error) => return Err(Failure::new(format!("failed to remove finalizer from {kind}: {error}"))),
        })
    }

    async fn release_quotas(&self, context: &Context, quotas: &BTreeSet<NamespacedName>) -> Result<(), Failure> {
        let unlabel = |known: &CachedQuota| {
            let is_labelled = known.fields.contains(&self.kind);
            is_labelled.then(|| json!({ "metadata": { "labels": { self.kind.label(): null } } }))
        };
        let is_served = self.caches.quotas.absence().is_none();
        for quota in quotas.iter().filter(|quota| is_served && can_exist(quota)) {
            // No change of the Quota wakes the binding again.
            if self.caches.quotas.store().with(quota, |known| known.fields.contains(&self.kind)) != Some(true) {
                self.caches.quotas.read_object(context, quota).await?;
            }
            let unlabelled = self.caches.quotas.patch_cached(context, quota, Lock::Version, unlabel).await;
            unlabelled.map_err(|error| Failure::new(format!("failed to remove referred label from Quota: {error}")))?;
        }
        Ok(())
    }

    /// Releases what a deleted binding refers to, and then the binding (G.3 steps 4 to 6).
    async fn release(
        &self,
        context: &Context,
        name: &NamespacedName,
        binding: &Binding,
        uid: &str,
    ) -> Result<Outcome, Failure> {
        let released = self.judged(context, |judge, ask| judge.binding(name, binding, ask)).await?;
        match (&binding.credentials, &released.types) {
            (Ok(credentials), Some(types)) => {
                if !self.release_credentials(context, credentials, types, released.other_is_used).await? {
                    return Ok(Outcome::Again);
                }
            }
            (Ok(credentials), None) => drop(self.protect(context, credentials).await?),
            (Err(_), _) => {}
        }
        self.release_quotas(context, &released.quotas).await?;
        self.guard.release(context, name, uid).await
    }

    async fn reconcile_binding(
        &self,
        context: &Context,
        name: &NamespacedName,
        reconcile: &Reconcile<BindingKey>,
        memory: &mut Memory,
    ) -> Result<Outcome, Failure> {
        let verdict = self.guard.check(context, name, &mut memory.told).await?;
        let binding = self.binding_of(name);
        if binding.is_none() || !matches!(verdict, GuardVerdict::Alive) {
            self.view.count(name, false);
        }
        let Some(binding) = binding else { return Ok(Outcome::Retire) };
        match verdict {
            GuardVerdict::Gone | GuardVerdict::Free => Ok(Outcome::Retire),
            GuardVerdict::Unguarded => Ok(Outcome::Again),
            GuardVerdict::Alive => self.hold(context, (name, &*binding), memory, reconcile).await,
            GuardVerdict::InUse(outcome) => {
                self.guard.show_use(name, reconcile, targets(&binding));
                if let Ok(credentials) = &binding.credentials {
                    self.protect(context, credentials).await?;
                }
                Ok(outcome)
            }
            GuardVerdict::Accepted(uid) => self.release(context, name, &binding, &uid).await,
        }
    }

    /// Releases credentials that a binding left (G-T6). Of bindings that went while this process did not run, the types are
    /// not known: then each provider label with the value `true` counts as theirs.
    async fn reconcile_credentials(&self, context: &Context, credentials: &CredentialsRef) -> Result<Outcome, Failure> {
        let state = self.caches.state_of(context, credentials).await?;
        let left = self.left.borrow().get(credentials).cloned();
        if let Some(state) = state.filter(|state| state.is_marked_by(self.kind)) {
            let own = || state.types.iter().filter(|(_, is_true)| **is_true).map(|(name, _)| name.clone()).collect();
            let types = left.unwrap_or_else(own);
            let judge = |judge: Judge, ask: &dyn Fn(Question) -> Result<Answer, Question>| {
                judge.left_credentials(credentials, &types, ask)
            };
            let released = self.judged(context, judge).await?;
            if let Some(types) = released.types
                && !self.release_credentials(context, credentials, &types, released.other_is_used).await?
            {
                return Ok(Outcome::Again);
            }
        }
        self.left.borrow_mut().remove(credentials);
        Ok(Outcome::Retire)
    }

    async fn reconcile_quota(&self, context: &Context, quota: &NamespacedName) -> Result<(), Failure> {
        let is_labelled = self.caches.quotas.store().with(quota, |labels| labels.fields.contains(&self.kind));
        if is_labelled == Some(true) {
            let released = self.judged(context, |judge, ask| judge.left_quota(quota, ask)).await?;
            self.release_quotas(context, &released.quotas).await?;
        }
        Ok(())
    }
}

/// Reads an object if its cache is not fresh: a decision to write nothing must not rest on it.
async fn refresh<R: Cached>(watch: &Watch<R>, context: &Context, name: &NamespacedName) -> Result<(), Failure> {
    if !watch.is_fresh_for(name) {
        watch.read_object(context, name).await?;
    }
    Ok(())
}

impl Controller for BindingController {
    type Key = BindingKey;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        self.name
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        let resource = self.kind.resource();
        let reconciler = Reconciler::new(self.name, self.workers).about((&resource.group, &resource.kind));
        let reconciler = self.guard.requirements().fold(reconciler, Reconciler::requires);
        vec![self.caches.requirements().into_iter().fold(reconciler, Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<BindingKey>,
    ) -> Result<Outcome, Failure> {
        let context = Context::new(reconcile.priority(), reconcile.deadline, reconcile.key.to_string());
        match &reconcile.key {
            BindingKey::Binding(name) => self.reconcile_binding(&context, name, reconcile, memory).await,
            BindingKey::Credentials(credentials) => self.reconcile_credentials(&context, credentials).await,
            BindingKey::Quota(quota) => self.reconcile_quota(&context, quota).await.map(|()| Outcome::Retire),
        }
    }
}

/// Returns the error text about a missing object, as API servers write it.
fn not_found(resource: &cluster::Resource, name: &NamespacedName) -> String {
    let dot = if resource.group.is_empty() { "" } else { "." };
    format!("{}{dot}{} {:?} not found", resource.plural, resource.group, name.name)
}
