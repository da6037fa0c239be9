//! The constraint of Shoots that move to another Seed.

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen, WatchEnd};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    shoots::{
        SHOOTS, before_first, condition, miss_events, operation, put_seed, seconds, set_status, shoot_of,
        shoot_with_status, writes,
    },
};
use crate::log_capture::logged;

const READY: (&str, &str, &str) =
    ("True", "DestinationSeedReady", "Destination seed cluster is ready for the shoot migration");

fn seed(name: &str, version: &str) -> Value {
    let conditions = [condition("GardenletReady", "True"), condition("SeedSystemComponentsHealthy", "True")];
    let status = json!({ "gardener": { "version": version }, "observedGeneration": 1, "conditions": conditions });
    let mut seed = object(&kinds::SEED, "", name, json!({ "status": status }));
    seed["metadata"]["generation"] = json!(1);
    seed
}

/// Returns the Shoot `s` on its way from the Seed `src` to `dst`.
pub(super) fn moving() -> Value {
    let status = json!({ "seedName": "src", "lastOperation": operation("Reconcile", "Succeeded") });
    let mut shoot = shoot_with_status("a", "s", "healthy", status);
    shoot["spec"] = json!({ "seedName": "dst" });
    shoot
}

pub(super) fn put_seeds(garden: &Garden, destination: &str) {
    put_seed(garden, seed("src", "v1"));
    put_seed(garden, seed("dst", destination));
}

fn constraint(garden: &Garden) -> Value {
    let shoot = shoot_of(garden, "a", "s");
    let constraints = shoot["status"]["constraints"].as_array().cloned().unwrap_or_default();
    constraints.into_iter().find(|entry| entry["type"] == "ReadyForMigration").unwrap_or_default()
}

fn says(garden: &Garden, (status, reason, message): (&str, &str, &str)) -> bool {
    let entry = constraint(garden);
    entry["status"] == status && entry["reason"] == reason && entry["message"] == message
}

async fn said(garden: &Garden, expected: (&str, &str, &str)) {
    garden.soon(&format!("{expected:?}"), || says(garden, expected)).await;
}

pub(super) fn set_version(garden: &Garden, seed: &str, version: &str) {
    garden.edit(&kinds::SEED, "", seed, |seed| seed["status"]["gardener"]["version"] = json!(version));
}

/// spec 84 scenario 102: when the Seed's name changes, and at a start.
#[test]
fn migration_may_begin_if_the_destination_is_ready() {
    for is_start in [true, false] {
        garden(|garden| async move {
            put_seeds(&garden, "v1");
            let mut shoot = moving();
            if !is_start {
                shoot["spec"]["seedName"] = json!("src");
            }
            garden.put(shoot);
            garden.settled().await;
            if !is_start {
                assert_eq!(constraint(&garden), Value::Null);
                garden.patch(&kinds::SHOOT, "a", "s", json!({ "spec": { "seedName": "dst" } })).await;
            }

            said(&garden, READY).await;
        });
    }
}

/// spec 84 scenario 103, "better" 15: at once, and not after the timer.
#[test]
fn migration_waits_until_the_destination_is_ready() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_seed(&garden, seed("src", "foo"));
            put_seed(&garden, seed("dst", "bar"));
            garden.put(moving());
            garden.settled().await;
            let text = "observing Gardener version not up to date (bar/foo)";
            assert!(says(&garden, ("False", "DestinationSeedUnready", text)));
            let before = constraint(&garden)["lastTransitionTime"].clone();
            seconds(60).await;
            assert_eq!(garden.asked(), Vec::<String>::new(), "it looks at caches");

            set_version(&garden, "dst", "foo");
            seconds(1).await;

            assert!(says(&garden, READY));
            assert_ne!(constraint(&garden)["lastTransitionTime"], before);
            assert_eq!(writes(&garden), ["patch shoots s"]);
        });
    });
    let text = "Updating constraint to False since destination seed is unready";
    assert_eq!(log.matches(text).count(), 1, "{log}");
    assert_eq!(log.matches("Updating constraint to True since destination seed is ready").count(), 1, "{log}");
}

