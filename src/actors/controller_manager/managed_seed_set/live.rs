//! What the API server says before a ManagedSeedSet creates or deletes something (spec 86 §5.1, §6.5). Nothing rests on a
//! cache that lags behind, and nothing is deleted that was protected or came into use meanwhile.

use std::collections::BTreeMap;

use cluster::{ApiError, Context, ListQuery, object::NamespacedName};
use serde_json::Value;

use super::{
    ManagedSeedSets,
    act::Stop,
    replica::{Replica, ReplicaShoot},
    set::ManagedSeedSet,
};
use crate::{actors::controller_manager::shoot_record::CachedShoot, api::kinds};

/// The fields of a Shoot that name a Seed.
const SEED_FIELDS: [&str; 2] = ["spec.seedName", "status.seedName"];

impl ManagedSeedSets {
    /// Reads the ManagedSeedSet, with its templates. Stops if it is not as the step was decided on.
    pub(super) async fn read_set(
        &self,
        context: &Context,
        key: &NamespacedName,
        decided_on: &ManagedSeedSet,
    ) -> Result<Value, Stop> {
        let live = self.caches.sets.read_object(context, key).await?.ok_or(Stop::Later)?;
        let set = ManagedSeedSet::of(&live);
        let is_numbered = set.status.next_replica_number <= decided_on.status.next_replica_number;
        if set.has_changed_since(decided_on) || !is_numbered { Err(Stop::Later) } else { Ok(live) }
    }

    /// Stops if the replicas of a ManagedSeedSet are not those on which a step was decided, or if the replica of the step is
    /// being deleted or protected.
    pub(super) async fn confirm_replicas(
        &self,
        context: &Context,
        key: &NamespacedName,
        set: &ManagedSeedSet,
        replicas: &[Replica],
        confirmed: impl Fn(&str, &ReplicaShoot) -> bool,
    ) -> Result<(), Stop> {
        let live = self.list_replicas(context, key, set).await?;
        let is_listed = replicas.iter().all(|replica| live.contains_key(&*replica.name));
        let is_confirmed = live.iter().all(|(name, shoot)| confirmed(name, shoot));
        if is_listed && live.len() == replicas.len() && is_confirmed { Ok(()) } else { Err(Stop::Later) }
    }

    /// Lists the replicas of a ManagedSeedSet, as far as metadata tells of them.
    async fn list_replicas(
        &self,
        context: &Context,
        key: &NamespacedName,
        set: &ManagedSeedSet,
    ) -> Result<BTreeMap<String, ReplicaShoot>, ApiError> {
        let query = ListQuery { label_selector: set.label_selector(), metadata_only: true, ..ListQuery::default() };
        let mut pages = self.cluster.pages(context.clone(), kinds::SHOOT, Some(key.namespace.clone()), query);
        let mut replicas = BTreeMap::new();
        while let Some(page) = pages.next().await {
            let shoots =
                page?.items.into_iter().map(|shoot| (NamespacedName::of(&shoot).name, ReplicaShoot::of(&shoot)));
            replicas.extend(shoots.filter(|(_, shoot)| set.selects(shoot)));
        }
        Ok(replicas)
    }

    /// Stops if a Shoot of any namespace is on a Seed, or moves there. A server that cannot select Shoots by their Seed
    /// lists all of them (§8).
    pub(super) async fn confirm_unused(&self, context: &Context, seed: &str) -> Result<(), Stop> {
        for field in SEED_FIELDS {
            let query = ListQuery {
                field_selector: Some(format!("{field}={seed}")),
                limit: Some(1),
                metadata_only: true,
                ..ListQuery::default()
            };
            match self.cluster.list(context, &kinds::SHOOT, None, &query).await {
                Ok(page) if page.items.is_empty() && page.continue_token.is_none() => {}
                Ok(_) => return Err(Stop::Later),
                Err(error) if error.code() == Some(400) => return self.confirm_unused_by_all(context, seed).await,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn confirm_unused_by_all(&self, context: &Context, seed: &str) -> Result<(), Stop> {
        let mut is_used = false;
        let look = |_: &NamespacedName, shoot: &CachedShoot| {
            let migration = &shoot.fields.migration;
            is_used |= *migration.source == *seed || *migration.destination == *seed;
        };
        self.caches.scheduled.list_live(context, None, None, look).await?;
        if is_used { Err(Stop::Later) } else { Ok(()) }
    }
}
