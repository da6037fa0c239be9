//! The supervisor: one per controller. It owns the board, minds its timers, and starts actors again that died.

use std::{
    cell::RefCell,
    rc::{Rc, Weak},
    time::Duration,
};

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, StreamHandler, WrapFuture,
};
use futures::stream;

use super::{
    Activity, Cell, Controller, Env, Indispensable, Role, Signal, Wake,
    board::{Alarm, Board, Order, Shared},
    mailbox, needs, object,
};

/// A running controller: wakes go in here. Cheap to clone; for use on the controllers' arbiter.
pub struct Supervised<C: Controller> {
    board: Shared<C>,
    supervisor: Addr<Supervisor<C>>,
}

/// A way to a controller that does not keep it alive: for filters and listeners, which the controller may own itself.
pub struct WeakSupervised<C: Controller> {
    board: Weak<RefCell<Board<C>>>,
}

/// The actor behind [`Supervised`].
struct Supervisor<C: Controller> {
    board: Shared<C>,
    cell: Cell,
    /// Timers, back-offs and restarts end with this actor, so its process must not outlive it.
    lifeline: Indispensable,
}

/// Something for the supervisor to do.
enum Tick<K> {
    Timer(K, usize, Alarm),
    Death(K, u64),
}

#[derive(Message)]
#[rtype(result = "()")]
struct Stop;

impl<C: Controller> Supervised<C> {
    /// Starts the supervisor of a controller. Its actors come with the first wakes.
    pub fn start(controller: Rc<C>, env: &Env) -> Self {
        Self::start_cyclic(|_| controller, env)
    }

    /// The same for a controller that owns what wakes its keys. `make` is given the way to itself; wakes before it returns
    /// do nothing.
    pub fn start_cyclic(make: impl FnOnce(&WeakSupervised<C>) -> Rc<C>, env: &Env) -> Self {
        let board = Board::new(|board| make(&WeakSupervised { board: board.clone() }), object::start, env.clone());
        let name = board.borrow().controller.name();
        let cell = env.census.enter(name, Role::Supervisor);
        let lifeline = env.fatal.indispensable(format!("the supervisor of the controller {name}"));
        let supervisor = Supervisor { board: board.clone(), cell, lifeline }.start();
        Self { board, supervisor }
    }

    /// The way to it for those who do not own it.
    pub fn weak(&self) -> WeakSupervised<C> {
        WeakSupervised { board: Rc::downgrade(&self.board) }
    }

    /// Says that somebody should look at `key`. Never blocks, never fails, never gets lost while the process lives.
    pub fn wake(&self, key: &C::Key, wake: Wake<C::Ref>) {
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
            mailbox::post_to(&actor, Order::Stop);
        }
        if !mailbox::post(&self.supervisor, Stop) {
            // It has died, or was stopped before.
            let board = self.board.borrow();
            board.env.census.leave(board.controller.name());
        }
        finished
    }
}

impl<C: Controller> Clone for Supervised<C> {
    fn clone(&self) -> Self {
        Self { board: self.board.clone(), supervisor: self.supervisor.clone() }
    }
}

impl<C: Controller> WeakSupervised<C> {
    /// As [`Supervised::wake`]; does nothing once the controller is gone.
    pub fn wake(&self, key: &C::Key, wake: Wake<C::Ref>) {
        if let Some(board) = self.board.upgrade() {
            board.borrow_mut().wake(key, wake);
        }
    }
}

impl<C: Controller> Clone for WeakSupervised<C> {
    fn clone(&self) -> Self {
        Self { board: self.board.clone() }
    }
}

impl<C: Controller> Actor for Supervisor<C> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let now = self.board.borrow().env.clock.wall();
        self.cell.update(now, |state| state.activity = Activity::Idle);
        let board = self.board.clone();
        ctx.add_stream(stream::poll_fn(move |cx| {
            board.borrow_mut().poll_timer(cx).map(|(key, duty, alarm)| Some(Tick::Timer(key, duty, alarm)))
        }));
        ctx.spawn(needs::wait(self.board.borrow().needs(), self.board.borrow().env.clone()).into_actor(self));
        let deaths = self.board.borrow().deaths.clone();
        ctx.add_stream(stream::unfold(deaths, |deaths| async move {
            let (key, generation) = deaths.next().await;
            Some((Tick::Death(key, generation), deaths))
        }));
    }
}

impl<C: Controller> StreamHandler<Tick<C::Key>> for Supervisor<C> {
    fn handle(&mut self, tick: Tick<C::Key>, _: &mut Context<Self>) {
        let mut board = self.board.borrow_mut();
        match tick {
            Tick::Timer(key, duty, alarm) => board.timer_ended(&key, duty, alarm),
            Tick::Death(key, generation) => board.died(&key, generation),
        }
    }

    /// Neither stream ends before the supervisor does.
    fn finished(&mut self, _: &mut Context<Self>) {}
}

impl<C: Controller> Handler<Stop> for Supervisor<C> {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        self.lifeline.disarm();
        let now = self.board.borrow().env.clock.wall();
        self.cell.update(now, |state| state.activity = Activity::Stopped);
        self.board.borrow().env.census.leave(self.cell.path());
        // One turn later, so that the actors' own ends come first.
        ctx.spawn(tokio::task::yield_now().into_actor(self).map(|(), _, ctx| ctx.stop()));
    }
}
