//! Conditions of Seeds in the Shoots that are these Seeds.

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen, WatchEnd};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    shoots::{
        SHOOTS, before_first, condition, miss_events, put_seed, seconds, set_status, shoot_of, shoot_with_status,
        writes,
    },
};
use crate::log_capture::logged;

const GARDEN: &str = "garden";

fn seed(name: &str, conditions: &[Value]) -> Value {
    object(&kinds::SEED, "", name, json!({ "status": { "conditions": conditions } }))
}

fn managed_seed(name: &str, shoot: &str) -> Value {
    object(&kinds::MANAGED_SEED, GARDEN, name, json!({ "spec": { "shoot": { "name": shoot } } }))
}

/// Puts the Shoot `s` with these conditions, which is the Seed `ms` with those.
pub(super) fn put_shoot_and_seed(garden: &Garden, own: &[Value], of_seed: &[Value]) {
    garden.put(shoot_with_status(GARDEN, "s", "healthy", json!({ "conditions": own })));
    garden.put(managed_seed("ms", "s"));
    put_seed(garden, seed("ms", of_seed));
}

pub(super) fn tell(garden: &Garden, conditions: &[Value]) {
    garden.edit(&kinds::SEED, "", "ms", |seed| seed["status"]["conditions"] = json!(conditions));
}

fn conditions(garden: &Garden, name: &str) -> Vec<Value> {
    shoot_of(garden, GARDEN, name)["status"]["conditions"].as_array().cloned().unwrap_or_default()
}

async fn shown(garden: &Garden, name: &str, expected: &[Value]) {
    garden.soon(&format!("{name} shows {expected:?}"), || conditions(garden, name) == expected).await;
}

/// spec 84 scenarios 1 and 2
#[test]
fn shoot_conditions_follow_those_of_the_seed() {
    garden(|garden| async move {
        let own = condition("APIServerAvailable", "True");
        put_shoot_and_seed(&garden, std::slice::from_ref(&own), &[]);
        garden.settled().await;

        tell(&garden, &[condition("GardenletReady", "True")]);
        shown(&garden, "s", &[own.clone(), condition("GardenletReady", "True")]).await;
        tell(&garden, &[condition("GardenletReady", "Unknown"), condition("SeedSystemComponentsHealthy", "False")]);
        shown(
            &garden,
            "s",
            &[own.clone(), condition("GardenletReady", "Unknown"), condition("SeedSystemComponentsHealthy", "False")],
        )
        .await;
        tell(&garden, &[condition("SeedSystemComponentsHealthy", "True"), condition("APIServerAvailable", "False")]);
        shown(
            &garden,
            "s",
            &[condition("APIServerAvailable", "False"), condition("SeedSystemComponentsHealthy", "True")],
        )
        .await;
        set_status(&garden, GARDEN, "s", "conditions", json!([own]));
        tell(&garden, &[]);

        shown(&garden, "s", &[own]).await;
    });
}

/// spec 84 scenario 3
#[test]
fn shoot_conditions_of_unknown_types_come_and_go() {
    garden(|garden| async move {
        put_shoot_and_seed(&garden, &[], &[condition("custom", "True")]);
        garden.settled().await;
        shown(&garden, "s", &[condition("custom", "True")]).await;

        tell(&garden, &[]);

        shown(&garden, "s", &[]).await;
    });
}

/// spec 84 scenario 4, trap A-T2
#[test]
fn shoot_conditions_of_a_seed_go_with_it() {
    let own = condition("EveryNodeReady", "True");
    let all = [condition("custom", "True"), own.clone(), condition("GardenletReady", "True")];
    let ((), log) = logged(Level::WARN, || {
        for kept in [None, Some(&kinds::MANAGED_SEED), Some(&kinds::SEED)] {
            let (own, all) = (&own, &all);
            garden(|garden| async move {
                // At the start …
                garden.put(shoot_with_status(GARDEN, "s", "healthy", json!({ "conditions": all })));
                match kept {
                    Some(kind) if *kind == kinds::SEED => put_seed(&garden, seed("ms", all)),
                    Some(_) => garden.put(managed_seed("ms", "s")),
                    None => {}
                }
                garden.settled().await;
                shown(&garden, "s", std::slice::from_ref(own)).await;

                // … and later.
                if kept.is_some_and(|kind| *kind == kinds::SEED) {
                    garden.put(managed_seed("ms", "s"));
                    shown(&garden, "s", &[all[1].clone(), all[0].clone(), all[2].clone()]).await;
                    garden.delete(&kinds::MANAGED_SEED, GARDEN, "ms").await;
                    shown(&garden, "s", std::slice::from_ref(own)).await;
                }
            });
        }
    });
    assert!(!log.contains("shoot-conditions"), "{log}");
}

