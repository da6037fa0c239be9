//! The controllers there are: a new one is its folder, and a line here.

use super::module::Module;

/// All modules, in the order in which they are installed and started.
pub const MODULES: &[Module] = &[
    super::managed_resource::MODULE, //
    super::csr_approver::MODULE,
    super::garbage_collector::MODULE,
    super::token_invalidator::MODULE,
    super::token_requestor::MODULE,
    super::network_policy::MODULE,
    super::istio_cluster_configuration::MODULE,
    super::node::critical_components::MODULE,
    super::node::reconciliation_delay::MODULE,
    super::node::high_availability::MODULE,
];
