//! Which changes wake which clusters (spec 85 A.2, B.2). First lists wake nobody but the clusters themselves: all of them
//! begin then.

use std::collections::BTreeSet;

use cluster::{CachedFields, How, Predicate, object::NamespacedName};
use kit::{Causes, Supervised, Wake};

use super::{
    backups::{BucketFacts, EntryFacts, ExtensionCluster},
    controller::{Clusters, InstallationController},
    domains::DomainSecretFacts,
    installation::CachedInstallation,
    stores::Stores,
};
use crate::actors::controller_manager::{
    seed::secrets::{namespace::seed_of, roles::GARDEN},
    shoot_record::{CachedShoot, ShootRecord},
};

/// Adds the event handlers of a controller.
pub(super) fn subscribe(supervised: &Supervised<InstallationController>) {
    let controller = supervised.controller();
    match controller.clusters {
        Clusters::Seeds => seeds(&controller.stores, supervised),
        Clusters::Shoots => shoots(&controller.stores, supervised),
    }
    everything(&controller, supervised);
    installations(&controller, supervised);
    backups(&controller, supervised);
}

/// W1, W7, W10.
fn seeds(stores: &Stores, supervised: &Supervised<InstallationController>) {
    let changed = Predicate::differing(|old: &CachedFields<std::sync::Arc<super::seed_facts::SeedFacts>>, new| {
        let states = |seed: &CachedFields<std::sync::Arc<super::seed_facts::SeedFacts>>| {
            (seed.fields.content, seed.fields.is_deleting, seed.fields.is_held)
        };
        states(old) != states(new)
    });
    // An own write may remove the last finalizer.
    stores.seeds.on_change(supervised, changed.including_own_writes(), |name, _| [name.clone()]);

    let (waker, known_seeds) = (supervised.weak(), stores.seeds.store().clone());
    stores.shoots.subscribe(move |change| {
        if change.how == How::First || !is_changed(change.old, change.new) {
            return;
        }
        let mut woken = BTreeSet::new();
        for shoot in [change.old, change.new].into_iter().flatten() {
            let migration = &shoot.fields.migration;
            woken.extend([&migration.destination, &migration.source].map(|seed| NamespacedName::new("", &**seed)));
        }
        if change.name.namespace == GARDEN {
            woken.insert(NamespacedName::new("", change.name.name.as_str()));
        }
        for seed in woken.iter().filter(|seed| known_seeds.with(seed, |_| ()).is_some()) {
            waker.wake(seed, Wake::high(Causes::OBJECT));
        }
    });

    let changed = Predicate::<CachedFields<DomainSecretFacts>>::fields_changed();
    stores.domain_secrets.on_change(supervised, changed.ignoring_first_list().including_own_writes(), |name, _| {
        seed_of(&name.namespace).map(|seed| NamespacedName::new("", seed))
    });
}

/// V1. The first list counts.
fn shoots(stores: &Stores, supervised: &Supervised<InstallationController>) {
    let waker = supervised.weak();
    stores.shoots.subscribe(move |change| {
        let own = |shoot: &CachedShoot| {
            let ShootRecord { needs, is_deleting, is_held_for_installations, .. } = &shoot.fields;
            needs.own_cluster.is_some().then(|| (needs.clone(), *is_deleting, *is_held_for_installations))
        };
        if change.old.and_then(own) != change.new.and_then(own) {
            let is_first = change.how == How::First;
            waker.wake(change.name, if is_first { Wake::low(Causes::OBJECT) } else { Wake::high(Causes::OBJECT) });
        }
    });
}

/// Returns true if a Seed must be assessed again because of a change of a Shoot (W7, W7a, W7b).
fn is_changed(old: Option<&CachedShoot>, new: Option<&CachedShoot>) -> bool {
    let parts = |shoot: &CachedShoot| {
        let ShootRecord { needs, migration, .. } = &shoot.fields;
        (needs.clone(), migration.destination.clone(), migration.source.clone())
    };
    old.map(parts) != new.map(parts)
}

