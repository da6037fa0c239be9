//! What all controllers get: the environment, and the garden cluster with what several controllers cache of it.

use std::rc::Rc;

use cluster::Watch;
use kit::{Env, GeneralController, Supervised};
use process::{ClusterHandle, controller_registration};

use super::shoot_record::{self, CachedShoot};
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
    /// The Shoots: the watch that the controllers of Shoots share.
    pub shoots: Watch<CachedShoot>,
}

impl GardenContext {
    /// Opens what all controllers share.
    pub fn new(env: Env, garden: ClusterHandle) -> Self {
        let shoots = shoot_record::open(&garden.watches);
        Self { env, garden, shoots }
    }
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
