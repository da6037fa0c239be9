//! Shoots that expire, amid lagging watches, failing requests and other writers: nothing is deleted on doubt.

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen, WatchEnd};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    shoot_quota::{DAY, EXPIRATION, annotation, expiration, is_deleted, limited, put_binding, set_expiration},
    shoots::{SHOOTS, before_first, miss_events, seconds},
};
use crate::log_capture::logged;

/// A Shoot that expires in a minute, and controllers that know it.
async fn settled(garden: &Garden) {
    put_binding(garden, &kinds::SECRET_BINDING, &[Some(10), Some(20)]);
    garden.put(limited(garden, Some(70)));
    garden.settled().await;
}

fn annotate(shoot: &mut Value, name: &str, value: Value) {
    shoot["metadata"]["annotations"][name] = value;
}

/// spec 84 scenario 82, L-9: before each of the requests.
#[test]
fn shoot_that_is_extended_in_the_last_moment_survives() {
    for request in [("get", "quotas"), ("get", "shoots"), ("patch", "shoots"), ("delete", "shoots")] {
        garden(|garden| async move {
            settled(&garden).await;
            let later = garden.time(7200);
            before_first(&garden, request, move |sim| {
                assert!(sim.edit(SHOOTS, "a", "s", |shoot| annotate(shoot, EXPIRATION, json!(later))));
            });
            seconds(3600).await;

            assert!(!is_deleted(&garden), "{request:?}");
            assert!(garden.asked().iter().any(|asked| asked.starts_with(request.0)));
            garden.sim.clear_faults();
            seconds(3610).await;
            assert!(is_deleted(&garden), "it expires later");
        });
    }
}

/// Another change of the Shoot in the last moment: its binding, another Shoot of this name.
#[test]
fn shoot_that_changes_in_the_last_moment_is_judged_again() {
    type Step = fn(&mut Value);
    let steps: [Step; 3] = [
        |shoot| shoot["spec"]["secretBindingName"] = Value::Null,
        |shoot| shoot["metadata"]["annotations"] = Value::Null,
        |shoot| annotate(shoot, EXPIRATION, json!("tomorrow")),
    ];
    for step in steps {
        for request in [("get", "shoots"), ("patch", "shoots"), ("delete", "shoots")] {
            garden(|garden| async move {
                settled(&garden).await;
                before_first(&garden, request, move |sim| assert!(sim.edit(SHOOTS, "a", "s", step)));
                seconds(3600).await;
                assert!(!is_deleted(&garden), "{request:?}");
            });
        }
    }
    for request in [("get", "shoots"), ("patch", "shoots"), ("delete", "shoots")] {
        garden(|garden| async move {
            settled(&garden).await;
            let anew = limited(&garden, None);
            before_first(&garden, request, move |sim| {
                sim.remove(SHOOTS, "a", "s").expect("it exists");
                sim.put(anew.clone()).expect("it is valid");
            });
            seconds(3600).await;

            assert!(!is_deleted(&garden), "{request:?}");
            assert_eq!(annotation(&garden, "confirmation.gardener.cloud/deletion"), None, "{request:?}");
            assert!(expiration(&garden).is_some(), "it is judged for itself");
        });
    }
}

/// Watches that lag behind: the lifetime, or the extension, is not known yet.
#[test]
fn shoot_is_not_deleted_because_a_cache_lags_behind() {
    type Step = fn(&Garden);
    let steps: [(&str, Step); 4] = [
        ("shoots", |garden| set_expiration(garden, json!(garden.time(7200)))),
        ("secretbindings", |garden| {
            garden.edit(&kinds::SECRET_BINDING, "a", "b", |binding| binding["quotas"] = json!([]));
        }),
        ("quotas", |garden| {
            for quota in ["q0", "q1"] {
                garden.edit(&kinds::QUOTA, "a", quota, |quota| quota["spec"] = json!({}));
            }
        }),
        ("quotas", |garden| {
            garden.sim.remove("quotas.core.gardener.cloud", "a", "q1");
        }),
    ];
    for (plural, step) in steps {
        garden(|garden| async move {
            settled(&garden).await;
            miss_events(&garden, plural);
            step(&garden);
            seconds(3600).await;

            assert!(!is_deleted(&garden), "{plural}");
        });
    }
}

