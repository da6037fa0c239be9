//! When a Seed whose gardenlet is silent becomes unknown, and what that costs.

use std::time::Duration;

use gardener_resource_manager::api::kinds;
use serde_json::json;
use sim::EventFault;

use super::{
    garden::{Garden, garden},
    gardenlets::{LEASES, beat, condition, entry, is_silent, put_seed, seconds, seed},
};

/// The gardenlet renewed its Lease so many seconds ago.
fn renew(garden: &Garden, age: i64) {
    let renewed = garden.time(-age);
    garden.edit(&kinds::LEASE, LEASES, "s1", |lease| lease["spec"]["renewTime"] = json!(renewed));
}

/// spec 81 scenario 77, K.2: a renewal moves the moment, and costs no reconcile. In this moment the Seed becomes unknown.
#[test]
fn seed_becomes_unknown_in_the_moment_in_which_its_gardenlet_counts_as_stopped() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        beat(&garden, LEASES, "s1", 0);
        garden.settled().await;
        let before = garden.reconciles("gardenlet-lifecycle");
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(2_300)).await;
            renew(&garden, 0);
        }
        assert_eq!(garden.reconciles("gardenlet-lifecycle"), before, "renewals wake nobody");

        tokio::time::sleep(Duration::from_millis(39_990)).await;
        assert!(!is_silent(&seed(&garden, "s1")));
        assert_eq!(garden.asked(), Vec::<String>::new());
        tokio::time::sleep(Duration::from_millis(30)).await;

        assert!(is_silent(&seed(&garden, "s1")));
        assert_eq!(garden.asked(), ["get leases s1", "patch seeds s1"]);
        assert_eq!(entry(&seed(&garden, "s1"), "conditions", "Other"), condition("Other"));
    });
}

/// spec 81 K.2: without a Lease, or with an older time than before, there is no grace left.
#[test]
fn seed_becomes_unknown_as_soon_as_its_lease_loses_its_time() {
    for is_deleted in [true, false] {
        garden(|garden| async move {
            put_seed(&garden, "s1");
            beat(&garden, LEASES, "s1", 0);
            garden.settled().await;

            match is_deleted {
                true => garden.delete(&kinds::LEASE, LEASES, "s1").await,
                false => renew(&garden, 80),
            }

            garden.soon("it is unknown", || is_silent(&seed(&garden, "s1"))).await;
        });
    }
}

/// spec 81 K.5 F1: a Seed that the cache does not show as it is, is not written as the cache shows it.
#[test]
fn seed_that_the_cache_does_not_know_keeps_its_other_conditions() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        beat(&garden, LEASES, "s1", 0);
        garden.settled().await;
        garden.sim.set_event_faults(|event| match event.resource == "seeds" {
            true => EventFault::Drop,
            false => EventFault::Deliver,
        });
        let other = json!({ "type": "Other", "status": "False", "reason": "R", "message": "m" });
        let conditions = json!([condition("GardenletReady"), other]);
        garden.edit(&kinds::SEED, "", "s1", |seed| seed["status"]["conditions"] = conditions);
        seconds(45).await;

        assert!(is_silent(&seed(&garden, "s1")));
        assert_eq!(entry(&seed(&garden, "s1"), "conditions", "Other"), other);
    });
}
