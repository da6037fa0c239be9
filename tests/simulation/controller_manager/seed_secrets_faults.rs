//! Copies of shared Secrets amid failing requests and random changes; what they cost, and what nobody may see.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gardener_resource_manager::{actors::controller_manager::seed::secrets::roles::PRIVATE_ROLES, api::kinds};
use serde_json::json;
use sim::{EventFault, Fault, Recorded, Seen, WatchEnd};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    seed_secrets::{ROLE, copied, is_copied, names, put_seed, secret, share},
};
use crate::log_capture::logged;

/// spec 83 A.3 step 6, A-T3: nothing is deleted without a list; a failing copy does not keep stale ones.
#[test]
fn failing_list_deletes_nothing_and_a_failing_copy_does_not_keep_stale_ones() {
    garden(|garden| async move {
        share(&garden, "x", "eA==");
        put_seed(&garden, "s1");
        garden.settled().await;
        garden.sim.set_faults(|info| {
            let is_meant = info.user == "gcm" && info.resource == "secrets" && info.namespace == "garden";
            match is_meant && info.verb == "list" {
                true => Fault::FailBefore(Seen::status(500, "InternalError", "no list")),
                false => Fault::None,
            }
        });
        garden.delete(&kinds::SECRET, "garden", "x").await;
        garden.settle().await;
        assert_eq!(names(&garden, "s1"), ["x"]);

        garden.sim.set_faults(|info| {
            let is_meant = info.user == "gcm" && info.resource == "secrets" && info.namespace == "seed-s1";
            match is_meant && info.verb == "create" {
                true => Fault::FailBefore(Seen::status(500, "InternalError", "no copy")),
                false => Fault::None,
            }
        });
        share(&garden, "y", "eQ==");
        garden.gone(&kinds::SECRET, "seed-s1", "x").await;
        assert_eq!(names(&garden, "s1"), Vec::<String>::new());

        garden.sim.clear_faults();
        copied(&garden, "y", "s1").await;
    });
}

/// spec 83 A-T9
#[test]
fn refused_label_of_the_namespace_keeps_no_revoked_secrets() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            share(&garden, "x", "eA==");
            put_seed(&garden, "s1");
            garden.settled().await;
            garden.sim.set_faults(|info| {
                let is_meant = info.user == "gcm" && info.resource == "namespaces" && info.verb == "patch";
                if is_meant { Fault::FailBefore(Seen::status(403, "Forbidden", "no label")) } else { Fault::None }
            });
            garden.edit(&kinds::NAMESPACE, "", "seed-s1", |live| live["metadata"]["labels"] = json!({}));
            garden.settle().await;

            garden.delete(&kinds::SECRET, "garden", "x").await;
            share(&garden, "y", "eQ==");

            garden.gone(&kinds::SECRET, "seed-s1", "x").await;
            copied(&garden, "y", "s1").await;
            garden.sim.clear_faults();
            tokio::time::sleep(Duration::from_secs(60)).await;
            let namespace = garden.find(&kinds::NAMESPACE, "", "seed-s1").unwrap();
            assert_eq!(namespace["metadata"]["labels"][ROLE], "seed");
        });
    });
    assert!(log.contains("failed to label namespace"), "{log}");
}

/// spec 83 A-T10: the watch of Namespaces does not tell that the Namespace is that of somebody else now.
#[test]
fn namespace_that_became_foreign_unseen_gets_and_loses_nothing() {
    garden(|garden| async move {
        share(&garden, "x", "eA==");
        put_seed(&garden, "s1");
        garden.settled().await;
        garden.sim.set_event_faults(|event| match event.resource.as_str() {
            "namespaces" => EventFault::Drop,
            _ => EventFault::Deliver,
        });
        garden.sim.remove("namespaces", "", "seed-s1");
        garden.put(object(&kinds::NAMESPACE, "", "seed-s1", json!({})));
        garden.put(secret("seed-s1", "own", Some("foo"), "bw=="));

        share(&garden, "y", "eQ==");
        garden.settle().await;

        let names = names(&garden, "s1");
        assert!(names.iter().any(|name| name == "own"), "{names:?}");
        assert!(names.iter().all(|name| name != "y"), "{names:?}");
        assert!(garden.asked().len() < 100, "{:?}", garden.asked());
    });
}

