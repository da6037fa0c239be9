//! The two clusters of gardener-resource-manager.

use cluster::ClusterLabel;

/// One of the two clusters; both may be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The cluster of ManagedResources, Secrets and Machines.
    Source,
    /// The cluster to which objects are applied.
    Target,
}

impl Side {
    /// Returns its name in logs, metrics and the dashboard. The program works on while the target is down.
    pub const fn label(self) -> ClusterLabel {
        match self {
            Self::Source => ClusterLabel::new("source"),
            Self::Target => ClusterLabel::may_be_down("target"),
        }
    }
}
