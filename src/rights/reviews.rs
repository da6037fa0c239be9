//! Asks an API server whether the process has its rights, by SelfSubjectAccessReviews.

use std::collections::BTreeMap;

use cluster::{ApiError, Cluster, Context};
use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::{NeededRight, Right, RightObject};
use crate::api::kinds::SELF_SUBJECT_ACCESS_REVIEW;

/// Reviews that are under way at the same time.
const AT_ONCE: usize = 4;
const ANY: &str = "*";

/// What is known of the rights in a cluster. An error costs no answer that came before.
pub(crate) struct Reviews<'a> {
    needed: Vec<&'a NeededRight>,
    /// `None`: the API server answered without a decision.
    answers: BTreeMap<&'a Right, Option<bool>>,
    /// Whether everything is allowed in a namespace; `None` stands for all of them. One review then answers for many.
    everything: BTreeMap<Option<&'a str>, bool>,
}

impl<'a> Reviews<'a> {
    /// Nothing is asked yet. `needed` may have rights in other clusters.
    pub(crate) fn new(needed: &'a [NeededRight], cluster: &str) -> Self {
        let needed = needed.iter().filter(|needed| needed.right.cluster == cluster).collect();
        Self { needed, answers: BTreeMap::new(), everything: BTreeMap::new() }
    }

    /// Asks for what is not known yet. Fails with the first error.
    pub(crate) async fn go_on(&mut self, cluster: &Cluster, context: &Context) -> Result<(), ApiError> {
        let ask = async |right: &Right| {
            let answer = cluster.review(context, &SELF_SUBJECT_ACCESS_REVIEW, &right.review()).await?;
            Ok::<_, ApiError>(decision(&answer))
        };
        for needed in &self.needed {
            let namespace = needed.right.namespace.as_deref();
            if is_resource(&needed.right) && !self.everything.contains_key(&namespace) {
                let is_allowed = ask(&everything(&needed.right)).await?;
                self.everything.insert(namespace, is_allowed == Some(true));
            }
        }
        let rights = self.needed.iter().map(|needed| &needed.right);
        let open: Vec<&Right> =
            rights.filter(|right| self.answer(right).is_none() && !self.answers.contains_key(*right)).collect();
        let mut answers = stream::iter(open).map(async |right| (right, ask(right).await)).buffer_unordered(AT_ONCE);
        while let Some((right, answer)) = answers.next().await {
            self.answers.insert(right, answer?);
        }
        Ok(())
    }

    /// Returns each right with whether it is granted; `None`: that is not known.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'a NeededRight, Option<bool>)> {
        self.needed.iter().map(|needed| (*needed, self.answer(&needed.right)))
    }

    /// Returns the rights that the API server answered about without a decision.
    pub(crate) fn undecided(&self) -> impl Iterator<Item = &'a NeededRight> {
        self.needed.iter().copied().filter(|needed| self.answers.get(&needed.right) == Some(&None))
    }

    fn answer(&self, right: &Right) -> Option<bool> {
        let is_everything = is_resource(right) && self.everything.get(&right.namespace.as_deref()) == Some(&true);
        if is_everything { Some(true) } else { self.answers.get(right).copied().flatten() }
    }
}

/// Returns whether the right is granted. `None`: the answer does not say so, or an authorizer failed before a decision. The API
/// server would answer a request of this kind with an internal error then, and not with 403.
fn decision(review: &Value) -> Option<bool> {
    let status = review.get("status")?;
    let is_allowed = status.get("allowed")?.as_bool()?;
    let is_denied = status.get("denied") == Some(&Value::Bool(true));
    let has_failed = status.get("evaluationError").and_then(Value::as_str).is_some_and(|error| !error.is_empty());
    (is_allowed || is_denied || !has_failed).then_some(is_allowed)
}

fn is_resource(right: &Right) -> bool {
    matches!(right.object, RightObject::Resource { .. })
}

/// All verbs on all resources of all groups, in the namespace of a right.
fn everything(right: &Right) -> Right {
    let object = RightObject::Resource { group: ANY.to_owned(), resource: ANY.to_owned(), name: None };
    Right { object, verb: ANY.to_owned(), ..right.clone() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn review_without_a_decision_says_nothing_about_a_right() {
        for (status, expected) in [
            (json!({"allowed": true}), Some(true)),
            (json!({"allowed": false}), Some(false)),
            (json!({"allowed": false, "reason": "no rule", "evaluationError": ""}), Some(false)),
            (json!({"allowed": true, "evaluationError": "another authorizer failed"}), Some(true)),
            (json!({"allowed": false, "denied": true, "evaluationError": "another authorizer failed"}), Some(false)),
            (json!({"allowed": false, "evaluationError": "the authorizer failed"}), None),
            (json!({}), None),
            (json!({"allowed": null}), None),
            (json!({"allowed": "true"}), None),
            (json!({"denied": true}), None),
            (json!(null), None),
            (json!([true]), None),
        ] {
            assert_eq!(decision(&json!({"status": status})), expected, "{status}");
        }
        assert_eq!(decision(&json!({"kind": "SelfSubjectAccessReview"})), None);
    }
}
