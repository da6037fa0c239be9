//! What the dashboard shows of a Shoot.

use cluster::object::NamespacedName;
use jiff::Timestamp;
use kit::Reconcile;

use super::stores::MaintenanceTrigger;
use crate::actors::controller_manager::fields::whole_seconds;

/// Shows that the maintenance waits because the program has just started.
pub(super) fn show_start(reconcile: &Reconcile<NamespacedName>, begin: Timestamp) {
    reconcile.note(format!("in its window; maintained at {}", whole_seconds(begin)));
}

/// Shows when the next maintenance begins, and the window.
pub(super) fn show_next(reconcile: &Reconcile<NamespacedName>, trigger: &MaintenanceTrigger, next: Timestamp) {
    reconcile.note(format!("next maintenance at {}", whole_seconds(next)));
    reconcile.detail(vec![("Window".to_owned(), trigger.window.to_string())]);
}
