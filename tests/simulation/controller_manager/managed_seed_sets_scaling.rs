//! ManagedSeedSets that shrink, grow again, or go.

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};

use super::{
    garden::{Garden, garden, object},
    managed_seed_sets::{
        NAMESPACE, READY, asked, established, found, hold, is_going, is_ready, name, notes, number, pending,
        put_reconciled_shoot, put_replica, put_shoot, registered, scale, seed_reports, set, shoots, waits, worked,
    },
    shoots::seconds,
};

const PROTECTED: &str = "seedmanagement.gardener.cloud/protect-from-deletion";

/// gardenlet ends a ManagedSeed that is being deleted, with its Seed.
async fn end_seed(garden: &Garden, ordinal: u32) {
    garden.sim.remove("seeds.core.gardener.cloud", "", &name(ordinal));
    garden.patch(&kinds::MANAGED_SEED, NAMESPACE, &name(ordinal), json!({ "metadata": { "finalizers": null } })).await;
}

/// gardenlet ends a Shoot that is being deleted.
async fn end_shoot(garden: &Garden, ordinal: u32) {
    garden.patch(&kinds::SHOOT, NAMESPACE, &name(ordinal), json!({ "metadata": { "finalizers": null } })).await;
}

/// A replica goes, with gardenlet's help.
async fn goes(garden: &Garden, ordinal: u32) {
    waits(garden, ordinal, "ManagedSeedDeleting", None).await;
    end_seed(garden, ordinal).await;
    waits(garden, ordinal, "ShootDeleting", None).await;
    end_shoot(garden, ordinal).await;
}

/// Only this replica goes.
fn check_only(garden: &Garden, ordinals: std::ops::Range<u32>, victim: u32) {
    for ordinal in ordinals.filter(|ordinal| *ordinal != victim) {
        let is_any = [&kinds::SHOOT, &kinds::MANAGED_SEED]
            .into_iter()
            .any(|kind| garden.find(kind, NAMESPACE, &name(ordinal)).is_some() && is_going(garden, kind, ordinal));
        assert!(!is_any, "{ordinal} stays");
    }
}

fn annotate(garden: &Garden, kind: &cluster::Resource, ordinal: u32, value: Value) {
    garden.edit(kind, NAMESPACE, &name(ordinal), |object| {
        object["metadata"]["annotations"] = json!({ PROTECTED: value });
    });
}

/// spec 86 scenarios 19 and 28
#[test]
fn surplus_replica_goes_step_by_step_and_its_ordinal_is_not_used_again() {
    garden(|garden| async move {
        established(&garden, 3).await;
        scale(&garden, 2).await;
        waits(&garden, 0, "ManagedSeedDeleting", None).await;
        assert_eq!((number(&garden, "replicas"), number(&garden, "readyReplicas")), (3, 2));
        assert!(is_going(&garden, &kinds::MANAGED_SEED, 0) && !is_going(&garden, &kinds::SHOOT, 0));
        end_seed(&garden, 0).await;
        waits(&garden, 0, "ShootDeleting", None).await;
        let shoot = garden.find(&kinds::SHOOT, NAMESPACE, "m-0").expect("gardenlet works on it");
        assert_eq!(shoot["metadata"]["annotations"]["confirmation.gardener.cloud/deletion"], "true");
        assert!(is_going(&garden, &kinds::SHOOT, 0));
        end_shoot(&garden, 0).await;
        is_ready(&garden, 2).await;
        check_only(&garden, 0..3, 0);
        assert_eq!(notes(&garden, "DeletingManagedSeed"), ["Deleting ManagedSeed garden/m-0"]);
        assert_eq!(notes(&garden, "DeletingShoot"), ["Deleting Shoot garden/m-0"]);

        scale(&garden, 3).await;
        waits(&garden, 3, "ShootReconciling", None).await;
        assert_eq!((shoots(&garden), number(&garden, "nextReplicaNumber")), (vec![name(1), name(2), name(3)], 4));
    });
}

/// Objects without finalizers are gone at once: the next step follows without a wake.
#[test]
fn surplus_replica_without_finalizers_goes_at_once() {
    garden(|garden| async move {
        established(&garden, 2).await;
        for kind in [&kinds::SHOOT, &kinds::MANAGED_SEED] {
            garden.edit(kind, NAMESPACE, "m-0", |object| object["metadata"]["finalizers"] = Value::Null);
        }
        scale(&garden, 1).await;

        garden.gone(&kinds::SHOOT, NAMESPACE, "m-0").await;
        is_ready(&garden, 1).await;
        assert_eq!(shoots(&garden), ["m-1"]);
    });
}

