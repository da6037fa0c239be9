//! What discovery knows, for readers on other threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kit::quote::cut_after;

use super::DiscoveryState;

/// At most this many groups that cannot be read are named.
const MOST_FAILED: usize = 50;

/// Longest text of an error, in characters.
const LONGEST_TEXT: usize = 200;

/// A view of the discovery of one cluster. Cheap to clone, for any thread.
#[derive(Debug, Clone, Default)]
pub struct DiscoveryView(Arc<Mutex<DiscoverySummary>>);

/// What the discovery of a cluster knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiscoverySummary {
    /// When it last read the kinds, or tried to.
    pub at: Option<Timestamp>,
    /// Number of known kinds; a kind counts once per version.
    pub kinds: usize,
    /// Groups that cannot be read, with the error. An empty name stands for all groups, or for the core group.
    pub failed: Vec<(String, String)>,
}

impl DiscoveryView {
    /// Returns a copy of the summary.
    pub fn read(&self) -> DiscoverySummary {
        self.summary().clone()
    }

    /// Takes what is known now. `at`: a fetch has ended.
    pub(super) fn show(&self, state: &DiscoveryState, at: Option<Timestamp>) {
        let versions = || {
            state
                .served
                .iter()
                .flat_map(|served| &served.0)
                .flat_map(|(group, all)| all.iter().map(move |version| (group, version)))
        };
        let failure = state.failure.iter().map(|error| (String::new(), error.to_string()));
        let stale = versions().filter_map(|(group, version)| Some((group.to_string(), version.stale.clone()?)));
        let failed = failure.chain(stale).take(MOST_FAILED);
        let mut summary = self.summary();
        summary.at = at.or(summary.at);
        summary.kinds = versions().map(|(_, version)| version.resources.len()).sum();
        summary.failed = failed.map(|(group, error)| (group, cut_after(LONGEST_TEXT, &error).into_owned())).collect();
    }

    fn summary(&self) -> MutexGuard<'_, DiscoverySummary> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