/// spec 84 scenario 5
#[test]
fn shoot_conditions_stay_while_two_managed_seeds_name_the_shoot() {
    let ((), log) = logged(Level::ERROR, || {
        garden(|garden| async move {
            put_shoot_and_seed(&garden, &[condition("GardenletReady", "True")], &[]);
            garden.put(managed_seed("other", "s"));
            garden.settled().await;
            tell(&garden, &[condition("GardenletReady", "False")]);
            seconds(60).await;

            assert_eq!(conditions(&garden, "s"), [condition("GardenletReady", "True")]);
            garden.delete(&kinds::MANAGED_SEED, GARDEN, "other").await;
            shown(&garden, "s", &[condition("GardenletReady", "False")]).await;
        });
    });
    assert!(log.contains("found more than one ManagedSeed objects for shoot garden/s"), "{log}");
}

/// spec 84 scenario 6, trap A-T1
#[test]
fn shoot_conditions_that_are_absent_are_not_written() {
    garden(|garden| async move {
        garden.put(object(&kinds::SHOOT, GARDEN, "s", json!({})));
        garden.put(object(&kinds::SHOOT, "a", "s", json!({})));
        garden.put(managed_seed("ms", "t"));
        garden.put(object(&kinds::SHOOT, GARDEN, "t", json!({})));
        put_seed(&garden, seed("ms", &[]));
        garden.start().await;
        garden.settle().await;

        assert_eq!(garden.asked_for("shoots"), ["list shoots"]);
        assert_eq!(shoot_of(&garden, GARDEN, "s").get("status"), None);
    });
}

/// spec 84 scenario 7, "better" 3: the lock; the live Shoot decides again.
#[test]
fn shoot_conditions_of_gardenlet_survive_a_conflict() {
    garden(|garden| async move {
        put_shoot_and_seed(&garden, &[condition("EveryNodeReady", "True")], &[]);
        garden.settled().await;
        before_first(&garden, ("patch", "shoots"), |sim| {
            let gardenlet =
                |shoot: &mut Value| shoot["status"]["conditions"] = json!([condition("EveryNodeReady", "False")]);
            assert!(sim.edit(SHOOTS, GARDEN, "s", gardenlet));
        });

        tell(&garden, &[condition("GardenletReady", "True")]);

        shown(&garden, "s", &[condition("EveryNodeReady", "False"), condition("GardenletReady", "True")]).await;
        assert_eq!(garden.asked_for("shoots"), ["get shoots s", "patch shoots s", "get shoots s", "patch shoots s"]);
    });
}

/// The cache of Shoots lags behind: the live Shoot decides.
#[test]
fn shoot_conditions_rest_on_the_live_shoot() {
    garden(|garden| async move {
        put_shoot_and_seed(&garden, &[condition("EveryNodeReady", "True")], &[]);
        garden.settled().await;
        miss_events(&garden, "shoots");
        set_status(&garden, GARDEN, "s", "conditions", json!([condition("EveryNodeReady", "False")]));

        tell(&garden, &[condition("GardenletReady", "True")]);

        shown(&garden, "s", &[condition("EveryNodeReady", "False"), condition("GardenletReady", "True")]).await;
    });
}

