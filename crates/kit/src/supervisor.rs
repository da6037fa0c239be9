//! The supervisor: one per controller. It owns the work queue, runs its timers, and restarts actors that died.

use std::{
    cell::RefCell,
    rc::{Rc, Weak},
    time::Duration,
};

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, MessageResult, StreamHandler,
    WrapFuture,
};
use futures::stream;

use super::{
    Activity, Cell, Env, GeneralController, Indispensable, ObjectSummary, Role, Signal, Wake,
    actor_link::Order,
    mailbox, object,
    status_registry::Question,
    sync_requirements,
    work_queue::{Alarm, Shared, WorkQueue, describe},
};

/// A running controller: wakes go in here. Cheap to clone; for use on the controllers' arbiter.
pub struct Supervised<C: GeneralController> {
    queue: Shared<C>,
    supervisor: Addr<Supervisor<C>>,
}

/// A weak reference to a controller: for event handlers and listeners, which the controller may own itself.
pub struct WeakSupervised<C: GeneralController> {
    queue: Weak<RefCell<WorkQueue<C>>>,
}

struct Supervisor<C: GeneralController> {
    queue: Shared<C>,
    cell: Cell,
    /// Timers, back-offs and restarts end with this actor, so its process must not outlive it.
    lifeline: Indispensable,
}

enum Tick<K> {
    Timer(K, usize, Alarm),
    Death(K, u64),
}

#[derive(Message)]
#[rtype(result = "()")]
struct Stop;

impl<C: GeneralController> Supervised<C> {
    /// Starts the supervisor of a controller. The first wakes start its actors.
    pub fn start(controller: Rc<C>, env: &Env) -> Self {
        Self::start_cyclic(|_| controller, env)
    }

    /// As `start`, for a controller that owns its event handlers. Wakes do nothing before `make` returns.
    pub fn start_cyclic(make: impl FnOnce(&WeakSupervised<C>) -> Rc<C>, env: &Env) -> Self {
        let queue = WorkQueue::new(|queue| make(&WeakSupervised { queue: queue.clone() }), object::start, env.clone());
        let name = queue.borrow().controller.name();
        let cell = env.status_registry.enter(name, Role::Supervisor);
        let lifeline = env.fatal.indispensable(format!("the supervisor of the controller {name}"));
        let supervisor = Supervisor { queue: queue.clone(), cell, lifeline }.start();
        Self { queue, supervisor }
    }

    /// Returns a weak reference.
    pub fn weak(&self) -> WeakSupervised<C> {
        WeakSupervised { queue: Rc::downgrade(&self.queue) }
    }

    /// Wakes `key`. Never blocks, never fails, and never gets lost while the process lives.
    pub fn wake(&self, key: &C::Key, wake: Wake<C::Ref>) {
        self.queue.borrow_mut().wake(key, wake);
    }

    /// Returns the controller.
    pub fn controller(&self) -> Rc<C> {
        self.queue.borrow().controller.clone()
    }

    /// Starts no more reconciles, waits up to `patience`, stops all actors. True if all reconciles ended by themselves.
    pub async fn stop(&self, patience: Duration) -> bool {
        let unfinished = self.queue.borrow_mut().close();
        let finished = match unfinished {
            Some(moment) => tokio::time::timeout(patience, Signal::raised_after(&moment)).await.is_ok(),
            None => true,
        };
        let actors = self.queue.borrow_mut().clear();
        for actor in actors {
            mailbox::post_to(&actor, Order::Stop);
        }
        if !mailbox::post(&self.supervisor, Stop) {
            // It has died, or was stopped before.
            let queue = self.queue.borrow();
            queue.env.status_registry.leave(queue.controller.name());
        }
        finished
    }
}

#[cfg(test)]
impl<C: GeneralController> Supervised<C> {
    /// Returns the number of keys that have a queue entry.
    pub(super) fn len(&self) -> usize {
        self.queue.borrow().len()
    }

    /// Returns true if no key has a queue entry.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of running reconciles.
    pub(super) fn running(&self) -> usize {
        self.queue.borrow().running()
    }
}

impl<C: GeneralController> Clone for Supervised<C> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), supervisor: self.supervisor.clone() }
    }
}

impl<C: GeneralController> WeakSupervised<C> {
    /// As [`Supervised::wake`]; does nothing once the controller is gone.
    pub fn wake(&self, key: &C::Key, wake: Wake<C::Ref>) {
        if let Some(queue) = self.queue.upgrade() {
            queue.borrow_mut().wake(key, wake);
        }
    }

    /// Shows in the status registry what is wrong with the object of `key`, `None` if nothing is. Does nothing for a key
    /// without an actor: wake it first.
    pub fn set_problem(&self, key: &C::Key, problem: Option<String>) {
        if let Some(queue) = self.queue.upgrade() {
            queue.borrow().set_problem(key, problem);
        }
    }

    /// Shows in the status registry the object of `key`, and what is wrong with it. Does nothing for a key without an
    /// actor: wake it first.
    pub fn set_object(&self, key: &C::Key, object: Option<ObjectSummary>, problem: Option<String>) {
        if let Some(queue) = self.queue.upgrade() {
            queue.borrow().set_object(key, object, problem);
        }
    }
}

impl<C: GeneralController> Clone for WeakSupervised<C> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone() }
    }
}

impl<C: GeneralController> Actor for Supervisor<C> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let now = self.queue.borrow().env.clock.wall();
        self.cell.update(now, |state| state.activity = Activity::Idle);
        let registry = self.queue.borrow().env.status_registry.clone();
        registry.answered_by(self.cell.path(), ctx.address().recipient().downgrade());
        let queue = self.queue.clone();
        ctx.add_stream(stream::poll_fn(move |cx| {
            queue.borrow_mut().poll_timer(cx).map(|(key, reconciler, alarm)| Some(Tick::Timer(key, reconciler, alarm)))
        }));
        ctx.spawn(
            sync_requirements::wait(self.queue.borrow().sync_waits(), self.queue.borrow().env.clone()).into_actor(self),
        );
        let queue = self.queue.clone();
        ctx.add_stream(stream::poll_fn(move |cx| {
            queue.borrow_mut().poll_death(cx).map(|death| death.map(|(key, generation)| Tick::Death(key, generation)))
        }));
    }
}

impl<C: GeneralController> StreamHandler<Tick<C::Key>> for Supervisor<C> {
    fn handle(&mut self, tick: Tick<C::Key>, _: &mut Context<Self>) {
        let mut queue = self.queue.borrow_mut();
        match tick {
            Tick::Timer(key, reconciler, alarm) => queue.timer_ended(&key, reconciler, alarm),
            Tick::Death(key, generation) => queue.died(&key, generation),
        }
    }

    /// Neither stream ends before the supervisor does.
    fn finished(&mut self, _: &mut Context<Self>) {}
}

impl<C: GeneralController> Handler<Question> for Supervisor<C> {
    type Result = MessageResult<Question>;

    fn handle(&mut self, question: Question, _: &mut Context<Self>) -> Self::Result {
        MessageResult(describe(&self.queue, &question.path))
    }
}

impl<C: GeneralController> Handler<Stop> for Supervisor<C> {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        self.lifeline.disarm();
        let now = self.queue.borrow().env.clock.wall();
        self.cell.update(now, |state| state.activity = Activity::Stopped);
        let registry = &self.queue.borrow().env.status_registry;
        registry.unanswered(self.cell.path());
        registry.leave(self.cell.path());
        // One turn later, so that the actors end first.
        ctx.spawn(tokio::task::yield_now().into_actor(self).map(|(), _, ctx| ctx.stop()));
    }
}
