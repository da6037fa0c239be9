use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::{Instant, sleep};

const POLL: Duration = Duration::from_millis(20);

/// Interval between two probes where the elapsed time is measured.
const CLOSE_POLL: Duration = Duration::from_millis(1);

/// Returns the first `Ok` of `probe`. After `limit`, returns the last error of `probe` with the description `what`.
pub(crate) async fn eventually<T>(what: &str, limit: Duration, probe: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    poll(what, limit, POLL, probe).await
}

/// Like [`eventually`], but probes often enough that the elapsed time can be measured.
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
