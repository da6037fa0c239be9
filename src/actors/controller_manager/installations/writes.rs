//! The writes of one reconcile. Each of them is bound to a version, and judges again after a conflict: whether the
//! installation is still of this role, and what differs. A deletion is bound to the version that was planned.

use std::cell::RefCell;

use cluster::{Cached, Context, Lock, Wrote, object::NamespacedName};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    backups::ExtensionCluster,
    content::{Content, Owner},
    finalizers::HeldKind,
    installation::{CachedInstallation, InstallationFacts, MARK},
    patience::Patience,
    plan::{Act, Existing, Role, may_update},
    reference_locks::CreationLock,
    stores::Stores,
};
use crate::actors::{
    controller_manager::shoot_record::CachedShoot,
    shared::drift_backoff::{DriftBackoff, LONGEST_PAUSE},
};

/// Result of a write that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It is as wanted.
    Settled,
    /// Somebody else was faster: look again after a back-off.
    Overtaken,
    /// Somebody undoes it again and again: its repair is due later.
    Postponed,
    /// What a new installation refers to lacks a finalizer that this program sets: look again soon.
    Unsettled,
}

/// Writes installations of one cluster.
pub(super) struct Writer<'a> {
    pub(super) stores: &'a Stores,
    pub(super) context: &'a Context,
    pub(super) cluster: &'a ExtensionCluster,
    pub(super) installed_on: &'a ExtensionCluster,
    /// The cluster is in deletion, as it was judged.
    pub(super) is_deleting: bool,
    pub(super) role: Role<'a>,
    pub(super) owner: &'a Owner,
    pub(super) existing: &'a Existing,
    pub(super) repairs: &'a RefCell<Repairs>,
    pub(super) patience: &'a Patience,
}

/// The intent that there is no installation: a later one is no repair.
const NOTHING: u64 = 0;

/// When installations were written, by registration: another program may undo each write, and gardenlet installs an
/// extension again for each.
pub(super) type Repairs = DriftBackoff<Box<str>>;

