//! The programs of this package: each puts its configuration, controllers and servers together for the crate
//! [`process`].

pub mod controller_manager;
pub mod resource_manager;
