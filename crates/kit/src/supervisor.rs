//! The supervisor: one per controller. It owns the board, minds its timers, and starts actors again that died.

use std::{rc::Rc, time::Duration};

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, StreamHandler, WrapFuture,
};
use futures::stream;

use super::{
    Activity, Cell, Controller, Env, Role, Signal, Wake,
    board::{Board, Shared},
    mailbox,
    object::Stop as StopActor,
};

/// A running controller: wakes go in here. Cheap to clone; for use on the controllers' arbiter.
pub struct Supervised<C: Controller> {
    board: Shared<C>,
    supervisor: Addr<Supervisor<C>>,
}

/// The actor behind [`Supervised`].
struct Supervisor<C: Controller> {
    board: Shared<C>,
    cell: Cell,
}

/// Something for the supervisor to do.
enum Tick<K> {
    Timer(K, usize),
    Death(K, u64),
}

#[derive(Message)]
#[rtype(result = "()")]
struct Stop;

// === impl Supervised ===

impl<C: Controller> Supervised<C> {
    /// Starts the supervisor of a controller. Its actors come with the first wakes.
    pub fn start(controller: Rc<C>, env: &Env) -> Self {
        let name = controller.name();
        let board = Board::new(controller, env.clone());
        let cell = env.census.enter(name, Role::Supervisor);
        let supervisor = Supervisor { board: board.clone(), cell }.start();
        Self { board, supervisor }
    }

    /// Says that somebody should look at `key`. Never blocks, never fails, never gets lost while the process lives.
    pub fn wake(&self, key: &C::Key, wake: Wake) {
        self.board.borrow_mut().wake(key, wake);
    }

    /// The controller.
    pub fn controller(&self) -> Rc<C> {
        self.board.borrow().controller.clone()
    }

    /// Keys that have a slot.
    pub fn len(&self) -> usize {
        self.board.borrow().len()
    }

    /// Whether no key has a slot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Passes under way.
    pub fn running(&self) -> usize {
        self.board.borrow().running()
    }

    /// Lets no new pass begin, waits until those under way have ended, at most for `patience`, and ends all actors.
    /// True if all passes ended by themselves.
    pub async fn stop(&self, patience: Duration) -> bool {
        let unfinished = self.board.borrow_mut().close();
        let finished = match unfinished {
            Some(moment) => tokio::time::timeout(patience, Signal::raised_after(&moment)).await.is_ok(),
            None => true,
        };
        let actors = self.board.borrow_mut().clear();
        for actor in actors {
            mailbox::post(&actor, StopActor);
        }
        mailbox::post(&self.supervisor, Stop);
        finished
    }
}

impl<C: Controller> Clone for Supervised<C> {
    fn clone(&self) -> Self {
        Self { board: self.board.clone(), supervisor: self.supervisor.clone() }
    }
}

// === impl Supervisor ===

impl<C: Controller> Actor for Supervisor<C> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let now = self.board.borrow().env.clock.wall();
        self.cell.update(now, |state| state.activity = Activity::Idle);
        let board = self.board.clone();
        ctx.add_stream(stream::poll_fn(move |cx| {
            board.borrow_mut().poll_timer(cx).map(|(key, duty)| Some(Tick::Timer(key, duty)))
        }));
        let deaths = self.board.borrow().deaths.clone();
        ctx.add_stream(stream::unfold(deaths, |deaths| async move {
            loop {
                let notice = deaths.notices.borrow_mut().pop_front();
                match notice {
                    Some((key, generation)) => return Some((Tick::Death(key, generation), deaths)),
                    None => deaths.bell.notified().await,
                }
            }
        }));
    }
}

impl<C: Controller> StreamHandler<Tick<C::Key>> for Supervisor<C> {
    fn handle(&mut self, tick: Tick<C::Key>, _: &mut Context<Self>) {
        let mut board = self.board.borrow_mut();
        match tick {
            Tick::Timer(key, duty) => board.timer_ended(&key, duty),
            Tick::Death(key, generation) => board.died(&key, generation),
        }
    }

    /// Neither stream ends before the supervisor does.
    fn finished(&mut self, _: &mut Context<Self>) {}
}

impl<C: Controller> Handler<Stop> for Supervisor<C> {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        let now = self.board.borrow().env.clock.wall();
        self.cell.update(now, |state| state.activity = Activity::Stopped);
        self.board.borrow().env.census.leave(self.cell.path());
        // One turn later, so that the actors' own ends come first.
        ctx.spawn(tokio::task::yield_now().into_actor(self).map(|(), _, ctx| ctx.stop()));
    }
}
