//! Pure. Autoscalers that are gone still count for a while (spec 10 §11.2, decision 37). An autoscaler that is replaced
//! (`kubectl replace --force`), or that moves to another ManagedResource, is absent for a moment only. Its workload
//! must not drop to the replicas of its manifest meanwhile.

use std::{collections::BTreeMap, time::Duration};

use cluster::object::{NamespacedName, ObjectKey};
use tokio::time::Instant;

/// An autoscaler that is gone counts for this long, or until the next period of the ManagedResource.
const LINGERS: Duration = Duration::from_secs(60);

/// A deletion by a ManagedResource is forgotten after this time if no watch reports it.
const DELETION: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
pub(super) struct Lingering {
    gone: BTreeMap<ObjectKey, Gone>,
    /// Autoscalers that a ManagedResource deletes: by which, and since when.
    deletions: BTreeMap<NamespacedName, (NamespacedName, Instant)>,
}

#[derive(Debug, Clone)]
struct Gone {
    since: Instant,
    by: Option<NamespacedName>,
}

impl Lingering {
    pub(super) fn is_deleted_by(&mut self, bundle: &NamespacedName, autoscaler: NamespacedName, now: Instant) {
        self.deletions.retain(|_, (_, since)| now.saturating_duration_since(*since) < DELETION);
        self.deletions.insert(autoscaler, (bundle.clone(), now));
    }

    pub(super) fn lost(&mut self, scaled: &ObjectKey, autoscaler: &NamespacedName, now: Instant) {
        self.gone.retain(|_, gone| now.saturating_duration_since(gone.since) < LINGERS);
        let by = self.deletions.remove(autoscaler).map(|(bundle, _)| bundle);
        self.gone.insert(scaled.clone(), Gone { since: now, by });
    }

    pub(super) fn got(&mut self, scaled: &ObjectKey) {
        self.gone.remove(scaled);
    }

    /// Returns until when an absent autoscaler counts, or `None`. `period`: end of the ManagedResource's last period.
    pub(super) fn until(
        &self,
        scaled: &ObjectKey,
        bundle: &NamespacedName,
        period: Option<Instant>,
        now: Instant,
    ) -> Option<Instant> {
        let gone = self.gone.get(scaled)?;
        let until = gone.since + LINGERS;
        let is_over = now >= until || period.is_some_and(|period| period > gone.since);
        (!is_over && gone.by.as_ref() != Some(bundle)).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// spec 10 §11.2
    #[tokio::test(start_paused = true)]
    async fn autoscaler_that_is_gone_counts_for_a_minute_or_until_the_next_period() {
        let (mut lingering, now) = (Lingering::default(), Instant::now());
        let key = |name: &str| ObjectKey { kind: "Deployment".into(), name: name.into(), ..ObjectKey::default() };
        let name = |name: &str| NamespacedName::new("shoot", name);
        let (web, one, two) = (key("web"), name("one"), name("two"));

        lingering.lost(&web, &name("a"), now);
        for (scaled, period, later, counts) in [
            (&web, None, 0, true),
            (&web, None, 59, true),
            (&web, None, 60, false),
            (&web, Some(now - SECOND), 30, true),
            (&web, Some(now + 20 * SECOND), 30, false),
            (&key("other"), None, 0, false),
        ] {
            let until = lingering.until(scaled, &one, period, now + later * SECOND);
            assert_eq!(until, counts.then_some(now + 60 * SECOND), "{scaled} {period:?} {later}");
        }
        lingering.got(&web);
        assert_eq!(lingering.until(&web, &one, None, now), None);

        lingering.is_deleted_by(&one, name("a"), now);
        lingering.lost(&web, &name("a"), now);
        assert_eq!(lingering.until(&web, &one, None, now), None);
        assert!(lingering.until(&web, &two, None, now).is_some());
        lingering.lost(&web, &name("a"), now);
        assert!(lingering.until(&web, &one, None, now).is_some(), "another client deleted the next autoscaler");
    }
}
