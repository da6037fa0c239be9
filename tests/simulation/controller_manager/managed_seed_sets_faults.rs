//! ManagedSeedSets amid failing Shoots, failing requests, lagging watches and other writers: no step is done twice, and
//! nothing is deleted on doubt.

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, RequestInfo, Seen, Sim};

use super::{
    garden::{Garden, garden, object},
    managed_seed_sets::{
        NAMESPACE, READY, SETS, established, is_going, is_ready, name, notes, number, pending, put_shoot, registered,
        scale, seed_reports, set, shoots, waits, worked,
    },
    shoots::{SHOOTS, before_first, miss_events, operation, seconds},
};

const OPERATION: &str = "gardener.cloud/operation";

fn operation_of(garden: &Garden, ordinal: u32) -> Value {
    let shoot = garden.find(&kinds::SHOOT, NAMESPACE, &name(ordinal)).expect("the Shoot exists");
    shoot["metadata"]["annotations"][OPERATION].clone()
}

/// gardener-apiserver takes the annotation away and raises the generation; gardenlet begins.
fn consume(garden: &Garden, ordinal: u32) {
    garden.edit(&kinds::SHOOT, NAMESPACE, &name(ordinal), |shoot| {
        shoot["metadata"]["annotations"][OPERATION] = Value::Null;
        let generation = shoot["metadata"]["generation"].as_i64().unwrap_or_default();
        shoot["metadata"]["generation"] = json!(generation + 1);
    });
}

/// A Shoot fails as often as it is retried, and once more.
async fn fails_for_good(garden: &Garden, kind: &str, retried: &str, given_up: &str) {
    for retries in 1..=3 {
        worked(garden, 0, kind, "Failed");
        waits(garden, 0, retried, Some(retries)).await;
        assert_eq!(operation_of(garden, 0), "retry");
        consume(garden, 0);
        // Reconciles in between forget nothing.
        garden.edit(&kinds::SHOOT, NAMESPACE, "m-0", |shoot| {
            shoot["metadata"]["labels"]["x"] = json!(retries.to_string())
        });
        seconds(3600).await;
        waits(garden, 0, retried, Some(retries)).await;
    }
    worked(garden, 0, kind, "Failed");
    waits(garden, 0, given_up, Some(3)).await;
    seconds(2 * 3600).await;
    waits(garden, 0, given_up, Some(3)).await;
    assert_eq!(operation_of(garden, 0), Value::Null);
}

/// spec 86 scenarios 13 to 15, DEV-1, DEV-2
#[test]
fn failed_shoot_is_retried_as_often_as_configured() {
    garden(|garden| async move {
        garden.start().await;
        garden.put(set(1));
        waits(&garden, 0, "ShootReconciling", None).await;
        fails_for_good(&garden, "Create", "ShootReconciling", "ShootReconcileFailed").await;
        let told = |reason: &str| notes(&garden, reason).len();
        assert_eq!((told("RetryingShootReconciliation") > 0, told("NotRetryingShootReconciliation")), (true, 1));

        worked(&garden, 0, "Create", "Processing");
        waits(&garden, 0, "ShootReconciling", None).await;
        worked(&garden, 0, "Create", "Failed");
        waits(&garden, 0, "ShootReconciling", Some(1)).await;
        worked(&garden, 0, "Create", "Succeeded");
        waits(&garden, 0, "ManagedSeedPreparing", None).await;
    });
}

/// spec 86 scenario 16
#[test]
fn failed_shoot_is_not_retried_if_that_is_configured() {
    garden(|garden| async move {
        garden.config.borrow_mut().controllers.managed_seed_set.max_shoot_retries = 0;
        garden.start().await;
        garden.put(set(1));
        waits(&garden, 0, "ShootReconciling", None).await;
        worked(&garden, 0, "Create", "Failed");

        waits(&garden, 0, "ShootReconcileFailed", Some(0)).await;
        assert_eq!(operation_of(&garden, 0), Value::Null);
    });
}

/// spec 86 scenario 17
#[test]
fn failed_deletion_of_a_shoot_is_retried() {
    garden(|garden| async move {
        put_shoot(&garden, "m-0", |_| {});
        worked(&garden, 0, "Create", "Succeeded");
        garden.put(set(0));
        garden.settled().await;
        waits(&garden, 0, "ShootDeleting", None).await;

        fails_for_good(&garden, "Delete", "ShootDeleting", "ShootDeleteFailed").await;
        assert_eq!(notes(&garden, "NotRetryingShootDeletion").len(), 1);
    });
}

