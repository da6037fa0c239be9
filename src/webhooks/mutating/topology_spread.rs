//! `pod-topology-spread-constraints`: spreading per ReplicaSet where `matchLabelKeys` is switched off (spec 50 §11).

use serde_json::Value;

use super::{Mutation, Mutator, Request, text};
use crate::webhooks::{
    fields::{self, Field, Type, WrongType},
    view::{Failure, View},
};

/// The path on which it is served.
pub const PATH: &str = "/webhooks/pod-topology-spread-constraints";

/// Label that distinguishes the Pods of a Deployment's ReplicaSets.
const HASH: &str = "pod-template-hash";

/// Longest value of a label, in bytes. A longer one is not copied into each constraint, which could exhaust the memory;
/// the API server refuses such a Pod anyway.
const LABEL_LENGTH: usize = 63;

const FIELDS: [Field; 5] = [
    ("metadata.labels{}", Type::Text),
    ("spec.topologySpreadConstraints[].labelSelector.matchLabels", Type::Map),
    ("spec.topologySpreadConstraints[].labelSelector.matchExpressions[].key", Type::Text),
    ("spec.topologySpreadConstraints[].labelSelector.matchExpressions[].operator", Type::Text),
    ("spec.topologySpreadConstraints[].matchLabelKeys[]", Type::Text),
];

/// Writes the hash of the Pod's ReplicaSet into the selectors of its topology spread constraints.
#[derive(Debug, Clone, Copy)]
pub struct TopologySpread;

impl Mutator for TopologySpread {
    fn mutate(&self, pod: &mut Value, _: &Request<'_>, _: &dyn View) -> Result<Mutation, Failure> {
        fields::check(pod, &FIELDS)?;
        let hash = fields::text(pod, &["metadata", "labels", HASH])?.filter(|hash| hash.len() <= LABEL_LENGTH);
        if let Some(hash) = hash.map(str::to_owned) {
            fields::each_mut(pod, &["spec", "topologySpreadConstraints"], |constraint| spread(constraint, &hash))?;
        }
        Ok(Mutation::Done)
    }
}

fn spread(constraint: &mut Value, hash: &str) -> Result<(), WrongType> {
    if !selects_by_hash(constraint)? {
        let labels = fields::map_mut(constraint, &["labelSelector", "matchLabels"])?;
        labels.insert(HASH.to_owned(), hash.into());
    }
    // The API server refuses a key in both fields. Upstream keeps it if the selector has it (spec 50, "better" 14).
    if fields::list(constraint, &["matchLabelKeys"])?.iter().any(is_hash) {
        let constraint = fields::map_mut(constraint, &[])?;
        if let Some(Value::Array(keys)) = constraint.get_mut("matchLabelKeys") {
            keys.retain(|key| !is_hash(key));
            if keys.is_empty() {
                constraint.remove("matchLabelKeys");
            }
        }
    }
    Ok(())
}

/// Spec 50 §11 rule 3a. Operators other than `In` do not count.
fn selects_by_hash(constraint: &Value) -> Result<bool, WrongType> {
    if fields::value(constraint, &["labelSelector", "matchLabels", HASH])?.is_some() {
        return Ok(true);
    }
    let expressions = fields::list(constraint, &["labelSelector", "matchExpressions"])?;
    Ok(expressions.iter().any(|expression| (text(expression, "key"), text(expression, "operator")) == (HASH, "In")))
}