/// spec 84 scenario 103: the timer is a safety net for lost events.
#[test]
fn migration_is_looked_at_again_while_it_lasts() {
    garden(|garden| async move {
        put_seeds(&garden, "v1");
        garden.put(moving());
        garden.settled().await;
        assert!(says(&garden, READY));
        set_status(&garden, "a", "s", "constraints", json!([]));
        seconds(6).await;
        assert!(says(&garden, READY), "somebody removed it");
        set_status(&garden, "a", "s", "lastOperation", operation("Migrate", "Processing"));
        set_version(&garden, "dst", "v2");
        seconds(6).await;
        assert!(says(
            &garden,
            ("False", "DestinationSeedUnready", "observing Gardener version not up to date (v2/v1)")
        ));
    });
}

/// spec 84 scenario 104
#[test]
fn migration_tells_the_reason_why_it_waits() {
    garden(|garden| async move {
        put_seeds(&garden, "v2");
        garden.put(moving());
        garden.settled().await;
        let before = constraint(&garden);
        garden.edit(&kinds::SEED, "", "dst", |seed| {
            seed["status"]["gardener"]["version"] = json!("v1");
            seed["status"]["conditions"][0]["status"] = json!("False");
        });

        let text = "condition \"GardenletReady\" has invalid status False (expected True) due to R: m.";
        said(&garden, ("False", "DestinationSeedUnready", text)).await;
        assert_eq!(constraint(&garden)["lastTransitionTime"], before["lastTransitionTime"]);
    });
}

/// spec 84 scenario 105; the dead end after it ends with the Shoot's return.
#[test]
fn migration_to_a_seed_in_deletion_does_not_begin() {
    garden(|garden| async move {
        put_seeds(&garden, "v1");
        garden.edit(&kinds::SEED, "", "dst", |seed| seed["metadata"]["finalizers"] = json!(["gardener"]));
        garden.delete(&kinds::SEED, "", "dst").await;
        garden.put(moving());
        garden.settled().await;
        assert!(says(&garden, ("False", "DestinationSeedInDeletion", "Seed is being deleted")));
        put_seed(&garden, seed("other", "v1"));

        garden.patch(&kinds::SHOOT, "a", "s", json!({ "spec": { "seedName": "other" } })).await;

        said(&garden, READY).await;
    });
}

/// spec 84 scenario 106: at a start and later; other constraints stay.
#[test]
fn migration_constraint_goes_when_the_migration_is_over() {
    let other = &condition("HibernationPossible", "True");
    for is_start in [true, false] {
        garden(|garden| async move {
            put_seeds(&garden, "v1");
            let mut shoot = moving();
            shoot["status"]["seedName"] = json!("dst");
            shoot["status"]["constraints"] = json!([condition("ReadyForMigration", "True"), other]);
            let kind = if is_start { "Restore" } else { "Migrate" };
            shoot["status"]["lastOperation"] = operation(kind, "Processing");
            garden.put(shoot);
            garden.settled().await;
            if !is_start {
                assert_ne!(constraint(&garden), Value::Null, "the operation is still that of a migration");
                set_status(&garden, "a", "s", "lastOperation", operation("Restore", "Processing"));
                garden.settle().await;
            }

            assert_eq!(shoot_of(&garden, "a", "s")["status"]["constraints"], json!([other]));
            seconds(60).await;
            let all = garden.asked_for("shoots");
            assert!(is_start || all == ["get shoots s", "patch shoots s"], "{all:?}");
        });
    }
}

/// spec 84 scenario 107
#[test]
fn migration_keeps_constraints_of_others() {
    let mine = condition("MaintenancePreconditionsSatisfied", "True");
    garden(|garden| async move {
        put_seeds(&garden, "v1");
        garden.settled().await;
        let added = mine.clone();
        before_first(&garden, ("patch", "shoots"), move |sim| {
            let add = |shoot: &mut Value| shoot["status"]["constraints"] = json!([added]);
            assert!(sim.edit(SHOOTS, "a", "s", add));
        });
        garden.put(moving());

        said(&garden, READY).await;
        assert_eq!(shoot_of(&garden, "a", "s")["status"]["constraints"][0], mine);
    });
}

/// A cache that lags behind never says that a destination is ready.
#[test]
fn migration_begins_after_a_live_look_at_both_seeds() {
    for name in ["src", "dst"] {
        garden(|garden| async move {
            put_seeds(&garden, "v1");
            garden.settled().await;
            miss_events(&garden, "seeds");
            set_version(&garden, name, "v0");
            garden.put(moving());
            garden.settle().await;

            assert_eq!(constraint(&garden)["status"], "False", "{name}");
            let reads = garden.asked().iter().filter(|asked| asked.starts_with("get seeds")).count();
            assert!((2..=10).contains(&reads), "{reads}");
        });
    }
}

