//! Which updates of objects repeat, for the log (spec 10 §4).

use std::{collections::BTreeMap, time::Duration};

use cluster::object::ObjectKey;
use kit::hash_of;
use tokio::time::Instant;

/// The last update of each object that is known, by the hash of its key. Memory of the log only: nothing depends on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Updates(BTreeMap<u64, Update>);

/// Most objects whose last update is known.
const MOST: usize = 200;

#[derive(Debug, Clone, Copy)]
struct Update {
    /// Hash of what was wanted.
    intent: u64,
    /// Hash of the paths that changed.
    changed: u64,
    at: Instant,
}

impl Updates {
    /// Returns what the last update of an object for this intent changed, if it is not older than `limit`.
    pub(crate) fn last(&self, key: &ObjectKey, intent: u64, now: Instant, limit: Duration) -> Option<u64> {
        let is_recent = |update: &&Update| update.intent == intent && now.saturating_duration_since(update.at) <= limit;
        self.0.get(&hash_of(key)).filter(is_recent).map(|update| update.changed)
    }

    /// Notes an update.
    pub(crate) fn note(&mut self, key: &ObjectKey, intent: u64, changed: u64, now: Instant) {
        let key = hash_of(key);
        if self.0.len() < MOST || self.0.contains_key(&key) {
            self.0.insert(key, Update { intent, changed, at: now });
        }
    }

    /// Forgets updates that are older than `limit`.
    pub(crate) fn forget(&mut self, now: Instant, limit: Duration) {
        self.0.retain(|_, update| now.saturating_duration_since(update.at) <= limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn update_repeats_only_for_the_same_intent_and_soon() {
        let key = |name: &str| ObjectKey { kind: "ConfigMap".into(), name: name.into(), ..ObjectKey::default() };
        let (now, limit) = (Instant::now(), Duration::from_secs(120));
        let mut updates = Updates::default();
        updates.note(&key("a"), 7, 1, now);

        let later = now + limit;
        assert_eq!(updates.last(&key("a"), 7, later, limit), Some(1));
        assert_eq!(updates.last(&key("a"), 8, later, limit), None);
        assert_eq!(updates.last(&key("b"), 7, later, limit), None);
        assert_eq!(updates.last(&key("a"), 7, later + Duration::from_nanos(1), limit), None);
        updates.note(&key("a"), 7, 2, later);
        assert_eq!(updates.last(&key("a"), 7, later + limit, limit), Some(2));
        updates.forget(later + limit, limit);
        assert_eq!(updates.0.len(), 1);
        updates.forget(later + limit + Duration::from_nanos(1), limit);
        assert!(updates.0.is_empty());
    }
}
