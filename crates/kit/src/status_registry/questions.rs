//! Questions to the thread of the controllers, for what no cell holds. One question at a time reaches that thread, so
//! that readers of the dashboard cannot keep it from its work.

use std::{sync::Arc, time::Duration};

use actix::{Message, WeakRecipient};
use dashmap::DashMap;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use super::StatusRegistry;
use crate::ActorDetails;

/// The controllers' thread did not answer in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the thread of the controllers did not answer in time; it may be busy, ask again later")]
pub struct Unanswered;

/// Asks a supervisor for the details of an actor.
#[derive(Message)]
#[rtype(result = "Option<ActorDetails>")]
pub(crate) struct Question {
    /// The actor's path.
    pub(crate) path: String,
    /// Ends with the answer and not with the patience of who asked: a busy thread has one question in all its mailboxes.
    _turn: OwnedSemaphorePermit,
}

#[derive(Clone, Debug)]
pub(super) struct Questions {
    supervisors: Arc<DashMap<String, WeakRecipient<Question>>>,
    /// Fair: who has waited longest comes next.
    turn: Arc<Semaphore>,
}

impl Default for Questions {
    fn default() -> Self {
        Self { supervisors: Arc::default(), turn: Arc::new(Semaphore::new(1)) }
    }
}

impl StatusRegistry {
    /// Asks the supervisor of the actor at `path` for details, and waits for the answer, at most `limit`. `None` if the
    /// actor belongs to no supervisor, or has just ended. For any thread with a runtime.
    pub async fn ask(&self, path: &str, limit: Duration) -> Result<Option<ActorDetails>, Unanswered> {
        let end = Instant::now() + limit;
        let Some((controller, _)) = path.split_once('/') else { return Ok(None) };
        let supervisor = self.questions.supervisors.get(controller).and_then(|found| found.value().upgrade());
        let Some(supervisor) = supervisor else { return Ok(None) };
        let asking = async {
            let Ok(turn) = self.questions.turn.clone().acquire_owned().await else { return None };
            // An error: the supervisor has ended.
            supervisor.send(Question { path: path.to_owned(), _turn: turn }).await.ok().flatten()
        };
        timeout_at(end, asking).await.map_err(|_| Unanswered)
    }

    /// Lets `supervisor` answer for the actors below `controller/`.
    pub(crate) fn answered_by(&self, controller: &str, supervisor: WeakRecipient<Question>) {
        self.questions.supervisors.insert(controller.to_owned(), supervisor);
    }

    /// Undoes [`Self::answered_by`].
    pub(crate) fn unanswered(&self, controller: &str) {
        self.questions.supervisors.remove(controller);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::{
        Controller, Failure, Outcome, Reconcile, Reconciler, Supervised, Wake,
        testing::{Universe, settle, universe},
    };

    const LIMIT: Duration = Duration::from_secs(2);

    struct Quiet;

    impl Controller for Quiet {
        type Key = String;
        type Memory = ();

        fn reconcilers(&self) -> Vec<Reconciler> {
            vec![Reconciler::new("quiet", 1)]
        }

        async fn reconcile(self: &std::rc::Rc<Self>, _: &mut (), _: &Reconcile<String>) -> Result<Outcome, Failure> {
            Ok(Outcome::Done)
        }
    }

    fn with_an_actor<F: Future<Output = ()>>(test: impl FnOnce(Universe) -> F) {
        universe(1, |universe| async move {
            let supervised = Supervised::start(std::rc::Rc::new(Quiet), &universe.env);
            supervised.wake(&"a".to_owned(), Wake::high(crate::Causes::OBJECT));
            settle().await;
            test(universe.clone()).await;
            supervised.stop(LIMIT).await;
        });
    }

    #[test]
    fn question_is_given_up_after_its_time_limit() {
        with_an_actor(|universe| async move {
            let registry = &universe.env.status_registry;
            let turn = registry.questions.turn.clone().acquire_owned().await.unwrap();

            assert_eq!(registry.ask("quiet/a", LIMIT).await.unwrap_err(), Unanswered);

            drop(turn);
            assert_eq!(registry.ask("quiet/a", LIMIT).await.unwrap().unwrap().reconciles.len(), 1);
        });
    }

    #[test]
    fn questions_are_answered_in_their_order() {
        with_an_actor(|universe| async move {
            let registry = &universe.env.status_registry;
            let mut waiting: Vec<_> = (0..50).map(|_| Box::pin(registry.ask("quiet/a", LIMIT))).collect();
            for question in &mut waiting {
                assert!(question.as_mut().now_or_never().is_none());
            }

            for question in waiting {
                assert!(question.await.unwrap().is_some());
            }
        });
    }

    #[test]
    fn question_about_an_actor_without_a_supervisor_has_no_answer() {
        with_an_actor(|universe| async move {
            for path in ["quiet", "quiet/b", "watch/source/secrets", ""] {
                assert_eq!(universe.env.status_registry.ask(path, LIMIT).await, Ok(None), "{path}");
            }
        });
    }
}
