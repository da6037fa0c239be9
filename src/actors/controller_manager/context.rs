//! What all controllers get: the environment, and the garden cluster with what is cached of it.

use kit::Env;
use process::{ClusterHandle, controller_registration};

use crate::api::config::controller_manager::Config;

/// A controller of this program.
pub type Registration = controller_registration::ControllerRegistration<Config, GardenContext>;
/// Starts its actors: this process leads.
pub type StartControllers = controller_registration::StartControllers<GardenContext>;

/// What all controllers get. Cheap to clone.
#[derive(Clone)]
pub struct GardenContext {
    /// Clock, randomness, status registry, observers.
    pub env: Env,
    /// The garden cluster.
    pub garden: ClusterHandle,
}
