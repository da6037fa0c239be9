//! ShootStates while the control plane of their Shoot moves.

use cluster::object;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen, WatchEnd};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    shoots::{SHOOTS, before_first, miss_events, operation, seconds, set_status, shoot_with_status, writes},
};
use crate::log_capture::logged;

const FINALIZER: &str = "core.gardener.cloud/shootstate";

const OTHER: &str = "example.com/x";

pub(super) fn state(finalizers: &[&str]) -> Value {
    let spec = json!({ "gardener": [{ "name": "n", "type": "t", "data": {} }] });
    let mut state = object(&kinds::SHOOT_STATE, "a", "s", json!({ "spec": spec }));
    state["metadata"]["finalizers"] = json!(finalizers);
    state
}

pub(super) fn put_shoot(garden: &Garden, operation: Value) {
    garden.put(shoot_with_status("a", "s", "healthy", json!({ "lastOperation": operation })));
}

pub(super) fn go_on(garden: &Garden, kind: &str, state: &str) {
    set_status(garden, "a", "s", "lastOperation", operation(kind, state));
}

fn finalizers(garden: &Garden) -> Vec<String> {
    garden.finalizers(&kinds::SHOOT_STATE, "a", "s")
}

fn is_held(garden: &Garden) -> bool {
    finalizers(garden).iter().any(|finalizer| finalizer == FINALIZER)
}

async fn held(garden: &Garden, expected: bool) {
    garden.soon(&format!("held: {expected}"), || is_held(garden) == expected).await;
}

/// spec 84 scenarios 108 and 109
#[test]
fn shoot_state_is_kept_while_its_control_plane_moves() {
    let table = [
        (false, "Migrate", "Processing", true),
        (false, "Migrate", "Aborted", true),
        (false, "Restore", "Error", true),
        (true, "Restore", "Aborted", true),
        (true, "Restore", "Succeeded", false),
        (true, "Reconcile", "Failed", false),
        (true, "Create", "Processing", true),
        (true, "Delete", "Processing", true),
        (false, "Create", "Succeeded", false),
        (false, "Delete", "Processing", false),
        (false, "Reconcile", "Succeeded", false),
    ];
    for (before, kind, step, after) in table {
        for is_start in [true, false] {
            let ((), log) = logged(Level::INFO, || {
                garden(|garden| async move {
                    put_shoot(&garden, operation(kind, step));
                    let state = state(if before { &[OTHER, FINALIZER] } else { &[OTHER] });
                    if is_start {
                        garden.put(state.clone());
                    }
                    garden.settled().await;
                    if !is_start {
                        garden.put(state);
                    }
                    garden.settle().await;

                    assert_eq!(is_held(&garden), after, "{kind} {step}");
                    assert_eq!(finalizers(&garden)[0], OTHER);
                    assert!(before != after || writes(&garden).is_empty());
                });
            });
            let text = if after { "Adding finalizer" } else { "Removing finalizer" };
            let line = log.lines().find(|line| line.contains(text));
            let is_told = |line: &str| {
                let (kind, step) = (format!("{kind:?}"), format!("{step:?}"));
                line.contains(&format!("shootLastOperationType={kind}"))
                    && line.contains(&format!("shootLastOperationState={step}"))
            };
            assert_eq!(line.map(is_told), (before != after).then_some(true), "{log}");
        }
    }
}

/// spec 84 scenarios 108, 109 and 112, I.1
#[test]
fn shoot_state_follows_the_operations_of_its_shoot() {
    let ((), log) = logged(Level::ERROR, || {
        garden(|garden| async move {
            put_shoot(&garden, Value::Null);
            garden.put(state(&[]));
            garden.settled().await;
            seconds(60).await;
            assert_eq!(garden.asked(), Vec::<String>::new(), "nothing is written before the first operation");
            for (kind, step, expected) in [
                ("Create", "Succeeded", false),
                ("Migrate", "Processing", true),
                ("Migrate", "Aborted", true),
                ("Reconcile", "Processing", false),
                ("Migrate", "Succeeded", true),
                ("Restore", "Processing", true),
                ("Restore", "Failed", true),
                ("Restore", "Succeeded", false),
                ("Restore", "Processing", true),
                ("Reconcile", "Succeeded", false),
            ] {
                go_on(&garden, kind, step);
                seconds(2).await;
                assert_eq!(is_held(&garden), expected, "{kind} {step}");
            }
        });
    });
    assert!(log.contains("last operation of Shoot 'a/s' is not set"), "{log}");
}

