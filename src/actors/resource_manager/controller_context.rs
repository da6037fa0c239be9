//! What all controllers get: the environment, and the two clusters with what is cached of them.

use std::{cell::OnceCell, rc::Rc};

use kit::{Env, GeneralController, Supervised};
use process::{ClusterHandle, controller_registration};

use crate::api::config::resource_manager::Config;

/// A controller of this program.
pub type Registration = controller_registration::ControllerRegistration<Config, ControllerContext>;
/// Starts its actors: this process leads.
pub type StartControllers = controller_registration::StartControllers<ControllerContext>;

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

/// What all controllers get. Cheap to clone.
#[derive(Clone)]
pub struct ControllerContext {
    /// Clock, randomness, status registry, observers.
    pub env: Env,
    /// The cluster of ManagedResources, Secrets and Machines.
    pub source: ClusterHandle,
    /// The cluster to which objects are applied. It shares everything with the source if both are one cluster.
    pub target: ClusterHandle,
    /// CA certificates of the target's API server, in PEM; empty if none are known.
    pub target_ca: Rc<[u8]>,
    /// Identity of the source cluster (spec 70 §14); empty until this process leads.
    pub cluster_id: Rc<OnceCell<String>>,
}

impl ControllerContext {
    /// Returns the cluster id of origin annotations (spec 70 §14); empty if there is none or before this process leads.
    pub fn cluster_id(&self) -> &str {
        self.cluster_id.get().map_or("", String::as_str)
    }
}
