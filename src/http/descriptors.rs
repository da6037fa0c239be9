//! How many connections the limit of file descriptors allows (spec 70 §11.1). Each connection takes one.

use super::connections::Bounds;

/// Bounds of the webhook server; its connections are counted per worker. API servers keep some each; those that say nothing
/// make room, as do those that do not read.
const WEBHOOKS: Bounds = Bounds { connections: 1024, silent: 1024 };
/// Worker threads of the webhook server. A review takes fractions of a millisecond; the second is there while the first has a
/// large one.
pub(crate) const WEBHOOK_WORKERS: usize = 2;
/// Bounds of each of the other two servers. A kubelet, a few Prometheus servers and a few people need a dozen; each of them
/// keeps one or two.
const PLAIN: Bounds = Bounds { connections: 1024, silent: 128 };
/// All connections.
const ALL: u64 = (WEBHOOKS.connections * WEBHOOK_WORKERS + 2 * PLAIN.connections) as u64;
/// Descriptors that connections leave for what else the process has open: its own requests, listeners, files, wake-ups of its
/// threads.
const OWN: u64 = 64;

/// How many files the process may have open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors(u64);

impl Default for Descriptors {
    /// Without a limit.
    fn default() -> Self {
        Self(u64::MAX)
    }
}

impl Descriptors {
    /// As many as this.
    pub fn limit(limit: u64) -> Self {
        Self(limit)
    }

    /// So many allow all connections; fewer lower the bounds.
    pub const ENOUGH: u64 = ALL + OWN;

    /// Whether they allow all connections.
    pub fn is_enough(self) -> bool {
        self.0 >= Self::ENOUGH
    }

    pub(crate) fn webhooks(self) -> Bounds {
        self.lower(WEBHOOKS)
    }

    /// Of the server of the probes, and of that of metrics and dashboard.
    pub(crate) fn plain(self) -> Bounds {
        self.lower(PLAIN)
    }

    /// All bounds are lowered by the same part, so that no server takes the place of another.
    fn lower(self, full: Bounds) -> Bounds {
        if self.is_enough() {
            return full;
        }
        let left = self.0.saturating_sub(OWN);
        let part = |bound: usize| usize::try_from(bound as u64 * left / ALL).unwrap_or(bound);
        // However few there are, a silent connection leaves room for the next one.
        Bounds { connections: part(full.connections).max(2), silent: part(full.silent).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 70 §11.1
    #[test]
    fn descriptors_lower_the_bounds_of_all_servers_where_they_are_few() {
        let sum = |descriptors: Descriptors| {
            descriptors.webhooks().connections * WEBHOOK_WORKERS + 2 * descriptors.plain().connections
        };
        for enough in [Descriptors::default(), Descriptors::limit(4160)] {
            assert!(enough.is_enough());
            assert_eq!((enough.webhooks(), enough.plain()), (WEBHOOKS, PLAIN));
        }

        let few = Descriptors::limit(1024);
        assert!(!few.is_enough());
        assert_eq!(few.webhooks(), Bounds { connections: 240, silent: 240 });
        assert_eq!(few.plain(), Bounds { connections: 240, silent: 30 });
        assert_eq!(sum(few), 1024 - 64);
        assert_eq!(Descriptors::limit(0).plain(), Bounds { connections: 2, silent: 1 });
    }
}