/// Changes that concern all clusters: W2, W6, W8, W9.
fn everything(controller: &InstallationController, supervised: &Supervised<InstallationController>) {
    let stores = &controller.stores;
    // The finalizer is an own write, and its version must reach the installations (trap T-2).
    let all = controller.all_clusters();
    let changed = Predicate::any_change().ignoring_first_list().including_own_writes();
    stores.registrations.on_change(supervised, changed, move |_, _| all());

    let (all, by_deployment) = (controller.all_clusters(), stores.by_deployment.clone());
    let changed = Predicate::any_change().ignoring_first_list().including_own_writes();
    stores.deployments.on_change(supervised, changed, move |name, _| {
        if by_deployment.contains(&name.name.as_str().into()) { all() } else { Vec::new() }
    });

    for watch in &stores.referred {
        let (all, kind) = (controller.all_clusters(), Box::<str>::from(&*watch.resource().kind));
        let (by_resource, by_deployment) = (stores.by_resource.clone(), stores.by_deployment.clone());
        let changed = Predicate::any_change().ignoring_first_list().including_own_writes();
        watch.on_change(supervised, changed, move |name, _| {
            let is_deployed = |deployments: &[NamespacedName]| {
                deployments.iter().any(|deployment| by_deployment.contains(&deployment.name.as_str().into()))
            };
            let is_referred = by_resource.with(&(kind.clone(), name.name.as_str().into()), is_deployed);
            if is_referred { all() } else { Vec::new() }
        });
    }
}

/// W5, W5a, W5b, V5, DEV-11. Both controllers write installations with a `shootRef`.
fn installations(controller: &InstallationController, supervised: &Supervised<InstallationController>) {
    let clusters = controller.clusters;
    let keys = move |installation: &CachedInstallation| -> BTreeSet<NamespacedName> {
        let facts = &installation.fields;
        match clusters {
            Clusters::Seeds => {
                let of_shoot = facts.shoot.as_ref().filter(|shoot| shoot.namespace == GARDEN);
                let names = facts.seed.as_deref().into_iter().chain(of_shoot.map(|shoot| &*shoot.name));
                names.map(|seed| NamespacedName::new("", seed)).collect()
            }
            Clusters::Shoots => facts.shoot.iter().cloned().collect(),
        }
    };
    let changed = Predicate::<CachedInstallation>::fields_changed().ignoring_first_list();
    controller.stores.installations.on_change(supervised, changed, move |_, it| keys(it));
    let changed = Predicate::<CachedInstallation>::fields_changed().ignoring_first_list().including_own_writes();
    controller.stores.installations.on_change(supervised, changed, move |_, it| {
        if it.fields.shoot.is_some() { keys(it) } else { BTreeSet::new() }
    });
}

/// W3, W4, V3, V4; and the clusters of the entries in a bucket.
fn backups(controller: &InstallationController, supervised: &Supervised<InstallationController>) {
    let stores = &controller.stores;
    let (clusters, backups) = (controller.clusters, stores.backups.clone());
    let changed = Predicate::<CachedFields<BucketFacts>>::fields_changed().ignoring_first_list();
    stores.buckets.on_change(supervised, changed, move |name, bucket| {
        let of_entries = backups.borrow().clusters_of_entries(&name.name);
        let all = bucket.fields.owners.clusters().chain(of_entries);
        all.filter_map(|cluster| clusters.key(&cluster)).collect::<Vec<_>>()
    });
    let changed = Predicate::<CachedFields<EntryFacts>>::fields_changed().ignoring_first_list();
    stores.entries.on_change(supervised, changed, move |_, entry| {
        let all = entry.fields.owners.clusters();
        all.filter_map(|cluster| clusters.key(&cluster)).collect::<Vec<_>>()
    });
}

impl Clusters {
    /// Returns the key of a cluster; `None` for a cluster of the other controller. What a Shoot in `garden` needs, its Seed
    /// leaves to it (A.8).
    fn key(self, cluster: &ExtensionCluster) -> Option<NamespacedName> {
        match (self, cluster) {
            (Self::Seeds, ExtensionCluster::Seed(seed)) => Some(NamespacedName::new("", &**seed)),
            (Self::Shoots, ExtensionCluster::Shoot(shoot)) => Some(shoot.clone()),
            (Self::Seeds, ExtensionCluster::Shoot(shoot)) if shoot.namespace == GARDEN => {
                Some(NamespacedName::new("", shoot.name.as_str()))
            }
            (Self::Seeds, ExtensionCluster::Shoot(_)) | (Self::Shoots, ExtensionCluster::Seed(_)) => None,
        }
    }
}
