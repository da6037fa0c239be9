//! Waits, spec 10 §19.9.

use std::time::Duration;

use sim::{Fault, Seen, WatchEnd};
use tokio::time::{Instant, sleep};

use super::*;
use crate::producer::wait;

const RESOURCE: &str = "managedresources.resources.gardener.cloud";
const MINUTE: Duration = Duration::from_secs(60);
const HEALTHY: [(&str, &str, &str, &str); 2] =
    [("ResourcesApplied", "True", "R", "m"), ("ResourcesHealthy", "True", "R", "m")];

fn after(seconds: u64, sim: &Sim, act: impl FnOnce(&Sim) + Send + 'static) {
    let sim = sim.clone();
    tokio::spawn(async move {
        sleep(Duration::from_secs(seconds)).await;
        act(&sim);
    });
}

#[tokio::test(start_paused = true)]
async fn wait_ends_at_once_by_its_watch() {
    let (sim, client) = cluster();
    put_managed_resource(&sim, "mr", &[]);
    after(7, &sim, |sim| put_managed_resource(sim, "mr", &HEALTHY));
    let start = Instant::now();

    wait::until_healthy(&client, "ns", "mr", MINUTE).await.unwrap();

    assert_eq!(start.elapsed().as_secs(), 7);
    assert_eq!(sim.requests().len(), 2, "one read, one watch: {:?}", requests(&sim));
}

