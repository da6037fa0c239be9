//! The actors: the kit they stand on, one folder per controller, and the tree that starts them.

pub mod csr_approver;
pub mod health;
pub mod kit;
pub mod leader;
pub mod managed_resource;
pub mod root;
