//! What the program calls its clusters.

/// The name that the program gives to one of its clusters in logs, metrics and the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterLabel {
    name: &'static str,
    patience: Patience,
}

/// While which caches may be empty without an end of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    None,
    WhileDown,
    Always,
}

impl ClusterLabel {
    /// A cluster without which the program cannot work: caches that never fill end the process.
    pub const fn new(name: &'static str) -> Self {
        Self { name, patience: Patience::None }
    }

    /// A cluster that may be down: while it does not answer or does not accept the credentials, controllers wait for its
    /// caches without a time limit.
    pub const fn may_be_down(name: &'static str) -> Self {
        Self { name, patience: Patience::WhileDown }
    }

    /// A cluster that may serve its kinds later: controllers wait for its caches without a time limit.
    pub const fn kinds_may_come_later(name: &'static str) -> Self {
        Self { name, patience: Patience::Always }
    }

    /// Returns the name, e.g. `source`.
    pub fn as_str(self) -> &'static str {
        self.name
    }

    /// Whether the cluster may serve its kinds later.
    pub fn may_serve_kinds_later(self) -> bool {
        self.patience == Patience::Always
    }

    /// Whether caches may be empty for longer than the process waits for them. `is_away`: the cluster does not answer, or
    /// does not accept the credentials.
    pub(super) fn is_excused(self, is_away: bool) -> bool {
        match self.patience {
            Patience::None => false,
            Patience::WhileDown => is_away,
            Patience::Always => true,
        }
    }
}
