//! What the replicas of ManagedSeedSets depend on, as caches know it, and what wakes a ManagedSeedSet (spec 86 §7).

use std::{collections::BTreeSet, rc::Rc};

use cluster::{CachedFields, Index, Predicate, Store, Watch, WatchOptions, object::NamespacedName};
use kit::{GeneralController, Supervised, SyncRequirement};

use super::{
    replica::{Replica, ReplicaManagedSeed, ReplicaShoot, is_ready_seed},
    rules::in_order,
    set::{CachedSet, ManagedSeedSet},
};
use crate::{
    actors::controller_manager::{context::GardenContext, shoot_record::CachedShoot},
    api::kinds,
};

/// ManagedSeedSets, Shoots, ManagedSeeds and Seeds.
pub(super) struct Caches {
    pub(super) sets: Watch<CachedSet>,
    /// Each Shoot as a possible replica.
    pub(super) shoots: Watch<CachedFields<ReplicaShoot>>,
    pub(super) managed_seeds: Watch<CachedFields<ReplicaManagedSeed>>,
    /// Whether a Seed is ready.
    seeds: Watch<CachedFields<bool>>,
    /// Each Shoot as a Shoot on a Seed.
    pub(super) scheduled: Watch<CachedShoot>,
    /// Shoots by the Seeds in their spec and status.
    by_seed: Index<String>,
    sets_of: Rc<SetsOfShoots>,
}

/// Finds the ManagedSeedSets that a Shoot concerns.
struct SetsOfShoots {
    sets: Store<CachedSet>,
    shoots: Store<CachedFields<ReplicaShoot>>,
    /// The namespaces that have a ManagedSeedSet: usually one.
    namespaces: Index<String>,
}

impl Caches {
    /// Opens the watches.
    pub(super) fn open(ctx: &GardenContext) -> Self {
        let watches = &ctx.garden.watches;
        let sets = watches.open(WatchOptions::new(kinds::MANAGED_SEED_SET, CachedSet::of));
        let shoots = watches.open(WatchOptions::fields(kinds::SHOOT, ReplicaShoot::of));
        let scheduled = ctx.shoots.clone();
        let by_seed = scheduled.index(|_, shoot: &CachedShoot| seeds_of(shoot).map(str::to_owned).collect());
        let sets_of = SetsOfShoots {
            sets: sets.store().clone(),
            shoots: shoots.store().clone(),
            namespaces: sets.index(|name, _: &CachedSet| vec![name.namespace.clone()]),
        };
        Self {
            sets,
            shoots,
            managed_seeds: watches.open(WatchOptions::fields(kinds::MANAGED_SEED, ReplicaManagedSeed::of)),
            seeds: watches.open(WatchOptions::fields(kinds::SEED, is_ready_seed)),
            scheduled,
            by_seed,
            sets_of: Rc::new(sets_of),
        }
    }

    /// Returns the caches that reconciles need.
    pub(super) fn requirements(&self) -> [SyncRequirement; 5] {
        [
            self.sets.sync_requirement(),
            self.shoots.sync_requirement(),
            self.managed_seeds.sync_requirement(),
            self.seeds.sync_requirement(),
            self.scheduled.sync_requirement(),
        ]
    }

