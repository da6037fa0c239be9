//! How often what drifts again and again is checked and repaired (spec 10 §5.4, decision 37): objects of
//! ManagedResources, and what controllers keep for Seeds. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::Instant;

/// A ref that drifts is repaired at once, then after 1, 2, 4 s … up to the sync period, until it is quiet for a sync
/// period. With a shorter quiet time, an opponent that changes it every three seconds would never be slowed down.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause between repairs of what has no sync period.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(180);

/// The pauses between repairs. `K` names what drifts.
#[derive(Debug, Clone)]
pub(crate) struct DriftBackoff<K> {
    refs: BTreeMap<K, Pause>,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    /// Hash of what was wanted. Applying another manifest is no repair.
    intent: u64,
    end: Instant,
    length: Duration,
    /// The back-off starts over after this, if the ref does not drift before.
    forgotten: Instant,
    due: bool,
}

impl<K> Default for DriftBackoff<K> {
    fn default() -> Self {
        Self { refs: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> DriftBackoff<K> {
    /// Notes that a ref is not as `intent` says. Returns true if it may be repaired now. A pause ends if something else is
    /// wanted than at the last repair.
    pub(crate) fn may_repair(&mut self, key: &K, intent: u64, now: Instant) -> bool {
        self.reset_if_changed(key, intent);
        self.drifted(key, now)
    }

    /// Notes that a ref drifted. Returns true if it may be repaired now.
    pub(crate) fn drifted(&mut self, key: &K, now: Instant) -> bool {
        match self.refs.get_mut(key) {
            Some(pause) if now < pause.end => {
                pause.due = true;
                false
            }
            Some(_) | None => true,
        }
    }

    pub(crate) fn holds(&self, key: &K, now: Instant) -> bool {
        self.refs.get(key).is_some_and(|pause| now < pause.end)
    }

    /// Notes that a ref was repaired, or checked in vain. The next pause is twice as long, at most `cap`.
    pub(crate) fn repaired(&mut self, key: &K, intent: u64, now: Instant, cap: Duration) {
        let length = self.next_pause(key, intent, cap);
        let end = now + length;
        self.refs.insert(key.clone(), Pause { intent, end, length, forgotten: end + cap.max(length), due: false });
    }

    pub(crate) fn next_pause(&self, key: &K, intent: u64, cap: Duration) -> Duration {
        let before = self.refs.get(key).filter(|pause| pause.intent == intent);
        before.map_or(FIRST_PAUSE, |pause| (pause.length * 2).min(cap))
    }

    pub(crate) fn is_contested(&self, key: &K, intent: u64) -> bool {
        self.refs.get(key).is_some_and(|pause| pause.intent == intent)
    }

    /// Notes that another manifest was applied, which ends the old back-off.
    pub(crate) fn reset_if_changed(&mut self, key: &K, intent: u64) {
        if self.refs.get(key).is_some_and(|pause| pause.intent != intent) {
            self.refs.remove(key);
        }
    }

    /// Takes the refs whose postponed repair is due, and forgets quiet refs. Taken refs are due no longer: if the drift
    /// has ended by itself, no repair would say so.
    pub(crate) fn take_due(&mut self, now: Instant) -> BTreeSet<K> {
        self.refs.retain(|_, pause| pause.due || now < pause.forgotten);
        let due = self.refs.iter_mut().filter(|(_, pause)| pause.due && pause.end <= now);
        due.map(|(key, pause)| {
            pause.due = false;
            key.clone()
        })
        .collect()
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.refs.values().filter(|pause| pause.due).map(|pause| pause.end).min()
    }

    /// Returns the time until the next postponed repair.
    pub(crate) fn next_in(&self, now: Instant) -> Option<Duration> {
        self.next_due().map(|due| due.saturating_duration_since(now))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.refs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use cluster::object::ObjectKey;

    use super::*;

    const CAP: Duration = Duration::from_secs(60);

    fn key(name: &str) -> ObjectKey {
        ObjectKey { kind: "ConfigMap".into(), name: name.into(), ..ObjectKey::default() }
    }

    fn repairs(until: u64) -> Vec<u64> {
        let zero = Instant::now();
        let mut drift_backoff = DriftBackoff::default();
        let mut repairs = Vec::new();
        for second in 0..until {
            let now = zero + Duration::from_secs(second);
            let allowed = drift_backoff.drifted(&key("a"), now) || drift_backoff.take_due(now).contains(&key("a"));
            if allowed {
                drift_backoff.repaired(&key("a"), 7, now, CAP);
                repairs.push(second);
            }
        }
        repairs
    }

    #[tokio::test(start_paused = true)]
    async fn drift_backoff_grows_while_an_opponent_undoes_each_repair() {
        assert_eq!(repairs(200), [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    }

    #[tokio::test(start_paused = true)]
    async fn drift_backoff_postponed_repair_is_due_at_its_time() {
        let now = Instant::now();
        let mut drift_backoff = DriftBackoff::default();
        drift_backoff.repaired(&key("a"), 7, now, CAP);
        assert!(!drift_backoff.drifted(&key("a"), now + Duration::from_millis(500)));

        assert_eq!(drift_backoff.next_due(), Some(now + Duration::from_secs(1)));
        assert!(drift_backoff.take_due(now + Duration::from_millis(900)).is_empty());
        assert_eq!(drift_backoff.take_due(now + Duration::from_secs(1)).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn drift_backoff_starts_over_after_a_quiet_period() {
        let now = Instant::now();
        let mut drift_backoff = DriftBackoff::default();
        for second in [0, 1, 3, 7] {
            drift_backoff.repaired(&key("a"), 7, now + Duration::from_secs(second), CAP);
        }
        let later = now + Duration::from_secs(7 + 8) + CAP;

        assert!(drift_backoff.take_due(later).is_empty());
        assert!(drift_backoff.drifted(&key("a"), later));
        drift_backoff.repaired(&key("a"), 7, later, CAP);
        assert!(drift_backoff.drifted(&key("a"), later + Duration::from_secs(1)), "the back-off starts over");
    }

    #[tokio::test(start_paused = true)]
    async fn drift_backoff_ends_exactly_with_its_pause() {
        let (now, pause) = (Instant::now(), FIRST_PAUSE);
        let mut drift_backoff = DriftBackoff::default();
        drift_backoff.repaired(&key("a"), 7, now, CAP);

        assert!(drift_backoff.drifted(&key("a"), now + pause));
        assert_eq!(drift_backoff.next_due(), None, "it was not postponed");
        drift_backoff.take_due(now + pause + CAP - Duration::from_nanos(1));
        assert!(!drift_backoff.is_empty());
        drift_backoff.take_due(now + pause + CAP);
        assert!(drift_backoff.is_empty());
    }

    /// spec 10 §5.4: a slow opponent is answered ever more rarely too.
    #[tokio::test(start_paused = true)]
    async fn drift_backoff_grows_against_a_slow_opponent() {
        let zero = Instant::now();
        let mut drift_backoff = DriftBackoff::default();
        let mut repairs = Vec::new();
        let mut next_edit = 0;
        for second in 0..120 {
            let now = zero + Duration::from_secs(second);
            let due = drift_backoff.take_due(now).contains(&key("a"));
            if second >= next_edit && (due || drift_backoff.drifted(&key("a"), now)) {
                drift_backoff.repaired(&key("a"), 7, now, CAP);
                repairs.push(second);
                next_edit = second + 3;
            }
        }

        assert_eq!(repairs, [0, 3, 6, 10, 18, 34, 66]);
    }

    /// spec 10 §5.4: applying another manifest is no repair.
    #[tokio::test(start_paused = true)]
    async fn drift_backoff_starts_over_with_another_manifest() {
        let now = Instant::now();
        let mut drift_backoff = DriftBackoff::default();
        drift_backoff.repaired(&key("a"), 7, now, CAP);
        drift_backoff.repaired(&key("a"), 7, now, CAP);
        assert!(drift_backoff.is_contested(&key("a"), 7) && !drift_backoff.is_contested(&key("a"), 8));
        assert_eq!([7, 8].map(|intent| drift_backoff.next_pause(&key("a"), intent, CAP).as_secs()), [4, 1]);

        drift_backoff.reset_if_changed(&key("a"), 7);
        assert!(!drift_backoff.drifted(&key("a"), now));
        drift_backoff.reset_if_changed(&key("a"), 8);
        assert!(drift_backoff.drifted(&key("a"), now));
    }

    #[tokio::test(start_paused = true)]
    async fn drift_backoff_repairs_at_once_what_is_wanted_anew() {
        let now = Instant::now();
        let mut drift_backoff = DriftBackoff::default();
        drift_backoff.repaired(&'a', 7, now, LONGEST_PAUSE);
        assert!(!drift_backoff.may_repair(&'a', 7, now));
        assert_eq!(drift_backoff.next_in(now), Some(FIRST_PAUSE));

        assert!(drift_backoff.may_repair(&'a', 8, now));
        assert_eq!(drift_backoff.next_in(now), None);
        assert!(drift_backoff.may_repair(&'b', 7, now), "each has its own pause");
    }
}
