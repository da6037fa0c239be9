//! How many connections the limit of file descriptors allows (spec 70 §11.1). Each connection takes one descriptor.

use super::connections::Bounds;

/// Per worker. Each API server keeps some connections; silent connections make room.
const ENCRYPTED: Bounds = Bounds { connections: 1024, silent: 1024 };
/// Workers of a server with TLS. A review takes fractions of a millisecond; the second thread serves while the first has a
/// large review.
pub const TLS_WORKERS: usize = 2;
/// A kubelet, a few Prometheus servers and a few people need a dozen connections.
const PLAIN: Bounds = Bounds { connections: 1024, silent: 128 };
const ALL: u64 = (ENCRYPTED.connections * TLS_WORKERS + 2 * PLAIN.connections) as u64;
/// Descriptors for everything else that the process opens: its own requests, listeners, files, wake-ups of threads.
const OWN: u64 = 64;

/// How many files the process may have open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors(u64);

impl Default for Descriptors {
    fn default() -> Self {
        Self(u64::MAX)
    }
}

impl Descriptors {
    /// Sets the limit.
    pub fn limit(limit: u64) -> Self {
        Self(limit)
    }

    /// This number allows all connections; a smaller number lowers the bounds.
    pub const ENOUGH: u64 = ALL + OWN;

    /// Whether the limit allows all connections.
    pub fn is_enough(self) -> bool {
        self.0 >= Self::ENOUGH
    }

    /// Returns the bounds of a server with TLS.
    pub fn encrypted(self) -> Bounds {
        self.lower(ENCRYPTED)
    }

    pub(crate) fn plain(self) -> Bounds {
        self.lower(PLAIN)
    }

    /// Lowers all bounds by the same factor, so that each server keeps its share.
    fn lower(self, full: Bounds) -> Bounds {
        if self.is_enough() {
            return full;
        }
        let left = self.0.saturating_sub(OWN);
        let part = |bound: usize| usize::try_from(bound as u64 * left / ALL).unwrap_or(bound);
        // Even the smallest bounds leave room for the next connection beside a silent one.
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
            descriptors.encrypted().connections * TLS_WORKERS + 2 * descriptors.plain().connections
        };
        for enough in [Descriptors::default(), Descriptors::limit(4160)] {
            assert!(enough.is_enough());
            assert_eq!((enough.encrypted(), enough.plain()), (ENCRYPTED, PLAIN));
        }

        let few = Descriptors::limit(1024);
        assert!(!few.is_enough());
        assert_eq!(few.encrypted(), Bounds { connections: 240, silent: 240 });
        assert_eq!(few.plain(), Bounds { connections: 240, silent: 30 });
        assert_eq!(sum(few), 1024 - 64);
        assert_eq!(Descriptors::limit(0).plain(), Bounds { connections: 2, silent: 1 });
    }
}
