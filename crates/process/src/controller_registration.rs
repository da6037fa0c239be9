//! A controller as the process sees it: its registration. A registration has two steps. *Setup*, in every replica: it
//! opens the watches that the controller needs, so that a replica that takes over has its caches already. *Start*, when
//! this process becomes the leader: it starts the actors. A new controller is a folder and one line in the program's list
//! ([`Program::controllers`](crate::Program::controllers)).

use std::{future::Future, time::Duration};

use futures::future::LocalBoxFuture;
use kit::{GeneralController, Supervised};

/// A controller, or several that share their actors.
pub struct ControllerRegistration<Config: 'static, Context: 'static> {
    /// Names of its controllers in metrics and logs (spec 70 §9.2, 80 §15).
    pub names: &'static [&'static str],
    /// Opens its watches in every replica; `None` if turned off. Nothing is written before [`StartControllers`].
    pub setup: fn(&Config, &Context) -> Option<StartControllers<Context>>,
}

/// Starts the actors of a registration: this process leads.
pub type StartControllers<Context> = Box<dyn FnOnce(&Context) -> Running>;

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

impl<C: GeneralController> From<Supervised<C>> for Running {
    fn from(supervised: Supervised<C>) -> Self {
        Self::new(move |patience| async move { supervised.stop(patience).await })
    }
}
