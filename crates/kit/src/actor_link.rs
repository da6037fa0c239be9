//! How a work queue reaches the actor of a key.

use std::{
    cell::OnceCell,
    rc::{Rc, Weak},
};

use actix::{Message, Recipient};

use super::GeneralController;

/// What the queue holds of an actor. It does not keep the object, whose destructor may wake keys.
pub(super) struct ActorLink<C: GeneralController> {
    pub(super) orders: Recipient<Order>,
    object: Weak<OnceCell<Rc<C::Object>>>,
}

/// The object of an actor. Its first reconcile makes it.
pub(super) type SharedObject<C> = Rc<OnceCell<Rc<<C as GeneralController>::Object>>>;

#[derive(Message)]
#[rtype(result = "()")]
pub(super) enum Order {
    /// The queue entry holds work for the actor.
    Nudge,
    Stop,
}

impl<C: GeneralController> ActorLink<C> {
    pub(super) fn new(orders: Recipient<Order>, object: &SharedObject<C>) -> Self {
        Self { orders, object: Rc::downgrade(object) }
    }

    /// Returns the shared state of the actor, if a reconcile has made it.
    pub(super) fn object(&self) -> Option<Rc<C::Object>> {
        self.object.upgrade()?.get().cloned()
    }
}
