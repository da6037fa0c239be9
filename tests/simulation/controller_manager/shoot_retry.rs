//! Retries of Shoots that failed because of rate limits.

use std::time::Duration;

use cluster::object;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::WatchEnd;
use tracing::Level;

use super::{
    garden::{Garden, garden},
    shoots::{SHOOTS, before_first, miss_events, seconds, shoot_of, shoot_with_status, writes},
};
use crate::log_capture::logged;

const OPERATION: &str = "gardener.cloud/operation";

const LIMIT: &str = "ERR_INFRA_RATE_LIMITS_EXCEEDED";

/// Returns a Shoot that failed some seconds ago.
pub(super) fn failed(garden: &Garden, name: &str, ago: i64) -> Value {
    let operation = json!({ "type": "Reconcile", "state": "Failed", "lastUpdateTime": garden.time(-ago) });
    let errors = json!([{ "description": "d", "codes": ["ERR_X", LIMIT] }]);
    let status = json!({ "lastOperation": operation, "lastErrors": errors, "observedGeneration": 1 });
    let mut shoot = shoot_with_status("a", name, "unhealthy", status);
    shoot["metadata"]["generation"] = json!(1);
    shoot
}

fn asked(garden: &Garden, name: &str) -> Option<String> {
    object::annotation(&shoot_of(garden, "a", name), OPERATION).map(str::to_owned)
}

fn is_retried(garden: &Garden) -> bool {
    asked(garden, "s").as_deref() == Some("retry")
}

pub(super) fn without_jitter(garden: &Garden) {
    garden.config.borrow_mut().controllers.shoot_retry.retry_jitter_period = Duration::ZERO.into();
}

/// spec 84 scenario 93
#[test]
fn shoot_is_retried_if_it_hit_the_limits_long_ago() {
    for is_start in [false, true] {
        garden(|garden| async move {
            without_jitter(&garden);
            if is_start {
                garden.put(failed(&garden, "s", 660));
            }
            garden.settled().await;
            if !is_start {
                garden.put(failed(&garden, "s", 660));
            }
            garden.settle().await;

            assert!(is_retried(&garden));
        });
    }
}

/// spec 84 scenario 94, F-3
#[test]
fn shoot_is_retried_after_the_period_and_less_than_the_jitter() {
    garden(|garden| async move {
        garden.settled().await;
        for number in 0..20 {
            garden.put(failed(&garden, &format!("s{number}"), 0));
        }
        seconds(599).await;
        assert_eq!(garden.asked_for("shoots"), Vec::<String>::new());
        seconds(150).await;
        let retried = (0..20).filter(|number| asked(&garden, &format!("s{number}")).is_some()).count();
        assert!((1..20).contains(&retried), "spread over five minutes: {retried}");
        seconds(152).await;

        assert!((0..20).all(|number| asked(&garden, &format!("s{number}")).as_deref() == Some("retry")));
        assert_eq!(writes(&garden).len(), 20);
    });
}

/// spec 84 scenario 95
#[test]
fn shoot_is_not_retried_for_another_reason() {
    type Step = fn(&mut Value);
    let steps: [Step; 5] = [
        |shoot| shoot["status"]["lastErrors"][0]["codes"] = json!(["ERR_INFRA_QUOTA_EXCEEDED"]),
        |shoot| shoot["status"]["lastErrors"] = json!({ "codes": [LIMIT] }),
        |shoot| shoot["status"]["lastOperation"]["state"] = json!("Error"),
        |shoot| shoot["status"]["observedGeneration"] = json!(0),
        |shoot| shoot["status"]["observedGeneration"] = json!("1"),
    ];
    garden(|garden| async move {
        for (number, step) in steps.into_iter().enumerate() {
            let mut shoot = failed(&garden, &format!("s{number}"), 3600);
            step(&mut shoot);
            garden.put(shoot);
        }
        garden.settled().await;
        seconds(3600).await;

        assert!((0..steps.len()).all(|number| asked(&garden, &format!("s{number}")).is_none()));
    });
}

/// spec 84 scenario 96; the cache may lag, too.
#[test]
fn shoot_that_recovers_is_not_retried() {
    for is_seen in [true, false] {
        garden(|garden| async move {
            garden.put(failed(&garden, "s", 0));
            garden.settled().await;
            seconds(300).await;
            if !is_seen {
                miss_events(&garden, "shoots");
            }
            garden
                .edit(&kinds::SHOOT, "a", "s", |shoot| shoot["status"]["lastOperation"]["state"] = json!("Processing"));
            seconds(3600).await;

            assert_eq!(asked(&garden, "s"), None);
            assert!(!writes(&garden).iter().any(|write| write.contains(" shoots ")) || is_seen);
        });
    }
}

/// spec 84 scenario 97: `loaded` with the older key; the tests of the configuration show the warning.
#[test]
fn shoot_retry_period_may_have_its_older_name() {
    garden(|garden| async move {
        let text = "{apiVersion: controllermanager.config.gardener.cloud/v1alpha1, kind: ControllerManagerConfiguration, \
                    controllers: {shootRetry: {retryDuration: 2s, retryJitterPeriod: 0s}}}";
        let loaded = gardener_resource_manager::api::config::controller_manager::load(text.as_bytes(), None)
            .expect("it is valid");
        assert_eq!(loaded.warnings.len(), 1);
        *garden.config.borrow_mut() = loaded.config;
        garden.put(failed(&garden, "s", 0));
        garden.start().await;
        seconds(1).await;
        assert!(!is_retried(&garden));
        seconds(2).await;
        assert!(is_retried(&garden));
    });
}

