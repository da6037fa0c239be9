//! Waiting for a condition that another process fulfils.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::{Instant, sleep};

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(20);

/// The first `Ok` of `probe`. After `limit`, the last error of `probe`, with `what` was waited for.
pub(crate) async fn eventually<T>(what: &str, limit: Duration, mut probe: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        match probe().await {
            Ok(value) => return Ok(value),
            Err(error) if Instant::now() >= deadline => {
                return Err(error).with_context(|| format!("not within {limit:?}: {what}"));
            }
            Err(_) => sleep(POLL).await,
        }
    }
}
