//! Waiting for a condition that another process fulfils.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::{Instant, sleep};

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(20);

/// How often, where the time that something takes is what is looked for.
const CLOSE_POLL: Duration = Duration::from_millis(1);

/// The first `Ok` of `probe`. After `limit`, the last error of `probe`, with `what` was waited for.
pub(crate) async fn eventually<T>(what: &str, limit: Duration, probe: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    poll(what, limit, POLL, probe).await
}

/// As [`eventually`], looking so often that the time until it returns is the time that it took.
pub(crate) async fn promptly<T>(what: &str, limit: Duration, probe: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    poll(what, limit, CLOSE_POLL, probe).await
}

async fn poll<T>(what: &str, limit: Duration, pause: Duration, mut probe: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        match probe().await {
            Ok(value) => return Ok(value),
            Err(error) if Instant::now() >= deadline => {
                return Err(error).with_context(|| format!("not within {limit:?}: {what}"));
            }
            Err(_) => sleep(pause).await,
        }
    }
}
