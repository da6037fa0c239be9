//! Projects amid conflicts, stale caches, failing requests, other writers and restarts.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cluster::object::uid;
use gardener_resource_manager::api::kinds;
use kit::testing::eventually;
use serde_json::{Value, json};
use sim::{EventFault, Fault, Seen, Sim, WatchEnd};

use super::{
    garden::{Garden, garden, object},
    projects::{
        FAILED, KEEP, ORIGIN, OWNER, PROJECT, ROLE, becomes, ending_dev, find_namespace, find_project, hand_over,
        let_end, notes, phase, project, project_gone, put_dev, ready_dev, shoot, told,
    },
    projects_rbac::{FOO, belongings, member, ready, set_members, user},
};

/// Runs `change` before the first request of the program with this verb on this resource.
fn before_first(garden: &Garden, verb: &'static str, resource: &'static str, change: impl Fn(&Sim) + Send + 'static) {
    let sim = garden.sim.clone();
    let mut is_done = false;
    garden.sim.set_faults(move |info| {
        let is_meant =
            info.verb == verb && info.user == "gcm" && info.resource == resource && info.subresource.is_empty();
        if is_meant && !std::mem::replace(&mut is_done, true) {
            change(&sim);
        }
        Fault::None
    });
}

/// Remembers each phase that Projects show.
fn phases(garden: &Garden) -> Arc<Mutex<Vec<String>>> {
    let phases = Arc::new(Mutex::new(Vec::new()));
    let (seen, sim) = (phases.clone(), garden.sim.clone());
    garden.sim.set_event_faults(move |event| {
        if event.resource == "projects" {
            let shown = sim.object("projects.core.gardener.cloud", "", &event.name).unwrap_or_default();
            seen.lock()
                .expect("no test panics with the lock")
                .extend(shown["status"]["phase"].as_str().map(str::to_owned));
        }
        EventFault::Deliver
    });
    phases
}

fn patch_namespace(sim: &Sim) {
    let edit = |dev: &mut Value| dev["metadata"]["annotations"] = json!({"a": "b"});
    assert!(sim.edit("projects.core.gardener.cloud", "", "dev", edit));
}

/// spec 82 A.3, A.5, scenario 26: a conflict is no failure.
#[test]
fn conflict_on_the_write_of_the_namespace_is_no_failure() {
    garden(|garden| async move {
        garden.settled().await;
        let phases = phases(&garden);
        let (sim, mut patches) = (garden.sim.clone(), 0);
        garden.sim.set_faults(move |info| {
            if info.verb == "patch" && info.user == "gcm" && info.resource == "projects" && info.subresource.is_empty()
            {
                patches += 1;
                if patches == 2 {
                    patch_namespace(&sim); // somebody else is faster
                }
            }
            Fault::None
        });
        garden.put(project("dev", json!({})));
        becomes(&garden, "dev", "Ready").await;
        garden.settle().await;

        assert!(!phases.lock().unwrap().contains(&"Failed".to_owned()), "{phases:?}");
        assert_eq!(notes(&garden, "dev", FAILED), Vec::<String>::new());
        assert_eq!(find_project(&garden, "dev")["metadata"]["annotations"], json!({"a": "b"}));
    });
}

