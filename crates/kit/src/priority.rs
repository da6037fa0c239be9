//! How urgent work is.

use serde::Serialize;

/// Work of the live lane is served first; each eighth permit goes to the background (contract rule 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Priority {
    /// First lists, resyncs, periods.
    #[default]
    Low,
    /// Changes, deletions, drift, expiry: somebody waits for it.
    High,
}
