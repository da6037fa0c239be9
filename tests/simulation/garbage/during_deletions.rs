//! New references, failing checks, failing watches and the time limit during the deletions of a run (spec 33 T6, T9).

use std::time::Duration;

use sim::{Fault, RequestInfo, Seen, WatchEnd};

use super::{OLD, PERIOD, collectable, deletions, is_there, last_error, line, pod, put, refers_to, start};
use crate::world::{NAMESPACE, World, seconds, world};

fn secrets(world: &World, namespace: &str, count: usize) {
    for number in 0..count {
        collectable(world, "Secret", namespace, &format!("s{number:04}"));
    }
}

fn left(world: &World, namespace: &str, count: usize) -> Vec<String> {
    let names = (0..count).map(|number| format!("s{number:04}"));
    names.filter(|name| is_there(world, "Secret", namespace, name)).collect()
}

/// spec 33 T9; spec 33, better 1: each namespace is checked again before its deletions, because a watch may lag.
#[test]
fn reference_made_during_the_run_is_seen() {
    world(1, |world| async move {
        for number in 0..40 {
            let namespace = format!("n{number:02}");
            world.sim.put(crate::world::namespace(&namespace)).expect("a Namespace");
            collectable(&world, "Secret", &namespace, "a");
        }
        seconds(OLD).await;
        world.sim.set_faults(|info| match (info.verb.as_str(), info.namespace.as_str()) {
            ("delete", "n00") => Fault::Delay(Duration::from_secs(10)),
            ("watch", _) if info.resource == "pods" => Fault::BreakWatch { after_events: 0, end: WatchEnd::Hang },
            _ => Fault::None,
        });
        start(&world).await;
        for number in 30..40 {
            put(&world, "Pod", &format!("n{number}"), "p", pod(&refers_to("secret", "a")));
        }
        seconds(60).await;

        let left = (0..40).filter(|number| is_there(&world, "Secret", &format!("n{number:02}"), "a")).count();
        assert_eq!((left, deletions(&world)), (10, 30));
    });
}

/// spec 33 T9; spec 33, better 1; fault 26: kinds that may refer to candidates are watched during deletions.
#[test]
fn reference_made_during_many_deletions_is_seen() {
    world(1, |world| async move {
        secrets(&world, NAMESPACE, 300);
        seconds(OLD).await;
        world.sim.set_faults(|info| match info.verb.as_str() {
            "delete" => Fault::Delay(Duration::from_secs(2)),
            _ => Fault::None,
        });
        start(&world).await;
        put(&world, "Pod", NAMESPACE, "p", pod(&refers_to("secret", "s0299")));
        seconds(120).await;

        assert_eq!((left(&world, NAMESPACE, 300), deletions(&world)), (vec!["s0299".to_owned()], 299));
    });
}

/// spec 33 T6; spec 33, better 10: deletions before a failed check are counted.
#[test]
fn failed_check_between_deletions_keeps_the_count() {
    world(1, |world| async move {
        for namespace in ["n1", "n2"] {
            world.sim.put(crate::world::namespace(namespace)).expect("a Namespace");
            collectable(&world, "Secret", namespace, "a");
        }
        seconds(OLD).await;
        world.sim.set_faults(|info| match (info.verb.as_str(), info.resource.as_str(), info.namespace.as_str()) {
            ("list", "pods", "n2") => Fault::FailBefore(Seen::status(500, "InternalError", "no")),
            _ => Fault::None,
        });
        start(&world).await;

        assert_eq!(["n1", "n2"].map(|namespace| is_there(&world, "Secret", namespace, "a")), [false, true]);
        let line = line(&world);
        assert!(line.starts_with("2 candidates, 1 deleted, 0 in use, 0 changed meanwhile, 0 failed;"), "{line}");
        assert!(last_error(&world).starts_with("failed listing objects of gvk /v1, Kind=PodList"));
    });
}

/// spec 33 T9; spec 33, better 1: a check after a thousand deletions finds references that a watch does not report.
#[test]
fn namespace_with_thousands_of_deletions_is_checked_in_between() {
    world(1, |world| async move {
        secrets(&world, NAMESPACE, 1_100);
        seconds(OLD).await;
        world.sim.set_faults(|info| match info.verb.as_str() {
            "delete" => Fault::Delay(Duration::from_secs(2)),
            "watch" if info.resource == "pods" => Fault::BreakWatch { after_events: 0, end: WatchEnd::Hang },
            _ => Fault::None,
        });
        start(&world).await;
        put(&world, "Pod", NAMESPACE, "p", pod(&refers_to("secret", "s1099")));
        seconds(200).await;

        assert_eq!((left(&world, NAMESPACE, 1_100), deletions(&world)), (vec!["s1099".to_owned()], 1_099));
    });
}