/// spec 84 scenario 110
#[test]
fn shoot_state_is_released_when_its_shoot_is_gone() {
    let ((), log) = logged(Level::WARN, || {
        for is_start in [true, false] {
            garden(|garden| async move {
                garden.put(state(&[OTHER, FINALIZER]));
                if !is_start {
                    put_shoot(&garden, operation("Migrate", "Succeeded"));
                }
                garden.settled().await;
                if !is_start {
                    assert!(is_held(&garden));
                    garden.delete(&kinds::SHOOT, "a", "s").await;
                }
                held(&garden, false).await;

                assert_eq!(finalizers(&garden), [OTHER]);
                seconds(60).await;
            });
        }
    });
    assert!(!log.contains("shootstate-finalizer"), "{log}");
}

/// spec 84 scenario 111
#[test]
fn shoot_state_in_deletion_goes_after_the_restoration() {
    garden(|garden| async move {
        put_shoot(&garden, operation("Restore", "Processing"));
        garden.put(state(&[]));
        garden.settled().await;
        assert!(is_held(&garden));
        garden.delete(&kinds::SHOOT_STATE, "a", "s").await;
        seconds(60).await;
        assert!(is_held(&garden));

        go_on(&garden, "Restore", "Succeeded");

        garden.gone(&kinds::SHOOT_STATE, "a", "s").await;
    });
}

/// spec 84 scenario 113
#[test]
fn shoot_state_in_deletion_gets_no_finalizer() {
    let ((), log) = logged(Level::WARN, || {
        garden(|garden| async move {
            put_shoot(&garden, operation("Create", "Succeeded"));
            garden.put(state(&[OTHER]));
            garden.settled().await;
            garden.delete(&kinds::SHOOT_STATE, "a", "s").await;
            for step in ["Processing", "Error", "Succeeded"] {
                go_on(&garden, "Migrate", step);
                seconds(20).await;
            }

            let is_meant = |write: &String| write.contains("shootstates");
            assert_eq!(finalizers(&garden), [OTHER]);
            assert!(!writes(&garden).iter().any(is_meant), "{:?}", writes(&garden));
            garden.patch(&kinds::SHOOT_STATE, "a", "s", json!({ "metadata": { "finalizers": null } })).await;
            garden.gone(&kinds::SHOOT_STATE, "a", "s").await;
        });
    });
    assert_eq!(log.matches("Cannot add finalizer to ShootState because it is being deleted").count(), 1, "{log}");
}

/// spec 80 §16 S-13: the cache of Shoots lags behind.
#[test]
fn shoot_state_is_released_after_a_live_look_at_the_shoot() {
    // The Shoot is created, or begins to migrate, unseen.
    for is_known in [true, false] {
        garden(|garden| async move {
            if is_known {
                put_shoot(&garden, operation("Reconcile", "Succeeded"));
            }
            garden.settled().await;
            miss_events(&garden, "shoots");
            match is_known {
                true => go_on(&garden, "Migrate", "Processing"),
                false => put_shoot(&garden, operation("Migrate", "Processing")),
            }
            garden.put(state(&[FINALIZER]));
            garden.settle().await;

            assert!(is_held(&garden));
            assert_eq!(garden.asked(), ["get shoots s"]);
        });
    }
}