/// spec 82 A.3: objects that appear between a look at the cache and the write are no failure.
#[test]
fn objects_that_exist_already_are_no_failure() {
    type Appear = fn(&Sim);
    let appearing: [(&str, Appear); 3] = [
        ("namespaces", |sim| {
            let labels = json!({ROLE: "project", PROJECT: "dev"});
            let namespace = object(&kinds::NAMESPACE, "", "garden-dev", json!({"metadata": {"labels": labels}}));
            sim.put(namespace).unwrap();
        }),
        ("resourcequotas", |sim| {
            let spec = json!({"spec": {"hard": {"pods": "1", "count/x": "2"}}});
            sim.put(object(&kinds::RESOURCE_QUOTA, "garden-dev", "gardener", spec)).unwrap();
        }),
        ("clusterrolebindings", |sim| {
            let role_ref = json!({"roleRef": {"kind": "ClusterRole", "name": "x"}, "subjects": [user("thief")]});
            let name = "gardener.cloud:system:project:dev";
            sim.put(object(&kinds::CLUSTER_ROLE_BINDING, "", name, role_ref)).unwrap();
        }),
    ];
    for (resource, appear) in appearing {
        garden(|garden| async move {
            let quotas = json!([{"config": {"spec": {"hard": {"pods": "5"}}}}]);
            garden.config.borrow_mut().controllers.project.quotas = serde_json::from_value(quotas).unwrap();
            garden.settled().await;
            let phases = phases(&garden);
            before_first(&garden, "create", resource, appear);
            put_dev(&garden, json!({"owner": user("o")}));
            becomes(&garden, "dev", "Ready").await;
            garden.settle().await;

            assert!(!phases.lock().unwrap().contains(&"Failed".to_owned()), "{resource}: {phases:?}");
            let role = garden.find(&kinds::CLUSTER_ROLE_BINDING, "", "gardener.cloud:system:project:dev").unwrap();
            assert_eq!((&role["subjects"], &role["roleRef"]["name"]), (&json!([user("o")]), &role["metadata"]["name"]));
            let quota = garden.find(&kinds::RESOURCE_QUOTA, "garden-dev", "gardener").unwrap();
            let pods = if resource == "resourcequotas" { "1" } else { "5" };
            assert_eq!(quota["spec"]["hard"], json!({"pods": pods}));
        });
    }
}

/// spec 82 A.3, N5: the cache does not know that the Namespace was labelled: no failure is shown.
#[test]
fn refusal_by_a_stale_cache_is_no_failure() {
    garden(|garden| async move {
        garden.put(object(&kinds::NAMESPACE, "", "garden-dev", json!({})));
        garden.settled().await;
        garden.sim.set_event_faults(|event| match event.resource.as_str() {
            "namespaces" => EventFault::Drop,
            _ => EventFault::Deliver,
        });
        hand_over(&garden, "garden-dev", "dev");
        put_dev(&garden, json!({}));
        becomes(&garden, "dev", "Ready").await;
        garden.settle().await;

        assert_eq!(notes(&garden, "dev", FAILED), Vec::<String>::new());
    });
}

/// spec 80 S-11, scenario 34; spec 82 A.11, scenario 28
#[test]
fn error_text_is_no_format_and_fits_into_an_event() {
    garden(|garden| async move {
        garden.settled().await;
        let text = format!("100%s {}", "0123456789".repeat(300));
        garden.sim.set_faults(move |info| match info.resource.as_str() {
            "namespaces" if info.verb == "create" => FailOf::forbidden(&text),
            _ => Fault::None,
        });
        put_dev(&garden, json!({}));
        becomes(&garden, "dev", "Failed").await;

        garden.soon("the Event exists", || !notes(&garden, "dev", FAILED).is_empty()).await;
        let note = notes(&garden, "dev", FAILED).remove(0);
        assert!(note.contains("100%s 0123") && note.len() <= 1024, "{note}");
        garden.sim.clear_faults();
        becomes(&garden, "dev", "Ready").await;
    });
}

struct FailOf;

impl FailOf {
    fn forbidden(text: &str) -> Fault {
        Fault::FailBefore(Seen::status(403, "Forbidden", text))
    }
}

/// spec 82 A-T7, A.10 step 5: a Shoot that the cache does not know keeps the Namespace.
#[test]
fn shoot_that_the_cache_misses_keeps_the_namespace() {
    for keep in [Value::Null, json!("true")] {
        garden(|garden| async move {
            garden.settled().await;
            put_dev(&garden, json!({}));
            becomes(&garden, "dev", "Ready").await;
            garden.edit(&kinds::NAMESPACE, "", "garden-dev", |live| live["metadata"]["annotations"][KEEP] = keep);
            garden.settle().await;
            garden.sim.set_event_faults(|event| match event.resource.as_str() {
                "shoots" => EventFault::Drop,
                _ => EventFault::Deliver,
            });
            garden.put(shoot("garden-dev", "s"));
            let before = find_namespace(&garden, "garden-dev");

            garden.delete(&kinds::PROJECT, "", "dev").await;
            garden.settle().await;

            assert_eq!(find_namespace(&garden, "garden-dev"), before);
            assert!(garden.find(&kinds::PROJECT, "", "dev").is_some());
            assert!(garden.asked().len() < 100, "no hot loop: {}", garden.asked().len());
        });
    }
}

