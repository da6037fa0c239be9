//! A controller as the process sees it: its registration. A registration has two steps. *Setup*, in every replica: it
//! opens the watches that the controller needs, so that a replica that takes over has its caches already. *Start*, when
//! this process becomes the leader: it starts the actors. The tree ([`root`](super::root)) knows registrations only,
//! not their content. A new controller is a folder and one line in [`CONTROLLERS`](super::controllers::CONTROLLERS).

use std::{future::Future, time::Duration};

use futures::future::LocalBoxFuture;
use kit::{Controller, Supervised};

use super::controller_context::ControllerContext;
use crate::api::config::Config;

/// A controller, or several that share their actors.
#[derive(Debug, Clone, Copy)]
pub struct ControllerRegistration {
    /// Names of its controllers in metrics and logs (spec 70 §9.2), as in [`Config::enabled_controllers`].
    pub names: &'static [&'static str],
    /// Opens its watches in every replica; `None` if turned off. Nothing is written before [`StartControllers`].
    pub setup: fn(&Config, &ControllerContext) -> Option<StartControllers>,
}

/// Starts the actors of a registration: this process leads.
pub type StartControllers = Box<dyn FnOnce(&ControllerContext) -> Running>;

/// The running actors of a registration.
pub struct Running {
    stop: Box<dyn FnOnce(Duration) -> LocalBoxFuture<'static, bool>>,
}

impl Running {
    /// `stop` ends the actors: reconciles get the given time to end by themselves. It returns true if all of them did.
    pub fn new<F: Future<Output = bool> + 'static>(stop: impl FnOnce(Duration) -> F + 'static) -> Self {
        Self { stop: Box::new(move |patience| Box::pin(stop(patience))) }
    }

    /// Ends the actors: reconciles get `patience` to end by themselves. Returns true if all of them did.
    pub fn stop(self, patience: Duration) -> LocalBoxFuture<'static, bool> {
        (self.stop)(patience)
    }
}

impl<C: Controller> From<Supervised<C>> for Running {
    fn from(supervised: Supervised<C>) -> Self {
        Self::new(move |patience| async move { supervised.stop(patience).await })
    }
}