/// spec 84 "better" 14: not all at once, and no jitter for those that fail later.
#[test]
fn shoots_that_are_overdue_at_the_start_are_retried_one_after_the_other() {
    garden(|garden| async move {
        for number in 0..50 {
            garden.put(failed(&garden, &format!("s{number}"), 3600));
        }
        garden.start().await;
        seconds(3).await;
        let retried = |garden: &Garden| (0..50).filter(|number| asked(garden, &format!("s{number}")).is_some()).count();
        assert!(retried(&garden) < 10);
        seconds(150).await;
        assert!((10..45).contains(&retried(&garden)), "{}", retried(&garden));
        garden.put(failed(&garden, "s", 3600));
        seconds(1).await;
        assert!(is_retried(&garden), "it failed while the program runs");
        seconds(150).await;

        assert_eq!(retried(&garden), 50);
        assert_eq!(writes(&garden).len(), 51);
    });
}

/// spec 84 F-4: another operation is replaced; a retry that is asked for is not written again, on a server where it stays.
#[test]
fn shoot_is_retried_once_for_each_failure() {
    garden(|garden| async move {
        without_jitter(&garden);
        let mut shoot = failed(&garden, "s", 3600);
        shoot["metadata"]["annotations"] = json!({ OPERATION: "maintain", "x": "y" });
        garden.put(shoot);
        garden.settled().await;
        assert!(is_retried(&garden));
        assert_eq!(object::annotation(&shoot_of(&garden, "a", "s"), "x"), Some("y"));
        seconds(3600).await;
        assert_eq!(writes(&garden), Vec::<String>::new());

        // gardenlet consumes the annotation, and fails again.
        garden.edit(&kinds::SHOOT, "a", "s", |shoot| {
            shoot["metadata"]["annotations"] = Value::Null;
            shoot["status"]["lastOperation"]["state"] = json!("Processing");
        });
        garden.settle().await;
        let now = garden.time(0);
        garden.edit(&kinds::SHOOT, "a", "s", |shoot| {
            shoot["status"]["lastOperation"]["state"] = json!("Failed");
            shoot["status"]["lastOperation"]["lastUpdateTime"] = json!(now);
        });
        seconds(590).await;
        assert!(!is_retried(&garden));
        seconds(15).await;
        assert!(is_retried(&garden));
    });
}

/// The Shoot fails while a retry is asked for, and somebody takes the request away.
#[test]
fn shoot_whose_request_for_a_retry_is_removed_is_retried() {
    garden(|garden| async move {
        without_jitter(&garden);
        garden.settled().await;
        let mut shoot = failed(&garden, "s", 0);
        shoot["metadata"]["annotations"] = json!({ OPERATION: "retry" });
        garden.put(shoot);
        garden.settle().await;
        garden.edit(&kinds::SHOOT, "a", "s", |shoot| shoot["metadata"]["annotations"] = json!({ "x": "y" }));
        seconds(550).await;
        assert!(!is_retried(&garden));
        seconds(60).await;

        assert!(is_retried(&garden));
    });
}

/// Both events of a recovery and a new failure are lost.
#[test]
fn shoot_that_fails_again_unseen_is_retried() {
    garden(|garden| async move {
        without_jitter(&garden);
        garden.put(failed(&garden, "s", 3600));
        garden.settled().await;
        miss_events(&garden, "shoots");
        let mut anew = failed(&garden, "s", 30);
        anew["metadata"]["annotations"] = Value::Null;
        garden.edit(&kinds::SHOOT, "a", "s", |shoot| {
            shoot["metadata"]["annotations"] = Value::Null;
            shoot["status"] = anew["status"].clone();
        });
        garden.sim.clear_event_faults();
        garden.sim.compact();
        garden.sim.break_watches(WatchEnd::Disconnect);
        seconds(500).await;
        assert!(!is_retried(&garden));
        seconds(120).await;

        assert!(is_retried(&garden));
    });
}

/// spec 80 §16 S-14: the wall clock counts.
#[test]
fn shoot_retry_follows_the_wall_clock() {
    garden(|garden| async move {
        without_jitter(&garden);
        garden.put(failed(&garden, "s", 0));
        garden.settled().await;
        garden.jump(-300);
        seconds(600).await;
        assert!(!is_retried(&garden), "the clock went back");
        garden.jump(300);
        seconds(601).await;
        assert!(is_retried(&garden));
    });
}

/// A user writes between the decision and the patch.
#[test]
fn shoot_that_is_fixed_in_the_last_moment_is_not_retried() {
    let ((), log) = logged(Level::ERROR, || {
        garden(|garden| async move {
            without_jitter(&garden);
            garden.settled().await;
            before_first(&garden, ("get", "shoots"), |sim| {
                let fix = |shoot: &mut Value| shoot["status"]["lastErrors"] = json!([]);
                assert!(sim.edit(SHOOTS, "a", "s", fix));
            });
            garden.put(failed(&garden, "s", 3600));
            seconds(60).await;

            assert_eq!(asked(&garden, "s"), None);
            assert_eq!(writes(&garden), Vec::<String>::new());
            garden.sim.remove(SHOOTS, "a", "s");
            garden.settle().await;
        });
    });
    assert!(!log.contains("shoot-retry"), "{log}");
}
