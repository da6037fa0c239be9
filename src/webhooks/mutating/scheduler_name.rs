//! `pod-scheduler-name`: another default for the scheduler of Pods (spec 50 §6).

use serde_json::Value;

use super::{Mutation, Mutator, Request};
use crate::{
    api::config::resource_manager::PodSchedulerName,
    webhooks::{
        fields::{self, Field, Type},
        view::{Failure, View},
    },
};

/// The path on which it is served.
pub const PATH: &str = "/webhooks/default-pod-scheduler-name";

/// The API server's default: a Pod that names it chose no scheduler.
const DEFAULT: &str = "default-scheduler";

const FIELDS: [Field; 1] = [("spec.schedulerName", Type::Text)];

/// Gives Pods that chose no scheduler the configured one.
#[derive(Debug, Clone)]
pub struct SchedulerName(pub PodSchedulerName);

impl Mutator for SchedulerName {
    fn mutate(&self, pod: &mut Value, _: &Request<'_>, _: &dyn View) -> Result<Mutation, Failure> {
        fields::check(pod, &FIELDS)?;
        if matches!(fields::text(pod, &["spec", "schedulerName"])?, None | Some("" | DEFAULT)) {
            let name = self.0.scheduler_name.as_str();
            fields::map_mut(pod, &["spec"])?.insert("schedulerName".to_owned(), name.into());
        }
        Ok(Mutation::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::testing::{TestView, changes, failure, leaves};

    fn webhook(name: &str) -> SchedulerName {
        SchedulerName(PodSchedulerName { scheduler_name: name.to_owned() })
    }

    /// spec 50 §6, scenario 21
    #[test]
    fn scheduler_name_is_set_if_the_pod_chose_none() {
        let view = TestView::new();
        let webhook = webhook("bin-packing-scheduler");

        for before in ["{}", "spec:", "spec: {schedulerName: null}", "spec: {schedulerName: ''}"] {
            changes(&webhook, &view, &format!("{before}\n---\nspec: {{schedulerName: bin-packing-scheduler}}"));
        }
        changes(
            &webhook,
            &view,
            "
spec: {schedulerName: default-scheduler, futureField: 7}
---
spec: {schedulerName: bin-packing-scheduler, futureField: 7}
",
        );
        for chosen in ["my-sched", "bin-packing-scheduler", "Default-Scheduler", " "] {
            leaves(&webhook, &view, &format!("spec: {{schedulerName: '{chosen}'}}"));
        }
        assert!(view.reads().is_empty());
    }

    /// spec 50 §6
    #[test]
    fn scheduler_name_equal_to_the_default_is_written_only_if_absent() {
        let webhook = webhook("default-scheduler");

        changes(&webhook, &TestView::new(), "{}\n---\nspec: {schedulerName: default-scheduler}");
        leaves(&webhook, &TestView::new(), "spec: {schedulerName: default-scheduler}");
    }

    /// spec 50 §2.2 row 7
    #[test]
    fn scheduler_name_of_a_wrong_type_is_an_error() {
        let failure = failure(&webhook("a"), &TestView::new(), "spec: {schedulerName: [a]}");

        let message = "spec.schedulerName: expected a string, found a list".to_owned();
        assert_eq!(failure, Failure::Errored { code: 400, message });
    }
}