impl Writer<'_> {
    /// Does what was decided about a registration. Fails with the texts of spec 85.
    pub(super) async fn write(&self, registration: &str, act: &Act) -> Result<Effect, String> {
        match act {
            Act::Create => self.deploy(registration, None).await,
            Act::Update(name) => self.deploy(registration, Some(name)).await,
            Act::HandOver(name) => {
                let patch = |facts: &InstallationFacts| {
                    facts.is_marked().then(|| json!({ "metadata": { "labels": { MARK: null } } }))
                };
                tracing::info!(
                    controllerRegistrationName = registration,
                    controllerInstallationName = &**name,
                    "Handing over ControllerInstallation to shoot reconciler"
                );
                let text = "failed to strip SeedRefName label for ControllerInstallation";
                self.patch(name, text, patch).await
            }
            Act::Join(name) => {
                let ExtensionCluster::Seed(seed) = self.cluster else { return Ok(Effect::Settled) };
                let patch = |facts: &InstallationFacts| {
                    facts.seed.is_none().then(|| json!({ "spec": { "seedRef": { "name": seed } } }))
                };
                let key = NamespacedName::new("", &**seed);
                let Some(_lock) = self.stores.locks.for_creation(&[(HeldKind::Seed, key.clone())]) else {
                    return Ok(Effect::Overtaken); // it is being released
                };
                if self.stores.seeds.store().with(&key, |it| it.fields.is_held) != Some(true) {
                    return Ok(Effect::Overtaken);
                }
                let text = "failed to set .spec.seedRef for existing ControllerInstallation";
                self.patch(name, text, patch).await
            }
            Act::Part(name) => {
                let ExtensionCluster::Seed(seed) = self.cluster else { return Ok(Effect::Settled) };
                let patch = |facts: &InstallationFacts| {
                    let is_ours = facts.seed.as_ref() == Some(seed) && facts.shoot.is_some();
                    is_ours.then(|| json!({ "spec": { "seedRef": null } }))
                };
                let text = "failed to clear .spec.seedRef for existing ControllerInstallation";
                self.patch(name, text, patch).await
            }
            Act::Delete(name) => self.delete(registration, name).await,
        }
    }

    async fn patch(
        &self,
        name: &str,
        text: &str,
        patch: impl Fn(&InstallationFacts) -> Option<Value>,
    ) -> Result<Effect, String> {
        let decide = |it: &CachedInstallation| patch(&it.fields).filter(|_| !it.fields.is_deleting);
        let wrote = self
            .stores
            .installations
            .patch_cached(self.context, &NamespacedName::new("", name), Lock::Version, decide)
            .await;
        Ok(effect(&wrote.map_err(|error| format!("{text} \"{name}\": {error}"))?))
    }

    async fn deploy(&self, registration: &str, existing: Option<&str>) -> Result<Effect, String> {
        let Some(known) = self.stores.catalogue().get(registration).cloned() else { return Ok(Effect::Overtaken) };
        let deployed = self.stores.deployed(self.context, &known.facts).await;
        let deployed = deployed.map_err(|error| error.to_string())?;
        let content =
            Content { name: registration, registration: &known, owner: self.owner, deployed: deployed.as_ref() };
        match existing {
            None => self.create(&content).await,
            Some(name) => self.update(name, &content).await,
        }
    }

    async fn update(&self, name: &str, content: &Content<'_>) -> Result<Effect, String> {
        let key = NamespacedName::new("", name);
        let patch = |facts: &InstallationFacts| may_update(self.role, facts).then(|| content.patch(facts)).flatten();
        let is_known_to_differ = |it: &CachedInstallation| patch(&it.fields).is_some();
        if self.stores.installations.store().with(&key, is_known_to_differ) == Some(false) {
            return Ok(Effect::Settled);
        }
        if !self.may_repair(content) {
            return Ok(Effect::Postponed);
        }
        // The patch may bring a reference back.
        let Some(_lock) = self.lock_references_of(&content.object()) else { return Ok(Effect::Overtaken) };
        announce(content.name);
        let updated = self.patch(name, "failed to update ControllerInstallation", patch).await?;
        self.note_repair(content);
        Ok(updated)
    }

    fn may_repair(&self, content: &Content<'_>) -> bool {
        self.repairs.borrow_mut().may_repair(&content.name.into(), content.intent(), Instant::now())
    }

    fn note_repair(&self, content: &Content<'_>) {
        let (name, intent) = (content.name.into(), content.intent());
        self.repairs.borrow_mut().repaired(&name, intent, Instant::now(), LONGEST_PAUSE);
    }

    /// A cache proves no absence (A.6.3): one live list comes first. An installation that it finds is used as soon as the
    /// cache has it.
    async fn create(&self, content: &Content<'_>) -> Result<Effect, String> {
        if !self.may_repair(content) {
            return Ok(Effect::Postponed);
        }
        let Some(_creation) = self.stores.begin_creation(self.installed_on, content.name) else {
            return Ok(Effect::Overtaken);
        };
        if !self.is_waited_for(content.name) {
            return Ok(Effect::Overtaken);
        }
        if !self.is_settled(content) && self.patience.must_wait(Instant::now()) {
            return Ok(Effect::Unsettled);
        }
        let live = self.stores.live_installations(Some(content.name)).await.map_err(|error| error.to_string())?;
        if live.of(self.installed_on, content.name).next().is_some() {
            return Ok(Effect::Overtaken);
        }
        let object = content.object();
        let Some(_lock) = self.lock_references_of(&object) else { return Ok(Effect::Overtaken) };
        if !self.is_waited_for(content.name) {
            return Ok(Effect::Overtaken);
        }
        if !self.is_settled(content) && self.patience.must_wait(Instant::now()) {
            return Ok(Effect::Unsettled); // the list may have taken long
        }
        announce(content.name);
        match self.stores.installations.create(self.context, &object).await {
            Ok(_) => {
                self.note_repair(content);
                Ok(Effect::Settled)
            }
            Err(error) => Err(format!("failed to create ControllerInstallation for \"{}\": {error}", content.name)),
        }
    }

    /// Locks what an installation refers to (DEV-24). Returns `None` if one of these objects is being released.
    fn lock_references_of(&self, installation: &Value) -> Option<CreationLock> {
        self.stores.locks.for_creation(&HeldKind::referred_objects(&InstallationFacts::of(installation)))
    }

    /// Returns true if registration and cluster still wait for the end of a new installation: they have their finalizers.
    /// The list may have taken long, and the same list may have released them: nobody would remove the installation then
    /// (C.2, D.1).
    fn is_waited_for(&self, registration: &str) -> bool {
        let catalogue = self.stores.catalogue();
        let is_registered = catalogue.get(registration).is_some_and(|it| it.facts.is_held && !it.facts.is_deleting);
        let cluster = match self.cluster {
            ExtensionCluster::Seed(seed) => {
                let key = NamespacedName::new("", &**seed);
                self.stores.seeds.store().with(&key, |it| (it.fields.is_deleting, it.fields.is_held))
            }
            ExtensionCluster::Shoot(shoot) => {
                let state = |it: &CachedShoot| (it.fields.is_deleting, it.fields.is_held_for_installations);
                self.stores.shoots.store().with(shoot, state)
            }
        };
        let is_same = |(is_deleting, is_held): (bool, bool)| is_held && is_deleting == self.is_deleting;
        // A marked installation refers to the Shoot of its Seed, too.
        let is_shoot_held = match self.installed_on {
            ExtensionCluster::Seed(_) => true,
            ExtensionCluster::Shoot(shoot) => {
                self.stores.shoots.store().with(shoot, |it| it.fields.is_held_for_installations) == Some(true)
            }
        };
        is_registered && is_shoot_held && cluster.is_some_and(is_same)
    }

    /// Returns true if what a new installation refers to has its finalizers, and is still at the versions that were read. Else
    /// the installation would be patched right after its creation, and gardenlet would install the extension twice (DEV-26).
    fn is_settled(&self, content: &Content<'_>) -> bool {
        let registration = self.stores.catalogue().get(content.name).map(|it| it.version);
        let is_settled = content.deployed.is_none_or(|deployed| {
            let key = NamespacedName::new("", &*deployed.name);
            let known = self.stores.deployments.store().with(&key, Cached::version);
            deployed.is_settled && known.is_none_or(|known| known <= deployed.version)
        });
        is_settled && registration == Some(content.registration.version)
    }

    /// Deletes an installation as it was judged.
    async fn delete(&self, registration: &str, name: &str) -> Result<Effect, String> {
        let installations = self.existing.get(registration).into_iter().flatten();
        let Some((_, judged)) = installations.into_iter().find(|(other, _)| &**other == name) else {
            return Ok(Effect::Overtaken);
        };
        let is_of_seed = judged.is_marked() || matches!(self.role, Role::SelfHostedSeed { .. });
        let text = if is_of_seed {
            "Deleting ControllerInstallation for ControllerRegistration no longer needed by seed"
        } else {
            "Deleting unneeded ControllerInstallation for ControllerRegistration"
        };
        tracing::info!(controllerRegistrationName = registration, controllerInstallationName = name, "{text}");
        let is_as_judged = |it: &CachedInstallation| *it.fields == **judged;
        let key = NamespacedName::new("", name);
        let deleted = self.stores.installations.delete_cached_if(self.context, &key, None, is_as_judged).await;
        let deleted =
            deleted.map_err(|error| format!("failed to delete ControllerInstallation \"{name}\": {error}"))?;
        self.repairs.borrow_mut().reset_if_changed(&registration.into(), NOTHING);
        match deleted {
            Wrote::Gone | Wrote::Deleting(_) => Ok(Effect::Settled),
            Wrote::Created(_) | Wrote::Updated(_) | Wrote::Altered(_) | Wrote::Unchanged(_) => Ok(Effect::Overtaken),
        }
    }
}

fn announce(registration: &str) {
    tracing::info!(
        controllerRegistrationName = registration,
        "Deploying wanted ControllerInstallation for ControllerRegistration"
    );
}

fn effect(wrote: &Wrote<CachedInstallation>) -> Effect {
    match wrote {
        Wrote::Created(_) | Wrote::Updated(_) | Wrote::Unchanged(_) => Effect::Settled,
        Wrote::Altered(_) | Wrote::Deleting(_) | Wrote::Gone => Effect::Overtaken,
    }
}
