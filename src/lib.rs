//! gardener-resource-manager (layout and picture come with the modules).

pub mod actors;
pub mod api;
#[cfg(feature = "sim")]
pub mod sim;
