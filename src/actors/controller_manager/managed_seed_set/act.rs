//! The step of a reconcile: one create, one delete or one retry (spec 86 §6.2 to §6.6).

use cluster::{ApiError, Lock, Wrote, object, object::NamespacedName};
use kit::Failure;
use serde_json::{Value, json};

use super::{
    replica::{OPERATION, RETRY, Replica, ReplicaShoot, ReplicaStatus, controller_uid, is_protected},
    rules::{Act, Step},
    run::Run,
    status::{PendingReason, SetStatus},
    templates,
};
use crate::actors::controller_manager::deletion_confirmation::CONFIRMED;

/// Why a reconcile ends without its step.
#[derive(Debug)]
pub(super) enum Stop {
    /// Something is not as the caches say. The reconcile is repeated when they have caught up.
    Later,
    /// The step failed, with this text for the Event.
    Failed(String),
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acted {
    /// Somebody else has to act next.
    Wait,
    /// The deleted object is gone, so that the next step can follow.
    Gone,
}

impl From<ApiError> for Stop {
    fn from(error: ApiError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.to_string())
    }
}

impl Run<'_> {
    /// Does a step. `status` only changes if the ordinal of a new replica is in use.
    pub(super) async fn act(&self, step: &Step, replicas: &[Replica], status: &mut SetStatus) -> Result<Acted, Stop> {
        let name = NamespacedName::new(self.key.namespace.as_str(), &*step.replica);
        match step.act {
            Act::Wait | Act::GiveUp => Ok(Acted::Wait),
            Act::Retry => self.retry(step, &name).await,
            Act::CreateShoot => self.create_shoot(step, &name, replicas, status).await,
            Act::CreateManagedSeed => self.create_managed_seed(&name, replicas).await,
            Act::DeleteManagedSeed => self.delete_managed_seed(&name, replicas).await,
            Act::DeleteShoot => self.delete_shoot(&name, replicas).await,
        }
    }

    /// Asks gardenlet for a retry, if the live Shoot has failed, too.
    async fn retry(&self, step: &Step, name: &NamespacedName) -> Result<Acted, Stop> {
        let failed = match step.reason {
            PendingReason::ShootDeleting => ReplicaStatus::ShootDeleteFailed,
            _ => ReplicaStatus::ShootReconcileFailed,
        };
        let patch = |live: &Value| {
            let shoot = ReplicaShoot::of(live);
            let is_due = shoot.status == failed && !shoot.is_retry_asked && self.set.selects(&shoot);
            is_due.then(|| json!({ "metadata": { "annotations": { OPERATION: RETRY } } }))
        };
        match self.sets.caches.shoots.patch(&self.context, name, Lock::Uid, patch).await? {
            Wrote::Updated(_) | Wrote::Altered(_) => Ok(Acted::Wait),
            Wrote::Created(_) | Wrote::Unchanged(_) | Wrote::Deleting(_) | Wrote::Gone => Err(Stop::Later),
        }
    }

    async fn create_shoot(
        &self,
        step: &Step,
        name: &NamespacedName,
        replicas: &[Replica],
        status: &mut SetStatus,
    ) -> Result<Acted, Stop> {
        let live = self.sets.read_set(&self.context, self.key, &self.set).await?;
        if !self.set.matches_labels(&templates::labels_of_shoots(&live)) {
            return Err(Stop::Failed("selector does not match template labels".to_owned())); // DEV-17
        }
        self.confirm(replicas, |_, _| true).await?;
        let shoots = &self.sets.caches.shoots;
        match shoots.create(&self.context, &templates::shoot(&live, &step.replica)).await {
            Ok(_) => Ok(Acted::Wait),
            Err(error) if error.is_already_exists() => {
                // Either the answer to an earlier create was lost, or the name is in use (DEV-10).
                let found = shoots.read_object(&self.context, name).await?.ok_or(Stop::Later)?;
                if controller_uid(&found) == Some(&*self.set.uid) {
                    return Ok(Acted::Wait);
                }
                step.skip_ordinal(status);
                status.pending = None;
                Err(Stop::Failed(format!("Shoot {name} already exists and is not controlled by the ManagedSeedSet")))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn create_managed_seed(&self, name: &NamespacedName, replicas: &[Replica]) -> Result<Acted, Stop> {
        let live = self.sets.read_set(&self.context, self.key, &self.set).await?;
        let managed_seed = templates::managed_seed(&live, &name.name).map_err(Stop::Failed)?;
        self.confirm(replicas, |shoot, live| shoot != name.name || !live.is_deleting).await?;
        match self.sets.caches.managed_seeds.create(&self.context, &managed_seed).await {
            Err(error) if !error.is_already_exists() => Err(error.into()),
            Ok(_) | Err(_) => Ok(Acted::Wait),
        }
    }

    async fn delete_managed_seed(&self, name: &NamespacedName, replicas: &[Replica]) -> Result<Acted, Stop> {
        self.confirm_victim(name, replicas).await?;
        let managed_seeds = &self.sets.caches.managed_seeds;
        let is_due = |live: &Value| !is_protected(live);
        ended(managed_seeds.delete_if(&self.context, name, None, is_due).await?)
    }

    async fn delete_shoot(&self, name: &NamespacedName, replicas: &[Replica]) -> Result<Acted, Stop> {
        self.confirm_victim(name, replicas).await?;
        if self.sets.caches.managed_seeds.read_live(&self.context, name).await?.is_some() {
            return Err(Stop::Later); // it goes first
        }
        let shoots = &self.sets.caches.shoots;
        let is_due = |live: &Value| !is_protected(live) && self.set.selects(&ReplicaShoot::of(live));
        let confirm =
            |live: &Value| is_due(live).then(|| json!({ "metadata": { "annotations": { CONFIRMED: "true" } } }));
        let confirmed = match shoots.patch(&self.context, name, Lock::Uid, confirm).await? {
            Wrote::Updated(confirmed) | Wrote::Unchanged(confirmed) => confirmed,
            Wrote::Gone => return Ok(Acted::Gone),
            Wrote::Created(_) | Wrote::Altered(_) | Wrote::Deleting(_) => return Err(Stop::Later),
        };
        let is_due = |live: &Value| is_due(live) && object::annotation(live, CONFIRMED) == Some("true");
        ended(shoots.delete_if(&self.context, &confirmed, None, is_due).await?)
    }

    /// Stops if a replica must not be deleted, as live reads say.
    async fn confirm_victim(&self, name: &NamespacedName, replicas: &[Replica]) -> Result<(), Stop> {
        self.confirm(replicas, |shoot, live| shoot != name.name || !live.is_protected).await?;
        self.sets.confirm_unused(&self.context, &name.name).await
    }

    /// Stops if the replicas are others than the caches say, or if one of them is not as `confirmed` asks.
    pub(super) async fn confirm(
        &self,
        replicas: &[Replica],
        confirmed: impl Fn(&str, &ReplicaShoot) -> bool,
    ) -> Result<(), Stop> {
        self.sets.confirm_replicas(&self.context, self.key, &self.set, replicas, confirmed).await
    }
}

/// Returns how a deletion ended. Nothing was deleted if the live object must not be.
fn ended(wrote: Wrote) -> Result<Acted, Stop> {
    match wrote {
        Wrote::Deleting(_) => Ok(Acted::Wait),
        Wrote::Gone => Ok(Acted::Gone),
        Wrote::Created(_) | Wrote::Updated(_) | Wrote::Altered(_) | Wrote::Unchanged(_) => Err(Stop::Later),
    }
}
