//! The webhooks' knowledge of the clusters (spec 50 §2.7): the real [`View`](super::view::View). In every replica,
//! watches fill small stores with only what the enabled webhooks read; readiness waits for them. Any thread can read
//! the stores. What they lack is read live on the thread of the cluster, once for all callers.
//! * `caches.rs`: the watches. `sight.rs`: the view of one attempt: stores, and its live reads (`live.rs`).
//!   `offline.rs`: a view of manifests instead of a cluster.
//! * `records.rs`: cached fields of the kinds that have an index (`index.rs` for autoscalers; the webhook itself for
//!   taints of Nodes). Other fields are declared by each [`CachedKind`](super::cached_kind::CachedKind).

mod caches;
mod index;
mod live;
mod offline;
mod records;
mod sight;

#[cfg(feature = "sim")]
#[cfg(test)]
pub(super) mod testing;
#[cfg(feature = "sim")]
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use caches::Caches;
use caches::Stores;
use cluster::Status;
use kit::quote::shown;
pub use live::LiveAnswer;
pub(super) use live::Question;
pub use offline::Manifests;
pub use sight::{Answers, Sight};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

use super::view::{Failure, Lookup};

/// Knowledge of the clusters, readable from any thread. Cheap to clone.
#[derive(Clone)]
pub struct Knowledge {
    stores: Arc<Stores>,
    questions: mpsc::Sender<Question>,
}

fn kind_of(lookup: &Lookup) -> (&str, &str) {
    match lookup {
        Lookup::Object { cached_kind, .. } | Lookup::List(cached_kind) | Lookup::Objects(cached_kind) => {
            (cached_kind.objects().version, cached_kind.objects().kind)
        }
        Lookup::Autoscalers(_) => ("v1", "HorizontalPodAutoscaler"),
        Lookup::Nodes => ("v1", "Node"),
        Lookup::Collection(collection) => (&collection.version, &collection.kind),
    }
}

/// Returns the error of a read that timed out: the row "informer does not sync" of spec 50 §2.7.
fn too_late(lookup: &Lookup) -> Failure {
    if let Lookup::Collection(collection) = lookup {
        let message = format!("listing {} took too long; try again", shown(&collection.plural));
        return Failure::Errored { code: 500, message };
    }
    let (version, kind) = kind_of(lookup);
    Failure::Status(Box::new(Status {
        code: 504,
        reason: "Timeout".to_owned(),
        message: format!("Timeout: failed waiting for *{version}.{kind} Informer to sync"),
        ..Status::default()
    }))
}

impl Knowledge {
    #[cfg(test)]
    pub(super) fn without_service_accounts() -> (Self, mpsc::Receiver<Question>) {
        let (questions, asked) = mpsc::channel(128);
        let mut stores = Stores::default();
        stores.objects.insert(&super::mutating::token_mount::SERVICE_ACCOUNTS, caches::ObjectStore::default());
        (Self { stores: Arc::new(stores), questions }, asked)
    }

    /// Returns the view of an attempt, with its live reads.
    pub fn sight<'a>(&'a self, answers: &'a Answers) -> Sight<'a> {
        Sight { stores: &self.stores, answers }
    }

    /// Reads live, or waits for an equal read in flight. Answers at `deadline` at the latest.
    pub async fn look(&self, lookup: Lookup, deadline: Instant) -> LiveAnswer {
        let late = LiveAnswer::Failed(too_late(&lookup));
        let (reply, answer) = oneshot::channel();
        let asked = async {
            // The channel is closed when the process ends.
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
