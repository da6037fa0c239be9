//! Bastions: deleted when they expire, and with their Shoot.

use std::time::Duration;

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::EventFault;

use super::{
    garden::{Garden, garden, object},
    guards::shoot,
};

pub(super) fn bastion(name: &str, of: &str, seed: Option<&str>) -> Value {
    object(&kinds::BASTION, "a", name, json!({ "spec": { "shootRef": { "name": of }, "seedName": seed, "later": 1 } }))
}

fn exists(garden: &Garden, name: &str) -> bool {
    garden.find(&kinds::BASTION, "a", name).is_some()
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// spec 81 scenario 1
#[test]
fn bastion_without_a_shoot_is_deleted() {
    garden(|garden| async move {
        garden.settled().await;
        garden.put(bastion("b", "none", None));

        garden.gone(&kinds::BASTION, "a", "b").await;

        assert_eq!(garden.asked(), ["get shoots none", "delete bastions b"]);
    });
}

/// spec 81 scenario 1; spec 80 §16 S-13: the watch of Shoots is late.
#[test]
fn bastion_stays_if_its_shoot_was_created_a_moment_before() {
    garden(|garden| async move {
        garden.settled().await;
        garden.sim.set_event_faults(|event| match event.resource == "shoots" {
            true => EventFault::Drop,
            false => EventFault::Deliver,
        });
        garden.put(shoot("a", "s", json!({ "seedName": "x" })));
        garden.put(bastion("b", "s", Some("x")));
        garden.settle().await;

        assert!(exists(&garden, "b"));
    });
}

/// spec 81 scenario 2
#[test]
fn bastions_go_with_their_shoot_and_others_stay() {
    garden(|garden| async move {
        for name in ["s", "other"] {
            let mut shoot = shoot("a", name, json!({ "seedName": "x" }));
            shoot["metadata"]["finalizers"] = json!(["gardener"]);
            garden.put(shoot);
        }
        for (name, of) in [("b1", "s"), ("b2", "s"), ("c", "other")] {
            garden.put(bastion(name, of, Some("x")));
        }
        garden.settled().await;

        garden.delete(&kinds::SHOOT, "a", "s").await;

        garden.gone(&kinds::BASTION, "a", "b1").await;
        garden.gone(&kinds::BASTION, "a", "b2").await;
        assert!(exists(&garden, "c"));
    });
}

/// spec 81 scenario 3
#[test]
fn bastion_goes_when_its_shoot_moves_to_another_seed() {
    for to in [json!("y"), Value::Null] {
        garden(|garden| async move {
            garden.put(shoot("a", "s", json!({ "seedName": "x" })));
            garden.put(bastion("b", "s", Some("x")));
            garden.settled().await;

            garden.patch(&kinds::SHOOT, "a", "s", json!({ "spec": { "seedName": to } })).await;

            garden.gone(&kinds::BASTION, "a", "b").await;
        });
    }
}

/// spec 81 scenario 3: neither is on a Seed.
#[test]
fn bastion_without_a_seed_stays_if_its_shoot_has_none() {
    garden(|garden| async move {
        garden.put(shoot("a", "s", json!({})));
        garden.put(bastion("b", "s", None));
        garden.settled().await;
        seconds(3600).await;

        assert!(exists(&garden, "b"));
        assert_eq!(garden.asked(), Vec::<String>::new());
    });
}

/// spec 81 scenarios 4, 5 and 7
#[test]
fn bastion_lives_until_its_expiration_also_if_that_is_set_or_moved_later() {
    garden(|garden| async move {
        garden.put(shoot("a", "s", json!({ "seedName": "x" })));
        garden.put(bastion("b", "s", Some("x")));
        garden.settled().await;
        let expire_in = |seconds| {
            let time = garden.time(seconds);
            garden
                .edit(&kinds::BASTION, "a", "b", |bastion| bastion["status"] = json!({ "expirationTimestamp": time }));
        };

        expire_in(30);
        seconds(29).await;
        assert!(exists(&garden, "b"));
        expire_in(3600);
        seconds(3599).await;
        assert!(exists(&garden, "b"));
        assert_eq!(garden.asked(), Vec::<String>::new());
        seconds(2).await;

        assert!(!exists(&garden, "b"));
    });
}

/// spec 81 scenario 6
#[test]
fn bastion_is_deleted_at_its_maximum_lifetime() {
    garden(|garden| async move {
        garden.put(shoot("a", "s", json!({ "seedName": "x" })));
        let (day, hour) = (24 * 3600, 3600);
        for (name, age) in [("old", day + hour), ("young", day - hour)] {
            garden.put(bastion(name, "s", Some("x")));
            let (created, expiration) = (garden.time(-age), garden.time(hour * 9));
            garden.edit(&kinds::BASTION, "a", name, |bastion| {
                bastion["metadata"]["creationTimestamp"] = json!(created);
                bastion["status"] = json!({ "expirationTimestamp": expiration });
            });
        }
        garden.settled().await;
        assert!(!exists(&garden, "old") && exists(&garden, "young"));

        seconds(3580).await;
        assert!(exists(&garden, "young"));
        seconds(20).await;
        assert!(!exists(&garden, "young"));
    });
}
