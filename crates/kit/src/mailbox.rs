//! The one way to send a message without waiting for its answer (contract rule 1).
//!
//! `do_send` ignores a mailbox's bound and is forbidden outside of here. A mailbox that is full or closed is counted and
//! reported to the caller, never ignored.

use actix::{Actor, Addr, Handler, Message, dev::ToEnvelope};

/// Sends `message` if there is room; false if the mailbox is full or its actor is gone.
pub fn post<A, M>(to: &Addr<A>, message: M) -> bool
where
    A: Actor + Handler<M>,
    A::Context: ToEnvelope<A, M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    match to.try_send(message) {
        Ok(()) => true,
        Err(refused) => {
            tracing::debug!(actor = std::any::type_name::<A>(), reason = %refused, "a message was not accepted");
            false
        }
    }
}
