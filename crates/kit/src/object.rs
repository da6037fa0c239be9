//! The object actor: looks after one key, runs the passes its slot has permits for.

use std::{cell::OnceCell, panic::AssertUnwindSafe, rc::Rc, time::Duration};

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, WrapFuture};
use futures::FutureExt;

use super::{
    Controller,
    board::{Deaths, Ended, Job, Shared},
};

/// A pass that ignores its deadline is dropped this much later (contract rule 7).
const DEADLINE_GRACE: Duration = Duration::from_secs(10);

/// The slot holds work for the actor. Empty: what is to be done stands in the slot.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Nudge;

/// End the actor.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Stop;

pub(super) struct ObjectActor<C: Controller> {
    board: Shared<C>,
    key: C::Key,
    /// Made by the first pass, within the limits of a pass: what a controller does there may panic, or wake keys.
    object: SharedObject<C>,
    /// One per duty; away while its pass runs, and after a panic.
    memories: Vec<Option<C::Memory>>,
    lifeline: Option<Lifeline<C::Key>>,
}

type SharedObject<C> = Rc<OnceCell<Rc<<C as Controller>::Object>>>;

/// Tells the supervisor of the actor's death, unless it was disarmed.
pub(super) struct Lifeline<K> {
    deaths: Rc<Deaths<K>>,
    notice: Option<(K, u64)>,
}

impl<C: Controller> ObjectActor<C> {
    pub(super) fn new(board: Shared<C>, key: C::Key, duties: usize, lifeline: Lifeline<C::Key>) -> Self {
        let memories = std::iter::repeat_with(|| None).take(duties).collect();
        Self { board, key, object: SharedObject::<C>::default(), memories, lifeline: Some(lifeline) }
    }

    fn run(&mut self, job: Job<C::Key, C::Ref>, ctx: &mut Context<Self>) {
        let duty = job.pass.duty;
        let memory = self.memories[duty].take();
        let controller = self.board.borrow().controller.clone();
        let running = run_pass(controller, self.object.clone(), memory, job);
        ctx.spawn(running.into_actor(self).map(move |(memory, ended), actor, ctx| {
            actor.memories[duty] = memory;
            let retired = actor.board.borrow_mut().ended(&actor.key, duty, ended);
            if retired {
                actor.end(ctx);
            }
        }));
    }

    fn end(&mut self, ctx: &mut Context<Self>) {
        if let Some(lifeline) = self.lifeline.take() {
            lifeline.disarm();
        }
        ctx.stop();
    }
}

/// Runs a pass within its limits. The memory comes back unless the pass panicked or was dropped.
async fn run_pass<C: Controller>(
    controller: Rc<C>,
    object: SharedObject<C>,
    memory: Option<C::Memory>,
    job: Job<C::Key, C::Ref>,
) -> (Option<C::Memory>, Ended) {
    let limit = job.limit.saturating_add(DEADLINE_GRACE);
    let pass = job.pass;
    let running = async move {
        let object = object.get_or_init(|| Rc::new(controller.object(&pass.key))).clone();
        let mut memory = memory.unwrap_or_default();
        let result = controller.pass(&object, &mut memory, &pass).await;
        (memory, result)
    };
    match tokio::time::timeout(limit, AssertUnwindSafe(running).catch_unwind()).await {
        Ok(Ok((memory, result))) => (Some(memory), Ended::Normally(result)),
        Ok(Err(_)) => (None, Ended::Panicked),
        Err(_) => (None, Ended::TimedOut),
    }
}

impl<C: Controller> Actor for ObjectActor<C> {
    type Context = Context<Self>;
}

impl<C: Controller> Handler<Nudge> for ObjectActor<C> {
    type Result = ();

    fn handle(&mut self, _: Nudge, ctx: &mut Context<Self>) {
        let jobs = self.board.borrow_mut().begin(&self.key);
        for job in jobs {
            self.run(job, ctx);
        }
    }
}

impl<C: Controller> Handler<Stop> for ObjectActor<C> {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        self.end(ctx);
    }
}

// === impl Lifeline ===

impl<K> Lifeline<K> {
    pub(super) fn new(deaths: Rc<Deaths<K>>, key: K, generation: u64) -> Self {
        Self { deaths, notice: Some((key, generation)) }
    }

    fn disarm(mut self) {
        self.notice = None;
    }
}

impl<K> Drop for Lifeline<K> {
    /// May run while a panic unwinds, so it must not panic itself: nobody holds the notices across other code.
    fn drop(&mut self) {
        if let (Some(notice), Ok(mut notices)) = (self.notice.take(), self.deaths.notices.try_borrow_mut()) {
            notices.push_back(notice);
            self.deaths.bell.notify_one();
        }
    }
}