/// spec 86 scenarios 20 and 21
#[test]
fn replica_that_is_worth_least_goes() {
    type Step = fn(&Garden);
    let cases: [(Step, u32, &str); 4] = [
        (
            |garden| {
                put_shoot(garden, "m-2", |_| {});
                worked(garden, 2, "Create", "Processing");
            },
            2,
            "ShootDeleting",
        ),
        (|garden| put_reconciled_shoot(garden, 2), 2, "ShootDeleting"),
        (
            |garden| {
                put_replica(garden, 2);
                seed_reports(garden, 1, &[("GardenletReady", "False"), READY[1]]);
            },
            1,
            "ManagedSeedDeleting",
        ),
        (
            |garden| {
                put_replica(garden, 2);
                let of_shoot = [(1, "Progressing"), (2, "False")];
                for (ordinal, status) in of_shoot {
                    garden.edit(&kinds::SHOOT, NAMESPACE, &name(ordinal), |shoot| {
                        shoot["status"]["conditions"] = json!([{ "type": "ControlPlaneHealthy", "status": status }]);
                    });
                }
            },
            2,
            "ManagedSeedDeleting",
        ),
    ];
    for (step, victim, reason) in cases {
        garden(|garden| async move {
            (0..2).for_each(|ordinal| put_replica(&garden, ordinal));
            step(&garden);
            garden.start().await;
            garden.settle().await; // the labels follow the conditions
            garden.put(set(2));
            waits(&garden, victim, reason, None).await;
            seconds(60).await;
            check_only(&garden, 0..3, victim);
        });
    }
}

/// spec 86 scenario 22
#[test]
fn replica_whose_seed_has_shoots_stays_until_they_are_gone() {
    for field in ["spec", "status"] {
        garden(|garden| async move {
            established(&garden, 2).await;
            for ordinal in 0..2 {
                let scheduled = json!({ field: { "seedName": name(ordinal) } });
                garden.put(object(&kinds::SHOOT, "a", &format!("s{ordinal}"), scheduled));
            }
            garden.settle().await;
            scale(&garden, 1).await;
            garden.soon("the error is told", || !notes(&garden, "ReconcileError").is_empty()).await;
            seconds(1800).await;
            check_only(&garden, 0..2, 9);
            assert_eq!(notes(&garden, "ReconcileError"), ["no deletable replicas found"]);
            assert_eq!((number(&garden, "replicas"), number(&garden, "readyReplicas"), pending(&garden)), (2, 2, None));
            let row = garden.row("managedseedset/garden/m").expect("it has an actor");
            assert!(row.line.contains("m-0 has Shoots, m-1 has Shoots"), "{}", row.line);

            garden.delete(&kinds::SHOOT, "a", "s1").await;
            goes(&garden, 1).await;
            is_ready(&garden, 1).await;
            assert_eq!(notes(&garden, "ReconcileError").len(), 1);
        });
    }
}

/// spec 86 scenario 24, DEV-6
#[test]
fn relabelled_seed_in_use_stays() {
    garden(|garden| async move {
        put_replica(&garden, 0);
        garden.edit(&kinds::SEED, "", "m-0", |seed| seed["metadata"]["labels"] = Value::Null);
        garden.put(object(&kinds::SHOOT, "a", "s", json!({ "spec": { "seedName": "m-0" } })));
        garden.put(set(0));
        garden.settled().await;
        seconds(600).await;

        assert!(!is_going(&garden, &kinds::MANAGED_SEED, 0) && !is_going(&garden, &kinds::SHOOT, 0));
    });
}

/// spec 86 scenario 23, D-2
#[test]
fn protected_replica_stays() {
    for kind in [&kinds::SHOOT, &kinds::MANAGED_SEED] {
        for (value, victim) in [(json!("true"), 1), (json!("false"), 0), (json!(""), 1)] {
            garden(|garden| async move {
                established(&garden, 2).await;
                annotate(&garden, kind, 0, value.clone());
                garden.settle().await;
                scale(&garden, 1).await;
                waits(&garden, victim, "ManagedSeedDeleting", None).await;
                seconds(60).await;
                check_only(&garden, 0..2, victim);
            });
        }
    }
}

/// spec 86 DEV-14: a Shoot that is protected after its ManagedSeed was deleted.
#[test]
fn shoot_that_is_protected_half_way_stays_until_it_is_released() {
    garden(|garden| async move {
        established(&garden, 2).await;
        scale(&garden, 1).await;
        waits(&garden, 0, "ManagedSeedDeleting", None).await;
        annotate(&garden, &kinds::SHOOT, 0, json!("true"));
        end_seed(&garden, 0).await;
        garden.soon("the error is told", || !notes(&garden, "ReconcileError").is_empty()).await;
        seconds(600).await;
        assert!(!is_going(&garden, &kinds::SHOOT, 0));
        waits(&garden, 0, "ManagedSeedDeleting", None).await;

        annotate(&garden, &kinds::SHOOT, 0, json!("false"));
        waits(&garden, 0, "ShootDeleting", None).await;
    });
}