/// spec 33 T9: where only some namespaces are readable, these are watched, one at a time.
#[test]
fn watches_cover_only_the_configured_namespaces() {
    world(1, |world| async move {
        let namespaces = ["n1", "n2"];
        for namespace in namespaces {
            world.sim.put(crate::world::namespace(namespace)).expect("a Namespace");
            secrets(&world, namespace, 40);
        }
        seconds(OLD).await;
        world.config.borrow_mut().target.namespaces = namespaces.map(str::to_owned).to_vec();
        world.sim.set_faults(|info| match info.verb.as_str() {
            "delete" => Fault::Delay(Duration::from_secs(5)),
            _ => Fault::None,
        });
        start(&world).await;
        for namespace in namespaces {
            put(&world, "Pod", namespace, "p", pod(&refers_to("secret", "s0039")));
        }
        seconds(120).await;

        for namespace in namespaces {
            assert_eq!(left(&world, namespace, 40), ["s0039"], "{namespace}");
        }
        let watched = world.requests().into_iter().map(|request| request.info);
        let of_pods = |info: &RequestInfo| info.verb == "watch" && info.resource == "pods";
        let watched: Vec<_> = watched.filter(of_pods).map(|info| info.namespace).collect();
        assert_eq!(watched, namespaces);
    });
}

/// spec 33 T6: without the right to watch, or if the version is already too old for the API server, nothing is deleted.
#[test]
fn watch_that_is_not_opened_ends_the_run() {
    for refusal in
        [|info: &RequestInfo| Seen::forbidden(info), |_: &RequestInfo| Seen::status(410, "Expired", "too old")]
    {
        world(1, |world| async move {
            secrets(&world, NAMESPACE, 20);
            seconds(OLD).await;
            world.sim.set_faults(move |info| match (info.verb.as_str(), info.resource.as_str()) {
                ("watch", "cronjobs") => Fault::FailBefore(refusal(info)),
                _ => Fault::None,
            });
            start(&world).await;

            assert_eq!(deletions(&world), 0);
            let expected = "failed watching objects of gvk batch/v1, Kind=CronJobList: ";
            assert!(last_error(&world).starts_with(expected), "{}", last_error(&world));
        });
    }
}

/// spec 33, better 6: after the time limit no deletion begins, and the next run continues.
#[test]
fn time_limit_ends_the_run_and_reports_what_remains() {
    world(1, |world| async move {
        secrets(&world, NAMESPACE, 400);
        seconds(OLD).await;
        world.sim.set_faults(|info| match info.verb.as_str() {
            "delete" => Fault::Delay(Duration::from_secs(29)),
            _ => Fault::None,
        });
        start(&world).await;
        seconds(600).await;

        let expected = "the run has reached its time limit; ";
        assert!(last_error(&world).contains(expected), "{}", last_error(&world));
        assert_eq!(deletions(&world), 21 * 16);
        seconds(300).await;

        assert_eq!(left(&world, NAMESPACE, 400), [""; 0]);
    });
}

/// spec 33 T6, T9: after the end of a watch, new references would be missed.
#[test]
fn watch_that_ends_between_deletions_ends_the_run() {
    for end in [WatchEnd::Close, WatchEnd::Disconnect, WatchEnd::Expired] {
        world(1, |world| async move {
            secrets(&world, NAMESPACE, 100);
            seconds(OLD).await;
            world.sim.set_faults(|info| match info.verb.as_str() {
                "delete" => Fault::Delay(Duration::from_secs(10)),
                _ => Fault::None,
            });
            start(&world).await;
            world.sim.break_watches(end);
            seconds(9).await;

            let line = line(&world);
            assert!(line.starts_with("100 candidates, 16 deleted, 0 in use, 0 changed meanwhile, 0 failed;"), "{line}");
            let expected = "failed watching objects of gvk ";
            assert!(last_error(&world).starts_with(expected), "{}", last_error(&world));
            assert_eq!(deletions(&world), 16);
        });
    }
}

/// spec 33 T9
#[test]
fn watches_are_open_while_a_run_deletes_and_not_after_it() {
    world(1, |world| async move {
        start(&world).await;
        let before = world.sim.watch_count();
        secrets(&world, NAMESPACE, 17);
        world.sim.set_faults(|info| match info.verb.as_str() {
            "delete" => Fault::Delay(Duration::from_secs(5)),
            _ => Fault::None,
        });
        for _ in 0..PERIOD * 111 / 100 {
            seconds(1).await;
            if deletions(&world) > 0 {
                break;
            }
        }
        assert_eq!(world.sim.watch_count(), before + 7, "of all kinds that are served");
        seconds(120).await;

        assert_eq!(world.sim.watch_count(), before);
    });
}
