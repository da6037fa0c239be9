//! gardener-resource-manager (layout and picture come with the modules).

pub mod actors;
pub mod api;
pub mod cli;
pub mod cluster;
pub mod dashboard;
pub mod logging;
pub mod process;
#[cfg(feature = "sim")]
pub mod sim;
