//! `vpa-in-place-updates`: VerticalPodAutoscalers that update Pods in place (spec 50 §12).

use serde_json::Value;

use super::{Mutation, Mutator, Request};
use crate::webhooks::{
    fields::{self, Field, Type},
    view::{Failure, View},
};

/// The path on which it is served.
pub const PATH: &str = "/webhooks/vpa-in-place-updates";

/// Label of changed objects. It is never removed.
const MUTATED: &str = "vpa-in-place-updates.resources.gardener.cloud/mutated";

const FIELDS: [Field; 2] = [("spec.updatePolicy.updateMode", Type::Text), ("metadata.labels", Type::Map)];

/// Makes VerticalPodAutoscalers that would evict Pods resize them in place.
#[derive(Debug, Clone, Copy)]
pub struct VpaInPlace;

impl Mutator for VpaInPlace {
    fn mutate(&self, autoscaler: &mut Value, _: &Request<'_>, _: &dyn View) -> Result<Mutation, Failure> {
        fields::check(autoscaler, &FIELDS)?;
        let mode = fields::text(autoscaler, &["spec", "updatePolicy", "updateMode"])?;
        if matches!(mode, None | Some("Auto" | "Recreate")) {
            let policy = fields::map_mut(autoscaler, &["spec", "updatePolicy"])?;
            policy.insert("updateMode".to_owned(), "InPlaceOrRecreate".into());
            fields::map_mut(autoscaler, &["metadata", "labels"])?.insert(MUTATED.to_owned(), "true".into());
        }
        Ok(Mutation::Done)
    }

    /// Any kind: the API group may be unknown, and the kind is not checked (spec 50 §2.2 row 7).
    fn takes(&self) -> Option<(&'static str, &'static str)> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::testing::{TestView, changes, failure, leaves};

    /// spec 50 §12, scenario 39
    #[test]
    fn update_mode_is_set_if_absent() {
        let view = TestView::new();

        changes(
            &VpaInPlace,
            &view,
            "
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {minReplicas: 1}
---
metadata: {name: web, labels: {vpa-in-place-updates.resources.gardener.cloud/mutated: 'true'}}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {minReplicas: 1, updateMode: InPlaceOrRecreate}
",
        );
        assert!(view.reads().is_empty());
    }

    /// spec 50 §12, scenario 39
    #[test]
    fn update_mode_that_evicts_is_replaced() {
        let after = "
metadata: {labels: {a: b, vpa-in-place-updates.resources.gardener.cloud/mutated: 'true'}}
spec: {updatePolicy: {updateMode: InPlaceOrRecreate}}
";
        for spec in [
            "null",
            "{}",
            "{updatePolicy: null}",
            "{updatePolicy: {updateMode: null}}",
            "{updatePolicy: {updateMode: Auto}}",
            "{updatePolicy: {updateMode: Recreate}}",
        ] {
            let before = format!("metadata: {{labels: {{a: b}}}}\nspec: {spec}");
            changes(&VpaInPlace, &TestView::new(), &format!("{before}\n---\n{after}"));
        }
    }

    /// spec 50 §12, scenario 39
    #[test]
    fn update_mode_without_eviction_stays_and_gets_no_label() {
        for mode in ["Off", "Initial", "InPlaceOrRecreate", "InPlaceOnly", "auto", "''"] {
            leaves(&VpaInPlace, &TestView::new(), &format!("spec: {{updatePolicy: {{updateMode: {mode}}}}}"));
        }
    }

    /// spec 50 §12, traps
    #[test]
    fn label_stays_when_the_mode_is_switched_off_later() {
        leaves(
            &VpaInPlace,
            &TestView::new(),
            "
metadata: {labels: {vpa-in-place-updates.resources.gardener.cloud/mutated: 'true'}}
spec: {updatePolicy: {updateMode: 'Off'}}
",
        );
    }

    /// spec 50 §2.2 row 7, §12 traps
    #[test]
    fn wrong_type_is_an_error_whatever_the_kind() {
        assert_eq!(VpaInPlace.takes(), None);

        for (object, message) in [
            ("spec: {updatePolicy: a}", "spec.updatePolicy: expected a map, found a string"),
            (
                "spec: {updatePolicy: {updateMode: true}}",
                "spec.updatePolicy.updateMode: expected a string, found a boolean",
            ),
            (
                "{metadata: {labels: []}, spec: {updatePolicy: {updateMode: Initial}}}",
                "metadata.labels: expected a map, found a list",
            ),
        ] {
            let expected = Failure::Errored { code: 400, message: message.to_owned() };
            assert_eq!(failure(&VpaInPlace, &TestView::new(), object), expected);
        }
    }
}
