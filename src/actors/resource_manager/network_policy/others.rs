//! The policies of other Services, for one reconcile: each is planned once, even if many names are shared.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
};

use cluster::object::NamespacedName;
use tokio::sync::Mutex;

type Names = BTreeSet<NamespacedName>;

/// The policy names that other Services want; `None` if they are unknown.
#[derive(Default)]
pub(super) struct Others(Mutex<BTreeMap<NamespacedName, Option<Names>>>);

impl Others {
    /// Returns true if another Service wants this policy, or if unknown. `plan` computes its policies.
    pub(super) async fn want<F: Future<Output = Option<Names>>>(
        &self,
        other: &NamespacedName,
        policy: &NamespacedName,
        plan: impl FnOnce() -> F,
    ) -> bool {
        let mut known = self.0.lock().await;
        if !known.contains_key(other) {
            let names = plan().await;
            known.insert(other.clone(), names);
        }
        known.get(other).and_then(Option::as_ref).is_none_or(|names| names.contains(policy))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// spec 40 §7.11
    #[tokio::test]
    async fn other_services_with_common_names_are_planned_once() {
        let (others, planned) = (Others::default(), Cell::new(0));
        let name = |number: usize| NamespacedName::new(format!("x{number}"), "egress-to-a-b-c-tcp-1");
        let plan = || async {
            planned.set(planned.get() + 1);
            tokio::task::yield_now().await;
            Some((0..500).map(name).collect())
        };
        let other = NamespacedName::new("a", "b-c");
        let names: Vec<_> = (0..1_000).map(name).collect();
        let wants = futures::future::join_all(names.iter().map(|name| others.want(&other, name, plan))).await;
        assert_eq!((planned.get(), wants.iter().filter(|wants| **wants).count()), (1, 500));
        let unknown = NamespacedName::new("a", "unknown");
        assert!(others.want(&unknown, &name(0), || async { None }).await);
    }
}
