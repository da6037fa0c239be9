//! The list of controllers: a new controller is its folder, and a line here.

use super::controller_context::Registration;

/// All controllers, in the order in which they are set up and started.
pub const CONTROLLERS: &[Registration] = &[
    super::managed_resource::REGISTRATION, //
    super::csr_approver::REGISTRATION,
    super::garbage_collector::REGISTRATION,
    super::token_invalidator::REGISTRATION,
    super::token_requestor::REGISTRATION,
    super::network_policy::REGISTRATION,
    super::istio_cluster_configuration::REGISTRATION,
    super::node::critical_components::REGISTRATION,
    super::node::reconciliation_delay::REGISTRATION,
    super::node::high_availability::REGISTRATION,
];

/// Returns the names of all controllers, as in [`Config::enabled_controllers`](super::controller_context::Config).
pub fn names() -> impl Iterator<Item = &'static str> {
    CONTROLLERS.iter().flat_map(|registration| registration.names).copied()
}
