//! Answers to own requests: they enter the store, and never replace something newer.

use sim::EventFault;

use super::{writes::written, *};
use crate::{Lock, Wrote, testing::ctx};

#[test]
fn own_write_is_known_at_once_and_its_event_is_ignored() {
    scene(
        Start::List,
        |_| {},
        |scene| async move {
            let created = scene.sim.put(config_map("a", "1")).unwrap();
            scene.watch.wrote(&created, "writer", Instant::now());
            assert_eq!(scene.value("a").as_deref(), Some("1"));
            settle().await;

            assert_eq!(scene.reported(), ["own a -→1"]);
        },
    );
}

#[test]
fn own_write_is_not_replaced_by_an_older_event() {
    scene(
        Start::List,
        |_| {},
        |scene| async move {
            scene.sim.put(config_map("a", "1")).unwrap();
            scene.sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = json!("2"));
            let newest = scene.sim.object("configmaps", "default", "a").unwrap();
            scene.watch.wrote(&newest, "writer", Instant::now());
            settle().await;

            assert_eq!(scene.reported(), ["own a -→2"], "the event with the older value was passed over");
            assert_eq!(scene.value("a").as_deref(), Some("2"));
        },
    );
}

#[test]
fn stale_answer_after_the_event_of_a_deletion_does_not_bring_the_object_back() {
    for start in [Start::List, Start::Now] {
        scene(
            start,
            |_| {},
            |scene| async move {
                let written = scene.sim.put(config_map("a", "1")).unwrap();
                scene.sim.remove("configmaps", "default", "a");
                settle().await;
                scene.reported();

                scene.watch.wrote(&written, "writer", Instant::now());
                let known = scene.watch.found(&written, Instant::now());

                assert_eq!((known, scene.value("a"), scene.reported()), (Found::Removed, None, Vec::new()));
                scene.sim.put(config_map("a", "2")).unwrap();
                settle().await;
                assert_eq!(scene.value("a").as_deref(), Some("2"), "it was created again");
            },
        );
    }
}

/// Contract rule 3. The answer to a DELETE, or *not found*, may follow the event of a newer object with the same name.
#[test]
fn stale_answer_of_a_deletion_keeps_a_recreated_object() {
    for start in [Start::List, Start::Now] {
        scene(
            start,
            |_| {},
            |scene| async move {
                let first = version_of(&scene.sim.put(config_map("a", "1")).unwrap());
                settle().await;
                scene.sim.remove("configmaps", "default", "a");
                let second = scene.sim.put(config_map("a", "2")).unwrap();
                settle().await;
                scene.reported();

                scene.watch.deleted(&name("a"), first, "writer");
                assert_eq!((scene.value("a").as_deref(), scene.reported()), (Some("2"), Vec::new()));

                scene.watch.deleted(&name("a"), version_of(&second), "writer");
                assert_eq!((scene.value("a"), scene.reported()), (None, vec!["own a 2→-".to_owned()]));
            },
        );
    }
}

#[test]
fn stale_answer_that_crosses_a_list_does_not_bring_a_deleted_object_back() {
    for start in [Start::List, Start::Now] {
        scene(
            start,
            |_| {},
            |scene| async move {
                scene.sim.break_watches(WatchEnd::Hang);
                let asked = Instant::now();
                let written = scene.sim.put(config_map("a", "1")).unwrap();
                scene.sim.remove("configmaps", "default", "a");
                scene.sim.compact();
                tokio::time::sleep(IDLE_LIMIT + Duration::from_secs(60)).await;
                assert!(scene.watch.store().is_fresh());

                scene.watch.wrote(&written, "writer", asked);
                let known = scene.watch.found(&written, asked);

                assert_eq!((known, scene.value("a"), scene.reported()), (Found::Removed, None, Vec::new()));
            },
        );
    }
}