/// spec 86 scenario 25, D-1
#[test]
fn replica_that_is_still_coming_up_goes_at_once() {
    garden(|garden| async move {
        established(&garden, 1).await;
        scale(&garden, 2).await;
        waits(&garden, 1, "ShootReconciling", None).await;
        worked(&garden, 1, "Create", "Succeeded");
        waits(&garden, 1, "ManagedSeedPreparing", None).await;
        garden.edit(&kinds::MANAGED_SEED, NAMESPACE, "m-1", hold);
        scale(&garden, 1).await;

        goes(&garden, 1).await;
        is_ready(&garden, 1).await;
        assert_eq!(shoots(&garden), ["m-0"]);
    });
}

/// spec 86 scenario 26, trap T-5
#[test]
fn replica_whose_deletion_is_taken_back_is_completed_again() {
    garden(|garden| async move {
        established(&garden, 2).await;
        scale(&garden, 1).await;
        waits(&garden, 0, "ManagedSeedDeleting", None).await;
        scale(&garden, 2).await;
        seconds(60).await;
        waits(&garden, 0, "ManagedSeedDeleting", None).await;
        end_seed(&garden, 0).await;
        waits(&garden, 0, "ManagedSeedPreparing", None).await;
        assert!(!is_going(&garden, &kinds::MANAGED_SEED, 0) && !is_going(&garden, &kinds::SHOOT, 0));
        registered(&garden, 0);
        seed_reports(&garden, 0, &READY);

        is_ready(&garden, 2).await;
    });
}

/// spec 86 scenario 27, trap T-6
#[test]
fn surplus_replicas_go_one_after_the_other() {
    garden(|garden| async move {
        established(&garden, 3).await;
        scale(&garden, 0).await;
        for ordinal in 0..3 {
            waits(&garden, ordinal, "ManagedSeedDeleting", None).await;
            seconds(60).await;
            check_only(&garden, ordinal..3, ordinal);
            goes(&garden, ordinal).await;
        }
        is_ready(&garden, 0).await;
    });
}

/// spec 86 scenario 29
#[test]
fn deleted_managed_seed_set_takes_its_replicas_with_it() {
    garden(|garden| async move {
        established(&garden, 2).await;
        garden.delete(&kinds::MANAGED_SEED_SET, NAMESPACE, "m").await;
        for ordinal in 0..2 {
            goes(&garden, ordinal).await;
        }
        garden.gone(&kinds::MANAGED_SEED_SET, NAMESPACE, "m").await;
        assert_eq!(shoots(&garden), Vec::<String>::new());
    });
    garden(|garden| async move {
        established(&garden, 1).await;
        annotate(&garden, &kinds::SHOOT, 0, json!("true"));
        garden.delete(&kinds::MANAGED_SEED_SET, NAMESPACE, "m").await;
        seconds(600).await;
        assert_eq!(notes(&garden, "ReconcileError"), ["no deletable replicas found"]);
        check_only(&garden, 0..1, 9);
        assert_eq!(found(&garden)["metadata"]["finalizers"], json!(["gardener"]));
    });
}

/// spec 86 scenario 30
#[test]
fn deleted_managed_seed_set_without_replicas_is_released_without_a_write_of_its_status() {
    garden(|garden| async move {
        established(&garden, 0).await;
        garden.delete(&kinds::MANAGED_SEED_SET, NAMESPACE, "m").await;
        garden.gone(&kinds::MANAGED_SEED_SET, NAMESPACE, "m").await;

        let is_status = |request: &sim::Recorded| {
            request.info.subresource == "status" && request.info.resource == "managedseedsets"
        };
        assert_eq!(garden.requests().iter().filter(|request| is_status(request)).count(), 0);
    });
}

/// spec 86 scenario 31
#[test]
fn deleted_managed_seed_set_of_another_controller_is_left_alone() {
    garden(|garden| async move {
        put_replica(&garden, 0);
        let mut set = set(0);
        set["metadata"]["finalizers"] = json!(["example.com/x"]);
        garden.put(set);
        garden.delete(&kinds::MANAGED_SEED_SET, NAMESPACE, "m").await;
        garden.settled().await;
        seconds(600).await;

        assert_eq!(asked(&garden), Vec::<String>::new());
    });
}
