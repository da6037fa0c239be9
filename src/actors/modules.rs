//! The controllers there are: a new one is its folder, and a line here.

use super::{csr_approver, managed_resource, module::Module};

/// All modules, in the order in which they are installed and started.
pub const MODULES: &[Module] = &[managed_resource::MODULE, csr_approver::MODULE];
