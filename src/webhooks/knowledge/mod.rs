//! What the webhooks know of the target cluster (spec 50 §2.7): the real [`View`](super::view::View).
//!
//! For what the enabled webhooks read, and nothing else, watches fill small stores from the beginning, in every replica;
//! readiness waits for them. Stores can be read from any thread. What they do not hold is read live, once for all who ask,
//! on the thread of the cluster: it takes questions over a channel.
//!
//! * `caches.rs`: the watches.
//! * `records.rs`: what is kept of each kind; pure.
//! * `index.rs`: what autoscalers scale, kept up to date with each change; pure. The same for the taints of nodes is part
//!   of their webhook.
//! * `sight.rs`: the view of one attempt: stores, and what was read live for it.
//! * `live.rs`: live reads.
//! * `offline.rs`: a view of manifests instead of a cluster.

mod caches;
mod index;
mod live;
mod offline;
mod records;
mod sight;

#[cfg(feature = "sim")]
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

use super::view::{ApiStatus, Details, Failure, Lookup};
pub use caches::Caches;
use caches::Stores;
pub use live::Known;
pub(super) use live::Question;
pub use offline::Manifests;
pub use sight::{Answers, Sight};

/// What is known of the target cluster, readable from any thread. Cheap to clone.
#[derive(Clone)]
pub struct Knowledge {
    stores: Arc<Stores>,
    questions: mpsc::Sender<Question>,
}

/// Names of the kinds in error texts.
fn kind_of(lookup: &Lookup) -> &'static str {
    match lookup {
        Lookup::ServiceAccount(_) => "ServiceAccount",
        Lookup::Namespace(_) => "Namespace",
        Lookup::Autoscalers(_) => "HorizontalPodAutoscaler",
        Lookup::LoadBalancing(_) => "ConfigMap",
        Lookup::Gateway(_) => "Service",
        Lookup::Nodes => "Node",
    }
}

/// The time of a read is over: the row "informer does not sync" of spec 50 §2.7.
fn too_late(lookup: &Lookup) -> Failure {
    Failure::Status(Box::new(ApiStatus {
        code: 504,
        reason: "Timeout".to_owned(),
        message: format!("Timeout: failed waiting for *v1.{} Informer to sync", kind_of(lookup)),
        details: Details::default(),
    }))
}

// === impl Knowledge ===

impl Knowledge {
    /// An empty store of ServiceAccounts, and the questions that follow from that.
    #[cfg(test)]
    pub(super) fn without_service_accounts() -> (Self, mpsc::Receiver<Question>) {
        let (questions, asked) = mpsc::channel(128);
        let stores = Stores { service_accounts: Some(cluster::Store::default()), ..Stores::default() };
        (Self { stores: Arc::new(stores), questions }, asked)
    }

    /// The view of an attempt, with what was read live for it.
    pub fn sight<'a>(&'a self, answers: &'a Answers) -> Sight<'a> {
        Sight { stores: &self.stores, answers }
    }

    /// Reads live, or waits until somebody else has read the same. Ends with an answer at `deadline` at the latest.
    pub async fn look(&self, lookup: Lookup, deadline: Instant) -> Known {
        let late = Known::Failed(too_late(&lookup));
        let (reply, answer) = oneshot::channel();
        let asked = async {
            // Closed: the process ends.
            self.questions.send(Question { lookup, reply }).await.ok()?;
            answer.await.ok()
        };
        timeout_at(deadline, asked).await.ok().flatten().unwrap_or(late)
    }
}

impl std::fmt::Debug for Knowledge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Knowledge").field("stores", &self.stores).finish_non_exhaustive()
    }
}