/// spec 84 L-5, L-9: nobody corrects an annotation, and a deletion follows it.
#[test]
fn shoot_is_not_annotated_with_a_lifetime_that_was_raised() {
    garden(|garden| async move {
        put_binding(&garden, &kinds::SECRET_BINDING, &[Some(1)]);
        garden.settled().await;
        miss_events(&garden, "quotas");
        garden.edit(&kinds::QUOTA, "a", "q0", |quota| quota["spec"]["clusterLifetimeDays"] = json!(30));
        let mut shoot = limited(&garden, None);
        shoot["metadata"]["creationTimestamp"] = json!("2029-12-27T00:00:00Z");
        garden.put(shoot);
        seconds(60).await;

        assert!(!is_deleted(&garden));
        assert_eq!(expiration(&garden).as_deref(), Some("2030-01-26T00:00:00Z"));
    });
}

/// spec 84 L-5: the time that a user sets in the last moment counts.
#[test]
fn shoot_whose_expiration_is_set_in_the_last_moment_keeps_it() {
    garden(|garden| async move {
        put_binding(&garden, &kinds::SECRET_BINDING, &[None]);
        garden.put(limited(&garden, None));
        garden.settled().await;
        let later = garden.time(30 * DAY);
        let set = later.clone();
        before_first(&garden, ("patch", "shoots"), move |sim| {
            assert!(sim.edit(SHOOTS, "a", "s", |shoot| annotate(shoot, EXPIRATION, json!(set))));
        });
        garden.edit(&kinds::QUOTA, "a", "q0", |quota| quota["spec"]["clusterLifetimeDays"] = json!(3));
        seconds(4000).await;

        assert_eq!(expiration(&garden), Some(later));
        assert!(garden.asked().iter().any(|asked| asked.starts_with("patch shoots")), "{:?}", garden.asked());
    });
}

/// A failed read proves nothing.
#[test]
fn shoot_is_not_deleted_while_a_live_read_fails() {
    for plural in ["shoots", "secretbindings", "quotas"] {
        for seen in [
            Seen::internal_error("no"),
            Seen::status(404, "NotFound", "the server could not find the requested resource"),
            Seen::status(403, "Forbidden", "no"),
            Seen::Disconnect,
        ] {
            garden(|garden| async move {
                settled(&garden).await;
                garden.sim.set_faults(move |info| {
                    let is_read = info.user == "gcm" && ["get", "list"].contains(&&*info.verb);
                    if is_read && info.resource == plural { Fault::FailBefore(seen.clone()) } else { Fault::None }
                });
                seconds(120).await;
                assert!(!is_deleted(&garden), "{plural}");
                assert_eq!(annotation(&garden, "confirmation.gardener.cloud/deletion"), None, "{plural}");

                garden.sim.clear_faults();
                seconds(1200).await;
                assert!(is_deleted(&garden), "{plural}");
            });
        }
    }
}

/// spec 80 §16 S-2: answers that are lost, refusals, conflicts.
#[test]
fn shoot_is_deleted_although_answers_are_lost_or_refuse() {
    for verb in ["patch", "delete"] {
        for fault in [
            Fault::FailAfterCommit(Seen::Disconnect),
            Fault::FailBefore(Seen::status(403, "Forbidden", "not now")),
            Fault::FailBefore(Seen::too_many_requests()),
        ] {
            garden(|garden| async move {
                settled(&garden).await;
                let (mut failures, fault) = (0, fault.clone());
                garden.sim.set_faults(move |info| {
                    let is_meant = info.user == "gcm" && info.resource == "shoots" && info.verb == verb;
                    failures += u32::from(is_meant);
                    if is_meant && failures <= 3 { fault.clone() } else { Fault::None }
                });
                seconds(180).await;

                assert!(is_deleted(&garden), "{verb}");
            });
        }
    }
}

/// spec 84 L-9: the answer to the confirmation is lost, and the Shoot is extended before the next attempt.
#[test]
fn shoot_that_is_extended_after_a_lost_answer_is_not_left_confirmed() {
    garden(|garden| async move {
        settled(&garden).await;
        let (sim, later) = (garden.sim.clone(), garden.time(7200));
        let (mut is_lost, mut is_extended) = (false, false);
        garden.sim.set_faults(move |info| {
            if info.user != "gcm" || info.resource != "shoots" {
                return Fault::None;
            }
            if is_lost {
                if !std::mem::replace(&mut is_extended, true) {
                    assert!(sim.edit(SHOOTS, "a", "s", |shoot| annotate(shoot, EXPIRATION, json!(later))));
                }
                return Fault::None;
            }
            is_lost = info.verb == "patch";
            if is_lost { Fault::FailAfterCommit(Seen::Disconnect) } else { Fault::None }
        });
        seconds(600).await;

        assert!(!is_deleted(&garden));
        for name in ["confirmation.gardener.cloud/deletion", "gardener.cloud/timestamp"] {
            assert_eq!(annotation(&garden, name), None, "{name}");
        }
        assert!(expiration(&garden).is_some());
    });
}

