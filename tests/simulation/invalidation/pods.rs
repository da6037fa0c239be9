//! Pods that mount the Secret, and Secrets that wait for their end (spec 31 §4.2 rules 7 and 8).

use serde_json::json;
use sim::{Fault, Seen};

use super::{account, asked, considered, labelled, labels, last_error, mounts, pod, start, token};
use crate::world::{NAMESPACE, World, seconds, world};

/// spec 31 §4.2 rule 8, T3, T4, scenario 10; "Better than upstream" 2: as soon as the Pod is gone.
#[test]
fn mounted_token_waits_for_the_end_of_the_pod() {
    type End = fn(&World);
    let ends: [(&str, End); 3] = [
        ("gone", |world| drop(world.sim.remove("pods", NAMESPACE, "p"))),
        ("succeeded", |world| assert!(phase(world, "Succeeded"))),
        ("failed", |world| assert!(phase(world, "Failed"))),
    ];
    for (how, end) in ends {
        world(1, |world| async move {
            account(&world, Some(false), json!({}));
            pod(&world, "p", mounts("t"));
            start(&world).await;
            token(&world, "t");
            seconds(3600).await;
            assert_eq!(labels(&world, "t"), labelled(), "{how}");
            let lists = asked(&world).iter().filter(|asked| *asked == "list pods").count();
            assert!(lists <= 3, "Pods are not polled: {:?}", asked(&world));

            end(&world);
            seconds(1).await;
            assert_eq!(labels(&world, "t"), considered(), "{how}");
        });
    }
}

fn phase(world: &World, phase: &str) -> bool {
    world.sim.edit("pods", NAMESPACE, "p", |live| live["status"]["phase"] = json!(phase))
}

/// spec 31 §4.2 rule 8, scenarios 11 and 12; "Better than upstream" 2
#[test]
fn pods_that_do_not_mount_the_secret_delay_nothing() {
    let projected = json!({ "projected": { "sources": [{ "secret": { "name": "t" } }] } });
    for (volume, phase_then) in [(mounts("other"), "Running"), (projected, "Running"), (mounts("t"), "Succeeded")] {
        world(1, |world| async move {
            account(&world, Some(false), json!({}));
            pod(&world, "p", volume);
            assert!(phase(&world, phase_then));
            start(&world).await;
            token(&world, "t");
            seconds(1).await;

            assert_eq!(labels(&world, "t"), considered());
        });
    }
}

/// spec 31 "Better than upstream" 2
#[test]
fn pods_are_watched_once_and_only_while_secrets_wait() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        for name in ["one", "two"] {
            pod(&world, name, mounts(name));
        }
        start(&world).await;
        let before = world.sim.watch_count();
        for name in ["one", "two"] {
            token(&world, name);
        }
        seconds(10).await;
        assert_eq!(world.sim.watch_count(), before + 1);

        world.sim.remove("pods", NAMESPACE, "one");
        seconds(1).await;
        assert_eq!((labels(&world, "one"), labels(&world, "two")), (considered(), labelled()));
        assert_eq!(world.sim.watch_count(), before + 1);
        account(&world, None, json!({}));
        seconds(1).await;
        assert_eq!((labels(&world, "one"), world.sim.watch_count()), (labelled(), before));
    });
}

/// spec 31 §4.3: the right to list Pods is sufficient.
#[test]
fn pods_without_the_right_to_watch_are_polled() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        pod(&world, "p", mounts("t"));
        start(&world).await;
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("pods", "watch") => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        token(&world, "t");
        seconds(600).await;
        assert_eq!(labels(&world, "t"), labelled());

        world.sim.remove("pods", NAMESPACE, "p");
        seconds(1100).await;
        assert_eq!(labels(&world, "t"), considered());
    });
}

/// spec 31 §4.2 rule 7: the purpose does not depend on it.
#[test]
fn pods_that_cannot_be_listed_are_an_error() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        start(&world).await;
        world.sim.set_faults(|info| match info.resource.as_str() {
            "pods" => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        token(&world, "t");
        seconds(60).await;
        assert_eq!(labels(&world, "t"), labelled());
        assert!(
            last_error(&world, "t").starts_with("could not list Pods: pods is forbidden"),
            "{}",
            last_error(&world, "t")
        );

        world.sim.clear_faults();
        seconds(120).await;
        assert_eq!(labels(&world, "t"), considered());
    });
}