/// spec 86 scenario 18, DEV-15: a server other than gardener-apiserver.
#[test]
fn retry_that_nobody_has_begun_counts_once() {
    garden(|garden| async move {
        garden.start().await;
        garden.put(set(1));
        waits(&garden, 0, "ShootReconciling", None).await;
        worked(&garden, 0, "Create", "Failed");
        waits(&garden, 0, "ShootReconciling", Some(1)).await;
        for number in 0..5 {
            let spec = json!({ "spec": { "revisionHistoryLimit": number } });
            garden.patch(&kinds::MANAGED_SEED_SET, NAMESPACE, "m", spec).await;
            seconds(1800).await;
        }

        waits(&garden, 0, "ShootReconciling", Some(1)).await;
        assert_eq!(operation_of(&garden, 0), "retry");
    });
}

/// spec 86 scenario 9, DEV-5: before the status that waits for it is written.
#[test]
fn shoot_that_succeeds_at_once_is_noticed() {
    garden(|garden| async move {
        let (sim, mut is_done) = (garden.sim.clone(), false);
        garden.sim.set_faults(move |info| {
            let is_meant = is_status(info) && sim.object(SHOOTS, NAMESPACE, "m-0").is_some();
            if is_meant && !std::mem::replace(&mut is_done, true) {
                sim.edit(SHOOTS, NAMESPACE, "m-0", |shoot| {
                    shoot["status"] = json!({ "lastOperation": operation("Create", "Succeeded") });
                    shoot["status"]["observedGeneration"] = shoot["metadata"]["generation"].clone();
                });
            }
            Fault::None
        });
        garden.start().await;
        garden.put(set(1));

        waits(&garden, 0, "ManagedSeedPreparing", None).await;
    });
}

fn is_status(info: &RequestInfo) -> bool {
    info.verb == "patch" && info.resource == SETS && info.subresource == "status"
}

fn is_create_of_shoot(info: &RequestInfo) -> bool {
    info.verb == "create" && info.resource == "shoots" && info.user == "gcm"
}

/// Fails the first request that is meant.
fn fail_first(garden: &Garden, is_meant: fn(&RequestInfo) -> bool, fault: Fault) {
    let mut fault = Some(fault);
    garden.sim.set_faults(move |info| if is_meant(info) { fault.take().unwrap_or_default() } else { Fault::None });
}

/// spec 86 scenario 10
#[test]
fn lost_answer_makes_no_second_shoot() {
    for fault in [Fault::FailAfterCommit(Seen::internal_error("lost")), Fault::HangAfterCommit] {
        garden(|garden| async move {
            fail_first(&garden, is_create_of_shoot, fault);
            garden.start().await;
            garden.put(set(3));
            seconds(400).await;

            assert_eq!(shoots(&garden), ["m-0"]);
            waits(&garden, 0, "ShootReconciling", None).await;
        });
    }
}

/// spec 86 scenario 11
#[test]
fn restart_between_shoot_and_status_makes_no_second_shoot() {
    garden(|garden| async move {
        garden.sim.set_faults(|info| {
            if is_status(info) { Fault::FailBefore(Seen::internal_error("no")) } else { Fault::None }
        });
        garden.start().await;
        garden.put(set(1));
        garden.soon("the Shoot exists", || shoots(&garden) == ["m-0"]).await;
        garden.stop().await;
        assert_eq!(pending(&garden), None);
        garden.sim.clear_faults();
        garden.start().await;

        waits(&garden, 0, "ShootReconciling", None).await;
        worked(&garden, 0, "Create", "Succeeded");
        waits(&garden, 0, "ManagedSeedPreparing", None).await;
        registered(&garden, 0);
        seed_reports(&garden, 0, &READY);
        is_ready(&garden, 1).await;
        scale(&garden, 2).await;
        waits(&garden, 1, "ShootReconciling", None).await;
        assert_eq!(number(&garden, "nextReplicaNumber"), 2);
    });
}

