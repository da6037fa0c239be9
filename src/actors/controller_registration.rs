//! A controller as the process sees it: a module.
//!
//! A module has two moments. *Install*, in every replica: it opens the watches it needs, so that a replica that takes over
//! has its stores already. *Lead*, when this process becomes the leader: it starts its actors. The tree
//! ([`root`](super::root)) knows modules and nothing of what is in them; a new controller is a folder and one line in
//! [`MODULES`](super::modules::MODULES).

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
    /// Opens its watches, in every replica; `None` if the configuration has it off. Nothing is written before [`Lead`].
    pub setup: fn(&Config, &ControllerContext) -> Option<StartControllers>,
}

/// Starts the actors of a module: this process leads.
pub type StartControllers = Box<dyn FnOnce(&ControllerContext) -> Running>;

/// The actors of a module, running.
pub struct Running {
    stop: Box<dyn FnOnce(Duration) -> LocalBoxFuture<'static, bool>>,
}

impl Running {
    /// Actors that `stop` ends: passes get the time it is called with to end by themselves; true if all did.
    pub fn new<F: Future<Output = bool> + 'static>(stop: impl FnOnce(Duration) -> F + 'static) -> Self {
        Self { stop: Box::new(move |patience| Box::pin(stop(patience))) }
    }

    /// Ends the actors; passes get `patience` to end by themselves. True if all did.
    pub fn stop(self, patience: Duration) -> LocalBoxFuture<'static, bool> {
        (self.stop)(patience)
    }
}

impl<C: Controller> From<Supervised<C>> for Running {
    fn from(supervised: Supervised<C>) -> Self {
        Self::new(move |patience| async move { supervised.stop(patience).await })
    }
}
