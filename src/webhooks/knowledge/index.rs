//! An index of autoscalers by target, updated with each change, so that no read walks over all of them.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use super::records::{Autoscaler, Target};
use crate::webhooks::view::Scaled;

/// The largest `spec.maxReplicas` by target (spec 51, "better" 3). Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    counts: Arc<RwLock<BTreeMap<Target, BTreeMap<i64, usize>>>>,
}

impl Limits {
    pub(super) fn change(&self, old: Option<&Autoscaler>, new: Option<&Autoscaler>) {
        if old == new {
            return;
        }
        let mut counts = self.counts.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = old
            && let Some(limits) = counts.get_mut(&old.target)
        {
            take_one(limits, &old.max_replicas);
            if limits.is_empty() {
                counts.remove(&old.target);
            }
        }
        if let Some(new) = new {
            *counts.entry(new.target.clone()).or_default().entry(new.max_replicas).or_default() += 1;
        }
    }

    pub(super) fn of(&self, scaled: &Scaled<'_>) -> Option<i64> {
        let target = Target {
            namespace: scaled.namespace.to_owned(),
            api_version: scaled.api_version.to_owned(),
            kind: scaled.kind.to_owned(),
            name: scaled.name.to_owned(),
        };
        let counts = self.counts.read().unwrap_or_else(PoisonError::into_inner);
        counts.get(&target)?.last_key_value().map(|(limit, _)| *limit)
    }
}

fn take_one<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn autoscaler(name: &str, max_replicas: i64) -> Autoscaler {
        let [namespace, api_version, kind] = ["ns", "apps/v1", "Deployment"].map(str::to_owned);
        Autoscaler { target: Target { namespace, api_version, kind, name: name.to_owned() }, max_replicas }
    }

    fn limit(limits: &Limits, api_version: &str, name: &str) -> Option<i64> {
        limits.of(&Scaled { namespace: "ns", api_version, kind: "Deployment", name })
    }

    /// spec 51 §2.3, "better" 3, scenario 6
    #[test]
    fn autoscaler_with_the_largest_limit_of_a_target_counts() {
        let limits = Limits::default();

        limits.change(None, Some(&autoscaler("web", 4)));
        limits.change(None, Some(&autoscaler("web", 6)));
        limits.change(None, Some(&autoscaler("web", 6)));
        limits.change(None, Some(&autoscaler("db", 9)));
        assert_eq!(limit(&limits, "apps/v1", "web"), Some(6));
        assert_eq!(limit(&limits, "apps/v1beta1", "web"), None);

        limits.change(Some(&autoscaler("web", 6)), Some(&autoscaler("web", 2)));
        assert_eq!(limit(&limits, "apps/v1", "web"), Some(6));
        limits.change(Some(&autoscaler("web", 6)), None);
        assert_eq!(limit(&limits, "apps/v1", "web"), Some(4));
        limits.change(Some(&autoscaler("db", 9)), None);
        assert_eq!(limit(&limits, "apps/v1", "db"), None);
    }
}