/// spec 84 H-6: an approval of one way is none of another.
#[test]
fn migration_that_turns_to_another_seed_begins_after_a_live_look() {
    garden(|garden| async move {
        put_seeds(&garden, "v1");
        put_seed(&garden, seed("other", "v1"));
        garden.put(moving());
        garden.settled().await;
        assert!(says(&garden, READY));
        seconds(60).await;
        assert_eq!(garden.asked(), Vec::<String>::new(), "an approved way costs nothing");
        miss_events(&garden, "seeds");
        set_version(&garden, "other", "v0");

        garden.patch(&kinds::SHOOT, "a", "s", json!({ "spec": { "seedName": "other" } })).await;
        seconds(2).await;

        let text = "observing Gardener version not up to date (v0/v1)";
        assert!(says(&garden, ("False", "DestinationSeedUnready", text)), "{}", constraint(&garden));
    });
}

/// H-2: a Seed that does not exist is an error, and nothing is written.
#[test]
fn migration_between_seeds_that_do_not_exist_is_an_error() {
    for (kept, text) in [
        ("dst", "failed reading source seed src: seeds.core.gardener.cloud \\\"src\\\" not found"),
        ("src", "failed reading destination seed dst: seeds.core.gardener.cloud \\\"dst\\\" not found"),
    ] {
        let ((), log) = logged(Level::ERROR, || {
            garden(|garden| async move {
                put_seed(&garden, seed(kept, "v1"));
                garden.put(moving());
                garden.settled().await;
                seconds(60).await;
                assert_eq!(garden.asked(), Vec::<String>::new());
                put_seeds(&garden, "v1");
                said(&garden, READY).await;
            });
        });
        assert!(log.replace("\\\"", "\"").contains(&text.replace("\\\"", "\"")), "{log}");
    }
}

/// Failing requests, lost answers and lost watches.
#[test]
fn migration_begins_in_spite_of_faults() {
    for fault in [
        Fault::FailBefore(Seen::internal_error("no")),
        Fault::FailAfterCommit(Seen::Disconnect),
        Fault::FailBefore(Seen::too_many_requests()),
    ] {
        for verb in ["get", "patch"] {
            let fault = fault.clone();
            garden(|garden| async move {
                put_seeds(&garden, "v1");
                garden.settled().await;
                garden.sim.break_watches(WatchEnd::Disconnect);
                let mut failures = 0;
                garden.sim.set_faults(move |info| {
                    let is_meant = info.user == "gcm" && info.verb == verb;
                    failures += u32::from(is_meant);
                    if is_meant && failures <= 4 { fault.clone() } else { Fault::None }
                });
                garden.put(moving());
                seconds(60).await;

                assert!(says(&garden, READY), "{verb}");
            });
        }
    }
}

/// Names that no Seed can have, and Seeds and constraints of any shape.
#[test]
fn migration_of_any_shape_stops_nobody() {
    garden(|garden| async move {
        put_seeds(&garden, "v1");
        for (number, odd) in
            [json!(5), json!("x"), json!([[], 7]), json!({ "type": "ReadyForMigration" })].into_iter().enumerate()
        {
            let name = format!("odd{number}");
            put_seed(
                &garden,
                object(&kinds::SEED, "", &name, json!({ "status": { "gardener": odd, "conditions": odd } })),
            );
            let mut shoot = moving();
            shoot["metadata"]["name"] = json!(name);
            shoot["spec"]["seedName"] = json!(name);
            shoot["status"]["constraints"] = odd;
            garden.put(shoot);
        }
        let mut strange = moving();
        strange["metadata"]["name"] = json!("strange");
        strange["status"]["seedName"] = json!("../../shoots?watch=1");
        garden.put(strange);
        garden.put(moving());
        garden.settled().await;

        assert!(says(&garden, READY));
        for number in 0..4 {
            let shoot = shoot_of(&garden, "a", &format!("odd{number}"));
            let constraints = shoot["status"]["constraints"].as_array().expect("a list");
            assert!(constraints.iter().any(|entry| entry["status"] == "False"), "{shoot}");
        }
        assert!(!garden.requests().iter().any(|request| request.info.path.contains("watch=1")));
    });
}
