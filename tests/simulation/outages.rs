//! What the log says while a cluster cannot be used (spec 70 §10).

use sim::{Fault, RequestInfo, Seen, WatchEnd};
use tracing::Level;

use crate::{
    logged::logged,
    world::{seconds, world},
};

const BAD: &str = "The cluster cannot be used";
const GOOD: &str = "The cluster can be used again";

/// What becomes of each request.
type Faults = fn(&RequestInfo) -> Fault;

/// The records about outages, each with its level.
fn told(log: &str) -> Vec<String> {
    let is_meant = |line: &&str| line.contains(BAD) || line.contains(GOOD);
    log.lines().filter(is_meant).map(|line| line.split_once("Z ").map_or(line, |(_, rest)| rest).to_owned()).collect()
}

/// What is told of a program that starts with a fault, which ends after 125 s.
fn told_at_the_start(separate: bool, fault: Faults) -> Vec<String> {
    let ((), log) = logged(Level::INFO, || {
        world(1, |world| async move {
            world.separate.set(separate);
            world.sim.set_faults(fault);
            world.start().await;
            seconds(125).await;
            world.sim.clear_faults();
            seconds(100).await;
        });
    });
    told(&log)
}

/// spec 70 §10: a wrong token, host or CA, and missing rights, are told at once and each minute, once for the cluster
#[test]
fn a_cluster_that_cannot_be_used_from_the_start_is_an_error_at_once_and_each_minute() {
    let unauthorized = |_: &RequestInfo| Fault::FailBefore(Seen::unauthorized());
    let away = |_: &RequestInfo| Fault::FailBefore(Seen::Disconnect);
    let forbidden = |info: &RequestInfo| match (info.verb.as_str(), info.resource.as_str()) {
        ("list", "managedresources") => Fault::FailBefore(Seen::forbidden(info)),
        _ => Fault::None,
    };
    let table: [(Faults, &str); 3] =
        [(unauthorized, "401 Unauthorized"), (away, "connection"), (forbidden, "managedresources")];
    for (fault, cause) in table {
        let told = told_at_the_start(false, fault);

        let (last, errors) = told.split_last().expect("records");
        assert_eq!(errors.len(), 3, "{told:#?}");
        for error in errors {
            assert!(error.trim_start().starts_with("ERROR") && error.contains(cause), "{error}");
            assert!(error.contains(r#"cluster="source" server="simulator""#), "{error}");
        }
        assert!(last.trim_start().starts_with("INFO") && last.contains(GOOD), "{last}");
    }
}

/// spec 70 §10
#[test]
fn two_clusters_are_told_of_by_their_names() {
    let told = told_at_the_start(true, |_| Fault::FailBefore(Seen::unauthorized()));

    let of = |cluster: &str| told.iter().filter(|line| line.contains(&format!("cluster=\"{cluster}\""))).count();
    assert_eq!((of("source"), of("target")), (4, 4), "{told:#?}");
}

/// spec 70 §10: nothing ends, and nothing fails, while a server takes requests and says nothing
#[test]
fn first_lists_that_do_not_come_are_an_error_after_a_minute() {
    let told = told_at_the_start(false, |_| Fault::Hang);

    let errors = told.iter().filter(|line| line.contains(BAD)).count();
    assert!((2..=3).contains(&errors), "{told:#?}");
}

/// spec 70 §10: each outage is told at once, and what comes and goes within seconds is none
#[test]
fn a_second_outage_within_a_minute_is_an_error_at_once() {
    let ((), log) = logged(Level::INFO, || {
        world(1, |world| async move {
            world.start().await;
            seconds(30).await;
            for lasting in [20, 20, 2, 2, 2] {
                world.sim.set_faults(|_| Fault::FailBefore(Seen::unauthorized()));
                world.sim.break_watches(WatchEnd::Disconnect);
                seconds(lasting).await;
                world.sim.clear_faults();
                seconds(5).await;
            }
            seconds(100).await;
        });
    });

    let told: Vec<_> = told(&log).iter().map(|line| line.contains(BAD)).collect();
    assert_eq!(told, [true, false, true, false], "{log}");
}

/// spec 70 §10: who runs has heard of the cluster, and tells what lasts
#[test]
fn a_token_that_is_rejected_later_is_an_error_each_minute_and_a_short_outage_is_none() {
    for (lasting, expected) in [(5, 0), (80, 2)] {
        let ((), log) = logged(Level::INFO, || {
            world(1, |world| async move {
                world.start().await;
                seconds(30).await;
                world.sim.set_faults(|_| Fault::FailBefore(Seen::unauthorized()));
                world.sim.break_watches(WatchEnd::Disconnect);
                seconds(lasting).await;
                world.sim.clear_faults();
                seconds(100).await;
            });
        });
        let told = told(&log);

        let errors: Vec<_> = told.iter().filter(|line| line.contains(BAD)).collect();
        assert_eq!(errors.len(), expected, "{told:#?}");
        assert!(errors.iter().all(|line| line.contains("401 Unauthorized")), "{told:#?}");
        assert_eq!(told.len() - errors.len(), expected.min(1), "{told:#?}");
    }
}
