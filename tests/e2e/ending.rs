//! How the process ends, and how it reacts to signals.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::select;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::{
    objects::{Admin, bundles, core, managed_resource, objects, secret},
    support::{Component, ControlPlane, Grm, Options, Settings, Signal, eventually},
};

const NAMESPACE: &str = "ending";
const LIMIT: Duration = Duration::from_secs(60);
/// spec 70 §13, and a second for a busy machine.
const GRACE: Duration = Duration::from_secs(6);
/// Enough objects that the reconcile still runs when the first exists.
const OBJECTS: usize = 200;

/// spec 70 §9.3, scenario 31: the allocator must be configured first of all, so the process re-executes itself once.
#[tokio::test]
async fn profiling_serves_profiles_and_does_not_delay_the_end() -> Result<()> {
    let cluster = ControlPlane::start(Options::default()).await?;
    Admin::prepare(&cluster, NAMESPACE).await?;
    let mut grm = Grm::start(&cluster, json!({ "debugging": { "enableProfiling": true } })).await?;
    let process = grm.id()?;

    let heap = grm.metrics("/debug/pprof/heap").await?;
    ensure!(heap.code == 200 && heap.body.starts_with('\u{1f}'), "no compressed profile: {} {}", heap.code, heap.body);
    ensure!(grm.metrics("/debug/pprof/profile?seconds=1").await?.code == 200, "no CPU profile");
    ensure!(grm.probe("/debug/pprof/heap").await?.code == 404, "the port of the probes has profiles");
    ensure!(grm.id()? == process, "the process has changed");

    // Either request can come first. The other is refused, which proves that a profile is being taken.
    let [one, other] = [(); 2].map(|()| Box::pin(grm.metrics("/debug/pprof/profile?seconds=60")));
    let (refused, profile) = timeout(LIMIT, select(one, other)).await?.factor_first();
    let refused = refused?;
    ensure!(refused.body.contains("cpu profiling already in use"), "{} {}", refused.code, refused.body);
    grm.signal(Signal::Terminate)?;
    let given_up = profile.await?;
    ensure!(given_up.code == 503, "{} {}", given_up.code, given_up.body);
    let status = grm.wait_exit(GRACE).await?;
    ensure!(status.code() == Some(0), "{status}: {}", grm.log());
    Ok(())
}

/// spec 70 §13, scenario 27: an API server that does not answer delays neither a reconcile nor the end for long.
#[tokio::test]
async fn grace_period_ends_a_reconcile_that_hangs() -> Result<()> {
    let cluster = ControlPlane::start(Options::default()).await?;
    let admin = Admin::prepare(&cluster, NAMESPACE).await?;
    let many: Vec<Value> = (0..OBJECTS).flat_map(|index| objects(NAMESPACE, &format!("o{index}"), "v")).collect();
    let mut grm = Grm::start(&cluster, json!({})).await?;
    admin.create(&core(NAMESPACE, "secrets"), &secret(NAMESPACE, "bundle", &many)).await?;
    admin.create(&bundles(NAMESPACE), &managed_resource(NAMESPACE, "bundle")).await?;
    eventually("the reconcile is under way", LIMIT, async || {
        ensure!(admin.list(&core(NAMESPACE, "configmaps")).await?.len() > 1, "no object exists");
        Ok(())
    })
    .await?;

    cluster.signal(Component::Apiserver, Signal::Stop)?;
    let begin = Instant::now();
    let status = grm.terminate(GRACE).await;
    let took = begin.elapsed();
    cluster.signal(Component::Apiserver, Signal::Continue)?;

    let (status, log) = (status?, grm.log());
    ensure!(status.code() == Some(1) && took > GRACE - Duration::from_secs(3), "{status} after {took:?}: {log}");
    ensure!(log.contains("failed waiting for all runnables to end within grace period of 5s"), "{log}");
    Ok(())
}

/// spec 70 §14, scenario 29
#[tokio::test]
async fn cluster_identity_that_is_required_but_missing_ends_the_process() -> Result<()> {
    let cluster = ControlPlane::start(Options::default()).await?;
    Admin::prepare(&cluster, NAMESPACE).await?;
    let start = |identity: &str| {
        let config = json!({ "controllers": { "clusterID": identity } });
        Grm::spawn(&cluster, &cluster, Settings { config, environment: Vec::new() })
    };

    let mut required = start("<cluster>")?;
    let status = required.wait_exit(LIMIT).await?;
    let log = required.log();
    ensure!(status.code() == Some(1) && log.contains("unable to determine cluster id"), "{status}: {log}");
    start("<default>")?.wait_ready().await?;
    Ok(())
}

/// spec 70 §10: the level of the log changes while the process runs.
#[tokio::test]
async fn sigusr1_turns_debug_logs_on_and_off() -> Result<()> {
    let cluster = ControlPlane::start(Options::default()).await?;
    Admin::prepare(&cluster, NAMESPACE).await?;
    let grm = Grm::start(&cluster, json!({})).await?;

    for level in ["debug", "info"] {
        grm.signal(Signal::User1)?;
        eventually("the level changes", LIMIT, async || {
            let reported =
                grm.log().lines().rfind(|line| line.contains("The level of the log changes")).map(str::to_owned);
            ensure!(
                reported.as_ref().is_some_and(|line| line.contains(&format!("\"now\":\"{level}\""))),
                "{reported:?}"
            );
            Ok(())
        })
        .await?;
    }
    grm.probe("/healthz").await?;
    Ok(())
}
