//! Two answers that would need a walk over all objects, kept up to date with each change instead.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use serde_json::Value;

use super::records::{Autoscaler, Taint, Target};
use crate::webhooks::view::Scaled;

/// The largest `spec.maxReplicas` by target (spec 51, "better" 3). Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Limits {
    /// How many autoscalers have a limit.
    counts: Arc<RwLock<BTreeMap<Target, BTreeMap<i64, usize>>>>,
}

/// The tolerations of the taints of the selected Nodes (spec 50, "better" 5). Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Tolerations {
    taints: Arc<RwLock<Taints>>,
}

#[derive(Debug, Default)]
struct Taints {
    /// How many Nodes have a taint; twice on one Node counts twice.
    counts: BTreeMap<Taint, usize>,
    /// Sorted by key, value and effect, as the taints are.
    tolerations: Arc<Vec<Value>>,
}

// === impl Limits ===

impl Limits {
    /// An autoscaler changed.
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

// === impl Tolerations ===

impl Tolerations {
    /// A Node changed.
    pub(super) fn change(&self, old: &[Taint], new: &[Taint]) {
        if old == new {
            return;
        }
        let mut taints = self.taints.write().unwrap_or_else(PoisonError::into_inner);
        let before = taints.counts.len();
        let mut added = false;
        for taint in new {
            let count = taints.counts.entry(taint.clone()).or_default();
            *count += 1;
            added |= *count == 1;
        }
        for taint in old {
            take_one(&mut taints.counts, taint);
        }
        if added || taints.counts.len() != before {
            taints.tolerations = Arc::new(taints.counts.keys().map(Taint::toleration).collect());
        }
    }

    pub(super) fn all(&self) -> Arc<Vec<Value>> {
        self.taints.read().unwrap_or_else(PoisonError::into_inner).tolerations.clone()
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

    fn taint(key: &str) -> Taint {
        Taint { key: key.to_owned(), value: String::new(), effect: "NoSchedule".to_owned() }
    }

    /// spec 51 §2.3, "better" 3, scenario 6
    #[test]
    fn the_largest_limit_of_the_same_target_counts() {
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

    /// spec 50 §10.1 rule 8, scenarios 33 and 35
    #[test]
    fn tolerations_are_sorted_and_each_is_there_once() {
        let tolerations = Tolerations::default();
        let keys = || -> Vec<_> { tolerations.all().iter().map(|toleration| toleration["key"].clone()).collect() };

        tolerations.change(&[], &[taint("b"), taint("a")]);
        tolerations.change(&[], &[taint("b"), taint("b")]);
        assert_eq!(keys(), ["a", "b"]);

        tolerations.change(&[taint("b"), taint("a")], &[taint("c")]);
        assert_eq!(keys(), ["b", "c"]);
        tolerations.change(&[taint("b"), taint("b")], &[]);
        assert_eq!(keys(), ["c"]);
    }
}
