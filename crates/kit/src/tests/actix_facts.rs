//! Facts about actix 0.13 that the kit relies on. If a test fails with another version, read the contract (the module
//! doc of `kit`) before changing it. Not tested: `spawn_blocking` jobs end in any order, so tests run CPU jobs inline.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, Arbiter, AsyncContext, Context, Handler, MailboxError, Message,
    WrapFuture, dev::SendError,
};
use tokio::time::Instant;

use crate::testing::{settle, universe};

#[derive(Default)]
struct Subject {
    notes: Notes,
}

type Notes = Rc<RefCell<Vec<&'static str>>>;

#[derive(Message, Clone, Copy, PartialEq)]
#[rtype(result = "()")]
enum Order {
    Note,
    Panic,
    Stop,
    /// Spawns a future that never ends and notes when it is dropped.
    Spawn,
    Later,
    WaitTwice,
}

struct Dropped(Notes);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.borrow_mut().push("dropped");
    }
}

impl Actor for Subject {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        self.notes.borrow_mut().push("started");
    }
}

impl actix::Supervised for Subject {}

impl Handler<Order> for Subject {
    type Result = ();

    fn handle(&mut self, order: Order, ctx: &mut Context<Self>) {
        match order {
            Order::Note => self.notes.borrow_mut().push("note"),
            Order::Panic => panic!("scripted"),
            Order::Stop => ctx.stop(),
            Order::Spawn => {
                let dropped = Dropped(self.notes.clone());
                let never = async move {
                    let _dropped = dropped;
                    std::future::pending::<()>().await;
                };
                ctx.spawn(never.into_actor(self));
            }
            Order::Later => {
                ctx.run_later(Duration::from_secs(7200), |subject, _| subject.notes.borrow_mut().push("later"));
            }
            Order::WaitTwice => {
                for name in ["first wait", "second wait"] {
                    let wait = tokio::time::sleep(Duration::from_secs(1)).into_actor(self);
                    ctx.wait(wait.map(move |(), subject, _| subject.notes.borrow_mut().push(name)));
                }
            }
        }
    }
}

fn subject() -> (Addr<Subject>, Notes) {
    let notes = Notes::default();
    (Subject { notes: notes.clone() }.start(), notes)
}

#[test]
fn panicking_handler_ends_only_its_actor_and_loses_its_mailbox() {
    universe(1, |_| async {
        let (bad, bad_notes) = subject();
        let (good, good_notes) = subject();
        let panicking = bad.send(Order::Panic);
        let queued = bad.send(Order::Note);
        let (panicked, lost) = futures::join!(panicking, queued);
        good.send(Order::Note).await.unwrap();

        assert!(matches!((panicked, lost), (Err(MailboxError::Closed), Err(MailboxError::Closed))));
        assert!(!bad.connected());
        assert_eq!((bad_notes.take(), good_notes.take()), (vec!["started"], vec!["started", "note"]));
    });
}

#[test]
fn panicking_actor_drops_itself_and_its_spawned_futures() {
    universe(1, |_| async {
        let (actor, notes) = subject();
        actor.send(Order::Spawn).await.unwrap();
        actor.send(Order::Panic).await.unwrap_err();
        settle().await;

        assert_eq!(*notes.borrow(), ["started", "dropped"]);
        assert_eq!(Rc::strong_count(&notes), 1, "so a guard among its fields tells of its death");
    });
}

#[test]
fn stopping_drops_spawned_futures_and_queued_messages() {
    universe(1, |_| async {
        let (actor, notes) = subject();
        actor.send(Order::Spawn).await.unwrap();
        let stopping = actor.send(Order::Stop);
        let queued = actor.send(Order::Note);
        let (stopped, lost) = futures::join!(stopping, queued);
        settle().await;

        assert!(stopped.is_ok());
        assert!(matches!(lost, Err(MailboxError::Closed)));
        assert_eq!(*notes.borrow(), ["started", "dropped"]);
    });
}

/// fault 18: a full mailbox is bounded and refuses further messages, without a loss or a deadlock.
#[test]
fn mailbox_holds_sixteen_messages_and_try_send_fails_when_it_is_full() {
    universe(1, |_| async {
        let (actor, notes) = subject();
        let accepted = (0..100).take_while(|_| actor.try_send(Order::Note).is_ok()).count();
        let refused = actor.try_send(Order::Note);
        settle().await;

        assert_eq!(accepted, 16);
        assert!(matches!(refused, Err(SendError::Full(_))));
        assert_eq!(notes.borrow().len(), 1 + accepted);
        assert!(actor.try_send(Order::Note).is_ok(), "there is room again");
    });
}

#[test]
fn timers_of_actors_follow_the_paused_clock_of_tokio() {
    universe(1, |_| async {
        let begin = Instant::now();
        let (actor, notes) = subject();
        actor.send(Order::Later).await.unwrap();
        tokio::time::sleep(Duration::from_secs(7199)).await;
        assert_eq!(*notes.borrow(), ["started"]);
        tokio::time::sleep(Duration::from_secs(2)).await;

        assert_eq!(*notes.borrow(), ["started", "later"]);
        assert_eq!(begin.elapsed(), Duration::from_secs(7201));
    });
}

#[test]
fn paused_clock_is_not_seen_by_other_arbiters() {
    universe(1, |_| async {
        let arbiter = Arbiter::new();
        let ask = || {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            arbiter.spawn(async move {
                sender.send(Instant::now()).ok();
            });
            receiver
        };
        let before = ask().await.unwrap();
        tokio::time::sleep(Duration::from_secs(7200)).await;
        let after = ask().await.unwrap();
        arbiter.stop();

        assert!(after - before < Duration::from_secs(3600), "virtual time needs one arbiter");
    });
}

#[test]
fn supervisor_of_actix_restarts_after_a_stop_and_not_after_a_panic() {
    universe(1, |_| async {
        let notes = Notes::default();
        let given = notes.clone();
        let actor = actix::Supervisor::start(|_| Subject { notes: given });
        actor.send(Order::Stop).await.unwrap();
        settle().await;
        assert_eq!(*notes.borrow(), ["started", "started"]);
        actor.send(Order::Panic).await.unwrap_err();
        settle().await;

        assert_eq!(*notes.borrow(), ["started", "started"]);
        assert!(!actor.connected());
    });
}

#[test]
fn waits_stack_and_block_the_mailbox() {
    universe(1, |_| async {
        let (actor, notes) = subject();
        actor.send(Order::WaitTwice).await.unwrap();
        let queued = Cell::new(false);
        let note = async {
            actor.send(Order::Note).await.unwrap();
            queued.set(true);
        };
        let look = async {
            settle().await;
            assert!(!queued.get(), "the actor is deaf meanwhile");
        };
        futures::join!(note, look);

        assert_eq!(*notes.borrow(), ["started", "second wait", "first wait", "note"]);
    });
}
