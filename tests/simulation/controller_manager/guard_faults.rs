//! Guards among failures and other writers.

use std::time::Duration;

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen};
use tracing::Level;

use super::{
    garden::{garden, object},
    guards::is_guarded,
};
use crate::log_capture::logged;

/// spec 81 §3.1 G-7: an admission plugin may know better.
#[test]
fn guard_tries_again_when_the_removal_is_refused() {
    garden(|garden| async move {
        garden.put(object(&kinds::SECRET_BINDING, "a", "o", json!({})));
        garden.settled().await;
        garden.sim.set_faults(|info| match (&*info.verb, &*info.user) {
            ("patch", "gcm") => {
                Fault::FailBefore(Seen::status(403, "Forbidden", "it is still in use by at least one shoot"))
            }
            _ => Fault::None,
        });
        garden.delete(&kinds::SECRET_BINDING, "a", "o").await;
        garden.settle().await;
        assert!(is_guarded(&garden, &kinds::SECRET_BINDING));
        garden.sim.clear_faults();

        tokio::time::sleep(Duration::from_secs(30)).await;

        assert!(garden.find(&kinds::SECRET_BINDING, "a", "o").is_none());
    });
}

/// spec 81 §3.1 G-6: a failed list proves nothing.
#[test]
fn guard_keeps_an_object_while_the_live_list_fails() {
    garden(|garden| async move {
        garden.put(object(&kinds::EXPOSURE_CLASS, "", "o", json!({})));
        garden.settled().await;
        garden.sim.set_faults(|info| match (&*info.verb, &*info.resource) {
            ("list", "shoots") => Fault::FailBefore(Seen::status(500, "InternalError", "no")),
            _ => Fault::None,
        });
        garden.delete(&kinds::EXPOSURE_CLASS, "", "o").await;
        garden.settle().await;
        assert!(is_guarded(&garden, &kinds::EXPOSURE_CLASS));
        garden.sim.clear_faults();

        tokio::time::sleep(Duration::from_secs(60)).await;

        assert!(garden.find(&kinds::EXPOSURE_CLASS, "", "o").is_none());
    });
}

/// spec 80 scenario 28
#[test]
fn guard_leaves_foreign_finalizers_in_their_place() {
    garden(|garden| async move {
        let mut quota = object(&kinds::QUOTA, "a", "o", json!({}));
        quota["metadata"]["finalizers"] = json!(["example.com/x"]);
        garden.put(quota);
        garden.settled().await;
        assert_eq!(garden.finalizers(&kinds::QUOTA, "a", "o"), ["example.com/x", "gardener"]);

        garden
            .patch(&kinds::QUOTA, "a", "o", json!({ "metadata": { "finalizers": ["gardener", "example.com/x"] } }))
            .await;
        garden.delete(&kinds::QUOTA, "a", "o").await;
        garden.settle().await;

        assert_eq!(garden.finalizers(&kinds::QUOTA, "a", "o"), ["example.com/x"]);
    });
}

/// spec 80 scenario 29
#[test]
fn guard_loses_no_finalizer_of_a_concurrent_writer() {
    garden(|garden| async move {
        garden.settled().await;
        let sim = garden.sim.clone();
        let mut is_changed = false;
        garden.sim.set_faults(move |info| {
            if info.verb == "patch" && info.user == "gcm" && !std::mem::replace(&mut is_changed, true) {
                let add = |quota: &mut Value| quota["metadata"]["finalizers"] = json!(["example.com/x"]);
                assert!(sim.edit("quotas.core.gardener.cloud", "a", "o", add));
            }
            Fault::None
        });

        garden.put(object(&kinds::QUOTA, "a", "o", json!({})));
        garden.settle().await;

        assert_eq!(garden.finalizers(&kinds::QUOTA, "a", "o"), ["example.com/x", "gardener"]);
    });
}

/// spec 80 scenario 31
#[test]
fn guard_takes_an_object_that_vanishes_before_its_release_as_released() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            garden.put(object(&kinds::QUOTA, "a", "o", json!({})));
            garden.settled().await;
            let sim = garden.sim.clone();
            garden.sim.set_faults(move |info| {
                if info.verb == "patch" && info.user == "gcm" {
                    sim.remove("quotas.core.gardener.cloud", "a", "o");
                }
                Fault::None
            });

            garden.delete(&kinds::QUOTA, "a", "o").await;
            garden.settle().await;
        });
    });
    assert!(!log.contains("Reconciler error"), "{log}");
}
