//! The list of controllers: a new controller is its folder, and a line here.

use super::controller_registration::ControllerRegistration;

/// All controllers, in the order in which they are set up and started.
pub const CONTROLLERS: &[ControllerRegistration] = &[
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