/// Failing reads prove nothing; failing writes are repeated.
#[test]
fn shoot_state_stays_while_a_live_read_fails() {
    for seen in [
        Seen::internal_error("no"),
        Seen::status(404, "NotFound", "the server could not find the requested resource"),
        Seen::Disconnect,
    ] {
        garden(|garden| async move {
            put_shoot(&garden, operation("Migrate", "Succeeded"));
            garden.put(state(&[FINALIZER]));
            garden.settled().await;
            garden.sim.set_faults(move |info| {
                match info.user == "gcm" && info.verb == "get" && info.resource == "shoots" {
                    true => Fault::FailBefore(seen.clone()),
                    false => Fault::None,
                }
            });
            garden.delete(&kinds::SHOOT, "a", "s").await;
            seconds(60).await;
            assert!(is_held(&garden));

            garden.sim.clear_faults();
            seconds(120).await;

            assert!(!is_held(&garden));
        });
    }
}

/// spec 80 §16 S-6: a conflict; other finalizers stay.
#[test]
fn shoot_state_keeps_finalizers_of_others_after_a_conflict() {
    garden(|garden| async move {
        put_shoot(&garden, operation("Reconcile", "Succeeded"));
        garden.put(state(&[]));
        garden.settled().await;
        before_first(&garden, ("patch", "shootstates"), |sim| {
            let add = |state: &mut Value| state["metadata"]["finalizers"] = json!([OTHER]);
            assert!(sim.edit("shootstates.core.gardener.cloud", "a", "s", add));
        });
        go_on(&garden, "Migrate", "Processing");
        held(&garden, true).await;

        assert_eq!(finalizers(&garden), [OTHER, FINALIZER]);
    });
}

/// ShootStates that are served late, and a lost watch.
#[test]
fn shoot_states_that_are_served_late_are_found() {
    garden(|garden| async move {
        garden.withdraw(&kinds::SHOOT_STATE);
        put_shoot(&garden, operation("Migrate", "Processing"));
        garden.start().await;
        seconds(75).await;
        assert_eq!(garden.metrics.waiting_controllers(), Vec::<String>::new());
        garden.serve(&kinds::SHOOT_STATE);
        seconds(1).await;
        garden.put(state(&[]));
        seconds(75).await;
        assert!(is_held(&garden));

        miss_events(&garden, "shoots");
        go_on(&garden, "Restore", "Succeeded");
        seconds(5).await;
        assert!(is_held(&garden));
        garden.sim.clear_event_faults();
        garden.sim.compact();
        garden.sim.break_watches(WatchEnd::Disconnect);
        seconds(60).await;
        assert!(!is_held(&garden));
    });
}

/// Their content is large and confidential: only metadata is read. At rest, and after a restart, nothing is.
#[test]
fn shoot_states_are_read_as_metadata() {
    garden(|garden| async move {
        put_shoot(&garden, operation("Migrate", "Processing"));
        garden.put(state(&[]));
        garden.start().await;
        garden.settle().await;
        go_on(&garden, "Restore", "Succeeded");
        garden.settle().await;
        assert!(!is_held(&garden));
        for request in garden.requests().into_iter().filter(|request| request.info.resource == "shootstates") {
            assert!(request.info.accept.contains("PartialObjectMetadata"), "{request:?}");
        }

        garden.stop().await;
        garden.sim.clear_requests();
        garden.start().await;
        seconds(600).await;
        assert_eq!(garden.asked_for("shootstates"), ["list shootstates"]);
        assert_eq!(garden.asked_for("shoots"), ["list shoots"]);
    });
}

/// A Shoot of another shape, or that was created anew while the process was down.
#[test]
fn shoot_state_of_a_strange_shoot_is_left_alone() {
    for (operation, before) in [(json!("Migrate"), true), (json!({ "type": ["Migrate"] }), false), (json!({}), true)] {
        garden(|garden| async move {
            put_shoot(&garden, operation);
            garden.put(state(if before { &[FINALIZER] } else { &[] }));
            garden.settled().await;
            seconds(60).await;
            assert_eq!((is_held(&garden), writes(&garden)), (before, Vec::new()));

            garden.sim.remove(SHOOTS, "a", "s");
            seconds(60).await;
            assert!(!is_held(&garden));
            assert!(
                object::finalizers(&garden.find(&kinds::SHOOT_STATE, "a", "s").expect("it exists")).next().is_none()
            );
        });
    }
}
