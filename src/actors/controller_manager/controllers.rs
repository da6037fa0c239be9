//! The list of controllers: a new controller is its file or folder, and a line here.

use super::context::Registration;

/// All controllers, in the order in which they are set up and started (spec 80 §15).
pub const CONTROLLERS: &[Registration] = &[
    super::bastion::REGISTRATION,
    super::csr::REGISTRATION,
    super::cloud_profile::REGISTRATION,
    super::namespaced_cloud_profile::REGISTRATION,
    super::controller_deployment::REGISTRATION,
    super::bindings::REGISTRATION,
    super::event::REGISTRATION,
    super::exposure_class::REGISTRATION,
    super::extension_cluster_roles::REGISTRATION,
    super::gardenlet_lifecycle::REGISTRATION,
    super::installations::REGISTRATION,
    super::managed_seed_set::REGISTRATION,
    super::project_activity::REGISTRATION,
    super::project_stale::REGISTRATION,
    super::project_resource_quota::REGISTRATION,
    super::project::REGISTRATION,
    super::quota::REGISTRATION,
    super::seed::backup_buckets::REGISTRATION,
    super::seed::extensions::REGISTRATION,
    super::seed::secrets::REGISTRATION,
    super::shoot_hibernation::REGISTRATION,
    super::shoot_maintenance::REGISTRATION,
    super::references::REGISTRATION,
    super::shoot_conditions::REGISTRATION,
    super::shoot_quota::REGISTRATION,
    super::shoot_migration::REGISTRATION,
    super::shoot_retry::REGISTRATION,
    super::shoot_status_label::REGISTRATION,
    super::shoot_state_finalizer::REGISTRATION,
];

/// Returns the names of all controllers.
pub fn names() -> impl Iterator<Item = &'static str> {
    CONTROLLERS.iter().flat_map(|registration| registration.names).copied()
}
