//! The way back from watches of single namespaces to one of all: who was denied all of them may have been so for a moment
//! only (an API server that has not yet read its roles, a role that is replaced). All namespaces are tried now and then,
//! beside the watches there are, which stay until the new one follows the server.

use std::{cell::RefCell, rc::Rc, time::Duration};

use cluster::{Record, Router, StoreState};
use kit::{Env, Signal};
use tokio::task::JoinHandle;

/// All namespaces are tried this often, stretched by up to a tenth: one request each time as long as they are denied.
const TRY_EVERY: Duration = Duration::from_secs(600);

/// A watch that was not denied for so long after its list follows the server: the right to list is not that to watch.
const PROVEN_AFTER: Duration = Duration::from_secs(5);

/// Tries all namespaces until they may be watched, or until it is dropped.
pub(super) struct Widening<R: Record> {
    task: JoinHandle<()>,
    trial: Trial<R>,
}

/// The watch that is on trial.
type Trial<R> = Rc<RefCell<Option<Router<R>>>>;

/// Stops the watch on trial, unless it was taken.
struct Trying<R: Record>(Trial<R>);

// === impl Widening ===

impl<R: Record> Widening<R> {
    /// `start` begins a watch of all namespaces with a list, and with nobody told of anything; `None`: there is nothing left
    /// to watch. `adopt` gets it when it follows the server; if it says no, there will be another.
    pub(super) fn start(
        env: &Env,
        start: impl Fn() -> Option<Router<R>> + 'static,
        adopt: impl Fn(&Router<R>) -> bool + 'static,
    ) -> Self {
        let (random, trial) = (env.random.clone(), Trial::default());
        let slot = trial.clone();
        let task = actix::spawn(async move {
            loop {
                tokio::time::sleep(random.jitter(TRY_EVERY, 0.1)).await;
                let Some(router) = start() else { return };
                slot.replace(Some(router.clone()));
                let _trying = Trying(slot.clone());
                if follows(&router).await && adopt(&router) {
                    tracing::info!(kind = %router.resource(), "a kind may be watched in all namespaces again");
                    slot.take();
                    return;
                }
            }
        });
        Self { task, trial }
    }

    /// The watch that is on trial.
    pub(super) fn trial(&self) -> Option<Router<R>> {
        self.trial.borrow().clone()
    }
}

impl<R: Record> Drop for Widening<R> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Trying ===

impl<R: Record> Drop for Trying<R> {
    fn drop(&mut self) {
        if let Some(router) = self.0.take() {
            router.stop();
        }
    }
}

/// Whether a router that was just started has listed and goes on to watch. Its first failure ends it.
async fn follows<R: Record>(router: &Router<R>) -> bool {
    loop {
        let moment = router.signal().moment();
        let raised = Signal::raised_after(&moment);
        match router.store().state() {
            StoreState::Off | StoreState::Failing(_) => return false,
            StoreState::Starting => raised.await,
            StoreState::Synced => {
                if tokio::time::timeout(PROVEN_AFTER, raised).await.is_err() {
                    return !router.is_forbidden();
                }
            }
        }
    }
}
