//! What all controllers get: the environment, and the garden cluster with what is cached of it.

use std::rc::Rc;

use kit::{Env, GeneralController, Supervised};
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

/// Returns how to start the actors of a controller; `subscribe` adds its event handlers.
pub fn start<C: GeneralController>(
    controller: C,
    subscribe: impl FnOnce(&Rc<C>, &Supervised<C>) + 'static,
) -> StartControllers {
    Box::new(move |ctx| {
        let controller = Rc::new(controller);
        let supervised = Supervised::start(controller.clone(), &ctx.env);
        subscribe(&controller, &supervised);
        supervised.into()
    })
}
