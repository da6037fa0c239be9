//! How a supervisor learns that an actor died (contract rule 6).

use std::{cell::RefCell, collections::VecDeque, rc::Rc};

use tokio::sync::Notify;

/// Death notices of actors. Apart from the work queue, because an actor may die while the queue is borrowed.
pub(super) struct Deaths<K> {
    notices: RefCell<VecDeque<(K, u64)>>,
    bell: Notify,
}

/// Reports the death of the actor that holds it, unless it was disarmed.
pub(super) struct Lifeline<K> {
    deaths: Rc<Deaths<K>>,
    notice: Option<(K, u64)>,
}

impl<K> Deaths<K> {
    pub(super) fn new() -> Self {
        Self { notices: RefCell::default(), bell: Notify::new() }
    }

    pub(super) async fn next(&self) -> (K, u64) {
        loop {
            let notice = self.notices.borrow_mut().pop_front();
            match notice {
                Some(notice) => return notice,
                None => self.bell.notified().await,
            }
        }
    }
}

impl<K> Lifeline<K> {
    pub(super) fn new(deaths: Rc<Deaths<K>>, key: K, generation: u64) -> Self {
        Self { deaths, notice: Some((key, generation)) }
    }

    pub(super) fn disarm(mut self) {
        self.notice = None;
    }
}

impl<K> Drop for Lifeline<K> {
    /// May run while a panic unwinds, so it must not panic: no borrow of the notices spans other code.
    fn drop(&mut self) {
        if let (Some(notice), Ok(mut notices)) = (self.notice.take(), self.deaths.notices.try_borrow_mut()) {
            notices.push_back(notice);
            self.deaths.bell.notify_one();
        }
    }
}
