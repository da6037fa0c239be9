//! Patches that fail (spec 31 §4.2).

use serde_json::json;
use sim::{Fault, Seen};

use super::{CONSIDER, PURPOSE, account, considered, labelled, labels, last_error, reconciles, start, token};
use crate::world::{NAMESPACE, seconds, world};

/// spec 31 §4.2, scenario 18
#[test]
fn conflict_is_retried() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        start(&world).await;
        let mut left = 2;
        world.sim.set_faults(move |info| {
            if info.verb == "patch" && left > 0 {
                left -= 1;
                return Fault::FailBefore(Seen::conflict(info));
            }
            Fault::None
        });
        token(&world, "t");
        seconds(1).await;

        assert_eq!(world.writes(), ["patch secrets t"; 3]);
        assert_eq!(labels(&world, "t"), considered());
    });
}

/// spec 31 §4.2, T2, scenario 18: the patch is bound to the version that was seen.
#[test]
fn concurrent_write_is_not_overwritten() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        start(&world).await;
        let sim = world.sim.clone();
        let mut is_first = true;
        world.sim.set_faults(move |info| {
            if info.verb == "patch" && std::mem::take(&mut is_first) {
                sim.edit("secrets", NAMESPACE, "t", |live| live["metadata"]["labels"] = json!({ PURPOSE: "foo" }));
            }
            Fault::None
        });
        token(&world, "t");
        seconds(60).await;

        assert_eq!(labels(&world, "t"), json!({ PURPOSE: "foo", CONSIDER: "true" }));
    });
}

/// spec 31 T7, "Better than upstream" 7
#[test]
fn immutable_secret_is_reported_and_not_retried_at_once() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        start(&world).await;
        let mut is_first = true;
        world.sim.set_faults(move |info| {
            if info.verb != "patch" || !std::mem::take(&mut is_first) {
                return Fault::None;
            }
            let text = "Secret \"t\" is invalid: data: Forbidden: field is immutable when `immutable` is set";
            Fault::FailBefore(Seen::status(422, "Invalid", text))
        });
        token(&world, "t");
        seconds(3600).await;

        assert_eq!(world.writes(), ["patch secrets t"; 2], "with both labels, then with the purpose alone");
        assert_eq!(labels(&world, "t"), labelled());
        let error = last_error(&world, "t");
        assert!(error.starts_with("the token cannot be changed: Secret \"t\" is invalid: data: Forbidden"), "{error}");
    });
}

/// spec 31 §4.2 rule 1
#[test]
fn secret_deleted_while_it_is_labelled_is_forgotten() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        start(&world).await;
        let sim = world.sim.clone();
        world.sim.set_faults(move |info| {
            if info.verb == "patch" {
                sim.remove("secrets", NAMESPACE, "t");
            }
            Fault::None
        });
        token(&world, "t");
        seconds(600).await;

        assert_eq!(world.writes(), ["patch secrets t"]);
        assert_eq!((reconciles(&world), last_error(&world, "t")), (0, String::new()), "no actor is left");
    });
}