/// spec 86 scenario 41: with several replicas wanted, too.
#[test]
fn status_that_could_not_be_written_is_written_before_the_next_step() {
    for (code, reason) in [(409, "Conflict"), (500, "InternalError")] {
        garden(|garden| async move {
            fail_first(&garden, is_status, Fault::FailBefore(Seen::status(code, reason, "no")));
            garden.start().await;
            garden.put(set(3));
            waits(&garden, 0, "ShootReconciling", None).await;
            seconds(3600).await;

            assert_eq!(shoots(&garden), ["m-0"]);
            let numbers = ["replicas", "nextReplicaNumber"].map(|field| number(&garden, field));
            assert_eq!(numbers, [1, 1]);
            assert_eq!(notes(&garden, "CreatingShoot").len(), 1);
        });
    }
}

/// spec 86 §5.1: a cache that lags behind creates no Shoot, and tells nobody.
#[test]
fn cache_that_lags_behind_creates_no_surplus_shoot() {
    garden(|garden| async move {
        garden.put(set(0));
        garden.settled().await;
        miss_events(&garden, "shoots");
        put_shoot(&garden, "m-0", |_| {});
        scale(&garden, 1).await;
        garden.settle().await;

        assert_eq!(shoots(&garden), ["m-0"]);
        assert_eq!((notes(&garden, "CreatingShoot").len(), notes(&garden, "ReconcileError").len()), (0, 0));
    });
}

/// spec 86 §6.5, §6.6, scenario 38: what comes in the last moment stops a deletion.
#[test]
fn replica_that_comes_into_use_in_the_last_moment_stays() {
    type Change = fn(&Sim);
    let protect: Change = |sim| {
        for plural in [SHOOTS, "managedseeds.seedmanagement.gardener.cloud"] {
            let _is_there = sim.edit(plural, NAMESPACE, "m-0", |object| {
                object["metadata"]["annotations"] =
                    json!({ "seedmanagement.gardener.cloud/protect-from-deletion": "true" });
            });
        }
    };
    let schedule: Change = |sim| {
        let spec = json!({ "spec": { "seedName": "m-0" } });
        drop(sim.put(object(&kinds::SHOOT, "a", "s", spec)));
    };
    for (change, requests) in [
        (protect, &[("list", "shoots"), ("get", "managedseeds"), ("delete", "managedseeds")][..]),
        (schedule, &[("list", "shoots")][..]),
    ] {
        for request in requests {
            garden(|garden| async move {
                established(&garden, 1).await;
                before_first(&garden, *request, change);
                scale(&garden, 0).await;
                seconds(600).await;

                assert!(!is_going(&garden, &kinds::MANAGED_SEED, 0), "{request:?}");
                assert!(!is_going(&garden, &kinds::SHOOT, 0), "{request:?}");
            });
        }
    }
    for request in [("list", "shoots"), ("get", "managedseeds"), ("patch", "shoots"), ("delete", "shoots")] {
        garden(|garden| async move {
            put_shoot(&garden, "m-0", |_| {});
            worked(&garden, 0, "Create", "Succeeded");
            garden.settled().await;
            before_first(&garden, request, protect);
            garden.put(set(0));
            seconds(600).await;

            assert!(!is_going(&garden, &kinds::SHOOT, 0), "{request:?}");
        });
    }
}

/// A read that fails proves nothing, and its error is the note as it is (spec 86 scenario 38, DEV-8).
#[test]
fn replica_is_not_deleted_while_a_live_read_fails() {
    garden(|garden| async move {
        established(&garden, 1).await;
        garden.sim.set_faults(|info| {
            let is_list = info.verb == "list" && info.resource == "shoots" && info.user == "gcm";
            if is_list { Fault::FailBefore(Seen::internal_error("100%s broken %d")) } else { Fault::None }
        });
        scale(&garden, 0).await;
        seconds(120).await;
        assert!(!is_going(&garden, &kinds::MANAGED_SEED, 0));
        let told = notes(&garden, "ReconcileError");
        assert!(told.len() == 1 && told[0].contains("100%s broken %d"), "{told:?}");

        garden.sim.clear_faults();
        seconds(600).await;
        waits(&garden, 0, "ManagedSeedDeleting", None).await;
    });
}

/// Two replicas that believe to lead create no surplus Shoot.
#[test]
fn two_leaders_create_one_shoot() {
    garden(|garden| async move {
        garden.start().await;
        garden.start_second().await;
        garden.put(set(2));
        seconds(600).await;

        assert_eq!(shoots(&garden), ["m-0"]);
        assert_eq!(pending(&garden).map(|pending| pending.0), Some(name(0)));
    });
}
