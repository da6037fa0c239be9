//! A reconcile under way: what its steps share.

use std::{rc::Rc, time::Duration};

use cluster::{
    Context,
    object::{GroupKind, NamespacedName, ObjectKey},
};
use kit::Reconcile;

use super::super::shared::ManagedResources;

/// Which reconciler. Both check both conditions where they can: the first writes all that change together.
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
}

/// Returns the time until the next reconcile or idle check, spread over a tenth of the period and below 1.1 periods.
pub(super) fn period(controller: &ManagedResources) -> Duration {
    controller.env.random.jitter(controller.settings.health.sync_period.get() * 9 / 10, 0.2)
}

pub(super) fn are_pods_needed(controller: &ManagedResources) -> bool {
    controller.objects.has_owned_kind(&GroupKind::new("apps", "Deployment"))
}