/// spec 82 A.10 step 3: a failing list of Shoots deletes nothing.
#[test]
fn failing_list_of_shoots_deletes_nothing() {
    garden(|garden| async move {
        ready_dev(&garden).await;
        garden.sim.set_faults(|info| match info.resource.as_str() {
            "shoots" if info.verb == "list" && info.user == "gcm" => {
                Fault::FailBefore(Seen::status(500, "InternalError", "no list"))
            }
            _ => Fault::None,
        });
        let before = find_namespace(&garden, "garden-dev");
        garden.delete(&kinds::PROJECT, "", "dev").await;
        garden.settle().await;
        assert_eq!(find_namespace(&garden, "garden-dev"), before);

        garden.sim.clear_faults();

        eventually("the Project is gone", Duration::from_secs(120), || {
            garden.find(&kinds::PROJECT, "", "dev").is_none()
        })
        .await;
    });
}

/// spec 82 A.10 step 4: without the kind there is no Shoot.
#[test]
fn project_goes_while_shoots_are_not_served() {
    garden(|garden| async move {
        garden.withdraw(&kinds::SHOOT);
        put_dev(&garden, json!({}));
        garden.settled().await;
        eventually("it is ready", Duration::from_secs(120), || phase(&garden, "dev") == "Ready").await;

        garden.delete(&kinds::PROJECT, "", "dev").await;

        project_gone(&garden, "dev").await;
    });
}

/// spec 82 A.10 step 6: a refused deletion of the Namespace is shown.
#[test]
fn refused_deletion_of_the_namespace_is_shown() {
    garden(|garden| async move {
        ready_dev(&garden).await;
        garden.sim.set_faults(|info| match info.resource.as_str() {
            "namespaces" if info.verb == "delete" => FailOf::forbidden("a webhook says no"),
            _ => Fault::None,
        });
        garden.delete(&kinds::PROJECT, "", "dev").await;
        becomes(&garden, "dev", "Failed").await;
        let text = "Failed to release project namespace \"garden-dev\": a webhook says no";
        told(&garden, "dev", "NamespaceDeletionFailed", text).await;

        garden.sim.clear_faults();

        project_gone(&garden, "dev").await;
    });
}

/// spec 82 A.3 F, A.10: who sees the phase finds the Event that explains it, also while Events are late. Events that hang
/// do not keep the phase back for long.
#[test]
fn phase_of_a_failed_project_follows_its_event() {
    for (fault, is_first) in [(Fault::Delay(Duration::from_millis(500)), true), (Fault::Hang, false)] {
        garden(|garden| async move {
            ready_dev(&garden).await;
            garden.sim.set_faults(move |info| match info.resource.as_str() {
                "namespaces" if info.verb == "delete" => FailOf::forbidden("a webhook says no"),
                "events" => fault.clone(),
                _ => Fault::None,
            });
            garden.delete(&kinds::PROJECT, "", "dev").await;

            becomes(&garden, "dev", "Failed").await;

            assert_eq!(!notes(&garden, "dev", "NamespaceDeletionFailed").is_empty(), is_first);
        });
    }
}

/// spec 82 A.10 step 7, spec 80 §16 S-13: the Namespace is gone only if the server says so.
#[test]
fn namespace_that_the_cache_lost_keeps_the_project() {
    garden(|garden| async move {
        ending_dev(&garden).await;
        let live = find_namespace(&garden, "garden-dev");
        garden.sim.remove("namespaces", "", "garden-dev");
        garden.put(live); // it came back before anybody looked
        garden.settle().await;

        assert!(garden.find(&kinds::PROJECT, "", "dev").is_some());
        let_end(&garden, "garden-dev");
        garden.sim.remove("namespaces", "", "garden-dev");
        project_gone(&garden, "dev").await;
    });
}

