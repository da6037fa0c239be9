//! Stale Projects amid lagging watches, failing requests and other writers: nothing in use is deleted.

use std::time::Duration;

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{EventFault, Fault, Seen, Sim, WatchEnd};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    guards::shoot,
    project_stale::{NAMESPACE, configure, is_deleted, project, put_project, shoot_with, stale},
};
use crate::log_capture::logged;

const PROJECTS: &str = "projects.core.gardener.cloud";

/// Makes `dev`, which is stale for long, due.
fn make_due(garden: &Garden) {
    let past = garden.time(-3600);
    garden.edit(&kinds::PROJECT, "", "dev", |project| project["status"]["staleAutoDeleteTimestamp"] = json!(past));
}

/// Runs `change` before the first request of the program with this verb that concerns Projects.
fn before_first(garden: &Garden, verb: &'static str, change: impl Fn(&Sim) + Send + 'static) {
    let (sim, mut is_done) = (garden.sim.clone(), false);
    garden.sim.set_faults(move |info| {
        let is_meant = info.verb == verb && info.user == "gcm" && info.resource == "projects";
        if is_meant && !std::mem::replace(&mut is_done, true) {
            change(&sim);
        }
        Fault::None
    });
}

fn reference() -> Value {
    json!({ "secretRef": { "name": "o", "namespace": NAMESPACE } })
}

/// spec 82 trap D-T5, D.6: a cache may lag behind.
#[test]
fn project_is_not_deleted_if_its_use_began_unseen() {
    type Step = fn(&Garden);
    let cases: [(&str, Step, Step); 6] = [
        ("shoots", |_| {}, |garden| garden.put(shoot(NAMESPACE, "s", json!({})))),
        ("backupentries", |_| {}, |garden| garden.put(object(&kinds::BACKUP_ENTRY, NAMESPACE, "e", json!({})))),
        (
            "secretbindings",
            |garden| {
                garden.put(object(&kinds::SECRET, NAMESPACE, "o", json!({})));
                garden.put(shoot_with(&kinds::SECRET_BINDING, "b"));
            },
            |garden| garden.put(object(&kinds::SECRET_BINDING, "garden-x", "b", reference())),
        ),
        (
            "shoots",
            |garden| {
                garden.put(object(&kinds::SECRET, NAMESPACE, "o", json!({})));
                garden.put(object(&kinds::SECRET_BINDING, "garden-x", "b", reference()));
            },
            |garden| garden.put(shoot_with(&kinds::SECRET_BINDING, "b")),
        ),
        (
            "secrets",
            |garden| {
                garden.put(object(&kinds::SECRET_BINDING, "garden-x", "b", reference()));
                garden.put(shoot_with(&kinds::SECRET_BINDING, "b"));
            },
            |garden| garden.put(object(&kinds::SECRET, NAMESPACE, "o", json!({}))),
        ),
        (
            "namespaces",
            |_| {},
            |garden| {
                garden.edit(&kinds::NAMESPACE, "", NAMESPACE, |namespace| {
                    namespace["metadata"]["annotations"] = json!({ "project.gardener.cloud/skip-stale-check": "1" });
                });
            },
        ),
    ];
    for (number, (unseen, prepare, begin)) in cases.into_iter().enumerate() {
        garden(|garden| async move {
            configure(&garden);
            prepare(&garden);
            garden.settled().await; // the writes of the binding's controller are no activity of a Project that comes now
            put_project(&garden, Some(-20), Some(1));
            garden.settle().await;
            assert_eq!(stale(&garden), (Some(-20), Some(1)), "{number}");
            garden.sim.set_event_faults(move |event| match event.resource == unseen {
                true => EventFault::Drop,
                false => EventFault::Deliver,
            });

            begin(&garden);
            make_due(&garden);
            garden.settle().await;

            assert!(!is_deleted(&garden), "{number} {unseen}");
            assert_eq!(stale(&garden), (None, None), "{number} {unseen}");
        });
    }
}

