//! Which Pods count for a Deployment (spec 20 §15), and what is cached of them: hashes of their labels.

use kit::hash_of;
use serde_json::Value;

use super::fields::{Trouble, at, replicas};

/// Text for a Deployment whose Pods are not those it wants, even if there are too few.
pub(crate) const OLD_PODS: &str = "there are still non-terminated old pods";

/// How many Pods, with which labels, a Deployment must have to be rolled out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) replicas: i64,
    /// Hashes of `spec.selector.matchLabels`. Without any, all Pods of the namespace count.
    labels: Box<[u64]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodSummary {
    pub(crate) counts: bool,
    labels: Box<[u64]>,
}

impl Quota {
    /// `matchExpressions` are not used. Fails if a field has the wrong type.
    pub(super) fn of(deployment: &Value) -> Result<Self, Trouble> {
        let replicas = replicas(deployment)?;
        let labels = hashes(at(deployment, "spec.selector.matchLabels")?);
        Ok(Self { replicas, labels })
    }

    pub(crate) fn counts(&self, pod: &PodSummary) -> bool {
        pod.counts && self.labels.iter().all(|label| pod.labels.binary_search(label).is_ok())
    }

    pub(crate) fn is_met_by(&self, pods: usize) -> bool {
        usize::try_from(self.replicas) == Ok(pods)
    }
}

impl PodSummary {
    /// A Pod that ends counts until it is gone, or until it is known to have ended.
    pub(crate) fn of(pod: &Value) -> Self {
        let labels = hashes(pod.get("metadata").and_then(|metadata| metadata.get("labels")));
        Self { counts: !has_ended(pod), labels }
    }
}

/// Two different labels have one hash in 2⁶⁴ cases.
fn hashes(labels: Option<&Value>) -> Box<[u64]> {
    let labels = labels.and_then(Value::as_object);
    let hash = |(key, value): (&String, &Value)| hash_of(&(key, value.as_str()));
    let mut hashes: Vec<u64> = labels.into_iter().flatten().map(hash).collect();
    hashes.sort_unstable();
    hashes.into()
}

/// Returns true if a Pod has done its work or lost its node. Such Pods stay until they are collected.
fn has_ended(pod: &Value) -> bool {
    let Some(status) = pod.get("status") else { return false };
    let text = |object: &Value, field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (phase, reason) = (text(status, "phase"), text(status, "reason"));
    let is_terminal = matches!(phase.as_str(), "Succeeded" | "Failed");
    let is_stale = ["Evicted", "NodeAffinity", "NodeLost", "Preempting"].iter().any(|word| reason.contains(word))
        || reason.starts_with("OutOf");
    let conditions = status.get("conditions").and_then(Value::as_array);
    is_terminal
        || is_stale
        || conditions.into_iter().flatten().any(|condition| {
            let [kind, status, reason] = ["type", "status", "reason"].map(|field| text(condition, field));
            let is_completed = kind == "Ready" && status == "False" && reason == "PodCompleted";
            is_completed || (kind == "DisruptionTarget" && status == "True")
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: Value) -> PodSummary {
        PodSummary::of(&json!({"metadata": {"labels": {"app": "web", "tier": "x"}}, "status": status}))
    }

    /// Returns true if a Deployment has exactly the Pods it wants (spec 20 §15, rule 3).
    fn are_settled<'a>(quota: &Quota, pods: impl Iterator<Item = &'a PodSummary>) -> bool {
        quota.is_met_by(pods.filter(|pod| quota.counts(pod)).count())
    }

    fn quota(spec: Value) -> Quota {
        Quota::of(&json!({ "spec": spec })).unwrap()
    }

    fn web(replicas: i64) -> Quota {
        quota(json!({"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}}))
    }

    /// spec 20 scenarios 30 and 32.
    #[test]
    fn pods_must_be_exactly_as_many_as_wanted() {
        let pods = vec![pod(json!({"phase": "Running"})); 3];

        for (wanted, found, settled) in [(2, 3, false), (2, 2, true), (2, 1, false), (0, 0, true), (3, 3, true)] {
            assert_eq!(are_settled(&web(wanted), pods[..found].iter()), settled, "{found} of {wanted}");
        }
    }

    /// spec 20 scenario 31, traps 4 and 5.
    #[test]
    fn pods_that_have_ended_do_not_count() {
        for (status, counts) in [
            (json!({"phase": "Running"}), true),
            (json!({"phase": "Pending"}), true),
            (json!({"phase": "Unknown"}), true),
            (json!({}), true),
            (json!({"phase": "Succeeded"}), false),
            (json!({"phase": "Failed"}), false),
            (json!({"phase": "Running", "reason": "Evicted"}), false),
            (json!({"phase": "Running", "reason": "TheNodeAffinityChanged"}), false),
            (json!({"phase": "Running", "reason": "NodeLost"}), false),
            (json!({"phase": "Running", "reason": "Preempting"}), false),
            (json!({"phase": "Pending", "reason": "OutOfcpu"}), false),
            (json!({"phase": "Running", "reason": "NotOutOfcpu"}), true),
            (json!({"phase": "Running", "reason": "evicted"}), true),
            (json!({"conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]}), false),
            (json!({"conditions": [{"type": "Ready", "status": "True", "reason": "PodCompleted"}]}), true),
            (json!({"conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]}), true),
            (json!({"conditions": [{"type": "DisruptionTarget", "status": "True"}]}), false),
            (json!({"conditions": [{"type": "DisruptionTarget", "status": "False"}]}), true),
        ] {
            assert_eq!(pod(status.clone()).counts, counts, "{status}");
        }
    }

    #[test]
    fn pods_that_are_being_deleted_count() {
        let ending = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web"}}});

        assert!(web(1).counts(&PodSummary::of(&ending)));
    }

    #[test]
    fn pods_count_by_all_match_labels_and_nothing_else() {
        let running = pod(json!({"phase": "Running"}));
        for (selector, fits) in [
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "web", "tier": "x"}}), true),
            (json!({"matchLabels": {"app": "web", "tier": "y"}}), false),
            (json!({"matchLabels": {"web": "app"}}), false),
            (json!({"matchLabels": {}}), true),
            (json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), true),
            (json!(null), true),
        ] {
            assert_eq!(quota(json!({ "selector": selector })).counts(&running), fits, "{selector}");
        }
    }

    #[test]
    fn pods_wanted_are_one_by_default_and_a_negative_number_never_fits() {
        assert_eq!(quota(json!({})).replicas, 1);
        assert!(!quota(json!({"replicas": -1})).is_met_by(0));
    }
}
