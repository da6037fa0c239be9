//! The only way to send a message without waiting for its answer (contract rule 1). `do_send` ignores a mailbox's bound
//! and is forbidden elsewhere. Full and closed mailboxes are logged and reported.

use actix::{Actor, Addr, Handler, Message, Recipient, dev::ToEnvelope, prelude::SendError};

/// Sends `message`. Returns false if the mailbox is full or its actor is gone.
pub fn post<A, M>(to: &Addr<A>, message: M) -> bool
where
    A: Actor + Handler<M>,
    A::Context: ToEnvelope<A, M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    accepted(to.try_send(message), std::any::type_name::<A>())
}

/// Like [`post`], for an actor of unknown type.
pub(crate) fn post_to<M>(to: &Recipient<M>, message: M) -> bool
where
    M: Message + Send + 'static,
    M::Result: Send,
{
    accepted(to.try_send(message), std::any::type_name::<M>())
}

fn accepted<M>(sent: Result<(), SendError<M>>, to: &'static str) -> bool {
    if let Err(refused) = &sent {
        tracing::debug!(actor = to, reason = %refused, "a message was not accepted");
    }
    sent.is_ok()
}