#[test]
fn stale_answer_that_crosses_the_begin_of_a_watch_adds_nothing() {
    scene(
        Start::Now,
        |sim| {
            sim.put(config_map("a", "1")).unwrap();
        },
        |scene| async move {
            let answer = scene.sim.object("configmaps", "default", "a").unwrap();
            assert_eq!(
                (scene.watch.found(&answer, scene.begun - Duration::from_millis(1)), scene.value("a")),
                (Found::Removed, None)
            );

            scene.watch.wrote(&answer, "writer", Instant::now());

            assert_eq!(scene.value("a").as_deref(), Some("1"), "it was there when the watch had begun");
        },
    );
}

#[test]
fn answer_in_another_api_version_only_invalidates_the_cached_object() {
    scene(
        Start::List,
        |_| {},
        |scene| async move {
            let mut written = scene.sim.put(config_map("a", "1")).unwrap();
            settle().await;
            written["apiVersion"] = json!("v2");
            scene.reported();

            scene.watch.wrote(&written, "writer", Instant::now());
            assert_eq!(scene.value("a").as_deref(), Some("1"), "it is of the same revision");
            scene.sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = json!("2"));
            written["metadata"]["resourceVersion"] =
                scene.sim.object("configmaps", "default", "a").unwrap()["metadata"]["resourceVersion"].clone();
            scene.watch.wrote(&written, "writer", Instant::now());

            assert_eq!((scene.value("a"), scene.reported()), (None, Vec::new()));
            settle().await;
            assert_eq!(scene.value("a").as_deref(), Some("2"));
        },
    );
}

#[test]
fn own_write_is_not_entered_before_the_watch_gets_changes() {
    let prepare = |sim: &Sim| {
        sim.set_faults(|request| match request.verb.as_str() {
            "list" => Fault::FailBefore(Seen::forbidden(request)),
            _ => Fault::None,
        });
    };
    scene(Start::Now, prepare, |scene| async move {
        let listed = scene.sim.put(config_map("a", "1")).unwrap();

        let found = scene.watch.found(&listed, Instant::now());

        assert_eq!((found, scene.value("a")), (Found::Known, None));
    });
}

/// A write by a watch.
#[derive(Debug, Clone, Copy)]
enum Written {
    ByPatch,
    ByAnotherRequest,
}

#[test]
fn write_that_is_undone_before_its_answer_comes_reports_the_later_change() {
    for how in [Written::ByPatch, Written::ByAnotherRequest] {
        written(move |scene| async move {
            let mut dropped = false;
            scene.sim.set_event_faults(move |_| match std::mem::replace(&mut dropped, true) {
                true => EventFault::Deliver,
                false => EventFault::Drop,
            });
            scene.sim.set_faults(|request| match &*request.verb {
                "patch" | "update" => Fault::DelayAnswer(Duration::from_secs(5)),
                _ => Fault::None,
            });
            let undo = async {
                settle().await;
                scene.edit(|live| live["data"]["k"] = "1".into());
            };
            let write = async {
                let (ctx, a, patch) = (ctx(), name("a"), json!({"data": {"k": "2"}}));
                match how {
                    Written::ByPatch => {
                        let wrote = scene.watch.patch(&ctx, &a, Lock::Version, |_| Some(patch.clone())).await;
                        assert!(
                            matches!(&wrote, Ok(Wrote::Updated(object)) if object["data"]["k"] == "2"),
                            "{wrote:?}"
                        );
                    }
                    Written::ByAnotherRequest => {
                        let (cluster, mut after) = (scene.watch.informer.cluster.clone(), scene.stored().unwrap());
                        after["data"] = patch["data"].clone();
                        let at = config_maps().named(&a);
                        let request = cluster.replace(&ctx, &at, None, &after);
                        let answer = scene.watch.enter_answer_of(&ctx, request).await.unwrap();
                        assert_eq!(answer["data"]["k"], "2");
                    }
                }
            };

            tokio::join!(write, undo);

            let reported = scene.reported();
            assert_eq!(reported.last().map(String::as_str), Some("event a 2→1"), "{how:?}: {reported:?}");
            assert_eq!(scene.value("a").as_deref(), Some("1"));
        });
    }
}
