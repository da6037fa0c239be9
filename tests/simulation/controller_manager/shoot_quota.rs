//! Shoots that expire.

use cluster::{Resource, object};
use gardener_resource_manager::api::kinds;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    guards::shoot,
    shoots::{seconds, shoot_of, writes},
};
use crate::log_capture::logged;

pub(super) const EXPIRATION: &str = "shoot.gardener.cloud/expiration-timestamp";

pub(super) const DAY: i64 = 24 * 3600;

/// Puts the binding `b`, whose Quotas have these lifetimes in days.
pub(super) fn put_binding(garden: &Garden, kind: &Resource, lifetimes: &[Option<i64>]) {
    let name = |number: usize| format!("q{number}");
    for (number, days) in lifetimes.iter().enumerate() {
        garden.put(object(&kinds::QUOTA, "a", &name(number), json!({ "spec": { "clusterLifetimeDays": days } })));
    }
    let quotas: Vec<_> = (0..lifetimes.len()).map(|number| json!({ "namespace": "a", "name": name(number) })).collect();
    garden.put(object(kind, "a", "b", json!({ "quotas": quotas, "provider": { "type": "t" } })));
}

/// Returns the Shoot `s` with a SecretBinding, which gardenlet looks after. `expires`: in so many seconds.
pub(super) fn limited(garden: &Garden, expires: Option<i64>) -> Value {
    let mut shoot = shoot("a", "s", json!({ "secretBindingName": "b" }));
    shoot["metadata"]["finalizers"] = json!(["gardener"]);
    if let Some(seconds) = expires {
        shoot["metadata"]["annotations"] = json!({ EXPIRATION: garden.time(seconds) });
    }
    shoot
}

pub(super) fn annotation(garden: &Garden, name: &str) -> Option<String> {
    object::annotation(&shoot_of(garden, "a", "s"), name).map(str::to_owned)
}

pub(super) fn expiration(garden: &Garden) -> Option<String> {
    annotation(garden, EXPIRATION)
}

pub(super) fn is_deleted(garden: &Garden) -> bool {
    object::deletion_timestamp(&shoot_of(garden, "a", "s")).is_some()
}

fn created_and(garden: &Garden, days: i64) -> String {
    let shoot = shoot_of(garden, "a", "s");
    let created: Timestamp =
        shoot["metadata"]["creationTimestamp"].as_str().and_then(|it| it.parse().ok()).expect("a time");
    (created + SignedDuration::from_secs(days * DAY)).to_string()
}

pub(super) fn set_expiration(garden: &Garden, value: Value) {
    garden.edit(&kinds::SHOOT, "a", "s", |shoot| shoot["metadata"]["annotations"] = json!({ EXPIRATION: value }));
}

/// spec 84 scenarios 75 and 79
#[test]
fn shoot_learns_when_it_expires() {
    for kind in [&kinds::SECRET_BINDING, &kinds::CREDENTIALS_BINDING] {
        let ((), log) = logged(Level::INFO, || {
            garden(|garden| async move {
                put_binding(&garden, kind, &[Some(3), None, Some(1)]);
                let field = if *kind == kinds::SECRET_BINDING { "secretBindingName" } else { "credentialsBindingName" };
                garden.put(shoot("a", "s", json!({ field: "b" })));
                garden.put(shoot("a", "workerless", json!({})));
                garden.settled().await;

                assert_eq!(expiration(&garden), Some(created_and(&garden, 1)));
                assert!(object::annotation(&shoot_of(&garden, "a", "workerless"), EXPIRATION).is_none());
                seconds(7200).await;
                assert_eq!(garden.asked_for("shoots"), Vec::<String>::new(), "nothing at rest");
            });
        });
        assert_eq!(log.matches("Setting expiration timestamp annotation").count(), 1, "{log}");
    }
}