/// spec 82 D.6: the answer to the confirmation is lost, and somebody uses the Project by then.
#[test]
fn project_that_is_used_after_a_lost_answer_is_not_left_confirmed() {
    garden(|garden| async move {
        configure(&garden);
        put_project(&garden, Some(-20), Some(1));
        garden.settled().await;
        let (sim, mut is_lost) = (garden.sim.clone(), false);
        garden.sim.set_faults(move |info| {
            let is_write = info.verb == "patch" && info.resource == "projects" && info.subresource.is_empty();
            if info.user != "gcm" || !is_write || std::mem::replace(&mut is_lost, true) {
                return Fault::None;
            }
            sim.put(shoot(NAMESPACE, "s", json!({}))).expect("it is valid");
            Fault::FailAfterCommit(Seen::Disconnect)
        });
        make_due(&garden);
        tokio::time::sleep(Duration::from_secs(60)).await;

        assert!(!is_deleted(&garden));
        assert_eq!(stale(&garden), (None, None));
        let project = garden.find(&kinds::PROJECT, "", "dev").expect("it exists");
        for name in ["confirmation.gardener.cloud/deletion", "gardener.cloud/timestamp"] {
            assert_eq!(cluster::object::annotation(&project, name), None, "{name}");
        }
    });
}

/// spec 82 D.5, spec 80 §16 S-13: a failed list proves nothing.
#[test]
fn project_is_not_deleted_while_a_live_read_fails() {
    for resource in ["namespaces", "shoots", "backupentries", "secretbindings", "credentialsbindings", "secrets"] {
        let seen = [
            Seen::internal_error("no"),
            Seen::status(404, "NotFound", "the server could not find the requested resource"),
            Seen::unavailable(),
            Seen::Disconnect,
        ];
        for seen in seen {
            garden(|garden| async move {
                configure(&garden);
                // The Secret of a binding in use is missing, so that all kinds are asked for.
                garden.put(object(&kinds::SECRET_BINDING, "garden-x", "b", reference()));
                garden.put(shoot_with(&kinds::SECRET_BINDING, "b"));
                put_project(&garden, Some(-20), Some(1));
                garden.settled().await;
                garden.sim.set_faults(move |info| {
                    let is_read = info.user == "gcm" && ["get", "list"].contains(&&*info.verb);
                    if is_read && info.resource == resource { Fault::FailBefore(seen.clone()) } else { Fault::None }
                });
                make_due(&garden);
                tokio::time::sleep(Duration::from_secs(120)).await;
                assert!(!is_deleted(&garden), "{resource}");
                assert_eq!(stale(&garden).0, Some(-20), "{resource}");
                assert!(garden.asked().iter().all(|asked| !asked.starts_with("patch projects")), "{resource}");

                garden.sim.clear_faults();
                tokio::time::sleep(Duration::from_secs(60)).await;

                assert!(is_deleted(&garden), "{resource}");
            });
        }
    }
}

/// spec 82 D.5, scenario 49
#[test]
fn projects_become_stale_and_are_deleted_while_some_kinds_are_not_served() {
    garden(|garden| async move {
        configure(&garden);
        for kind in
            [&kinds::CREDENTIALS_BINDING, &kinds::WORKLOAD_IDENTITY, &kinds::INTERNAL_SECRET, &kinds::BACKUP_ENTRY]
        {
            garden.withdraw(kind);
        }
        garden.put(object(&kinds::SECRET, NAMESPACE, "o", json!({})));
        garden.put(object(&kinds::SECRET_BINDING, "garden-x", "b", reference()));
        garden.put(shoot_with(&kinds::SECRET_BINDING, "b"));
        garden.settled().await;
        put_project(&garden, Some(-20), Some(-1));
        garden.settle().await;
        assert!(!is_deleted(&garden), "it is in use");
        assert_eq!(stale(&garden), (None, None));

        garden.delete(&kinds::SHOOT, "garden-x", "s").await;
        garden.soon("it is stale", || stale(&garden) == (Some(0), None)).await;
        let (since, date) = (garden.time(-20 * 24 * 3600), garden.time(-3600));
        garden.edit(&kinds::PROJECT, "", "dev", |project| {
            project["status"]["staleSinceTimestamp"] = json!(since);
            project["status"]["staleAutoDeleteTimestamp"] = json!(date);
        });

        garden.gone(&kinds::PROJECT, "", "dev").await;
    });
}

