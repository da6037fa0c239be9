//! How far the stores of a cluster have come: for probes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use cluster::{Record, Router, StoreState};
use kit::Listening;

/// How far the stores of one cluster have come, readable from any thread.
#[derive(Clone, Default)]
pub struct Synced {
    stores: Vec<SyncedStore>,
}

type SyncedStore = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

// === impl Synced ===

impl Synced {
    /// Whether all stores have had their first list; else why not.
    ///
    /// # Errors
    /// The reason of the first store that has not.
    pub fn check(&self) -> Result<(), String> {
        self.stores.iter().try_for_each(|store| store())
    }

    /// Adds the store of a router.
    pub(crate) fn add<R: Record>(&mut self, router: &Router<R>) -> Listening {
        let (store, listening) = synced(router);
        self.stores.push(store);
        listening
    }

    /// The stores of both.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.stores.extend(other.stores);
        self
    }
}

/// Whether a router's store has had its first list. A watch that fails later does not count: liveness would restart a
/// process that is as good as the next one, because its cluster is away (spec 70 trap 10).
fn synced<R: Record>(router: &Router<R>) -> (SyncedStore, Listening) {
    let (store, name) = (router.store().clone(), router.resource().to_string());
    let listed = Arc::new(AtomicBool::new(false));
    let listening = router.signal().listen({
        let (listed, store) = (listed.clone(), store.clone());
        move || {
            if store.state() == StoreState::Synced {
                listed.store(true, Ordering::Relaxed);
            }
        }
    });
    let check = move || match store.state() {
        StoreState::Synced => Ok(()),
        StoreState::Off => Err(format!("{name}: not watched any more")),
        _ if listed.load(Ordering::Relaxed) => Ok(()),
        StoreState::Starting => Err(format!("{name}: the first list is under way")),
        StoreState::Failing(error) => Err(format!("{name}: {error}")),
    };
    (Arc::new(check), listening)
}