    /// Wakes the ManagedSeedSets whose reconcile may read what has changed. First lists of other kinds wake nobody: all
    /// ManagedSeedSets begin then.
    pub(super) fn subscribe<C: GeneralController<Key = NamespacedName>>(&self, supervised: &Supervised<C>) {
        let has_changed = |old: &CachedSet, new: &CachedSet| new.set.has_changed_since(&old.set);
        self.sets.on_change(supervised, Predicate::differing(has_changed), |name, _| [name.clone()]);
        let sets_of = self.sets_of.clone();
        let changed = Predicate::<CachedFields<ReplicaShoot>>::fields_changed().ignoring_first_list();
        self.shoots.on_change(supervised, changed, move |name, shoot| sets_of.shoot(name, &shoot.fields));
        let sets_of = self.sets_of.clone();
        let changed = Predicate::<CachedFields<ReplicaManagedSeed>>::fields_changed().ignoring_first_list();
        self.managed_seeds.on_change(supervised, changed, move |name, _| sets_of.replica(name));
        let sets_of = self.sets_of.clone();
        let changed = Predicate::<CachedFields<bool>>::fields_changed().ignoring_first_list();
        self.seeds.on_change(supervised, changed, move |seed, _| sets_of.replicas_named(&seed.name));
        let (sets_of, by_seed) = (self.sets_of.clone(), self.by_seed.clone());
        let has_moved =
            |old: &CachedShoot, new: &CachedShoot| !new.fields.migration.is_on_way_of(&old.fields.migration);
        // Only the first Shoot on a Seed and the end of the last Shoot matter: there may be thousands.
        // Other controllers write to Shoots by the same watch: one of them may remove the last finalizer.
        let moved = Predicate::differing(has_moved).ignoring_first_list().including_own_writes();
        self.scheduled.on_change(supervised, moved, move |_, shoot| {
            let seeds = seeds_of(shoot).filter(|seed| by_seed.count(&(*seed).to_owned()) <= 1);
            seeds.flat_map(|seed| sets_of.replicas_named(seed)).collect::<Vec<_>>()
        });
    }

    /// Returns the replicas of a ManagedSeedSet, in order.
    pub(super) fn replicas(&self, key: &NamespacedName, set: &ManagedSeedSet) -> Vec<Replica> {
        let mut shoots = Vec::new();
        self.shoots.store().for_each_in(&key.namespace, |name, shoot| {
            if set.selects(&shoot.fields) {
                shoots.push((name.clone(), shoot.fields.clone()));
            }
        });
        let replica = |(name, shoot): &(NamespacedName, ReplicaShoot)| {
            let managed_seed = self.managed_seeds.store().with(name, |managed_seed| managed_seed.fields);
            let seed = NamespacedName::new("", name.name.as_str());
            let is_seed_ready = self.seeds.store().with(&seed, |seed| seed.fields).unwrap_or_default();
            Replica::new(&name.name, shoot, managed_seed, is_seed_ready, self.by_seed.contains(&name.name))
        };
        let mut replicas: Vec<_> = shoots.iter().map(replica).collect();
        in_order(&mut replicas);
        replicas
    }
}

impl SetsOfShoots {
    /// Returns the ManagedSeedSets that have a Shoot as a replica.
    fn shoot(&self, name: &NamespacedName, shoot: &ReplicaShoot) -> Vec<NamespacedName> {
        let mut sets = Vec::new();
        self.sets.for_each_in(&name.namespace, |set, cached| {
            if cached.set.selects(shoot) {
                sets.push(set.clone());
            }
        });
        sets
    }

    /// Returns the ManagedSeedSets that have the Shoot with this name as a replica.
    fn replica(&self, name: &NamespacedName) -> Vec<NamespacedName> {
        let shoot = self.shoots.with(name, |shoot| shoot.fields.clone());
        shoot.map(|shoot| self.shoot(name, &shoot)).unwrap_or_default()
    }

    /// Returns the ManagedSeedSets of all namespaces that have a replica with this name.
    fn replicas_named(&self, name: &str) -> Vec<NamespacedName> {
        let namespaces = self.namespaces.keys().into_iter();
        namespaces.flat_map(|namespace| self.replica(&NamespacedName::new(namespace, name))).collect()
    }
}

/// Returns the Seeds of a Shoot: that of its spec, and that of its status, where it is until it has moved (§5.1 rule 4).
fn seeds_of(shoot: &CachedShoot) -> impl Iterator<Item = &str> {
    let migration = &shoot.fields.migration;
    let seeds = BTreeSet::from([&*migration.source, &*migration.destination]);
    seeds.into_iter().filter(|seed| !seed.is_empty())
}