/// spec 84 scenario 8; spec 80 §16 S-9: also after a restart
#[test]
fn shoot_conditions_are_written_for_conditions_only() {
    garden(|garden| async move {
        put_shoot_and_seed(&garden, &[], &[condition("GardenletReady", "True")]);
        garden.put(object(&kinds::SHOOT, "a", "s", json!({})));
        garden.settled().await;

        garden.edit(&kinds::SEED, "", "ms", |seed| {
            seed["spec"] = json!({ "settings": {} });
            seed["status"]["gardener"] = json!({ "version": "v1" });
        });
        garden.edit(&kinds::MANAGED_SEED, GARDEN, "ms", |seed| seed["spec"]["gardenlet"] = json!({}));
        garden.settle().await;
        assert_eq!(garden.asked_for("shoots"), Vec::<String>::new());

        garden.stop().await;
        garden.sim.clear_requests();
        garden.start().await;
        garden.settle().await;
        assert_eq!(garden.asked_for("shoots"), ["list shoots"]);
    });
}

/// spec 84 scenario 9, trap A-T2
#[test]
fn shoot_conditions_move_with_the_managed_seed() {
    garden(|garden| async move {
        put_shoot_and_seed(&garden, &[], &[condition("GardenletReady", "True")]);
        garden.put(shoot_with_status(
            GARDEN,
            "s2",
            "healthy",
            json!({ "conditions": [condition("EveryNodeReady", "True")] }),
        ));
        garden.settled().await;

        garden.patch(&kinds::MANAGED_SEED, GARDEN, "ms", json!({ "spec": { "shoot": { "name": "s2" } } })).await;

        shown(&garden, "s", &[]).await;
        shown(&garden, "s2", &[condition("EveryNodeReady", "True"), condition("GardenletReady", "True")]).await;
    });
}

/// Only ManagedSeeds of `garden` count: a tenant must not see the conditions of a Seed.
#[test]
fn shoot_conditions_come_from_no_managed_seed_of_a_tenant() {
    garden(|garden| async move {
        put_seed(&garden, seed("ms", &[condition("GardenletReady", "True")]));
        garden.put(object(&kinds::MANAGED_SEED, "a", "ms", json!({ "spec": { "shoot": { "name": "s" } } })));
        garden.put(object(&kinds::SHOOT, "a", "s", json!({})));
        garden.settled().await;
        tell(&garden, &[condition("GardenletReady", "False")]);
        garden.settle().await;

        assert_eq!(garden.asked_for("shoots"), Vec::<String>::new());
    });
}

/// spec 80 §9: without ManagedSeeds no Shoot is a Seed.
#[test]
fn shoot_conditions_of_seeds_go_where_managed_seeds_are_not_served() {
    garden(|garden| async move {
        garden.withdraw(&kinds::MANAGED_SEED);
        let own = condition("EveryNodeReady", "True");
        let all = json!({ "conditions": [own, condition("GardenletReady", "True")] });
        garden.put(shoot_with_status(GARDEN, "s", "healthy", all));
        garden.start().await;
        seconds(75).await;
        assert_eq!(conditions(&garden, "s"), std::slice::from_ref(&own));

        garden.serve(&kinds::MANAGED_SEED);
        seconds(1).await;
        put_seed(&garden, seed("ms", &[condition("GardenletReady", "True")]));
        garden.put(managed_seed("ms", "s"));
        seconds(75).await;

        assert_eq!(conditions(&garden, "s"), [own, condition("GardenletReady", "True")]);
    });
}

/// Events that are lost: the list after the watch has the differences.
#[test]
fn shoot_conditions_catch_up_after_lost_events() {
    for plural in ["seeds", "managedseeds"] {
        garden(|garden| async move {
            put_shoot_and_seed(&garden, &[], &[condition("GardenletReady", "True")]);
            garden.put(object(&kinds::SHOOT, GARDEN, "s2", json!({})));
            garden.settled().await;
            shown(&garden, "s", &[condition("GardenletReady", "True")]).await;
            miss_events(&garden, plural);
            let moved = json!({ "spec": { "shoot": { "name": "s2" } } });
            match plural {
                "seeds" => tell(&garden, &[condition("GardenletReady", "False")]),
                _ => garden.patch(&kinds::MANAGED_SEED, GARDEN, "ms", moved).await,
            }
            garden.settle().await;
            // No bookmark may come before the watch ends: it would say that nothing was missed.
            garden.sim.clear_event_faults();
            garden.sim.compact();
            garden.sim.break_watches(WatchEnd::Disconnect);
            seconds(60).await;

            let copied = ["s", "s2"].map(|name| conditions(&garden, name));
            let expected = match plural {
                "seeds" => [vec![condition("GardenletReady", "False")], vec![]],
                _ => [vec![], vec![condition("GardenletReady", "True")]],
            };
            assert_eq!(copied, expected, "{plural}");
        });
    }
}

