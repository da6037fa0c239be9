//! Whether the stores that readiness and liveness require have had their first list.

use std::sync::{Arc, PoisonError, RwLock};

use crate::{Store, StoreState};

/// Sync state of the stores of one cluster. Cheap to clone, readable from any thread.
#[derive(Clone, Default)]
pub struct Synced {
    /// One per cluster.
    stores: Vec<Arc<RwLock<Vec<SyncedStore>>>>,
}

type SyncedStore = Box<dyn Fn() -> Result<(), Missing> + Send + Sync>;

struct Missing {
    why: String,
    has_failed: bool,
}

impl Synced {
    pub(super) fn empty() -> Self {
        Self { stores: vec![Arc::default()] }
    }

    /// Fails with the reason of the first store that has not had its first list.
    pub fn check(&self) -> Result<(), String> {
        self.first(|_| true).map_or(Ok(()), Err)
    }

    /// Returns why a store has not had its first list, if the list was tried and failed.
    pub fn failure(&self) -> Option<String> {
        self.first(|missing| missing.has_failed)
    }

    fn first(&self, is_meant: impl Fn(&Missing) -> bool) -> Option<String> {
        self.stores.iter().find_map(|stores| {
            let stores = stores.read().unwrap_or_else(PoisonError::into_inner);
            stores.iter().find_map(|store| store().err().filter(&is_meant)).map(|missing| missing.why)
        })
    }

    /// Combines the stores of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.stores.extend(other.stores);
        self
    }

    /// Adds a store. A watch that fails after its first list does not count: if the cluster is down, liveness would
    /// restart a process in vain (spec 70 trap 10).
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