fn fail_shoots(garden: &Garden) {
    garden.sim.set_faults(|info| match info.resource == "shoots" && ["list", "watch"].contains(&&*info.verb) {
        true => Fault::FailBefore(Seen::internal_error("no shoots")),
        false => Fault::None,
    });
}

/// spec 82 scenario 49
#[test]
fn projects_are_not_marked_while_shoots_cannot_be_listed() {
    garden(|garden| async move {
        configure(&garden);
        put_project(&garden, None, None);
        fail_shoots(&garden);
        garden.start().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(stale(&garden), (None, None));
        garden.sim.clear_faults();
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert_eq!(stale(&garden), (Some(0), None));
    });
    garden(|garden| async move {
        configure(&garden);
        garden.settled().await;
        fail_shoots(&garden);
        garden.sim.break_watches(WatchEnd::Disconnect);
        tokio::time::sleep(Duration::from_secs(300)).await;

        put_project(&garden, Some(-1), None);
        let mut unmarked = project(&garden, "other", None, None);
        unmarked["metadata"]["name"] = json!("other");
        garden.put(object(&kinds::NAMESPACE, "", "garden-other", json!({})));
        garden.put(unmarked);
        garden.settle().await;

        assert_eq!(stale(&garden), (Some(-1), None), "nothing is known");
        let other = garden.find(&kinds::PROJECT, "", "other").unwrap();
        assert!(other["status"]["staleSinceTimestamp"].is_null(), "{other}");
    });
}

/// spec 82 D.4, D.6: activity in the last moment, at the confirmation or at the deletion itself
#[test]
fn project_is_not_deleted_if_there_is_activity_in_the_last_moment() {
    for verb in ["patch", "delete"] {
        garden(|garden| async move {
            configure(&garden);
            put_project(&garden, Some(-20), Some(1));
            garden.settled().await;
            let now = garden.time(0);
            before_first(&garden, verb, move |sim| {
                let activity = |project: &mut Value| project["status"]["lastActivityTimestamp"] = json!(now);
                assert!(sim.edit(PROJECTS, "", "dev", activity));
            });

            make_due(&garden);
            garden.settle().await;

            assert!(!is_deleted(&garden), "{verb}");
            assert_eq!(stale(&garden), (None, None), "{verb}");
            let annotations = garden.find(&kinds::PROJECT, "", "dev").unwrap()["metadata"]["annotations"].clone();
            assert!(annotations.get("confirmation.gardener.cloud/deletion").is_none(), "{verb}: {annotations}");
        });
    }
}

/// spec 82 D.6: the evidence is about another Project of this name.
#[test]
fn project_that_was_created_anew_meanwhile_is_not_deleted() {
    for verb in ["get", "patch", "delete"] {
        garden(|garden| async move {
            configure(&garden);
            put_project(&garden, Some(-20), Some(1));
            garden.settled().await;
            let anew = object(&kinds::PROJECT, "", "dev", json!({ "spec": { "namespace": NAMESPACE } }));
            before_first(&garden, verb, move |sim| {
                sim.remove(PROJECTS, "", "dev").expect("it exists");
                sim.put(anew.clone()).expect("it is valid");
            });

            make_due(&garden);
            garden.settle().await;

            assert!(!is_deleted(&garden), "{verb}");
            assert_eq!(stale(&garden), (None, None), "{verb}");
        });
    }
}

/// spec 80 §16 S-1
#[test]
fn project_that_vanishes_meanwhile_is_no_error() {
    for verb in ["get", "patch", "delete"] {
        let ((), log) = logged(Level::INFO, || {
            garden(|garden| async move {
                configure(&garden);
                put_project(&garden, Some(-20), Some(1));
                garden.settled().await;
                before_first(&garden, verb, |sim| drop(sim.remove(PROJECTS, "", "dev")));

                make_due(&garden);
                garden.settle().await;
            });
        });
        let is_error = |line: &&str| line.contains("Reconciler error") && line.contains("project-stale");
        assert_eq!(log.lines().find(is_error), None, "{verb}");
        assert_eq!(log.contains("Project already gone"), verb != "delete", "{verb}: {log}");
    }
}

