//! The API server stops and comes back, the process stays.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{NAMESPACE, all_controllers, elected, load::Load};
use crate::{
    objects::Admin,
    support::{Component, ControlPlane, Grm, Options, Signal, eventually},
};

/// Requests time out after 30 s.
const FREEZE: Duration = Duration::from_secs(32);
const LIMIT: Duration = Duration::from_secs(60);
/// The election gives up after its renew deadline of 3 s.
const LOST: Duration = Duration::from_secs(10);
const WRITES: usize = 9;

/// spec 70 §12: only a leader that lost its Lease ends. spec 70 scenario 28; faults row 8.
#[tokio::test]
async fn api_server_that_freezes_or_restarts_does_not_end_the_process() -> Result<()> {
    let mut cluster = ControlPlane::start(Options::default()).await?;
    let admin = Admin::prepare(&cluster, NAMESPACE).await?;
    let mut grm = Grm::start(&cluster, all_controllers()).await?;
    let mut leader = Grm::start(&cluster, of_another_class(elected())).await?;
    let process = grm.id()?;
    let mut load = Load::new("api");
    write(&mut load, &admin).await?;
    eventually("everything is applied", LIMIT, async || load.complete(&admin).await).await?;

    // The first writes are in flight when the server freezes; the second are answered when it continues.
    write(&mut load, &admin).await?;
    cluster.signal(Component::Apiserver, Signal::Stop)?;
    let thaw = async {
        let frozen = Instant::now();
        let status = leader.wait_exit(LOST).await?;
        ensure!(status.code() == Some(1) && leader.log().contains("leader election lost"), "{}", leader.log());
        // The freeze is the fault: no event marks the timeout of a request.
        eventually("the server is frozen for long enough", LIMIT, async || {
            ensure!(frozen.elapsed() > FREEZE, "frozen for {:?}", frozen.elapsed());
            Ok(())
        })
        .await?;
        cluster.signal(Component::Apiserver, Signal::Continue)?;
        Ok(Instant::now())
    };
    let (thawed, ()) = tokio::try_join!(thaw, write(&mut load, &admin))?;
    eventually("the writes during the freeze are applied", LIMIT, async || load.complete(&admin).await).await?;
    println!("frozen for {FREEZE:?}: everything is applied {:.3?} later", thawed.elapsed());
    grm.wait_ready().await?;

    write(&mut load, &admin).await?;
    cluster.restart_apiserver().await?;
    let restarted = Instant::now();
    write(&mut load, &admin).await?;
    eventually("the writes around the restart are applied", LIMIT, async || load.complete(&admin).await).await?;
    println!("restarted: everything is applied {:.3?} later", restarted.elapsed());
    grm.wait_ready().await?;
    ensure!(grm.id()? == process, "the process has changed");
    Ok(())
}

async fn write(load: &mut Load, admin: &Admin) -> Result<()> {
    for _ in 0..WRITES {
        load.write(admin).await?;
    }
    Ok(())
}

/// Its instance leads, and has nothing to do.
fn of_another_class(mut config: Value) -> Value {
    config["controllers"] = json!({ "resourceClass": "another" });
    config["webhooks"] = json!({});
    config
}