/// spec 84 trap A-T6: what its own gardenlet says stays, at a start and later. Other conditions of a Seed come.
#[test]
fn shoot_conditions_of_a_self_hosted_shoot_include_its_gardenlet() {
    garden(|garden| async move {
        let own = condition("GardenletReady", "True");
        for namespace in [GARDEN, "a"] {
            let status = json!({ "conditions": [own] });
            let mut shoot = shoot_with_status(namespace, "s", "healthy", status);
            shoot["metadata"]["labels"]["shoot.gardener.cloud/self-hosted"] = json!("true");
            garden.put(shoot);
            let renewed = json!({ "spec": { "renewTime": garden.time(365 * 24 * 3600) } });
            garden.put(object(&kinds::LEASE, namespace, "self-hosted-shoot-s", renewed));
        }
        garden.put(managed_seed("ms", "s"));
        put_seed(&garden, seed("ms", &[condition("custom", "True"), condition("GardenletReady", "False")]));
        garden.settled().await;
        shown(&garden, "s", &[own.clone(), condition("custom", "True")]).await;

        tell(&garden, &[condition("GardenletReady", "Unknown")]);
        shown(&garden, "s", std::slice::from_ref(&own)).await;

        assert_eq!(shoot_of(&garden, "a", "s")["status"]["conditions"], json!([own]));
        assert_eq!(writes(&garden), ["patch shoots s"]);
    });
}

/// A failed request changes nothing, and is repeated.
#[test]
fn shoot_conditions_are_repeated_after_errors() {
    for fault in [
        Fault::FailBefore(Seen::internal_error("no")),
        Fault::FailAfterCommit(Seen::Disconnect),
        Fault::FailBefore(Seen::status(403, "Forbidden", "no")),
    ] {
        for verb in ["get", "patch"] {
            let fault = fault.clone();
            garden(|garden| async move {
                put_shoot_and_seed(&garden, &[], &[]);
                garden.settled().await;
                let mut failures = 0;
                garden.sim.set_faults(move |info| {
                    let is_meant = info.user == "gcm" && info.resource == "shoots" && info.verb == verb;
                    failures += u32::from(is_meant);
                    if is_meant && failures <= 3 { fault.clone() } else { Fault::None }
                });

                tell(&garden, &[condition("GardenletReady", "True")]);

                shown(&garden, "s", &[condition("GardenletReady", "True")]).await;
            });
        }
    }
}

/// Seeds and Shoots of any shape, with thousands of conditions.
#[test]
fn shoot_conditions_of_any_shape_stop_nobody() {
    garden(|garden| async move {
        let many: Vec<_> = (0..3_000).map(|number| condition(&format!("t{number}"), "True")).collect();
        put_shoot_and_seed(
            &garden,
            &[json!(5), json!(null), json!({ "type": [] }), condition("EveryNodeReady", "True")],
            &many,
        );
        for (number, odd) in [json!("x"), json!({}), json!([7]), json!([[]])].into_iter().enumerate() {
            let name = format!("odd{number}");
            garden.put(shoot_with_status(GARDEN, &name, "healthy", json!({ "conditions": odd })));
            put_seed(&garden, object(&kinds::SEED, "", &name, json!({ "status": { "conditions": odd } })));
            garden.put(managed_seed(&name, &name));
            garden.put(object(&kinds::MANAGED_SEED, GARDEN, &format!("{name}-x"), json!({ "spec": { "shoot": odd } })));
        }
        garden.settled().await;

        let shown = conditions(&garden, "s");
        assert_eq!(shown.len(), 3_001);
        assert_eq!((shown.first(), shown.last()), (Some(&condition("EveryNodeReady", "True")), many.last()));
        garden.settle().await;
        assert_eq!(writes(&garden), Vec::<String>::new());
    });
}
