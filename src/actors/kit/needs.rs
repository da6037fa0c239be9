//! How long a controller waits for the stores it needs, and what then (spec 70 §7.1).

use std::time::Duration;

use super::{Env, Need};

/// The time that has passed is counted in such steps, because it may stand still.
const STEP: Duration = Duration::from_secs(1);

/// Waits until all of this is there. What is not in time ends the process: somebody has to be told that a kind cannot be
/// read, and the next process, or the next leader, may do better. `needs`: with the name of the duty.
pub(super) async fn wait(mut needs: Vec<(&'static str, Need)>, env: Env) {
    let mut waited = vec![Duration::ZERO; needs.len()];
    loop {
        let mut index = 0;
        while let Some((_, need)) = needs.get(index) {
            if (need.ready)() {
                needs.remove(index);
                waited.remove(index);
            } else {
                index += 1;
            }
        }
        for ((controller, need), waited) in needs.iter().zip(&mut waited) {
            if *waited >= env.sync_timeout {
                let (need, controller) = (need.complaint(), *controller);
                tracing::error!(controller, need, "Could not wait for Cache to sync");
                return env.fatal.end(format!("failed to wait for {controller} caches to sync {need}"));
            }
            *waited += if need.is_excused() { Duration::ZERO } else { STEP };
        }
        if needs.is_empty() {
            return;
        }
        tokio::time::sleep(STEP).await;
    }
}