/// spec 82 "better" 5: an Event an hour, which says what is left in the Namespace.
#[test]
fn namespace_that_hangs_is_told_once_an_hour_with_what_is_left() {
    garden(|garden| async move {
        ending_dev(&garden).await;
        let marked = "Successfully marked project namespace \"garden-dev\" for deletion";
        told(&garden, "dev", "NamespaceMarkedForDeletion", marked).await;
        garden.sim.clear_requests();
        tokio::time::sleep(Duration::from_secs(3500)).await;
        assert_eq!(notes(&garden, "dev", "NamespaceMarkedForDeletion"), [marked]);
        assert_eq!(garden.asked(), Vec::<String>::new());

        tokio::time::sleep(Duration::from_secs(7200)).await;

        let notes = notes(&garden, "dev", "NamespaceMarkedForDeletion");
        let left = format!("{marked}; Some resources are remaining: configmaps. has 1 resource instances");
        assert!(notes.iter().any(|note| note.starts_with(&left) && note.contains("example.com/x")), "{notes:?}");
        assert!((2..=3).contains(&notes.len()), "{notes:?}");
        assert!(garden.asked().len() <= 3, "{:?}", garden.asked());
    });
}

/// A Project that is deleted while it is being created leaves nothing behind.
#[test]
fn project_deleted_while_it_is_created_leaves_nothing() {
    for (verb, resource) in [
        ("patch", "projects"),
        ("create", "namespaces"),
        ("create", "clusterroles"),
        ("create", "clusterrolebindings"),
        ("create", "rolebindings"),
    ] {
        for namespace in [json!("garden-dev"), Value::Null] {
            garden(|garden| async move {
                garden.settled().await;
                let deleting = Arc::new(Mutex::new(false));
                let asked = deleting.clone();
                before_first(&garden, verb, resource, move |_| *asked.lock().unwrap() = true);
                garden.put(project("dev", json!({"namespace": namespace})));
                garden.soon("the request", || *deleting.lock().unwrap()).await;
                garden.delete(&kinds::PROJECT, "", "dev").await;
                project_gone(&garden, "dev").await;
                tokio::time::sleep(Duration::from_secs(120)).await;

                let left: Vec<_> = garden
                    .sim
                    .objects("namespaces")
                    .into_iter()
                    .filter(|namespace| namespace["metadata"]["labels"][PROJECT] == "dev")
                    .collect();
                assert_eq!(left, Vec::<Value>::new(), "{verb} {resource}");
                assert_eq!(belongings(&garden), Vec::<Value>::new(), "{verb} {resource}");
            });
        }
    }
}

/// spec 80 §16 S-13: a cache that still has a Project that is gone creates no Namespace.
#[test]
fn project_that_is_gone_unseen_gets_no_namespace() {
    garden(|garden| async move {
        ready_dev(&garden).await;
        garden.sim.set_event_faults(|event| match event.resource.as_str() {
            "projects" => EventFault::Drop,
            _ => EventFault::Deliver,
        });
        garden.sim.remove("projects.core.gardener.cloud", "", "dev");
        garden.sim.remove("namespaces", "", "garden-dev");
        garden.settle().await;

        assert!(garden.find(&kinds::NAMESPACE, "", "garden-dev").is_none());
        assert!(garden.asked().len() < 60, "{:?}", garden.asked());
    });
}

/// Ten Projects claim one Namespace: one has it, the others fail and cost nothing.
#[test]
fn namespace_belongs_to_one_of_many_projects_that_claim_it() {
    garden(|garden| async move {
        for number in 0..10 {
            garden.put(project(&format!("p{number}"), json!({"namespace": "garden-x"})));
        }
        garden.settled().await;
        let ready: Vec<_> = (0..10).filter(|number| phase(&garden, &format!("p{number}")) == "Ready").collect();
        assert_eq!(ready.len(), 1);
        let owner = find_project(&garden, &format!("p{}", ready[0]));
        assert_eq!(find_namespace(&garden, "garden-x")["metadata"]["annotations"][OWNER], uid(&owner));
        assert!((0..10).all(|number| ["Ready", "Failed"].contains(&&*phase(&garden, &format!("p{number}")))));

        tokio::time::sleep(Duration::from_secs(600)).await;

        assert_eq!(garden.asked(), Vec::<String>::new());
    });
}

