use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{NAMESPACE, all_controllers};
use crate::{
    objects::Admin,
    support::{ControlPlane, Grm, Options},
};

const STARTS: usize = 5;
/// A tenth of a second; a debug build on a busy machine gets more.
const LIMIT: Duration = if cfg!(debug_assertions) { Duration::from_secs(1) } else { Duration::from_millis(100) };

/// spec 70 §6 and scenario 22: ready as soon as the caches are filled, which takes no time in an empty cluster.
#[tokio::test]
async fn readiness_in_an_empty_cluster_comes_at_once() -> Result<()> {
    let cluster = ControlPlane::start(Options::default()).await?;
    // The cluster contains only the definition of ManagedResources.
    Admin::prepare(&cluster, NAMESPACE).await?;

    for (name, config) in [("the default controllers", json!({})), ("all controllers", all_controllers())] {
        let mut grm = Grm::start(&cluster, config).await?;
        let mut times = Vec::new();
        for _ in 0..STARTS {
            times.push(grm.restart_promptly().await?);
        }
        times.sort_unstable();
        println!("ready with {name} after {times:.1?}");
        ensure!(times[STARTS / 2] <= LIMIT, "{name}: ready after {times:?}, half of them should be below {LIMIT:?}");
    }
    Ok(())
}
