use std::cell::Cell;

use super::*;
use crate::testing::{Reply, Server, json as answer, pieces};

fn event(version: u64) -> String {
    let metadata = json!({ "namespace": "default", "name": "a", "resourceVersion": version.to_string(), "uid": "u" });
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
    format!("{}\n", json!({ "type": "MODIFIED", "object": object }))
}

fn expired() -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired", "message": "old" })
}

fn expired_event() -> String {
    format!("{}\n", json!({ "type": "ERROR", "object": expired() }))
}

fn server(watch: impl Fn() -> Reply + Send + 'static) -> Server {
    let list = json!({ "kind": "ConfigMapList", "metadata": { "resourceVersion": "5" }, "items": [] });
    Server::new(move |seen| if seen.line.contains("watch=1") { watch() } else { answer(200, &list) })
}

fn requests(server: Server) -> (usize, usize) {
    let counted = Rc::new(Cell::new((0, 0)));
    let counts = counted.clone();
    universe(1, |universe: Universe| async move {
        let watches = Watches::new(&server.cluster(), &universe.env);
        let _watch = watches.open(WatchOptions::new(config_maps(), entry));
        watches.start();
        tokio::time::sleep(Duration::from_secs(60)).await;
        let first = server.lines().len();
        tokio::time::sleep(Duration::from_secs(600)).await;
        watches.stop();
        counts.set((first, server.lines().len() - first));
    });
    counted.get()
}

#[test]
fn watch_back_off_grows_if_each_watch_ends_after_the_same_event() {
    let (first, later) = requests(server(|| pieces(vec![Ok(event(6))])));

    assert!((3..=10).contains(&first) && (10..=30).contains(&later), "{first}, then {later}");
}

/// News is not delayed for long, but requests are not as fast as the answers.
#[test]
fn watch_is_reopened_about_once_a_second_if_each_ends_after_one_new_event() {
    let version = std::sync::atomic::AtomicU64::new(6);
    let next = move || version.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let (first, later) = requests(server(move || pieces(vec![Ok(event(next()))])));

    assert!((30..=76).contains(&first) && (370..=751).contains(&later), "{first}, then {later}");
}

#[test]
fn watch_back_off_grows_if_each_version_is_too_old() {
    let refuses: fn() -> Reply = || answer(410, &expired());
    let says_so_later: fn() -> Reply = || pieces(vec![Ok(expired_event())]);
    let after_an_event: fn() -> Reply = || pieces(vec![Ok(event(6)), Ok(expired_event())]);
    for watch in [refuses, says_so_later, after_an_event] {
        let (first, later) = requests(server(watch));

        assert!((4..=16).contains(&first) && (20..=60).contains(&later), "{first}, then {later}");
    }
}

#[test]
fn watch_that_ended_after_its_time_is_reopened_at_once() {
    scene(
        Start::List,
        |_| {},
        |scene| async move {
            for end in [WatchEnd::Close, WatchEnd::Close, WatchEnd::Expired] {
                tokio::time::sleep(Duration::from_secs(300)).await;
                scene.sim.clear_requests();
                scene.sim.break_watches(end);
                settle().await;

                let taken_up = scene.sim.requests().iter().any(|request| request.info.verb == "watch");
                assert!(taken_up, "after {end:?}");
            }
        },
    );
}
