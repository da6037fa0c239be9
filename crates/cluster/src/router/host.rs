//! The actor that hosts the loops of a router.

use std::rc::Rc;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message, WrapFuture};

use super::{Core, Record};

/// Hosts a router's loops, one per scope.
pub(super) struct RouterActor<R: Record> {
    pub(super) core: Rc<Core<R>>,
}

/// Ends all loops.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Stop;

// === impl RouterActor ===

impl<R: Record> Unpin for RouterActor<R> {}

impl<R: Record> Actor for RouterActor<R> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        for index in 0..self.core.scopes.len() {
            ctx.spawn(self.core.clone().run(index).into_actor(self));
        }
    }
}

impl<R: Record> Handler<Stop> for RouterActor<R> {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}