/// spec 82 N5, N6: whatever happens, no request gives a Project a Namespace that bears no mark of it, or that of another.
#[test]
fn random_histories_take_no_foreign_namespace_and_converge() {
    for history in 0..20 {
        garden(|garden| async move {
            let foreign = Arc::new(Mutex::new(Vec::new()));
            let (seen, sim) = (foreign.clone(), garden.sim.clone());
            garden.sim.set_faults(move |info| {
                let is_meant = info.user == "gcm" && info.resource == "namespaces" && info.verb == "delete";
                let live = sim.object("namespaces", "", &info.name).unwrap_or_default();
                let annotations = &live["metadata"]["annotations"];
                if is_meant && (annotations[OWNER] == "foreign" || annotations[ORIGIN].is_null()) {
                    seen.lock().unwrap().push(live);
                }
                Fault::None
            });
            let mut state: u64 = history;
            let mut random = move |below: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                usize::try_from(state >> 33).unwrap() % below
            };
            garden.start().await;
            for _ in 0..40 {
                let (name, space) = (["p", "q"][random(2)], ["garden-x", "garden-y"][random(2)]);
                match random(10) {
                    0 => garden.put(project(name, json!({"namespace": space, "members": [member("m", &["admin"])]}))),
                    1 => drop(garden.sim.remove("projects.core.gardener.cloud", "", name)),
                    2 if garden.find(&kinds::PROJECT, "", name).is_some() => {
                        garden.delete(&kinds::PROJECT, "", name).await;
                    }
                    3 => garden.sim.break_watches(WatchEnd::Disconnect),
                    4 => {
                        garden.stop().await;
                        garden.start().await;
                    }
                    5 => drop(garden.sim.remove("namespaces", "", space)),
                    6 => garden.put(object(&kinds::NAMESPACE, "", space, json!({}))),
                    7 => {
                        hand_over(&garden, space, name);
                        garden.edit(&kinds::NAMESPACE, "", space, |live| {
                            live["metadata"]["annotations"] = json!({OWNER: "foreign"});
                        });
                    }
                    8 => hand_over(&garden, space, name),
                    _ => garden.put(shoot(space, "s")),
                }
                let marked = |space: &str| find_namespace(&garden, space)["metadata"]["annotations"][OWNER].clone();
                let was_foreign: Vec<_> =
                    ["garden-x", "garden-y"].into_iter().filter(|space| marked(space) == "foreign").collect();
                tokio::time::sleep(Duration::from_millis([1, 5, 60, 500][random(4)])).await;
                for space in was_foreign {
                    assert_eq!(marked(space), "foreign", "history {history}: {space} was taken");
                }
            }
            for space in ["garden-x", "garden-y"] {
                garden.sim.remove("shoots.core.gardener.cloud", space, "s");
            }
            tokio::time::sleep(Duration::from_secs(120)).await;

            assert!(foreign.lock().unwrap().is_empty(), "history {history}: {foreign:?}");
            for name in ["p", "q"] {
                let Some(project) = garden.find(&kinds::PROJECT, "", name) else { continue };
                let space = project["spec"]["namespace"].as_str().unwrap();
                let namespace = find_namespace(&garden, space);
                let is_own = namespace["metadata"]["annotations"][OWNER] == uid(&project)
                    && namespace["metadata"]["labels"][PROJECT] == name;
                let expected = if is_own { "Ready" } else { "Failed" };
                assert_eq!(phase(&garden, name), expected, "history {history}: {project} {namespace}");
            }
        });
    }
}

/// spec 82 A.3 step 9: a refused grant does not keep the rights of who lost a role.
#[test]
fn stale_extension_roles_go_although_a_grant_fails() {
    garden(|garden| async move {
        ready(&garden, json!({"members": [member("m", &["extension:foo"])]})).await;
        garden.sim.set_faults(|info| match (info.verb.as_str(), info.name.as_str()) {
            ("patch", "gardener.cloud:system:project-viewer") => {
                Fault::FailBefore(Seen::status(403, "Forbidden", "not this binding"))
            }
            _ => Fault::None,
        });

        set_members(&garden, json!([member("m", &["viewer"])])).await;

        garden.gone(&kinds::ROLE_BINDING, "garden-dev", FOO).await;
        garden.gone(&kinds::CLUSTER_ROLE, "", FOO).await;
        becomes(&garden, "dev", "Failed").await;
        let is_told = || {
            let notes = notes(&garden, "dev", "NamespaceReconcileFailed");
            notes.iter().any(|note| note.contains("Error while reconciling RBAC resources"))
        };
        garden.soon("the Event tells of the refused grant", is_told).await;
    });
}
