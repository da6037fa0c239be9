//! A pass under way: what its steps share.

use std::{rc::Rc, time::Duration};

use cluster::Context;
use kit::Reconcile;

use super::super::shared::ManagedResources;
use crate::api::object::{GroupKind, NamespacedName, ObjectKey};

/// Which of the two duties.
///
/// Both look at both conditions where they can, so that what changes together is written together: the first one writes,
/// and for the other one nothing is left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HealthReconciler {
    /// `health`: all objects, both conditions.
    Health,
    /// `health-progressing`: workloads, and their condition alone.
    Progress,
}

/// A pass under way.
pub(super) struct HealthRun<'a> {
    pub(super) controller: &'a Rc<ManagedResources>,
    pub(super) reconcile: &'a Reconcile<NamespacedName, ObjectKey>,
    pub(super) reconciler: HealthReconciler,
    pub(super) context: Context,
    /// The name under which what was read is entered into stores.
    pub(super) writer: String,
}

/// Time until the next pass or look, spread over a tenth of the period, so that not all bundles are looked at together; never
/// above 1.1 periods.
pub(super) fn period(controller: &ManagedResources) -> Duration {
    controller.env.random.jitter(controller.settings.health.sync_period * 9 / 10, 0.2)
}

/// Whether there are Deployments whose Pods are to be counted.
pub(super) fn are_pods_needed(controller: &ManagedResources) -> bool {
    controller.objects.is_interested_in(&GroupKind::new("apps", "Deployment"))
}
