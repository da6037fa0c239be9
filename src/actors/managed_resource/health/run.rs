//! A reconcile under way: what its steps share.

use std::{rc::Rc, time::Duration};

use cluster::Context;
use kit::Reconcile;

use super::super::shared::ManagedResources;
use crate::api::object::{GroupKind, NamespacedName, ObjectKey};

/// Which of the two reconcilers. Both check both conditions where they can, so that conditions that change together are
/// written together, by the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HealthReconciler {
    /// `health`: all objects, both conditions.
    Health,
    /// `health-progressing`: workloads, and their condition alone.
    Progress,
}

pub(super) struct HealthRun<'a> {
    pub(super) controller: &'a Rc<ManagedResources>,
    pub(super) reconcile: &'a Reconcile<NamespacedName, ObjectKey>,
    pub(super) reconciler: HealthReconciler,
    pub(super) context: Context,
    pub(super) writer: String,
}

/// Returns the time until the next reconcile or idle check, spread over a tenth of the period and below 1.1 periods.
pub(super) fn period(controller: &ManagedResources) -> Duration {
    controller.env.random.jitter(controller.settings.health.sync_period * 9 / 10, 0.2)
}

pub(super) fn are_pods_needed(controller: &ManagedResources) -> bool {
    controller.objects.is_interested_in(&GroupKind::new("apps", "Deployment"))
}