/// spec 80 §16 S-2: an answer that is lost
#[test]
fn project_is_deleted_although_answers_are_lost_or_refuse() {
    for verb in ["patch", "delete"] {
        for fault in [
            Fault::FailAfterCommit(Seen::Disconnect),
            Fault::FailBefore(Seen::status(403, "Forbidden", "not now")),
            Fault::FailBefore(Seen::too_many_requests()),
        ] {
            garden(|garden| async move {
                configure(&garden);
                put_project(&garden, Some(-20), Some(1));
                garden.settled().await;
                let mut failures = 0;
                garden.sim.set_faults(move |info| {
                    let is_meant = info.user == "gcm" && info.resource == "projects" && info.verb == verb;
                    failures += u32::from(is_meant);
                    if is_meant && failures <= 3 { fault.clone() } else { Fault::None }
                });

                make_due(&garden);
                tokio::time::sleep(Duration::from_secs(60)).await;

                assert!(is_deleted(&garden), "{verb}");
            });
        }
    }
}

/// spec 82 §5: neither all Shoots of the cluster nor all Secrets are listed; lists of bindings are shared.
#[test]
fn many_stale_projects_are_deleted_with_few_lists() {
    garden(|garden| async move {
        configure(&garden);
        for number in 0..40 {
            let name = format!("p{number}");
            let namespace = format!("garden-{name}");
            garden.put(object(&kinds::NAMESPACE, "", &namespace, json!({})));
            garden.put(object(&kinds::SECRET, &namespace, "o", json!({})));
            garden.put(object(&kinds::SECRET_BINDING, &namespace, "b", json!({ "secretRef": { "name": "o" } })));
        }
        garden.settled().await;
        for number in 0..40 {
            garden.put(project(&garden, &format!("p{number}"), Some(-20), Some(-1)));
        }
        garden.settle().await;

        assert_eq!(garden.sim.objects(PROJECTS), Vec::<Value>::new());
        let asked = garden.asked();
        let lists = |kind: &Resource| asked.iter().filter(|asked| **asked == format!("list {}", kind.plural)).count();
        assert!((1..=10).contains(&lists(&kinds::SECRET_BINDING)), "{asked:?}");
        assert!((1..=10).contains(&lists(&kinds::CREDENTIALS_BINDING)), "{asked:?}");
        for request in garden.requests() {
            let info = &request.info;
            let is_large = info.verb == "list" && ["shoots", "secrets"].contains(&&*info.resource);
            assert!(!is_large || !info.namespace.is_empty(), "{info:?}");
        }
    });
}

/// spec 82 D.5: a Project whose Secret bindings of very many namespaces refer to, as that of the namespace `garden`.
#[test]
fn project_with_bindings_of_many_namespaces_is_judged() {
    for in_use in [true, false] {
        garden(|garden| async move {
            configure(&garden);
            garden.put(object(&kinds::SECRET, NAMESPACE, "o", json!({})));
            for number in 0..100 {
                let namespace = format!("garden-n{number}");
                garden.put(object(&kinds::SECRET_BINDING, &namespace, "b", reference()));
            }
            garden.settled().await;
            put_project(&garden, Some(-20), Some(1));
            garden.settle().await;
            assert_eq!(stale(&garden), (Some(-20), Some(1)));

            garden.sim.set_event_faults(|event| match event.resource == "shoots" {
                true => EventFault::Drop,
                false => EventFault::Deliver,
            });
            if in_use {
                garden.put(shoot("garden-n77", "s", json!({ "secretBindingName": "b" })));
            }
            make_due(&garden);
            garden.settle().await;

            assert_eq!(is_deleted(&garden), !in_use);
        });
    }
}