/// Each life of the process sees another world: while it is down, the Shoot is extended; the leader changes at its end.
#[test]
fn shoot_that_is_extended_while_the_process_is_down_survives_its_start() {
    garden(|garden| async move {
        settled(&garden).await;
        garden.stop().await;
        set_expiration(&garden, json!(garden.time(7200)));
        seconds(3600).await;
        garden.start().await;
        garden.settle().await;
        assert!(!is_deleted(&garden));

        seconds(3500).await;
        garden.start_second().await;
        seconds(200).await;
        assert!(is_deleted(&garden));
        assert!(garden.events(&kinds::SHOOT, "s", "ShootExpired").len() <= 2, "one of each replica at most");
    });
}

/// A lost watch: the list that follows has the extension.
#[test]
fn shoot_that_is_extended_during_an_outage_survives() {
    garden(|garden| async move {
        settled(&garden).await;
        garden.sim.set_faults(|info| match info.user == "gcm" && ["list", "watch"].contains(&&*info.verb) {
            true => Fault::FailBefore(Seen::unavailable()),
            false => Fault::None,
        });
        garden.sim.break_watches(WatchEnd::Disconnect);
        set_expiration(&garden, json!(garden.time(7200)));
        seconds(600).await;
        assert!(!is_deleted(&garden));
        garden.sim.clear_faults();
        seconds(6000).await;
        assert!(!is_deleted(&garden));
        seconds(1200).await;
        assert!(is_deleted(&garden));
    });
}

/// A binding with more Quotas than are read one by one.
#[test]
fn shoot_with_very_many_quotas_expires() {
    for is_missing in [false, true] {
        garden(|garden| async move {
            put_binding(&garden, &kinds::SECRET_BINDING, &[Some(10); 300]);
            garden.put(limited(&garden, Some(70)));
            garden.settled().await;
            if is_missing {
                miss_events(&garden, "quotas");
                garden.sim.remove("quotas.core.gardener.cloud", "a", "q299");
            }
            seconds(120).await;

            assert_eq!(is_deleted(&garden), !is_missing);
            let reads = garden.asked_for("quotas");
            assert!(!reads.is_empty() && reads.iter().all(|read| read == "list quotas"), "{reads:?}");
            // A list has two pages. A list that lacks a Quota is repeated, after ever longer pauses.
            assert!(reads.len() <= 2 * if is_missing { 15 } else { 1 }, "{reads:?}");
        });
    }
}

/// Bindings and Quotas of any shape, and names that are none.
#[test]
fn shoot_with_a_lifetime_of_any_shape_is_left_alone() {
    let ((), _) = logged(Level::ERROR, || {
        garden(|garden| async move {
            let put = |name: &str, kind: &Resource, fields: Value| garden.put(object(kind, "a", name, fields));
            put("q", &kinds::QUOTA, json!({ "spec": { "clusterLifetimeDays": 1 } }));
            put("odd", &kinds::QUOTA, json!({ "spec": { "clusterLifetimeDays": "1" } }));
            put("none", &kinds::QUOTA, json!({ "spec": 7 }));
            let bindings = [
                json!([{ "name": "q" }, { "name": "../../x" }]),
                json!([{ "name": "q" }, { "name": 5 }]),
                json!([{ "name": "q" }, 7]),
                json!([{ "name": "q" }, { "name": "q", "namespace": "b/c" }]),
                json!([{ "name": "odd" }, { "name": "none" }]),
                json!("q"),
            ];
            for (number, quotas) in bindings.into_iter().enumerate() {
                let name = format!("b{number}");
                put(&name, &kinds::SECRET_BINDING, json!({ "quotas": quotas }));
                let mut shoot = limited(&garden, Some(-60));
                shoot["metadata"]["name"] = json!(name);
                shoot["spec"]["secretBindingName"] = json!(name);
                garden.put(shoot);
            }
            for (number, name) in [json!("../b0"), json!(5), json!({ "name": "b0" })].into_iter().enumerate() {
                let mut shoot = limited(&garden, Some(-60));
                shoot["metadata"]["name"] = json!(format!("c{number}"));
                shoot["spec"]["secretBindingName"] = name;
                garden.put(shoot);
            }
            garden.settled().await;
            seconds(3 * DAY as u64).await;

            for shoot in garden.sim.objects(SHOOTS) {
                assert!(shoot["metadata"]["deletionTimestamp"].is_null(), "{shoot}");
            }
        });
    });
}