/// spec 84 L-8, L-9, scenario 76, "better" 13: at its time, confirmed, and told.
#[test]
fn shoot_that_expires_is_deleted_at_its_time() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_binding(&garden, &kinds::SECRET_BINDING, &[Some(10)]);
            garden.put(limited(&garden, Some(7300)));
            garden.settled().await;
            seconds(7289).await;
            assert!(!is_deleted(&garden));
            assert_eq!(garden.asked(), Vec::<String>::new());
            let before = garden.time(0);
            seconds(3).await;

            assert!(is_deleted(&garden));
            assert_eq!(annotation(&garden, "confirmation.gardener.cloud/deletion").as_deref(), Some("true"));
            let confirmed = annotation(&garden, "gardener.cloud/timestamp").expect("it is confirmed");
            assert!(before < confirmed && confirmed < garden.time(0), "{confirmed}");
            let end = expiration(&garden).expect("it keeps its annotation");
            let note = format!("Shoot cluster lifetime expired at {end}, deleting Shoot");
            let told = garden.events(&kinds::SHOOT, "s", "ShootExpired");
            assert_eq!(told, [("Normal".to_owned(), "Reconcile".to_owned(), note)]);
            let asked = ["get secretbindings b", "get quotas q0", "get shoots s", "patch shoots s", "delete shoots s"];
            let released = ["patch shoots s"]; // by the controller of ControllerInstallations
            assert_eq!(garden.asked(), [&asked[..], &released].concat());
            garden.patch(&kinds::SHOOT, "a", "s", json!({ "metadata": { "finalizers": null } })).await;
            garden.gone(&kinds::SHOOT, "a", "s").await;
        });
    });
    assert_eq!(log.matches("Shoot cluster lifetime expired, deleting Shoot").count(), 1, "{log}");
}

/// spec 84 scenario 76: in the past already, at a start.
#[test]
fn shoot_that_has_expired_is_deleted_at_the_start() {
    garden(|garden| async move {
        put_binding(&garden, &kinds::SECRET_BINDING, &[Some(10)]);
        let mut shoot = limited(&garden, Some(-60));
        shoot["metadata"]["finalizers"] = Value::Null;
        garden.put(shoot);
        garden.start().await;

        garden.gone(&kinds::SHOOT, "a", "s").await;
    });
}

/// spec 84 scenario 77, D-4, L-6
#[test]
fn shoot_whose_expiration_users_move_expires_then() {
    garden(|garden| async move {
        put_binding(&garden, &kinds::SECRET_BINDING, &[Some(1)]);
        garden.put(limited(&garden, Some(4 * DAY)));
        garden.settled().await;
        seconds(3 * DAY as u64).await;
        assert!(!is_deleted(&garden));

        // Shortened to a time with an offset and a fraction, and extended again.
        set_expiration(&garden, json!(garden.time(600)));
        seconds(590).await;
        let later: Timestamp = garden.time(3600).parse().expect("a time");
        let text = (later + SignedDuration::from_hours(2)).to_string();
        set_expiration(&garden, json!(text.replace('Z', "+02:00")));
        seconds(3580).await;
        assert!(!is_deleted(&garden));
        seconds(30).await;
        assert!(is_deleted(&garden));
    });
}

/// spec 84 L-7, D-4, decision 22
#[test]
fn shoot_lives_at_most_twice_its_lifetime_if_that_is_enforced() {
    for is_enforced in [false, true] {
        garden(|garden| async move {
            garden.config.borrow_mut().controllers.shoot_quota.enforce_maximum_expiration = is_enforced;
            put_binding(&garden, &kinds::SECRET_BINDING, &[Some(1)]);
            garden.put(limited(&garden, Some(30 * DAY)));
            garden.settled().await;
            let annotated = expiration(&garden);
            seconds(2 * DAY as u64 - 3600).await;
            assert!(!is_deleted(&garden));
            seconds(3700).await;

            assert_eq!(is_deleted(&garden), is_enforced);
            assert_eq!(expiration(&garden), annotated, "it is left as it is");
        });
    }
}

/// spec 84 scenario 78, "better" 12: at once.
#[test]
fn shoot_that_has_no_lifetime_any_more_never_expires() {
    type Step = fn(&Garden);
    let steps: [Step; 3] = [
        |garden| garden.edit(&kinds::QUOTA, "a", "q0", |quota| quota["spec"] = json!({ "metrics": {} })),
        |garden| garden.edit(&kinds::SECRET_BINDING, "a", "b", |binding| binding["quotas"] = json!([])),
        |garden| garden.edit(&kinds::SHOOT, "a", "s", |shoot| shoot["spec"]["secretBindingName"] = Value::Null),
    ];
    for step in steps {
        garden(|garden| async move {
            put_binding(&garden, &kinds::SECRET_BINDING, &[Some(1)]);
            garden.put(limited(&garden, None));
            garden.settled().await;
            assert!(expiration(&garden).is_some());

            step(&garden);
            garden.soon("it does not expire", || expiration(&garden).is_none()).await;
            seconds(3 * DAY as u64).await;

            assert!(!is_deleted(&garden));
        });
    }
}

