//! During a repair conflict, conditions do not flip with each of our own writes: a status, or a text, is written when
//! it has stood for a while (spec 20 §4.3, spec 10 §5.4).

use std::time::Duration;

use super::{
    memory::{Flip, HealthMemory},
    reconcile::NewCondition,
    run::HealthRun,
    survey::{Answer, Survey},
};
use crate::api::{
    meta::conditions::{self, ConditionStatus},
    resources::{
        condition_names::RESOURCES_HEALTHY,
        managed_resource::{ManagedResource, ResourceRef},
    },
};

impl HealthRun<'_> {
    /// Removes the conditions whose new status has not stood for long enough. Returns when to check again.
    pub(super) fn hold_back(
        &self,
        memory: &mut HealthMemory,
        mr: &ManagedResource,
        survey: &Survey,
        reports: &mut Vec<NewCondition>,
    ) -> Option<Duration> {
        let controller = self.controller;
        let now = controller.env.clock.monotonic();
        let mut again: Option<Duration> = None;
        reports.retain(|(kind, report)| {
            let known = conditions::find(&mr.status.conditions, kind);
            // The first verdict on a set is never held back.
            let known = known.filter(|known| matches!(known.status, ConditionStatus::True | ConditionStatus::False));
            let flip = known.and_then(|known| Flip::between(known, report));
            let named = survey.named(kind).and_then(|index| mr.status.resources.get(index)).map(ResourceRef::key);
            let hold = controller.health_registry.hold(&self.reconcile.key, named.as_ref(), now);
            let left = memory.holds_back(kind, flip.zip(hold), now);
            again = again.into_iter().chain(left).min();
            left.is_none()
        });
        again
    }
}

impl Survey {
    fn named(&self, kind: &str) -> Option<usize> {
        if kind == RESOURCES_HEALTHY {
            let Answer::First((index, _)) = &self.health else { return None };
            Some(*index)
        } else {
            let Answer::First((index, _)) = &self.progress else { return None };
            Some(*index)
        }
    }
}
