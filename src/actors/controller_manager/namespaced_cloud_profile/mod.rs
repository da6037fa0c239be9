//! `namespacedcloudprofile`: guards NamespacedCloudProfiles in use, and merges them with their parents (spec 81 D, §3.1).
//!
//! `NamespacedCloudProfile, CloudProfile ─ merge.rs, architectures.rs ─► status.cloudProfileSpec`
//!
//! [`merge`] and `architectures` are pure. This file has the table entry of the guard, the actor and its write. Of a
//! merged profile only a hash is kept, which tells whether it is up to date.

mod architectures;
pub mod merge;
#[cfg(test)]
mod tests;

use std::{rc::Rc, sync::Arc};

use cluster::{
    CachedFields, Context, EventType, Index, Lock, Predicate, Watch, WatchOptions,
    object::{self, NamespacedName},
};
use kit::{Controller, Failure, Outcome, Reconcile, Reconciler, hash_of, quote::shown};
use serde_json::Value;

use self::merge::{merged, status_patch};
use super::{
    context::{GardenContext, Registration, StartControllers, start},
    fields::{text, without_empty},
    guards::{self, Guard, GuardDefinition, GuardEvent, ReferrerScope, ReferringKind, Told, named},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "namespacedcloudprofile"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// How NamespacedCloudProfiles are guarded.
pub static GUARD: GuardDefinition = GuardDefinition {
    controller: NAME,
    kind: kinds::NAMESPACED_CLOUD_PROFILE,
    finalizer: guards::GARDENER,
    add_error: "failed to add finalizer",
    event: Some(GuardEvent { event_type: EventType::Normal, action: "Reconcile" }),
    users: &[ReferringKind { kind: kinds::SHOOT, scope: ReferrerScope::SameNamespace, targets: of_shoot }],
    accepted: &["No Shoots are referencing the NamespacedCloudProfile, deletion accepted"],
    notes: &[&[("Cannot delete NamespacedCloudProfile, because the following Shoots are still referencing it: ", 0)]],
};

fn of_shoot(shoot: &Value) -> Vec<NamespacedName> {
    let is_meant = text(shoot, "/spec/cloudProfile/kind") == "NamespacedCloudProfile";
    let name = if is_meant { text(shoot, "/spec/cloudProfile/name") } else { "" };
    named(text(shoot, "/metadata/namespace"), name)
}

struct NamespacedCloudProfiles {
    workers: usize,
    guard: Guard,
    profiles: Watch<CachedFields<Profile>>,
    by_parent: Index<NamespacedName>,
    /// The specs of CloudProfiles.
    parents: Watch<CachedFields<Arc<Value>>>,
}

/// What is kept of a NamespacedCloudProfile.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Profile {
    parent: NamespacedName,
    spec: Arc<Value>,
    generation: i64,
    /// Hash of the merged profile in the status; `None` if there is none.
    merged: Option<u64>,
    observed_generation: i64,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let profiles = ctx.garden.watches.open(WatchOptions::fields(kinds::NAMESPACED_CLOUD_PROFILE, Profile::of));
    let by_parent = profiles.index(|_, profile: &CachedFields<Profile>| vec![profile.fields.parent.clone()]);
    let spec = |profile: &Value| Arc::new(profile.get("spec").cloned().unwrap_or_default());
    let controller = NamespacedCloudProfiles {
        workers: config.controllers.namespaced_cloud_profile.concurrent_syncs.count(),
        guard: Guard::open(&GUARD, ctx),
        profiles,
        by_parent,
        parents: ctx.garden.watches.open(WatchOptions::fields(kinds::CLOUD_PROFILE, spec)),
    };
    Some(start(controller, |controller, supervised| {
        controller.guard.subscribe(supervised);
        let changed =
            Predicate::<CachedFields<Profile>>::differing(|old, new| old.fields.concerns_merge_unlike(&new.fields));
        controller.profiles.on_change(supervised, changed, |name, _| [name.clone()]);
        let by_parent = controller.by_parent.clone();
        let changed = Predicate::fields_changed().ignoring_first_list();
        controller.parents.on_change(supervised, changed, move |name, _| by_parent.get(name));
    }))
}

impl Profile {
    fn of(profile: &Value) -> Self {
        let merged = profile.pointer("/status/cloudProfileSpec").filter(|spec| !spec.is_null());
        Self {
            parent: parent_of(profile),
            spec: Arc::new(profile.get("spec").cloned().unwrap_or_default()),
            generation: object::generation(profile),
            merged: merged.map(hash_of_spec),
            observed_generation: profile
                .pointer("/status/observedGeneration")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
        }
    }

    /// Returns true if it must be merged again when it changes into `new`. The status does not count.
    fn concerns_merge_unlike(&self, new: &Self) -> bool {
        self.generation != new.generation || self.spec != new.spec
    }

    fn is_up_to_date(&self, parent: &Value) -> bool {
        let is_merged = || self.merged == Some(hash_of_spec(&merged(parent, &self.spec)));
        self.observed_generation == self.generation && is_merged()
    }
}

fn parent_of(profile: &Value) -> NamespacedName {
    NamespacedName::new("", text(profile, "/spec/parent/name"))
}

/// Null, absent and empty fields are equal (spec 80 §10 A12). Keys are sorted.
fn hash_of_spec(spec: &Value) -> u64 {
    hash_of(&without_empty(spec).to_string())
}

impl NamespacedCloudProfiles {
    /// Writes the merged profile if it is not up to date.
    async fn merge(
        &self,
        context: &Context,
        key: &NamespacedName,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let profile = self.profiles.store().with(key, |profile| profile.fields.clone());
        let Some(profile) = profile else { return Ok(Outcome::Retire) };
        let parent = self.parents.store().with(&profile.parent, |parent| parent.fields.clone());
        let Some(parent) = parent else {
            tracing::debug!("Parent object is gone, stop reconciling");
            reconcile.note(format!("its parent CloudProfile {} does not exist", shown(&profile.parent.name)));
            reconcile.detail(Vec::new());
            return Ok(Outcome::Done); // the parent wakes it when it appears
        };
        if profile.is_up_to_date(&parent) {
            return Ok(Outcome::Retire);
        }
        let decide = |live: &Value| {
            let is_its_child = parent_of(live) == profile.parent && object::deletion_timestamp(live).is_none();
            is_its_child.then(|| status_patch(live, &parent)).flatten()
        };
        // A webhook of the provider may change what is written: no reason to write again (spec 81 D.3 no. 9).
        self.profiles.patch_status(context, key, Lock::Version, decide).await?;
        Ok(Outcome::Retire)
    }
}

impl Controller for NamespacedCloudProfiles {
    type Key = NamespacedName;
    type Memory = Told;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.workers).about(("core.gardener.cloud", "NamespacedCloudProfile"));
        let reconciler = self.guard.requirements().fold(reconciler, Reconciler::requires);
        let own = [self.profiles.sync_requirement(), self.parents.sync_requirement()];
        vec![own.into_iter().fold(reconciler, Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        told: &mut Told,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        if let Some(outcome) = self.guard.settle(&context, told, reconcile).await? {
            return Ok(outcome);
        }
        self.merge(&context, key, reconcile).await
    }
}
