//! The actors: one folder per controller. They are built on the crate [`kit`]; the crate [`process`] starts them.
//! * [`resource_manager`]: the controllers of gardener-resource-manager
//! * [`controller_manager`]: the controllers of gardener-controller-manager
//! * [`shared`]: what controllers of both programs use

pub mod controller_manager;
pub mod resource_manager;
pub mod shared;
