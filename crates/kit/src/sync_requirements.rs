//! How long a controller waits for its required caches, and what happens then (spec 70 §7.1).

use std::time::Duration;

use super::{Env, SyncRequirement};

const STEP: Duration = Duration::from_secs(1); // the elapsed time is counted in steps, because it may stand still

pub(super) struct Waiting {
    controller: &'static str,
    requirement: SyncRequirement,
    waited: Duration, // time waited so far, without the time in which it was excused
}

impl Waiting {
    pub(super) fn new(controller: &'static str, requirement: SyncRequirement) -> Self {
        Self { controller, requirement, waited: Duration::ZERO }
    }
}

/// Waits until all requirements are met. A requirement that is not met in time ends the process: the controller cannot
/// work without the kind, and the exit informs the operator.
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
