//! Whether the stores that readiness and liveness ask for have had their first list.

use std::sync::{Arc, PoisonError, RwLock};

use crate::{Store, StoreState};

/// How far the stores of one cluster have come. Cheap to clone, readable from any thread.
#[derive(Clone, Default)]
pub struct Synced {
    /// Of each cluster.
    stores: Vec<Arc<RwLock<Vec<SyncedStore>>>>,
}

type SyncedStore = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

// === impl Synced ===

impl Synced {
    /// Of one cluster, without a store.
    pub(super) fn empty() -> Self {
        Self { stores: vec![Arc::default()] }
    }

    /// Whether all stores have had their first list; else why not.
    ///
    /// # Errors
    /// The reason of the first store that has not.
    pub fn check(&self) -> Result<(), String> {
        self.stores.iter().try_for_each(|stores| {
            stores.read().unwrap_or_else(PoisonError::into_inner).iter().try_for_each(|store| store())
        })
    }

    /// The stores of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.stores.extend(other.stores);
        self
    }

    /// Adds a store. A watch that fails after its first list does not count: liveness would restart a process that is as
    /// good as the next one, because its cluster is away (spec 70 trap 10).
    pub(super) fn add<R: Send + Sync + 'static>(&self, name: String, store: Store<R>) {
        let check = move || match store.state() {
            StoreState::Synced => Ok(()),
            StoreState::Off => Err(format!("{name}: not watched any more")),
            StoreState::Starting | StoreState::Failing(_) if store.is_listed() => Ok(()),
            StoreState::Starting => Err(format!("{name}: the first list is under way")),
            StoreState::Failing(error) => Err(format!("{name}: {error}")),
        };
        if let Some(stores) = self.stores.first() {
            stores.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(check));
        }
    }
}
