//! Ends the process from inside: without some actors it would only look alive.

use std::{fmt, future::Future, panic::AssertUnwindSafe};

use futures::FutureExt as _;
use tokio::{sync::watch, task::JoinHandle};

/// Why a process must end, and the way to end it. Clones share it; each process has its own.
#[derive(Clone)]
pub struct Fatal {
    cause: watch::Sender<Option<String>>,
}

/// Ends the process when it is dropped with the actor that holds it. An actor that ends in good order disarms it first.
#[must_use = "dropped, it ends the process"]
pub struct Indispensable {
    fatal: Fatal,
    name: Option<String>,
}

impl Fatal {
    /// Ends the process. The text is logged. Only the first cause counts, because later failures mostly follow from it.
    pub fn end(&self, cause: impl Into<String>) {
        self.cause.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                *known = Some(cause.into());
            }
            is_first
        });
    }

    /// Returns why the process must end; `None` while it need not.
    pub fn cause(&self) -> Option<String> {
        self.cause.borrow().clone()
    }

    /// Waits until the process must end. Returns the cause.
    pub async fn ended(&self) -> String {
        let mut causes = self.cause.subscribe();
        match causes.wait_for(Option::is_some).await.map(|cause| cause.clone()) {
            Ok(Some(cause)) => cause,
            // The sender is ours, so it lives.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Returns a guard for the fields of an actor. The text names the actor: `<name> panicked`.
    pub fn indispensable(&self, name: impl Into<String>) -> Indispensable {
        Indispensable { fatal: self.clone(), name: Some(name.into()) }
    }

    /// Runs a task whose panic ends the process. The task may end by itself or be aborted.
    pub fn spawn(&self, name: impl Into<String>, task: impl Future<Output = ()> + 'static) -> JoinHandle<()> {
        let (fatal, name) = (self.clone(), name.into());
        actix::spawn(async move {
            if AssertUnwindSafe(task).catch_unwind().await.is_err() {
                fatal.end(panicked(&name));
            }
        })
    }
}

fn panicked(name: &str) -> String {
    format!("{name} panicked")
}

impl Default for Fatal {
    fn default() -> Self {
        Self { cause: watch::Sender::new(None) }
    }
}

impl fmt::Debug for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fatal").field(&self.cause()).finish()
    }
}

impl Indispensable {
    /// Call this before the actor ends in good order.
    pub fn disarm(&mut self) {
        self.name = None;
    }
}

impl Drop for Indispensable {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            self.fatal.end(panicked(&name));
        }
    }
}

impl fmt::Debug for Indispensable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Indispensable").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{settle, universe};

    #[test]
    fn fatal_keeps_the_first_cause_and_returns_it_to_waiters() {
        universe(1, |universe| async move {
            let fatal = universe.env.fatal;
            let waiting = actix::spawn({
                let fatal = fatal.clone();
                async move { fatal.ended().await }
            });
            settle().await;
            assert!(!waiting.is_finished());
            fatal.end("first");
            fatal.end("second");

            assert_eq!((waiting.await.unwrap().as_str(), fatal.ended().await.as_str()), ("first", "first"));
        });
    }

    #[test]
    fn indispensable_actor_that_is_dropped_ends_the_process_unless_disarmed() {
        universe(1, |universe| async move {
            let fatal = universe.env.fatal;
            fatal.indispensable("the first actor").disarm();
            assert_eq!(fatal.cause(), None);
            drop(fatal.indispensable("the second actor"));

            assert_eq!(fatal.cause().as_deref(), Some("the second actor panicked"));
        });
    }

    #[test]
    fn fatal_task_ends_the_process_when_it_panics_and_not_when_it_is_aborted() {
        universe(1, |universe| async move {
            let fatal = universe.env.fatal;
            fatal.spawn("the first task", std::future::pending()).abort();
            fatal.spawn("the second task", async {});
            settle().await;
            assert_eq!(fatal.cause(), None);
            fatal.spawn("the third task", async { panic!("scripted") });
            settle().await;

            assert_eq!(fatal.cause().as_deref(), Some("the third task panicked"));
        });
    }
}
