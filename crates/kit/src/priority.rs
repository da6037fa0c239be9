use serde::Serialize;

/// High priority is served first; each eighth permit goes to low priority (contract rule 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Priority {
    /// First lists, resyncs, periodic work.
    #[default]
    Low,
    /// Changes, deletions, drift, expiry: somebody waits for it.
    High,
}
