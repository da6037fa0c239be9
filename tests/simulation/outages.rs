//! What the log says while a cluster is unusable (spec 70 §10).

use gardener_resource_manager::api::resources::crd;
use sim::{Fault, RequestInfo, Seen, WatchEnd};
use tracing::Level;

use crate::{
    log_capture::logged,
    objects::{definition, widget},
    world::{config_map, seconds, world},
};

const BAD: &str = "The cluster cannot be used";
const GOOD: &str = "The cluster can be used again";

type Faults = fn(&RequestInfo) -> Fault;

fn reported(log: &str) -> Vec<String> {
    let is_meant = |line: &&str| line.contains(BAD) || line.contains(GOOD);
    log.lines().filter(is_meant).map(|line| line.split_once("Z ").map_or(line, |(_, rest)| rest).to_owned()).collect()
}

/// Returns the outage records of a program that starts with a fault, which ends after 125 s.
fn reported_at_the_start(separate: bool, fault: Faults) -> Vec<String> {
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
    reported(&log)
}

/// spec 70 §10: a wrong token, host or CA and missing rights are logged once per cluster, at once and each minute.
#[test]
fn unusable_cluster_at_the_start_is_an_error_at_once_and_each_minute() {
    let unauthorized = |_: &RequestInfo| Fault::FailBefore(Seen::unauthorized());
    let away = |_: &RequestInfo| Fault::FailBefore(Seen::Disconnect);
    let forbidden = |info: &RequestInfo| match (info.verb.as_str(), info.resource.as_str()) {
        ("list", "managedresources") => Fault::FailBefore(Seen::forbidden(info)),
        _ => Fault::None,
    };
    let table: [(Faults, &str); 3] =
        [(unauthorized, "401 Unauthorized"), (away, "connection"), (forbidden, "managedresources")];
    for (fault, cause) in table {
        let reported = reported_at_the_start(false, fault);

        let (last, errors) = reported.split_last().expect("records");
        assert_eq!(errors.len(), 3, "{reported:#?}");
        for error in errors {
            assert!(error.trim_start().starts_with("ERROR") && error.contains(cause), "{error}");
            let place = r#"cluster="source" server="simulator" kubeconfig="/kubeconfig" context="test""#;
            assert!(error.contains(place), "{error}");
        }
        assert!(last.trim_start().starts_with("INFO") && last.contains(GOOD), "{last}");
    }
}

/// spec 70 §10: a missing definition is an error with the command that installs it, and ends with the definition.
#[test]
fn missing_definition_is_an_error_with_its_remedy() {
    let ((), log) = logged(Level::INFO, || {
        world(1, |world| async move {
            let definition = "managedresources.resources.gardener.cloud";
            world.sim.remove("customresourcedefinitions.apiextensions.k8s.io", "", definition);
            seconds(1).await;
            world.start().await;
            seconds(70).await;
            let error = world.synced().expect_err("the kind is not served");
            assert!(error.contains("kubectl apply -f deploy/crd-managedresources.yaml"), "{error}");
            world.sim.put(serde_saphyr::from_str(crd::MANAGED_RESOURCES).expect("YAML")).expect("the definition");
            seconds(200).await;
        });
    });
    let reported = reported(&log);

    let (last, errors) = reported.split_last().expect("records");
    assert!(last.contains(GOOD), "{last}");
    assert!(!errors.is_empty(), "{log}");
    for error in errors {
        let cause = "the API server does not serve resources.gardener.cloud/v1alpha1, Kind=ManagedResource; this installs it: \
                     kubectl apply -f deploy/crd-managedresources.yaml";
        assert!(error.contains(cause), "{error}");
    }
}

/// spec 71 §8 R4; spec 70 §7.1: deployers read the condition, and hand out new credentials.
#[test]
fn credentials_that_the_target_rejects_from_the_start_are_reported_in_the_condition_and_end_nothing() {
    world(1, |world| async move {
        world.separate.set(true);
        world.sim.set_faults(|info| match info.resource.as_str() {
            "managedresources" | "secrets" | "events" => Fault::None,
            _ => Fault::FailBefore(Seen::unauthorized()),
        });
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        seconds(10).await;

        let (status, _, message) = world.condition("one", "ResourcesApplied").expect("a condition");
        assert!(status == "False" && message.contains(": Unauthorized"), "{status} {message}");
        seconds(600).await;
        world.sim.clear_faults();
        seconds(100).await;
        world.applied("one").await;
    });
}

/// Metadata is enough for custom kinds. The program learns late which kinds these are.
#[test]
fn custom_kind_is_watched_without_bodies_after_a_start_with_rejected_credentials() {
    let ((), log) = logged(Level::INFO, || {
        world(1, |world| async move {
            world.separate.set(true);
            world.sim.put(definition()).expect("the definition is valid");
            world.sim.set_faults(|info| match info.resource.as_str() {
                "managedresources" | "secrets" | "events" => Fault::None,
                _ => Fault::FailBefore(Seen::unauthorized()),
            });
            world.start().await;
            world.bundle("one", &[widget(1)]);
            seconds(10).await;
            world.sim.set_faults(|info| match info.resource.as_str() {
                "customresourcedefinitions" => Fault::FailBefore(Seen::internal_error("not yet")),
                _ => Fault::None,
            });
            seconds(60).await;
            world.sim.clear_faults();
            world.applied("one").await;
        });
    });

    let watched: Vec<_> =
        log.lines().filter(|line| line.contains("watching a kind") && line.contains("widgets")).collect();
    assert!(matches!(&*watched, [line] if line.contains("metadata_only=true")), "{watched:#?}");
}

/// spec 70 §10
#[test]
fn unusable_clusters_are_logged_by_their_names() {
    let reported = reported_at_the_start(true, |_| Fault::FailBefore(Seen::unauthorized()));

    let of = |cluster: &str| reported.iter().filter(|line| line.contains(&format!("cluster=\"{cluster}\""))).count();
    assert_eq!((of("source"), of("target")), (4, 4), "{reported:#?}");
}

/// spec 70 §10: no request ends or fails while a server accepts requests and does not answer.
#[test]
fn unanswered_first_lists_are_an_error_after_a_minute() {
    let reported = reported_at_the_start(false, |_| Fault::Hang);

    let errors = reported.iter().filter(|line| line.contains(BAD)).count();
    assert!((2..=3).contains(&errors), "{reported:#?}");
}

/// spec 70 §10: each outage is logged at once; a fault of some seconds is not an outage.
#[test]
fn second_outage_within_a_minute_is_an_error_at_once() {
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

    let reported: Vec<_> = reported(&log).iter().map(|line| line.contains(BAD)).collect();
    assert_eq!(reported, [true, false, true, false], "{log}");
}

/// spec 70 §10: a running program has had contact with the cluster, and logs only lasting outages.
#[test]
fn token_rejected_later_is_an_error_each_minute_but_not_for_seconds() {
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
        let reported = reported(&log);

        let errors: Vec<_> = reported.iter().filter(|line| line.contains(BAD)).collect();
        assert_eq!(errors.len(), expected, "{reported:#?}");
        assert!(errors.iter().all(|line| line.contains("401 Unauthorized")), "{reported:#?}");
        assert_eq!(reported.len() - errors.len(), expected.min(1), "{reported:#?}");
    }
}
