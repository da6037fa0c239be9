//! `cloudprofile`: guards CloudProfiles in use, and publishes the classifications of their versions (spec 81 C, §3.1).
//!
//! `CloudProfile ─ status.rs, classification.rs ─► Versions ─► status, timer of the next change`
//!
//! [`classification`] and [`status`] are pure. This file has the table entry of the guard, the actor and its write.

pub mod classification;
pub mod status;

use std::{cell::Cell, rc::Rc, sync::Arc};

use cluster::{
    ApiError, CachedFields, Context, EventType, Lock, Predicate, Watch, WatchOptions, Wrote, object::NamespacedName,
};
use kit::{Clock, Controller, Failure, Outcome, Reconcile, Reconciler};
use serde_json::Value;

use self::status::{Versions, published_part};
use super::{
    context::{GardenContext, Registration, StartControllers, start},
    fields::text,
    guards::{self, Guard, GuardDefinition, GuardEvent, ReferrerScope, ReferringKind, Told, named},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "cloudprofile"; // spec 80 §15

const NO_STATUS: &str = "the API server has no status of CloudProfiles: classifications are not published";

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// How CloudProfiles are guarded.
pub static GUARD: GuardDefinition = GuardDefinition {
    controller: NAME,
    kind: kinds::CLOUD_PROFILE,
    finalizer: guards::GARDENER,
    add_error: "failed to add finalizer",
    event: Some(GuardEvent { event_type: EventType::Normal, action: "Delete" }),
    users: &[
        ReferringKind {
            kind: kinds::NAMESPACED_CLOUD_PROFILE,
            scope: ReferrerScope::Anywhere,
            targets: |profile| named("", text(profile, "/spec/parent/name")),
        },
        ReferringKind { kind: kinds::SHOOT, scope: ReferrerScope::Anywhere, targets: of_shoot },
    ],
    accepted: &[
        "No NamespacedCloudProfiles are referencing the CloudProfile",
        "No Shoots are referencing the CloudProfile, deletion accepted",
    ],
    notes: &[
        &[("Cannot delete CloudProfile, because the following NamespacedCloudProfiles are still referencing it: ", 0)],
        &[("Cannot delete CloudProfile, because the following Shoots are still referencing it: ", 1)],
    ],
};

/// A reference without a kind leads to a CloudProfile.
fn of_shoot(shoot: &Value) -> Vec<NamespacedName> {
    let is_meant = matches!(text(shoot, "/spec/cloudProfile/kind"), "" | "CloudProfile");
    let newer = if is_meant { text(shoot, "/spec/cloudProfile/name") } else { "" };
    [text(shoot, "/spec/cloudProfileName"), newer].into_iter().flat_map(|name| named("", name)).collect()
}

struct CloudProfiles {
    workers: usize,
    clock: Clock,
    guard: Guard,
    profiles: Watch<CachedFields<Profile>>,
    /// It was logged that the server has no status of CloudProfiles. A write that succeeds ends this.
    is_told: Cell<bool>,
}

/// What is kept of a CloudProfile.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Profile {
    versions: Arc<Versions>,
    status: Arc<Value>,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let controller = CloudProfiles {
        workers: config.controllers.cloud_profile.concurrent_syncs.count(),
        clock: ctx.env.clock.clone(),
        guard: Guard::open(&GUARD, ctx),
        profiles: ctx.garden.watches.open(WatchOptions::fields(kinds::CLOUD_PROFILE, Profile::of)),
        is_told: Cell::new(false),
    };
    Some(start(controller, |controller, supervised| {
        controller.guard.subscribe(supervised);
        controller.profiles.on_change(supervised, Predicate::fields_changed(), |name, _| [name.clone()]);
    }))
}

impl Profile {
    fn of(profile: &Value) -> Self {
        let status = published_part(profile.get("status").unwrap_or(&Value::Null));
        Self { versions: Arc::new(Versions::of(profile)), status: Arc::new(status) }
    }
}

impl CloudProfiles {
    /// Publishes the classifications, and returns when they change next.
    async fn publish(
        &self,
        context: &Context,
        key: &NamespacedName,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let Some(profile) = self.profiles.store().with(key, |profile| profile.fields.clone()) else {
            return Ok(Outcome::Retire);
        };
        let now = self.clock.wall();
        let mut is_published = true;
        if profile.versions.status_patch(&profile.status, now).is_some() {
            let decide = |profile: &Value| {
                Versions::of(profile).status_patch(profile.get("status").unwrap_or(&Value::Null), now)
            };
            match self.profiles.patch_status(context, key, Lock::Uid, decide).await {
                // A server may answer about a status that it does not serve as if the object were gone.
                Ok(Wrote::Gone) => is_published = self.profiles.read_live(context, key).await?.is_none(),
                Ok(Wrote::Created(_) | Wrote::Updated(_) | Wrote::Altered(_)) => self.is_told.set(false),
                Ok(Wrote::Unchanged(_) | Wrote::Deleting(_)) => {}
                Err(error) if is_unserved(&error) => is_published = false,
                Err(error) => {
                    return Err(Failure::new(format!("failed to patch CloudProfile status versions: {error}")));
                }
            }
        }
        if !is_published && !self.is_told.replace(true) {
            tracing::info!("{NO_STATUS}");
        }
        let published = if is_published { "classifications are published" } else { NO_STATUS };
        let Some(next) = profile.versions.next_change(now) else { return Ok(Outcome::Retire) };
        reconcile.note(format!("{published}; the next one changes at {next}"));
        reconcile.detail(Vec::new());
        Ok(Outcome::At(next))
    }
}

/// Returns true if a server does not know the subresource (spec 81 C.2).
fn is_unserved(error: &ApiError) -> bool {
    error.is_not_served() || error.code() == Some(405)
}

impl Controller for CloudProfiles {
    type Key = NamespacedName;
    type Memory = Told;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.workers).about(("core.gardener.cloud", "CloudProfile"));
        let reconciler = self.guard.requirements().fold(reconciler, Reconciler::requires);
        vec![reconciler.requires(self.profiles.sync_requirement())]
    }

    async fn reconcile(
        self: &Rc<Self>,
        told: &mut Told,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        match self.guard.settle(&context, told, reconcile).await? {
            Some(outcome) => Ok(outcome),
            None => self.publish(&context, key, reconcile).await,
        }
    }
}
