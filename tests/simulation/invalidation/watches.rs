//! Watches, workers and periods of the invalidator (spec 31 §3, §4.1).

use std::time::Duration;

use gardener_resource_manager::api::config::resource_manager::{Workers, WorkersOnly};
use serde_json::{Value, json};
use sim::Fault;

use super::{account, asked, configure, considered, labels, reconciles, start, token, token_with};
use crate::world::{NAMESPACE, seconds, world};

/// spec 31 scenario 27. Its path is in the table of the webhooks.
#[test]
fn disabled_invalidator_watches_nothing() {
    for is_on in [false, true] {
        world(1, |world| async move {
            if is_on {
                configure(&world);
            }
            account(&world, Some(false), json!({}));
            token(&world, "t");
            world.start().await;
            seconds(60).await;

            // Secrets are watched for ManagedResources, too: source and target are one cluster here.
            assert_eq!(world.asked().contains(&"watch serviceaccounts".to_owned()), is_on);
            assert_eq!(labels(&world, "t"), if is_on { considered() } else { Value::Null });
        });
    }
}

/// spec 31 "Better than upstream" 8
#[test]
fn secrets_are_watched_once_for_all_controllers() {
    world(1, |world| async move {
        configure(&world);
        world.start().await;
        seconds(10).await;

        let watches = world.asked().into_iter().filter(|asked| asked == "watch secrets").count();
        assert_eq!(watches, 1, "shared with ManagedResources");
    });
}

/// spec 31 §3, "Better than upstream" 6
#[test]
fn workers_limit_the_concurrent_reconciles_of_secrets() {
    for workers in [1, 3].map(Workers::new) {
        world(1, |world| async move {
            configure(&world);
            world.config.borrow_mut().controllers.token_invalidator = WorkersOnly { concurrent_syncs: workers }.into();
            account(&world, None, json!({}));
            for number in 0..6 {
                token(&world, &format!("t{number}"));
            }
            world.sim.set_faults(|info| match info.verb.as_str() {
                "patch" => Fault::DelayAnswer(Duration::from_secs(10)),
                _ => Fault::None,
            });
            world.start().await;
            seconds(5).await;

            assert_eq!(world.writes().len(), workers.count());
        });
    }
}

/// spec 31 §4.1, spec 70 §8.4: an idle Secret costs no request.
#[test]
fn secret_is_reconciled_once_a_day_and_forgotten_when_deleted() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        token_with(&world, "t", considered());
        start(&world).await;
        let before = reconciles(&world);
        seconds(28 * 3600).await;
        assert_eq!((reconciles(&world), asked(&world)), (before + 1, Vec::new()));

        world.sim.edit("secrets", NAMESPACE, "t", |live| live["metadata"]["annotations"] = json!({}));
        seconds(1).await;
        assert_eq!(reconciles(&world), 0, "no actor is left");
    });
}

/// spec 31 §4.1
#[test]
fn secret_that_is_replaced_gets_its_labels_again() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        token(&world, "t");
        start(&world).await;
        for round in 0..3 {
            world.sim.remove("secrets", NAMESPACE, "t");
            token(&world, "t");
            seconds(1).await;

            assert_eq!(labels(&world, "t"), considered(), "round {round}");
        }
    });
}
