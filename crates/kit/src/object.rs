//! The object actor: owns one key, and runs the reconciles for which its queue entry has permits.

use std::{panic::AssertUnwindSafe, rc::Rc, time::Duration};

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};
use futures::FutureExt;
use tracing::Instrument as _;

use super::{
    GeneralController,
    actor_link::{ActorLink, Order, SharedObject},
    deaths::Lifeline,
    work_queue::{Ended, Job, Shared},
};

/// A reconcile that ignores its deadline is dropped this much later (contract rule 7).
const DEADLINE_GRACE: Duration = Duration::from_secs(10);

struct ObjectActor<C: GeneralController> {
    queue: Shared<C>,
    key: C::Key,
    /// Made by the first reconcile, within its limits, because the controller's code may panic or wake keys there.
    object: SharedObject<C>,
    /// One per reconciler. Absent before its first reconcile, while a reconcile runs, and after a panic.
    memories: Vec<Option<C::Memory>>,
    lifeline: Option<Lifeline<C::Key>>,
}

pub(super) fn start<C: GeneralController>(
    queue: Shared<C>,
    key: C::Key,
    reconcilers: usize,
    lifeline: Lifeline<C::Key>,
) -> ActorLink<C> {
    let memories = std::iter::repeat_with(|| None).take(reconcilers).collect();
    let object = SharedObject::<C>::default();
    let shared = object.clone();
    let actor = ObjectActor { queue, key, object, memories, lifeline: Some(lifeline) }.start();
    ActorLink::new(actor.recipient(), &shared)
}

impl<C: GeneralController> ObjectActor<C> {
    fn run(&mut self, job: Job<C::Key, C::Ref>, ctx: &mut Context<Self>) {
        let reconciler = job.reconcile.reconciler;
        let memory = self.memories[reconciler].take();
        let controller = self.queue.borrow().controller.clone();
        let running = run_reconcile(controller, self.object.clone(), memory, job);
        ctx.spawn(running.into_actor(self).map(move |(memory, ended), actor, ctx| {
            actor.memories[reconciler] = memory;
            let retired = actor.queue.borrow_mut().ended(&actor.key, reconciler, ended);
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

/// Runs a reconcile within its limits. Returns the memory unless the reconcile panicked or was dropped.
async fn run_reconcile<C: GeneralController>(
    controller: Rc<C>,
    object: SharedObject<C>,
    memory: Option<C::Memory>,
    job: Job<C::Key, C::Ref>,
) -> (Option<C::Memory>, Ended) {
    let Job { reconcile, span } = job;
    let end = reconcile.deadline.0 + DEADLINE_GRACE;
    let running = async move {
        let object = object.get_or_init(|| Rc::new(controller.object(&reconcile.key))).clone();
        let mut memory = memory.unwrap_or_default();
        let result = controller.reconcile(&object, &mut memory, &reconcile).await;
        (memory, result)
    }
    .instrument(span);
    match tokio::time::timeout_at(end, AssertUnwindSafe(running).catch_unwind()).await {
        Ok(Ok((memory, result))) => (Some(memory), Ended::Normally(result)),
        Ok(Err(_)) => (None, Ended::Panicked),
        Err(_) => (None, Ended::TimedOut),
    }
}

impl<C: GeneralController> Actor for ObjectActor<C> {
    type Context = Context<Self>;
}

impl<C: GeneralController> Handler<Order> for ObjectActor<C> {
    type Result = ();

    fn handle(&mut self, order: Order, ctx: &mut Context<Self>) {
        match order {
            Order::Nudge => {
                let jobs = self.queue.borrow_mut().begin(&self.key);
                for job in jobs {
                    self.run(job, ctx);
                }
            }
            Order::Stop => self.end(ctx),
        }
    }
}