/// spec 83 A-T8, "better" 10: two writers do not keep each other busy.
#[test]
fn repairs_that_another_client_undoes_follow_ever_more_rarely() {
    let opponents: [fn(&Garden); 4] = [
        |garden| {
            if is_copied(garden, "x", "s1") {
                garden.edit(&kinds::SECRET, "seed-s1", "x", |copy| copy["data"]["k"] = json!("bw=="));
            }
        },
        |garden| drop(garden.sim.remove("secrets", "seed-s1", "x")),
        |garden| {
            if garden.find(&kinds::SECRET, "seed-s1", "stale").is_none() {
                garden.put(secret("seed-s1", "stale", Some("foo"), "cw=="));
            }
        },
        |garden| {
            let namespace = garden.find(&kinds::NAMESPACE, "", "seed-s1").unwrap();
            if namespace["metadata"]["labels"][ROLE] == "seed" {
                garden.edit(&kinds::NAMESPACE, "", "seed-s1", |live| live["metadata"]["labels"] = json!({}));
            }
        },
    ];
    for (number, opponent) in opponents.into_iter().enumerate() {
        garden(|garden| async move {
            share(&garden, "x", "eA==");
            put_seed(&garden, "s1");
            garden.settled().await;

            garden.minute_beside(|| opponent(&garden)).await;

            let asked = garden.asked();
            let is_write = |asked: &&String| !asked.starts_with("get") && !asked.starts_with("list");
            let writes = asked.iter().filter(is_write).count();
            assert!((3..=10).contains(&writes), "opponent {number}: {asked:?}");
            assert!(asked.len() <= 5 * writes, "opponent {number}: {asked:?}");
            copied(&garden, "x", "s1").await;
        });
    }
}

/// spec 83 A.4, decision 14: not even errors and records of level debug show what a Secret contains.
#[test]
fn contents_of_copies_are_never_logged() {
    let ((), log) = logged(Level::TRACE, || {
        garden(|garden| async move {
            garden.sim.set_faults(|info| {
                let is_meant = info.user == "gcm" && info.resource == "secrets" && info.verb == "create";
                let text = "Secret \"x\" is invalid: data[k]: Invalid value: \"c2VjcmV0LXZhbHVl\": no";
                if is_meant { Fault::FailBefore(Seen::status(422, "Invalid", text)) } else { Fault::None }
            });
            share(&garden, "x", "c2VjcmV0LXZhbHVl");
            put_seed(&garden, "s1");
            garden.settled().await;
            garden.sim.clear_faults();
            garden.patch(&kinds::SECRET, "garden", "x", json!({"metadata": {"labels": {"l": "m"}}})).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert!(is_copied(&garden, "x", "s1"));
        });
    });
    assert!(log.contains("failed to sync garden secrets: x: "), "{log}");
    for line in log.lines().filter(|line| line.contains("gardener_resource_manager") || line.contains("cluster")) {
        assert!(!line.contains("c2VjcmV0LXZhbHVl"), "{line}");
    }
}

/// spec 80 §16 S-9, spec 83 §6
#[test]
fn seed_secrets_request_nothing_at_rest() {
    garden(|garden| async move {
        for number in 0..20 {
            put_seed(&garden, &format!("s{number}"));
            share(&garden, &format!("x{number}"), "eA==");
        }
        garden.settled().await;

        tokio::time::sleep(Duration::from_secs(3600)).await;

        assert_eq!(garden.asked(), Vec::<String>::new());
        garden.stop().await;
        garden.sim.clear_requests();
        garden.start().await;
        garden.settle().await;
        let writes = garden.asked().into_iter().filter(|asked| !asked.starts_with("list") && !asked.starts_with("get"));
        assert_eq!(writes.collect::<Vec<_>>(), Vec::<String>::new());
    });
}

