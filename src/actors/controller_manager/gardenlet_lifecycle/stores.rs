//! The caches of Seeds, Shoots, Leases and ManagedSeeds.

use cluster::{
    CachedFields, Context, Index, Lock, Watch, WatchOptions,
    object::{self, NamespacedName},
};
use jiff::Timestamp;
use kit::{Failure, SyncRequirement};
use serde_json::Value;

use super::{
    GardenletKey, OPERATION,
    heartbeat::{Reported, renewed},
    marks::{ShootState, mark},
};
use crate::{actors::controller_manager::context::GardenContext, api::kinds};

/// The namespace of ManagedSeeds.
pub(super) const GARDEN: &str = "garden";

/// The namespace of the Leases of Seeds.
const SEED_LEASES: &str = "gardener-system-seed-lease";

pub(super) type CachedShoot = CachedFields<ShootState>;
pub(super) type CachedSeed = CachedFields<Reported>;
/// `spec.renewTime` of a Lease.
pub(super) type CachedLease = CachedFields<Option<Timestamp>>;

pub(super) struct Stores {
    pub(super) seeds: Watch<CachedSeed>,
    pub(super) shoots: Watch<CachedShoot>,
    by_seed: Index<String>,
    /// The Leases of Seeds.
    pub(super) leases: Watch<CachedLease>,
    pub(super) managed_seeds: Watch<CachedFields<Operation>>,
}

/// Whether a ManagedSeed is asked for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// It is not.
    None,
    /// It is.
    Pending,
}

/// Returns the name of the Lease of a Seed's gardenlet.
pub(super) fn lease_of_seed(seed: &NamespacedName) -> NamespacedName {
    NamespacedName::new(SEED_LEASES, seed.name.as_str())
}

/// Returns the name of the Seed whose gardenlet renews a Lease.
pub(super) fn seed_of_lease(lease: &NamespacedName) -> NamespacedName {
    NamespacedName::new("", lease.name.as_str())
}

/// Returns the name of the Lease of a self-hosted Shoot's gardenlet.
pub(super) fn lease_of_shoot(shoot: &NamespacedName) -> NamespacedName {
    NamespacedName::new(shoot.namespace.as_str(), format!("self-hosted-shoot-{}", shoot.name))
}

impl Stores {
    pub(super) fn open(ctx: &GardenContext) -> Self {
        let watches = &ctx.garden.watches;
        let shoots = watches.open(WatchOptions::fields(kinds::SHOOT, ShootState::of));
        let by_seed = shoots.index(|_, shoot: &CachedShoot| {
            let seed = &shoot.fields.seed;
            if seed.is_empty() { Vec::new() } else { vec![seed.clone()] }
        });
        let operation = |managed_seed: &Value| match object::annotation(managed_seed, OPERATION) {
            None => Operation::None,
            Some(_) => Operation::Pending,
        };
        let managed_seeds = WatchOptions::fields(kinds::MANAGED_SEED, operation).metadata().within([GARDEN]).optional();
        Self {
            seeds: watches.open(WatchOptions::fields(kinds::SEED, Reported::of)),
            shoots,
            by_seed,
            leases: watches.open(WatchOptions::fields(kinds::LEASE, renewed).within([SEED_LEASES])),
            managed_seeds: watches.open(managed_seeds),
        }
    }

    /// Returns the caches that reconciles need.
    pub(super) fn requirements(&self) -> [SyncRequirement; 4] {
        [
            self.seeds.sync_requirement(),
            self.shoots.sync_requirement(),
            self.leases.sync_requirement(),
            self.managed_seeds.sync_requirement(),
        ]
    }

    /// Returns what a gardenlet reported; `None` if its object is gone, or is no self-hosted Shoot any more.
    pub(super) fn reported(&self, key: &GardenletKey) -> Option<Reported> {
        match key {
            GardenletKey::Seed(name) => self.seeds.store().with(name, |seed| seed.fields.clone()),
            GardenletKey::Shoot(name) => {
                self.shoots.store().with(name, |shoot| shoot.fields.own_gardenlet.as_deref().cloned())?
            }
        }
    }

    /// Returns when a gardenlet renewed its Lease; `None` if there is none. A cache that is not fresh is no evidence (F2).
    pub(super) async fn renewed(&self, context: &Context, key: &GardenletKey) -> Result<Option<Timestamp>, Failure> {
        match key {
            GardenletKey::Seed(name) => {
                let lease = lease_of_seed(name);
                match self.leases.known(&lease) {
                    Some(known) => Ok(known.and_then(|lease| lease.fields)),
                    None => self.read_lease(context, &lease).await,
                }
            }
            GardenletKey::Shoot(name) => self.read_lease(context, &lease_of_shoot(name)).await,
        }
    }

    /// Reads a Lease live.
    pub(super) async fn read_lease(
        &self,
        context: &Context,
        lease: &NamespacedName,
    ) -> Result<Option<Timestamp>, Failure> {
        Ok(self.leases.read_live(context, lease).await?.and_then(|lease| lease.fields))
    }

    /// Returns the Shoots that a gardenlet cares for and that lack marks.
    pub(super) fn unmarked(&self, key: &GardenletKey) -> Vec<NamespacedName> {
        let mut shoots = match key {
            GardenletKey::Seed(seed) => self.by_seed.get(&seed.name),
            GardenletKey::Shoot(shoot) => vec![shoot.clone()],
        };
        let is_unmarked = |shoot: &CachedShoot| !shoot.fields.is_marked;
        shoots.retain(|name| self.shoots.store().with(name, is_unmarked).unwrap_or_default());
        shoots
    }

    /// Marks a Shoot if the gardenlet still cares for it. The inner error is the text for the log.
    pub(super) async fn mark(
        &self,
        context: &Context,
        key: &GardenletKey,
        shoot: NamespacedName,
        now: Timestamp,
    ) -> Result<(), String> {
        let decide = |live: &Value| {
            let state = ShootState::of(live);
            let is_its_own = match key {
                GardenletKey::Seed(seed) => state.seed == seed.name,
                GardenletKey::Shoot(_) => state.own_gardenlet.is_some(),
            };
            is_its_own.then(|| mark(live, now)).flatten()
        };
        let marked = self.shoots.patch_status(context, &shoot, Lock::Version, decide).await;
        marked.map(drop).map_err(|error| format!("cannot mark Shoot {shoot}: {error}"))
    }
}