fn is_hash(key: &Value) -> bool {
    key.as_str() == Some(HASH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::testing::{TestView, changes, failure, leaves, mutated, object};

    #[track_caller]
    fn assert_constraint(before: &str, after: &str) {
        let pod = |constraint| {
            format!(
                "
metadata: {{labels: {{app: web, pod-template-hash: 7d9f}}}}
spec: {{topologySpreadConstraints: [{constraint}]}}
"
            )
        };
        changes(&TopologySpread, &TestView::new(), &format!("{}\n---\n{}", pod(before), pod(after)));
    }

    /// spec 50 §11
    #[test]
    fn hash_moves_from_the_keys_to_the_selector() {
        let view = TestView::new();

        changes(
            &TopologySpread,
            &view,
            "
metadata: {labels: {app: web, pod-template-hash: 7d9f}}
spec:
  topologySpreadConstraints:
  - topologyKey: kubernetes.io/hostname
    maxSkew: 1
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {matchLabels: {app: web}}
    matchLabelKeys: [pod-template-hash]
---
metadata: {labels: {app: web, pod-template-hash: 7d9f}}
spec:
  topologySpreadConstraints:
  - topologyKey: kubernetes.io/hostname
    maxSkew: 1
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {matchLabels: {app: web, pod-template-hash: 7d9f}}
",
        );
        assert!(view.reads().is_empty());
    }

    /// spec 50 §11 rules 1 and 2, scenario 37
    #[test]
    fn pod_without_the_label_or_without_constraints_stays() {
        for pod in [
            "spec: {topologySpreadConstraints: [{matchLabelKeys: [pod-template-hash]}]}",
            "{metadata: {labels: {app: web}}, spec: {topologySpreadConstraints: [{maxSkew: 1}]}}",
            "metadata: {labels: {pod-template-hash: a}}",
            "{metadata: {labels: {pod-template-hash: a}}, spec: {topologySpreadConstraints: null}}",
            "{metadata: {labels: {pod-template-hash: a}}, spec: {topologySpreadConstraints: []}}",
        ] {
            leaves(&TopologySpread, &TestView::new(), pod);
        }
    }

    /// spec 50 §11 rule 3b, scenario 37
    #[test]
    fn other_keys_stay() {
        assert_constraint(
            "{matchLabelKeys: [pod-template-hash, tier]}",
            "{matchLabelKeys: [tier], labelSelector: {matchLabels: {pod-template-hash: 7d9f}}}",
        );
        assert_constraint(
            "{matchLabelKeys: [pod-template-hash, pod-template-hash], futureField: 7}",
            "{labelSelector: {matchLabels: {pod-template-hash: 7d9f}}, futureField: 7}",
        );
        assert_constraint(
            "{matchLabelKeys: [], labelSelector: {matchLabels: null}}",
            "{matchLabelKeys: [], labelSelector: {matchLabels: {pod-template-hash: 7d9f}}}",
        );
    }

    /// spec 50 §11 rule 1
    #[test]
    fn an_empty_label_counts_as_present() {
        changes(
            &TopologySpread,
            &TestView::new(),
            "
metadata: {labels: {pod-template-hash: ''}}
spec: {topologySpreadConstraints: [{maxSkew: 1}]}
---
metadata: {labels: {pod-template-hash: ''}}
spec: {topologySpreadConstraints: [{maxSkew: 1, labelSelector: {matchLabels: {pod-template-hash: ''}}}]}
",
        );
    }

    #[test]
    fn hash_that_is_too_long_for_a_label_is_not_copied() {
        let pod = |length: usize| {
            let hash = "a".repeat(length);
            let mut pod = object("spec: {topologySpreadConstraints: [{}, {}]}");
            pod["metadata"] = serde_json::json!({ "labels": { HASH: hash } });
            pod.to_string()
        };

        leaves(&TopologySpread, &TestView::new(), &pod(64));

        let made = mutated(&TopologySpread, &TestView::new(), &pod(63)).unwrap();
        assert_eq!(
            made["spec"]["topologySpreadConstraints"][1]["labelSelector"]["matchLabels"][HASH],
            made["metadata"]["labels"][HASH]
        );
    }

    /// spec 50 §11 rule 3a, scenario 38
    #[test]
    fn selector_with_the_hash_stays() {
        for selector in [
            "{matchLabels: {pod-template-hash: old}}",
            "{matchExpressions: [{key: pod-template-hash, operator: In, values: [old]}]}",
            "{matchExpressions: [{key: a, operator: Exists}, {key: pod-template-hash, operator: In, values: []}]}",
        ] {
            let constraint = format!("{{labelSelector: {selector}, matchLabelKeys: [tier]}}");
            assert_constraint(&constraint, &constraint);
        }
    }

    /// spec 50 §11, traps
    #[test]
    fn only_the_operator_in_counts_as_having_the_hash() {
        for operator in ["NotIn", "Exists", "DoesNotExist", "in", "null"] {
            let expressions = format!("[{{key: pod-template-hash, operator: {operator}}}]");
            assert_constraint(
                &format!("{{labelSelector: {{matchExpressions: {expressions}}}}}"),
                &format!(
                    "{{labelSelector: {{matchExpressions: {expressions}, matchLabels: {{pod-template-hash: 7d9f}}}}}}"
                ),
            );
        }
    }

    /// spec 50, "better" 14
    #[test]
    fn key_is_removed_also_if_the_selector_had_the_hash() {
        assert_constraint(
            "{labelSelector: {matchLabels: {pod-template-hash: old}}, matchLabelKeys: [pod-template-hash]}",
            "{labelSelector: {matchLabels: {pod-template-hash: old}}}",
        );
        assert_constraint(
            "{labelSelector: {matchExpressions: [{key: pod-template-hash, operator: In, values: [old]}]},
              matchLabelKeys: [tier, pod-template-hash]}",
            "{labelSelector: {matchExpressions: [{key: pod-template-hash, operator: In, values: [old]}]},
              matchLabelKeys: [tier]}",
        );
    }

    /// spec 50 §2.2 row 7
    #[test]
    fn wrong_type_is_an_error_that_names_the_element() {
        for (pod, message) in [
            ("metadata: {labels: a}", "metadata.labels: expected a map, found a string"),
            (
                "spec: {topologySpreadConstraints: [{}, {matchLabelKeys: a}]}",
                "spec.topologySpreadConstraints[1].matchLabelKeys: expected a list, found a string",
            ),
            (
                "spec: {topologySpreadConstraints: [{labelSelector: {matchExpressions: [{key: 1}]}}]}",
                "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].key: expected a string, found a number",
            ),
        ] {
            let expected = Failure::Errored { code: 400, message: message.to_owned() };
            assert_eq!(failure(&TopologySpread, &TestView::new(), pod), expected);
        }
    }
}
