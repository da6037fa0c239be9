//! How long a controller waits for the stores it needs, and what then (spec 70 §7.1).

use std::time::Duration;

use super::{Env, SyncRequirement};

/// The time that has passed is counted in such steps, because it may stand still.
const STEP: Duration = Duration::from_secs(1);

/// A need that is not there yet.
pub(super) struct Waiting {
    /// The name of the duty.
    controller: &'static str,
    requirement: SyncRequirement,
    /// For how long it was waited, the time in which it was excused left out.
    waited: Duration,
}

impl Waiting {
    pub(super) fn new(controller: &'static str, requirement: SyncRequirement) -> Self {
        Self { controller, requirement, waited: Duration::ZERO }
    }
}

/// Waits until all of this is there. What is not in time ends the process: a kind that cannot be read is nothing to go on
/// without, and the exit is how an operator learns of it.
pub(super) async fn wait(mut waiting: Vec<Waiting>, env: Env) {
    loop {
        waiting.retain(|one| !(one.requirement.ready)());
        if waiting.is_empty() {
            return;
        }
        for Waiting { controller, requirement, waited } in &mut waiting {
            if *waited >= env.sync_timeout {
                let complaint = requirement.complaint();
                tracing::error!(controller, requirement = complaint, "Could not wait for Cache to sync");
                return env.fatal.end(format!("failed to wait for {controller} caches to sync {complaint}"));
            }
            if !requirement.is_excused() {
                *waited += STEP;
            }
        }
        tokio::time::sleep(STEP).await;
    }
}
