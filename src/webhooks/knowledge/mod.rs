//! What the webhooks know of the clusters (spec 50 §2.7): the real [`View`](super::view::View).
//!
//! For what the enabled webhooks read, and nothing else, watches fill small stores from the beginning, in every replica;
//! readiness waits for them. Stores can be read from any thread. What they do not hold is read live, once for all who ask,
//! on the thread of the cluster: it takes questions over a channel.
//!
//! * `caches.rs`: the watches.
//! * `records.rs`: what is kept of the kinds that an index answers for; pure. Of single objects webhooks say themselves what is
//!   kept, see [`Projection`](super::projection::Projection).
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
pub(super) mod testing;
#[cfg(feature = "sim")]
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

use super::view::{ApiStatus, Details, Failure, Lookup};
use crate::api::quote::shown;
pub use caches::Caches;
use caches::Stores;
pub use live::LiveAnswer;
pub(super) use live::Question;
pub use offline::Manifests;
pub use sight::{Answers, Sight};

/// What is known of the clusters, readable from any thread. Cheap to clone.
#[derive(Clone)]
pub struct Knowledge {
    stores: Arc<Stores>,
    questions: mpsc::Sender<Question>,
}

/// Version and kind of what is looked up, for error texts.
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

/// The time of a read is over: the row "informer does not sync" of spec 50 §2.7.
fn too_late(lookup: &Lookup) -> Failure {
    if let Lookup::Collection(collection) = lookup {
        let message = format!("listing {} took too long; try again", shown(&collection.plural));
        return Failure::Errored { code: 500, message };
    }
    let (version, kind) = kind_of(lookup);
    Failure::Status(Box::new(ApiStatus {
        code: 504,
        reason: "Timeout".to_owned(),
        message: format!("Timeout: failed waiting for *{version}.{kind} Informer to sync"),
        details: Details::default(),
    }))
}

impl Knowledge {
    /// An empty store of ServiceAccounts, and the questions that follow from that.
    #[cfg(test)]
    pub(super) fn without_service_accounts() -> (Self, mpsc::Receiver<Question>) {
        let (questions, asked) = mpsc::channel(128);
        let mut stores = Stores::default();
        stores.objects.insert(&super::mutating::token_mount::SERVICE_ACCOUNTS, caches::ObjectStore::default());
        (Self { stores: Arc::new(stores), questions }, asked)
    }

    /// The view of an attempt, with what was read live for it.
    pub fn sight<'a>(&'a self, answers: &'a Answers) -> Sight<'a> {
        Sight { stores: &self.stores, answers }
    }

    /// Reads live, or waits until somebody else has read the same. Ends with an answer at `deadline` at the latest.
    pub async fn look(&self, lookup: Lookup, deadline: Instant) -> LiveAnswer {
        let late = LiveAnswer::Failed(too_late(&lookup));
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