/// spec 84 L-5, "better" 12: a lifetime that comes later counts at once; a change does not move the annotation.
#[test]
fn shoot_gets_an_expiration_when_its_quota_gets_a_lifetime() {
    garden(|garden| async move {
        put_binding(&garden, &kinds::CREDENTIALS_BINDING, &[None]);
        garden.put(shoot("a", "s", json!({ "credentialsBindingName": "b" })));
        garden.settled().await;
        assert_eq!(expiration(&garden), None);
        let set_days = |days: i64| {
            garden.edit(&kinds::QUOTA, "a", "q0", |quota| quota["spec"]["clusterLifetimeDays"] = json!(days));
        };

        set_days(2);
        garden.soon("it expires", || expiration(&garden) == Some(created_and(&garden, 2))).await;
        set_days(1);
        garden.settle().await;

        assert_eq!(expiration(&garden), Some(created_and(&garden, 2)));
        assert_eq!(writes(&garden), ["patch shoots s"]);
    });
}

/// spec 84 scenario 80, L-2: nothing is known without all of them.
#[test]
fn shoot_with_a_missing_quota_or_binding_is_left_alone() {
    let ((), log) = logged(Level::ERROR, || {
        for missing in [&kinds::QUOTA, &kinds::SECRET_BINDING] {
            for expires in [None, Some(-60)] {
                garden(|garden| async move {
                    put_binding(&garden, &kinds::SECRET_BINDING, &[Some(1), Some(2)]);
                    let (plural, name) =
                        if *missing == kinds::QUOTA { ("quotas", "q1") } else { ("secretbindings", "b") };
                    garden.sim.remove(&format!("{plural}.core.gardener.cloud"), "a", name);
                    garden.put(limited(&garden, expires));
                    garden.settled().await;
                    let before = expiration(&garden);
                    seconds(3 * DAY as u64).await;

                    assert!(!is_deleted(&garden));
                    assert_eq!((expiration(&garden), before.is_some()), (before, expires.is_some()));
                    assert_eq!(garden.asked_for("shoots"), Vec::<String>::new());
                });
            }
        }
    });
    for text in ["quotas.core.gardener.cloud \"q1\" not found", "secretbindings.core.gardener.cloud \"b\" not found"] {
        assert!(log.replace('\\', "").contains(text), "{log}");
    }
}

/// spec 84 scenario 81, L-6
#[test]
fn shoot_with_an_unreadable_expiration_is_left_alone() {
    let ((), log) = logged(Level::ERROR, || {
        garden(|garden| async move {
            put_binding(&garden, &kinds::SECRET_BINDING, &[Some(1)]);
            let mut shoot = limited(&garden, None);
            shoot["metadata"]["annotations"] = json!({ EXPIRATION: "tomorrow" });
            garden.put(shoot);
            garden.settled().await;
            seconds(3 * 3600).await;
            assert!(!is_deleted(&garden));
            assert_eq!(garden.asked_for("shoots"), Vec::<String>::new());

            set_expiration(&garden, json!(garden.time(-1)));
            garden.soon("it is deleted", || is_deleted(&garden)).await;
        });
    });
    let told = log.matches("is no RFC 3339 time").count();
    assert!((1..=4).contains(&told), "{log}");
}

/// spec 84 L-0: also after a restart.
#[test]
fn shoot_in_deletion_is_not_annotated() {
    garden(|garden| async move {
        put_binding(&garden, &kinds::SECRET_BINDING, &[Some(1)]);
        garden.put(limited(&garden, None));
        garden.delete(&kinds::SHOOT, "a", "s").await;
        garden.settled().await;
        seconds(3 * DAY as u64).await;

        assert_eq!((expiration(&garden), garden.asked_for("shoots")), (None, Vec::new()));
    });
}

/// spec 80 §16 S-14: the wall clock counts, whichever way it jumps.
#[test]
fn shoot_expires_by_the_wall_clock() {
    garden(|garden| async move {
        put_binding(&garden, &kinds::SECRET_BINDING, &[Some(10)]);
        garden.put(limited(&garden, Some(7200)));
        garden.settled().await;
        garden.jump(-3600);
        seconds(7200 + 1800).await;
        assert!(!is_deleted(&garden));
        garden.jump(1800);
        seconds(900).await;
        assert!(is_deleted(&garden), "a timer looks at the clock every ten minutes");
    });
}

/// Hundreds of Shoots that share a binding with a thousand Quotas cost no request.
#[test]
fn shoots_that_share_very_many_quotas_are_judged() {
    garden(|garden| async move {
        put_binding(&garden, &kinds::SECRET_BINDING, &vec![Some(100); 1_000]);
        for number in 0..300 {
            let mut shoot = limited(&garden, Some(50 * DAY));
            shoot["metadata"]["name"] = json!(format!("s{number}"));
            garden.put(shoot);
        }
        garden.put(limited(&garden, Some(-60)));
        garden.settled().await;
        assert!(is_deleted(&garden));
        seconds(3600).await;
        assert_eq!(garden.asked_for("shoots"), Vec::<String>::new());
    });
}