#[tokio::test(start_paused = true)]
async fn wait_notices_a_managed_resource_that_is_created_meanwhile() {
    let (sim, client) = cluster();
    after(7, &sim, |sim| put_managed_resource(sim, "mr", &HEALTHY));
    let start = Instant::now();

    wait::until_healthy(&client, "ns", "mr", MINUTE).await.unwrap();

    assert_eq!(start.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn wait_reads_every_two_seconds_without_a_watch() {
    let (sim, client) = cluster();
    sim.set_faults(|request| match request.verb.as_str() {
        "watch" => Fault::FailBefore(Seen::forbidden(request)),
        _ => Fault::None,
    });
    after(7, &sim, |sim| put_managed_resource(sim, "mr", &HEALTHY));
    let start = Instant::now();

    wait::until_healthy(&client, "ns", "mr", MINUTE).await.unwrap();

    assert_eq!(start.elapsed().as_secs(), 8);
}

#[tokio::test(start_paused = true)]
async fn wait_opens_a_broken_watch_again() {
    let (sim, client) = cluster();
    put_managed_resource(&sim, "mr", &[]);
    after(3, &sim, |sim| {
        sim.break_watches(WatchEnd::Disconnect);
        put_managed_resource(sim, "mr", &[]);
        sim.compact();
    });
    after(9, &sim, |sim| put_managed_resource(sim, "mr", &HEALTHY));
    let start = Instant::now();

    wait::until_healthy(&client, "ns", "mr", MINUTE).await.unwrap();

    assert_eq!(start.elapsed().as_secs(), 9);
}

#[tokio::test(start_paused = true)]
async fn wait_returns_the_last_error_at_the_deadline() {
    let (sim, client) = cluster();
    let start = Instant::now();

    let missing = wait::until_healthy(&client, "ns", "mr", MINUTE).await.unwrap_err();
    assert_eq!(start.elapsed(), MINUTE);
    put_managed_resource(&sim, "mr", &[]);
    let unhealthy = wait::until_healthy(&client, "ns", "mr", MINUTE).await.unwrap_err();
    put_managed_resource(&sim, "mr", &HEALTHY);
    let progressing = wait::until_healthy_and_not_progressing(&client, "ns", "mr", MINUTE).await.unwrap_err();
    let exists = wait::until_deleted(&client, "ns", "mr", MINUTE).await.unwrap_err();
    sim.set_faults(|_| Fault::Hang);
    let hanging = wait::until_healthy(&client, "ns", "mr", MINUTE).await.unwrap_err();

    let prefix = "retry failed with context deadline exceeded";
    let text = "managedresources.resources.gardener.cloud \"mr\" not found";
    assert_eq!(missing.to_string(), format!("{prefix}, last error: {text}"));
    assert_eq!(unhealthy.to_string(), format!("{prefix}, last error: managed resource ns/mr is not healthy"));
    assert_eq!(progressing.to_string(), format!("{prefix}, last error: managed resource ns/mr is still progressing"));
    assert_eq!(exists.to_string(), format!("{prefix}, last error: resource ns/mr still exists"));
    assert_eq!(hanging.to_string(), prefix);
    assert!(missing.is_deadline() && missing.codes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn wait_for_the_end_of_a_rollout() {
    let (sim, client) = cluster();
    put_managed_resource(&sim, "mr", &HEALTHY);
    after(5, &sim, |sim| {
        let [applied, healthy] = HEALTHY;
        put_managed_resource(sim, "mr", &[applied, healthy, ("ResourcesProgressing", "False", "R", "m")]);
    });

    wait::until_healthy_and_not_progressing(&client, "ns", "mr", MINUTE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn wait_ends_with_any_other_error_of_a_read() {
    let (sim, client) = cluster();
    sim.set_faults(|request| Fault::FailBefore(Seen::forbidden(request)));
    let start = Instant::now();

    let healthy = wait::until_healthy(&client, "ns", "mr", MINUTE).await.unwrap_err();
    let deleted = wait::until_deleted(&client, "ns", "mr", MINUTE).await.unwrap_err();
    let all = wait::until_all_deleted(&client, None, "part=x", MINUTE).await.unwrap_err();

    for error in [healthy, deleted, all] {
        assert!(matches!(error, wait::WaitError::Read(_)), "{error}");
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn wait_ends_at_once_by_a_deletion() {
    let (sim, client) = cluster();
    put_managed_resource(&sim, "a", &[]);
    put_managed_resource(&sim, "b", &[]);
    after(5, &sim, |sim| drop(sim.remove(RESOURCE, "ns", "a")));
    after(9, &sim, |sim| drop(sim.remove(RESOURCE, "ns", "b")));
    let start = Instant::now();

    wait::until_deleted(&client, "ns", "a", MINUTE).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 5);
    wait::until_all_deleted(&client, Some("ns"), "part=x", MINUTE).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 9);
    wait::until_all_deleted(&client, None, "part=other", MINUTE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn wait_reports_what_blocks_a_deletion() {
    let (sim, client) = cluster();
    let message = "error during apply of object \"v1/Pod/a/b\": Pod \"b\" is invalid: spec";
    put_managed_resource(&sim, "a", &[("ResourcesApplied", "Progressing", "DeletionPending", message)]);
    put_managed_resource(&sim, "b", &[("ResourcesApplied", "False", "ApplyFailed", "not told")]);

    let one = wait::until_deleted(&client, "ns", "a", MINUTE).await.unwrap_err();
    let other = wait::until_deleted(&client, "ns", "b", MINUTE).await.unwrap_err();

    let timeout = "retry failed with context deadline exceeded, last error:";
    let prefix = "error while waiting for all resources to be deleted:";
    assert_eq!(one.to_string(), format!("{prefix} {timeout} resource ns/a still exists:\n{message}"));
    assert_eq!(one.codes(), ["ERR_CONFIGURATION_PROBLEM"]);
    assert!(one.is_deadline());
    assert_eq!(other.to_string(), format!("{timeout} resource ns/b still exists"));
    assert!(other.codes().is_empty());
}

/// spec 10 §19.9 with its deviation (a)
#[tokio::test(start_paused = true)]
async fn wait_fails_for_a_list_that_does_not_get_empty() {
    let (sim, client) = cluster();
    let list = async |namespace| wait::until_all_deleted(&client, namespace, "part=x", MINUTE).await.unwrap_err();
    put_managed_resource(&sim, "a", &[]);
    put_managed_resource(&sim, "b", &[("ResourcesApplied", "True", "DeletionPending", "not told")]);

    let silent = list(None).await;
    put_managed_resource(&sim, "a", &[("ResourcesApplied", "False", "DeletionFailed", "why a")]);
    let one = list(Some("ns")).await;
    put_managed_resource(&sim, "b", &[("ResourcesApplied", "Progressing", "DeletionPending", "why b")]);
    let two = list(Some("ns")).await;

    let timeout = "retry failed with context deadline exceeded, last error: resource(s) [a b] still exists";
    let prefix = "error while waiting for all resources to be deleted: :";
    assert_eq!(silent.to_string(), timeout);
    assert_eq!(one.to_string(), format!("{prefix} 1 error occurred: {timeout}:\nwhy a"));
    assert_eq!(two.to_string(), format!("{prefix} 2 errors occurred: [{timeout}:\nwhy a, {timeout}:\nwhy b]"));
}
