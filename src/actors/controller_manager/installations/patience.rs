//! How long the creations of a cluster wait for the finalizers of what they refer to (spec 85 DEV-26). Pure.

use std::{cell::Cell, time::Duration};

use tokio::time::Instant;

/// An installation is created after this time in any case: a finalizer may not come, e.g. without the right to set it.
const LONGEST: Duration = Duration::from_secs(2);

/// Changes of most objects wake the cluster. Those of objects without the label do not.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// Since when creations of a cluster wait.
#[derive(Debug, Default)]
pub(super) struct Patience {
    since: Cell<Option<Instant>>,
    is_needed: Cell<bool>,
}

impl Patience {
    /// Notes a creation that is not settled. Returns true if it must wait.
    pub(super) fn must_wait(&self, now: Instant) -> bool {
        self.is_needed.set(true);
        let since = self.since.get().unwrap_or(now);
        self.since.set(Some(since));
        now.saturating_duration_since(since) < LONGEST
    }

    /// Ends a reconcile. The time starts anew with the next creation that is not settled, unless there was one.
    pub(super) fn end_reconcile(&self) {
        if !self.is_needed.take() {
            self.since.set(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 85 DEV-26
    #[test]
    fn patience_ends_and_starts_anew_after_a_reconcile_without_need() {
        let (patience, start) = (Patience::default(), Instant::now());
        assert!(patience.must_wait(start));
        patience.end_reconcile();
        assert!(patience.must_wait(start + LONGEST / 2));
        patience.end_reconcile();
        assert!(!patience.must_wait(start + LONGEST));
        patience.end_reconcile();
        assert!(!patience.must_wait(start + LONGEST * 2));

        patience.end_reconcile();
        patience.end_reconcile();
        assert!(patience.must_wait(start + LONGEST * 2));
    }
}