/// spec 83 D-2, decision 25: the server would see a write that gives a Seed a private Secret. Each Secret has its role as
/// a data key.
#[test]
fn random_histories_give_no_seed_a_private_secret() {
    for history in 0..20 {
        garden(|garden| async move {
            let leaks = Arc::new(Mutex::new(Vec::new()));
            let seen = leaks.clone();
            garden.sim.set_mutation(move |reviewed, written| {
                let is_of_seed = written["metadata"]["namespace"].as_str().is_some_and(|it| it.starts_with("seed-"));
                let is_private = PRIVATE_ROLES
                    .iter()
                    .any(|role| !written["data"][*role].is_null() || written["metadata"]["labels"][ROLE] == *role);
                if reviewed.resource == "secrets" && is_of_seed && is_private {
                    seen.lock().unwrap().push(written.clone());
                }
            });
            let mut state: u64 = history;
            let mut random = move |below: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                usize::try_from(state >> 33).unwrap() % below
            };
            for seed in ["s1", "s2"] {
                put_seed(&garden, seed);
            }
            garden.start().await;
            for _ in 0..40 {
                let name = ["x", "y", "z"][random(3)];
                match random(12) {
                    0 => drop(garden.sim.remove("secrets", "garden", name)),
                    1 => garden.sim.break_watches(WatchEnd::Disconnect),
                    2 => {
                        garden.stop().await;
                        garden.start().await;
                    }
                    choice => {
                        let role = PRIVATE_ROLES.get(choice - 3).copied().or(["foo", ""].get(random(3)).copied());
                        let mut secret = secret("garden", name, role, "eA==");
                        secret["data"] = json!({role.filter(|role| !role.is_empty()).unwrap_or("none"): "eA=="});
                        garden.put(secret);
                    }
                }
                tokio::time::sleep(Duration::from_millis([1, 5, 60, 500][random(4)])).await;
            }
            tokio::time::sleep(Duration::from_secs(60)).await;

            assert!(leaks.lock().unwrap().is_empty(), "history {history}: {leaks:?}");
            let shared = ["x", "y", "z"].into_iter().filter(|name| {
                let source = garden.find(&kinds::SECRET, "garden", name).unwrap_or_default();
                source["metadata"]["labels"][ROLE].as_str().is_some_and(|role| !PRIVATE_ROLES.contains(&role))
            });
            let shared: Vec<_> = shared.collect();
            for seed in ["s1", "s2"] {
                assert_eq!(names(&garden, seed), shared, "history {history}");
                assert!(shared.iter().all(|name| is_copied(&garden, name, seed)), "history {history}");
            }
        });
    }
}

/// spec 83 A.2 and D-2: the server sends no Secret with a private role, neither to a watch nor to a list, except its
/// metadata.
#[test]
fn secrets_with_private_roles_are_not_even_read() {
    garden(|garden| async move {
        for role in PRIVATE_ROLES {
            garden.put(secret("garden", role, Some(role), "cA=="));
        }
        share(&garden, "x", "eA==");
        put_seed(&garden, "s1");
        garden.start().await;
        copied(&garden, "x", "s1").await;
        let is_whole = |request: &Recorded| {
            let info = &request.info;
            let is_of_many = ["list", "watch"].contains(&info.verb.as_str());
            info.resource == "secrets" && is_of_many && !info.accept.contains("as=PartialObjectMetadata")
        };
        let whole: Vec<_> = garden.requests().into_iter().filter(is_whole).collect();
        assert!(whole.iter().any(|request| request.info.namespace == "garden"), "the live list: {whole:?}");
        assert!(whole.iter().any(|request| request.info.verb == "watch"), "the watch: {whole:?}");
        for request in whole {
            for role in PRIVATE_ROLES {
                assert!(request.info.query.contains(role), "{request:?}");
            }
        }
    });
}
