//! The shutdown. Its order (contract rule 10): no new reconcile, end of reconciles, watches, fence, lease, Events.

use std::time::Duration;

use kit::{Deadline, post};
use tokio::time::timeout_at;

use super::{Process, Program, life::LEADER};
use crate::{
    leader::{Abandon, Release},
    root::PATIENCE,
};

/// Time limit of the whole shutdown (spec 70 §13).
pub const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// Rest of the grace period after reconciles have used up their patience.
pub(super) const LAST: Duration = GRACE_PERIOD.saturating_sub(PATIENCE);

const SHUTTING_DOWN: &str = "the process is shutting down";

/// How a process was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// All reconciles ended by themselves.
    pub finished: bool,
    /// The lease was ours and is free now.
    pub released: bool,
}

impl<P: Program> Process<P> {
    /// Stops everything: reconciles get `patience` to end by themselves, and everything after them one second in total.
    pub async fn stop(self, patience: Duration) -> Stopped {
        let deadline = Deadline::after(patience + LAST);
        let finished = self.stop_work(patience).await;
        Stopped { finished, released: self.leave(deadline).await }
    }

    /// No write is sent afterwards. Returns `true` if all reconciles ended by themselves in time.
    pub(super) async fn stop_work(&self, patience: Duration) -> bool {
        tracing::info!("Stopping controllers");
        self.conductor.abort();
        let finished = self.root.stop(patience).await;
        self.fence.shut(SHUTTING_DOWN);
        self.prober.abort();
        self.versions.abort();
        self.clusters.abort();
        if !finished {
            tracing::error!("Reconciles were cut off because they did not end in time");
        }
        finished
    }

    /// Releases the lease if no write is in flight any more. Returns whether the lease is free now.
    pub(super) async fn leave(self, deadline: Deadline) -> bool {
        let mut released = false;
        if let Some(election) = &self.election {
            let quiet = timeout_at(deadline.0, self.fence.quiet()).await.is_ok();
            if quiet {
                released = matches!(timeout_at(deadline.0, election.send(Release)).await, Ok(Ok(true)));
            } else {
                tracing::warn!("the lease is left to expire because a write may still take effect");
            }
            post(election, Abandon);
            self.env.status_registry.leave(LEADER);
        }
        self.root.flush_events(deadline).await;
        tracing::info!(released, "Stopped");
        released
    }
}
