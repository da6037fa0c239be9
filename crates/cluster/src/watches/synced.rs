//! Whether the stores that readiness and liveness ask for have had their first list.

use std::sync::{Arc, PoisonError, RwLock};

use crate::{Store, StoreState};

/// How far the stores of one cluster have come. Cheap to clone, readable from any thread.
#[derive(Clone, Default)]
pub struct Synced {
    /// Of each cluster.
    stores: Vec<Arc<RwLock<Vec<SyncedStore>>>>,
}

type SyncedStore = Box<dyn Fn() -> Result<(), Missing> + Send + Sync>;

/// Why a store has not had its first list.
struct Missing {
    why: String,
    /// Whether that was tried, and failed.
    has_failed: bool,
}

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
        self.first(|_| true).map_or(Ok(()), Err)
    }

    /// Why a store has not had its first list, if that was tried and failed.
    pub fn failure(&self) -> Option<String> {
        self.first(|missing| missing.has_failed)
    }

    fn first(&self, is_meant: impl Fn(&Missing) -> bool) -> Option<String> {
        self.stores.iter().find_map(|stores| {
            let stores = stores.read().unwrap_or_else(PoisonError::into_inner);
            stores.iter().find_map(|store| store().err().filter(&is_meant)).map(|missing| missing.why)
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
        let missing = move |why: &str, has_failed| Err(Missing { why: format!("{name}: {why}"), has_failed });
        let check = move || match store.state() {
            StoreState::Synced => Ok(()),
            StoreState::Off => missing("not watched any more", false),
            StoreState::Starting | StoreState::Failing(_) if store.is_listed() => Ok(()),
            StoreState::Starting => missing("the first list is not complete", false),
            StoreState::Failing(error) => missing(&error, true),
        };
        if let Some(stores) = self.stores.first() {
            stores.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(check));
        }
    }
}
