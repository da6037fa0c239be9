//! Pure. Which kinds mutating webhooks, admission policies and bindings match (spec 10 §11.3, decision 40).

use std::{collections::BTreeSet, sync::Arc};

use kit::hash_of;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Admission {
    /// Hash of all that decides about answers, without metadata and status.
    content: u64,
    pub(crate) kinds: MatchedKinds,
    pub(crate) policy: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MatchedKinds {
    Any,
    /// These, as group and plural; `*` stands for each.
    Named(Arc<BTreeSet<(String, String)>>),
}

const EACH: &str = "*";

impl Admission {
    pub(crate) fn of_configuration(object: &Value) -> Self {
        let webhooks = object.get("webhooks");
        let rules = webhooks.and_then(Value::as_array).map(|webhooks| webhooks.iter().map(|webhook| &webhook["rules"]));
        let kinds = match (webhooks, rules) {
            (None | Some(Value::Null), _) => MatchedKinds::none(),
            (Some(_), Some(rules)) => rules.map(MatchedKinds::of_rules).fold(MatchedKinds::none(), MatchedKinds::or),
            (Some(_), None) => MatchedKinds::Any,
        };
        Self { content: hash_of(&webhooks.map(Value::to_string)), kinds, policy: None }
    }

    pub(crate) fn of_policy(object: &Value) -> Self {
        let spec = object.get("spec");
        let rules = object.pointer("/spec/matchConstraints/resourceRules");
        Self {
            content: hash_of(&spec.map(Value::to_string)),
            kinds: rules.map_or(MatchedKinds::Any, MatchedKinds::of_rules),
            policy: None,
        }
    }

    /// A binding matches what its policy matches, or less.
    pub(crate) fn of_binding(object: &Value) -> Self {
        let spec = object.get("spec");
        let rules = object.pointer("/spec/matchResources/resourceRules");
        let rules = rules.filter(|rules| rules.as_array().is_none_or(|rules| !rules.is_empty()));
        let policy = object.pointer("/spec/policyName").and_then(Value::as_str).map(Into::into);
        Self {
            content: hash_of(&spec.map(Value::to_string)),
            kinds: rules.map_or(MatchedKinds::Any, MatchedKinds::of_rules),
            policy,
        }
    }

    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

impl MatchedKinds {
    pub(crate) fn none() -> Self {
        Self::Named(Arc::default())
    }

    /// A rule that cannot be read may match anything.
    fn of_rules(rules: &Value) -> Self {
        let texts = |rule: &Value, field: &str| -> Option<Vec<String>> {
            rule[field].as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let mut named = BTreeSet::new();
        for rule in rules.as_array().into_iter().flatten() {
            let (Some(operations), Some(groups), Some(resources)) =
                (texts(rule, "operations"), texts(rule, "apiGroups"), texts(rule, "resources"))
            else {
                return Self::Any;
            };
            // Revalidation updates objects that exist.
            if !operations.iter().any(|operation| operation == EACH || operation == "UPDATE") {
                continue;
            }
            for resource in resources {
                let resource = if resource == "*/*" { EACH } else { resource.as_str() };
                if !resource.contains('/') {
                    named.extend(groups.iter().map(|group| (group.clone(), resource.to_owned())));
                }
            }
        }
        if rules.is_null() || rules.is_array() { Self::Named(Arc::new(named)) } else { Self::Any }
    }

    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Named(some), Self::Named(more)) => Self::Named(Arc::new(some.union(&more).cloned().collect())),
            _ => Self::Any,
        }
    }

    /// Returns true if objects of a resource may be matched. Versions do not count: a rule covers equivalent ones.
    pub(crate) fn may_match(&self, group: &str, plural: &str) -> bool {
        let Self::Named(named) = self else { return true };
        named.iter().any(|(in_group, resource)| {
            (in_group == EACH || in_group == group) && (resource == EACH || resource == plural)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(operations: &[&str], groups: &[&str], resources: &[&str]) -> Value {
        json!({ "operations": operations, "apiGroups": groups, "apiVersions": ["v1"], "resources": resources })
    }

    fn configuration(rules: Value) -> Value {
        json!({
            "kind": "MutatingWebhookConfiguration", "metadata": { "name": "a" },
            "webhooks": [{ "name": "x.y.z", "rules": rules }],
        })
    }

    fn matched(kinds: &MatchedKinds) -> Vec<&'static str> {
        let all = [("", "configmaps"), ("", "pods"), ("apps", "deployments"), ("g.io", "things")];
        all.into_iter().filter(|(group, plural)| kinds.may_match(group, plural)).map(|(_, plural)| plural).collect()
    }

    /// spec 10 §11.3 (a)
    #[test]
    fn revalidation_concerns_the_kinds_whose_updates_a_webhook_matches() {
        for (rules, expected) in [
            (json!([rule(&["CREATE", "UPDATE"], &["apps"], &["deployments"])]), &["deployments"][..]),
            (json!([rule(&["CREATE"], &["apps"], &["deployments"])]), &[]),
            (json!([rule(&["*"], &["*"], &["*"])]), &["configmaps", "pods", "deployments", "things"]),
            (json!([rule(&["*"], &["*"], &["*/*"])]), &["configmaps", "pods", "deployments", "things"]),
            (json!([rule(&["UPDATE"], &[""], &["*"])]), &["configmaps", "pods"]),
            (json!([rule(&["UPDATE"], &["apps"], &["deployments/scale", "pods/*"])]), &[]),
            (
                json!([rule(&["UPDATE"], &[""], &["pods"]), rule(&["UPDATE"], &["g.io"], &["things"])]),
                &["pods", "things"],
            ),
            (json!([]), &[]),
            (json!(null), &[]),
            (json!("x"), &["configmaps", "pods", "deployments", "things"]),
            (json!([{ "operations": ["*"] }]), &["configmaps", "pods", "deployments", "things"]),
        ] {
            let kinds = Admission::of_configuration(&configuration(rules.clone())).kinds;

            assert_eq!(matched(&kinds), expected, "{rules}");
        }
        assert_eq!(matched(&Admission::of_configuration(&json!({})).kinds), [""; 0]);
        assert_eq!(Admission::of_configuration(&json!({ "webhooks": 1 })).kinds, MatchedKinds::Any);
    }

    /// spec 10 §11.3 (a)
    #[test]
    fn revalidation_concerns_the_kinds_of_a_policy_and_of_a_binding_that_narrows_it() {
        let rules = json!([rule(&["UPDATE"], &[""], &["pods"])]);
        let policy = json!({ "spec": { "matchConstraints": { "resourceRules": rules } } });
        let narrow = json!({ "spec": { "policyName": "p", "matchResources": { "resourceRules": rules } } });
        let wide = json!({ "spec": { "policyName": "p", "matchResources": { "resourceRules": [] } } });

        assert_eq!(matched(&Admission::of_policy(&policy).kinds), ["pods"]);
        assert_eq!(Admission::of_policy(&json!({ "spec": {} })).kinds, MatchedKinds::Any);
        assert_eq!(matched(&Admission::of_binding(&narrow).kinds), ["pods"]);
        let wide = Admission::of_binding(&wide);
        assert_eq!((wide.kinds, wide.policy.as_deref()), (MatchedKinds::Any, Some("p")));
    }

    #[test]
    fn revalidation_is_for_changes_of_content_alone() {
        let before = configuration(json!([rule(&["UPDATE"], &[""], &["pods"])]));
        let mut annotated = before.clone();
        annotated["metadata"] = json!({ "annotations": { "a": "b" }, "resourceVersion": "7" });
        let mut trusted = before.clone();
        trusted["webhooks"][0]["clientConfig"]["caBundle"] = json!("eA==");
        let of = Admission::of_configuration;

        assert!(of(&before).is_like(&of(&annotated)));
        assert!(!of(&before).is_like(&of(&trusted)), "a webhook that could not be asked may answer now");
    }

    #[test]
    fn revalidation_concerns_what_a_rule_matched_before_or_matches_now() {
        let kinds = |group: &str, plural: &str| MatchedKinds::Named(Arc::new([(group.into(), plural.into())].into()));

        assert_eq!(matched(&kinds("", "pods").or(kinds("apps", "deployments"))), ["pods", "deployments"]);
        assert_eq!(kinds("", "pods").or(MatchedKinds::Any), MatchedKinds::Any);
        assert_eq!(matched(&MatchedKinds::none().or(kinds("", "pods"))), ["pods"]);
    }
}
